"""The configuration of a token classifier: encoder, data, optimisation, and what is saved."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from graphhandoff.configs.wandb import WandbConfig
from graphhandoff.train.encoders import EncoderConfig


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class PairDataConfig(_Config):
    """Where the pairs come from.

    ``path`` is a file of pairs (see ``read_pairs``). Without one they are made: from the first ``n_examples`` synthetic
    delegations of ``seed`` those whose words to keep still give the whole plan to the literal reader, and the
    hand-written training delegations, each ``hand_written_repeats`` times. Measured is on the hand-written validation
    delegations, which share a customer with a pinned task and are never learnt from. ``split`` names the pinned tasks,
    whose customers are left out. To bring synthetic prose nearer to real one, ``asides`` (mean number) sentences of
    hand-written delegations that no graph needs are put into each, and ``word_noise`` of the words to drop are replaced
    by others. ``n_workers`` processes make the pairs, with the same result for any number.
    """

    seed: int
    path: str | None = None
    n_examples: int = Field(default=9000, ge=1)
    hand_written_repeats: int = Field(default=8, ge=0)
    asides: float = Field(default=4.0, ge=0)
    word_noise: float = Field(default=0.1, ge=0, le=1)
    split: str = "retail_pinned_50"
    n_workers: int = Field(default=2, ge=1)


class OptimisationConfig(_Config):
    """How it learns.

    ``max_steps`` overrides ``epochs``. ``clip`` is the largest norm of the gradient. ``max_length`` is that of a
    window in tokens, special ones included; above 402 it makes no difference. ``keep_weight`` is how often a piece to
    keep counts in the loss. Every ``save_steps`` steps there is a checkpoint to resume from, every ``log_steps`` a
    line in the log.
    """

    epochs: float = Field(default=3.0, gt=0)
    max_steps: int | None = Field(default=None, ge=1)
    batch_size: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=5e-5, gt=0)
    warmup_ratio: float = Field(default=0.1, ge=0, lt=1)
    weight_decay: float = Field(default=0.01, ge=0)
    clip: float = Field(default=1.0, gt=0)
    max_length: int = Field(default=512, ge=16, le=512)
    keep_weight: float = Field(default=1.0, gt=0)
    save_steps: int = Field(default=200, ge=1)
    log_steps: int = Field(default=10, ge=1)


class TokenClassifierConfig(_Config):
    """A token classifier to train. ``rate`` is the share of words to keep at which it is measured."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    seed: int
    encoder: EncoderConfig
    data: PairDataConfig
    optimisation: OptimisationConfig = OptimisationConfig()
    rate: float = Field(default=0.25, gt=0, le=1)
    precision: Literal["fp32", "bf16"] = "fp32"
    device: Literal["cpu", "cuda", "mps"] = "cpu"
    save_dtype: Literal["float32", "float16"] = "float32"
    wandb: WandbConfig = WandbConfig()
    runs_directory: str = "runs"

    @field_validator("precision", mode="before")
    @classmethod
    def _no_half_precision(cls, precision: object) -> object:
        if precision == "fp16":
            raise ValueError(
                "fp16 overflows to inf and NaN without loss scaling, whose state this trainer could not resume; "
                "allowed: fp32, bf16. Pass --set precision=bf16 on a GPU that has it, else leave the key out"
            )
        return precision

    def resolved(self) -> dict[str, Any]:
        """Return what decides the weights and figures: everything but where they lie and who is told."""
        kept = self.model_dump(mode="json", exclude={"name", "runs_directory", "wandb"})
        kept["data"].pop("n_workers")
        return kept
