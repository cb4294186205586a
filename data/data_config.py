"""The configuration of a data set, and how it is cut into shards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from graphhandoff.data.rewrite import ProseConfig
from graphhandoff.data.shards import HAND_WRITTEN, Recipe, Shard
from graphhandoff.data.synthesize import SynthesisConfig


class DataConfig(BaseModel):
    """A data set. It is written to ``<output_directory>/<name>/``.

    Args:
        seed: of the problems and their prose.
        n_examples: synthetic ones; the hand-written are added to them.
        split: the pinned tasks, whose customers are left out.
        hand_written: add the hand-written delegations to ``validation``.
        shard_size: examples that are made, and after a kill made again, together.
        n_workers: processes; 1 makes everything in this one.
        synthesis: what the problems look like; ``seed`` and ``split`` are taken from above.
        prose: who tells them.
        push_to_hub: a repository name (``somebody/retail``) to upload the finished set to.
        private: of a repository that is created for it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    seed: int
    n_examples: int = Field(ge=1)
    split: str = "retail_pinned_50"
    hand_written: bool = True
    shard_size: int = Field(default=5_000, ge=1)
    n_workers: int = Field(default=1, ge=1)
    output_directory: str = "runs/data"
    synthesis: SynthesisConfig
    prose: ProseConfig = ProseConfig()
    push_to_hub: str | None = None
    private: bool = True

    @model_validator(mode="before")
    @classmethod
    def _share_seed_and_split(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or not isinstance(values.get("synthesis", {}) or {}, Mapping):
            return values
        shared = {"seed": values.get("seed"), "split": values.get("split", cls.model_fields["split"].default)}
        own = dict(values.get("synthesis") or {})
        for key in shared.keys() & own.keys():
            if own[key] != shared[key]:
                raise ValueError(
                    f"synthesis.{key} is {own[key]!r}, {key} is {shared[key]!r}; set {key} at the top only"
                )
        return {**values, "synthesis": {**own, **shared}}

    @property
    def folder(self) -> Path:
        """Where the set is written."""
        return Path(self.output_directory, self.name)

    @property
    def recipe(self) -> Recipe:
        """What the examples are made by."""
        return Recipe(self.synthesis, self.prose)

    def resolved(self) -> dict[str, Any]:
        """Return what decides the content: everything but where it is made and who is sent it."""
        elsewhere = {"name", "n_workers", "output_directory", "push_to_hub", "private"}
        return self.model_dump(mode="json", exclude=elsewhere)

    def shards(self) -> tuple[Shard, ...]:
        """Cut the stream; shards are numbered from 0 and do not depend on the workers."""
        starts = range(0, self.n_examples, self.shard_size)
        shards = [
            Shard(f"{number:05d}", start, min(start + self.shard_size, self.n_examples))
            for number, start in enumerate(starts)
        ]
        return (*([Shard(HAND_WRITTEN, 0, 0)] if self.hand_written else []), *shards)
