"""What a protocol is: a way to turn delegations into messages, and how one is found by its id.

A protocol writes drafts; the base class does for all of them what must never differ between rows: empty and tiny
delegations, the check that identifiers survived, the fall-back to prose when they did not, and the counting.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from graphhandoff.compress.graph import HandoffGraph
from graphhandoff.compress.identifiers import find_identifiers, find_lost_identifiers
from graphhandoff.compress.tokens import DEFAULT_TOKENIZER, count_tokens

Route = Literal["graph", "natural_language", "compressed"]
Flag = Literal["empty", "too_short"]

SHORTEST_PROSE_WORDS = 4
"""Prose with fewer words and no identifier is sent as it is: nothing can be gained by compressing it."""


class CheckpointMissingError(Exception):
    """A protocol cannot run because the model it needs is not there; the message names what makes it."""


class UnknownProtocolError(ValueError):
    """No protocol has that id."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ToolCall(_Record):
    """One call of a tool: its name and its arguments as JSON values."""

    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)


class ToolParameter(_Record):
    """One parameter as a tool publishes it; ``type`` is a JSON schema type, ``items`` that of an array's items."""

    name: str
    type: Literal["string", "integer", "number", "boolean", "array", "object"]
    description: str = ""
    required: bool = True
    items: str | None = None


class ToolSpec(_Record):
    """A tool as the executor sees it: name, description and parameters in published order."""

    name: str
    description: str = ""
    parameters: tuple[ToolParameter, ...] = ()

    @property
    def signature(self) -> tuple[str, ...]:
        """Parameter names in published order."""
        return tuple(parameter.name for parameter in self.parameters)


class Delegation(_Record):
    """What the orchestrator wants done for one task, as ``prose`` and (when it has one) as ``graph``.

    ``task_text`` is what the customer asked for: the only thing a router may look at.
    """

    task_id: str
    prose: str
    graph: HandoffGraph | None = None
    task_text: str = ""

    def iter_plan_identifiers(self) -> Iterator[str]:
        """Yield every identifier an executor needs: in the graph's argument values and in what it has to tell.

        Without a graph nobody knows which are needed: all of the prose.
        """
        if self.graph is None:
            yield from find_identifiers(self.prose)
            return
        for text in self.graph.iter_texts("postcondition"):
            yield from find_identifiers(text)
        for node in self.graph.nodes:
            if node.type == "tool_arg":
                for text in iter_strings(node.value):
                    yield from find_identifiers(text)

    def iter_plan_lists(self) -> Iterator[list[list[str]]]:
        """Yield, for every call of the graph that takes lists, the identifiers of each list, repeats included."""
        for call in self.graph.iter_calls() if self.graph is not None else ():
            lists = [
                [found for text in iter_strings(argument.value) for found in find_identifiers(text)]
                for argument in call.arguments
                if isinstance(argument.value, list)
            ]
            if any(lists):
                yield lists

    def iter_told(self) -> Iterator[str]:
        """Yield what the customer must be told, by the graph's postconditions *tell …*; nothing without a graph."""
        for text in self.graph.iter_texts("postcondition") if self.graph is not None else ():
            verb, _, value = text.partition(" ")
            if verb == "tell" and value:
                yield value


class Draft(_Record):
    """What a protocol proposes to send for one delegation, before it is checked."""

    text: str
    route: Route
    fallback: str | None = None
    details: dict[str, JsonValue] = Field(default_factory=dict)


class Message(_Record):
    """The text that crosses, what it costs, which protocol wrote it, and how it was routed.

    ``fallback`` says why the prose was sent instead of what the protocol wrote; ``identifiers_lost`` lists the
    plan's identifiers that cannot be read from the message (after the receiver's half of the protocol).
    """

    task_id: str
    protocol: str
    text: str
    route: Route
    n_tokens: int = Field(ge=0)
    n_prose_tokens: int = Field(ge=0)
    tokenizer: str
    fallback: str | None = None
    flags: tuple[Flag, ...] = Field(default=(), strict=False)
    n_identifiers: int = Field(ge=0)
    identifiers_lost: tuple[str, ...] = Field(default=(), strict=False)
    details: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def compression(self) -> float:
        """Tokens of the prose divided by tokens of this message; 1.0 when both are empty."""
        return self.n_prose_tokens / self.n_tokens if self.n_tokens else 1.0

    @property
    def identifier_recall(self) -> float:
        """Share of the plan's distinct identifiers that the message carries, 0 to 1; 1.0 when there are none."""
        return 1.0 - len(self.identifiers_lost) / self.n_identifiers if self.n_identifiers else 1.0


