"""The settings of each protocol as a configuration names them, and how a protocol is built from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from graphhandoff.compress.protocol import Protocol, load_protocol_class
from graphhandoff.compress.routed_ngh import RouterName, build_router
from graphhandoff.compress.wire import Wire
from graphhandoff.data.delegations import load_training_delegations, load_training_plans
from graphhandoff.data.retail import Split, load_tools


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class NoSettings(_Settings):
    """A protocol without settings."""


class RoutedNGHSettings(_Settings):
    """``router``: rules, always_graph or natural_language; ``wire``: compact or json."""

    router: RouterName = "rules"
    wire: Wire = "compact"


class LLMLinguaSettings(_Settings):
    """Which token classifier, and how much it keeps.

    ``model``: hub id or local folder; none is the small one that comes with the package. ``rate``: share of words to
    keep; ``threshold``: probability over which a word is kept. One of the two; a threshold if neither is named.
    """

    model: str | None = None
    revision: str | None = None
    rate: float | None = Field(default=None, gt=0, le=1)
    threshold: float | None = Field(default=None, gt=0, lt=1)
    device: Literal["cpu", "cuda", "mps"] = "cpu"

    @model_validator(mode="after")
    def _one_of_two(self) -> LLMLinguaSettings:
        if self.rate is not None and self.threshold is not None:
            raise ValueError(f"rate {self.rate} and threshold {self.threshold} are both set; name one of them")
        return self


class TfIdfSettings(_Settings):
    """``rate``: share of the words to keep."""

    rate: float = Field(default=0.3, gt=0, le=1)


class ProtocolsConfig(_Settings):
    """The rows of a comparison: a protocol that is not named has no row."""

    natural_language: NoSettings | None = None
    routed_ngh: RoutedNGHSettings | None = None
    qwen_emitter: NoSettings | None = None
    t5_autoencoder: NoSettings | None = None
    hybrid: LLMLinguaSettings | None = None
    llmlingua2: LLMLinguaSettings | None = None
    predictive_delta: NoSettings | None = None
    tfidf: TfIdfSettings | None = None

    def iter_rows(self) -> Mapping[str, BaseModel]:
        """Return the settings of the protocols that are named, by id, in the table's order."""
        rows = ((name, getattr(self, name)) for name in type(self).model_fields)
        return {name: settings for name, settings in rows if settings is not None}


def build_protocol(protocol_id: str, settings: BaseModel, tokenizer: str, pinned: Split) -> Protocol:
    """Build a protocol on the retail domain: its tools, and training material where it needs some.

    Args:
        protocol_id: one of the eight.
        settings: its settings.
        tokenizer: for counting.
        pinned: the split under test; nothing about its tasks or their customers is used as training material.

    Raises:
        UnknownProtocolError: no such protocol.
        CheckpointMissingError: its model is not there; names the command that makes it. Protocols that load a model
            at first use raise it from ``encode``.
    """
    protocol_class: Any = load_protocol_class(protocol_id)
    values = settings.model_dump()
    protocol: Protocol
    if protocol_id == "routed_ngh":
        protocol = protocol_class(load_tools(), build_router(values["router"]), values["wire"], tokenizer)
        return protocol
    if protocol_id == "tfidf":
        values["training_prose"] = [delegation.prose for delegation in load_training_delegations(pinned)]
    if protocol_id == "hybrid":
        values["tools"] = load_tools()
    if protocol_id == "predictive_delta":
        values.update(library=load_training_plans(pinned), tools=load_tools())
    protocol = protocol_class(tokenizer=tokenizer, **values)
    return protocol