class Protocol(ABC):
    """One way to write handoffs. Subclasses set the class attributes and implement :meth:`draft`.

    ``schema_aware`` says that the protocol knows the graph's schema and so may drop what the plan does not need;
    every other protocol must keep all identifiers of the prose. ``trained`` says that it needs a checkpoint.
    """

    id: ClassVar[str]
    schema_aware: ClassVar[bool]
    trained: ClassVar[bool]

    def __init__(self, tokenizer: str = DEFAULT_TOKENIZER) -> None:
        self.tokenizer = tokenizer

    @property
    def fingerprint(self) -> str | None:
        """What decides the messages besides the settings, trained weights for one; ``None`` if nothing does."""
        return None

    @abstractmethod
    def draft(self, delegations: Sequence[Delegation]) -> list[Draft]:
        """Write one draft per delegation, in order. Never called with empty or tiny prose."""

    def decode(self, text: str) -> str:
        """Turn a received message into what the executor reads: the receiver's half, the identity for most."""
        return text

    def encode(self, delegations: Sequence[Delegation]) -> list[Message]:
        """Write one message per delegation, in order.

        A draft that loses an identifier it must keep is replaced by the prose, and the message says so. Empty prose
        gives an empty message flagged ``empty``; prose of under four words without an identifier crosses unchanged,
        flagged ``too_short``.

        Raises:
            CheckpointMissingError: the protocol needs a model that is not there.
        """
        flags: list[tuple[Flag, ...]] = [_flags_of(delegation) for delegation in delegations]
        pending = [d for d, flag in zip(delegations, flags, strict=True) if not flag]
        drafts = iter(self.draft(pending) if pending else ())
        return [
            self._finish(delegation, _plain(delegation) if flag else next(drafts), flag)
            for delegation, flag in zip(delegations, flags, strict=True)
        ]

    def _finish(self, delegation: Delegation, draft: Draft, flags: tuple[Flag, ...]) -> Message:
        plan = tuple(dict.fromkeys(delegation.iter_plan_identifiers()))
        must_keep = plan if self.schema_aware else tuple(dict.fromkeys(find_identifiers(delegation.prose)))
        lost = find_lost_identifiers(must_keep, self._readable(draft))
        if lost and draft.route != "natural_language":
            draft = Draft(
                text=delegation.prose,
                route="natural_language",
                fallback=f"{len(lost)} of {len(must_keep)} identifiers lost: {', '.join(lost[:5])}",
                details={**draft.details, "unsent": draft.text},
            )
        return Message(
            task_id=delegation.task_id,
            protocol=self.id,
            text=draft.text,
            route=draft.route,
            n_tokens=count_tokens(draft.text, self.tokenizer),
            n_prose_tokens=count_tokens(delegation.prose, self.tokenizer) if "empty" not in flags else 0,
            tokenizer=self.tokenizer,
            fallback=draft.fallback,
            flags=flags,
            n_identifiers=len(plan),
            identifiers_lost=find_lost_identifiers(plan, self._readable(draft)),
            details=draft.details,
        )

    def _readable(self, draft: Draft) -> str:
        return draft.text if draft.route == "natural_language" else self.decode(draft.text)


def _flags_of(delegation: Delegation) -> tuple[Flag, ...]:
    if delegation.graph is not None:
        return ()
    if not delegation.prose.strip():
        return ("empty",)
    if len(delegation.prose.split()) < SHORTEST_PROSE_WORDS and not find_identifiers(delegation.prose):
        return ("too_short",)
    return ()


def _plain(delegation: Delegation) -> Draft:
    return Draft(text=delegation.prose if delegation.prose.strip() else "", route="natural_language")


def iter_strings(value: JsonValue) -> Iterator[str]:
    """Yield every text in a JSON value, in order, however deep; keys are left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from iter_strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from iter_strings(item)


_CLASSES: Mapping[str, str | None] = {
    "natural_language": "NaturalLanguage",
    "routed_ngh": "RoutedNGH",
    "qwen_emitter": None,
    "t5_autoencoder": None,
    "hybrid": "Hybrid",
    "llmlingua2": "LLMLingua2",
    "predictive_delta": "PredictiveDelta",
    "tfidf": "TfIdf",
}

_TRAINED_BY: Mapping[str, str] = {
    "qwen_emitter": "graphhandoff train emitter-grpo --config configs/emitter/cpu_tiny.yaml",
    "t5_autoencoder": "graphhandoff train autoencoder --config configs/autoencoder/cpu_tiny.yaml",
}

PROTOCOL_IDS: tuple[str, ...] = tuple(_CLASSES)
"""The eight protocols in the paper's order; an id is also its module, configuration key and table row."""


def load_protocol_class(protocol_id: str) -> type[Protocol]:
    """Import the one module that a protocol lives in and return its class.

    Raises:
        UnknownProtocolError: no protocol has that id; the message lists those that exist.
        CheckpointMissingError: the protocol's model cannot be made by this version; names the command that will.
    """
    from importlib import import_module

    if protocol_id not in _CLASSES:
        raise UnknownProtocolError(
            f"unknown protocol {protocol_id!r}; allowed: {', '.join(PROTOCOL_IDS)}. Choose one of these."
        )
    class_name = _CLASSES[protocol_id]
    if class_name is None:
        raise CheckpointMissingError(
            f"no checkpoint: `{_TRAINED_BY[protocol_id]}` makes it; that command is not in this version yet"
        )
    module: Any = import_module(f"graphhandoff.compress.{protocol_id}")
    protocol_class: type[Protocol] = getattr(module, class_name)
    return protocol_class
