"""Where a run is logged to Weights & Biases, and how a run is opened there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator

NO_KEY = "W&B: no key found, logged offline; run `wandb login`, then `wandb sync` the folder below"


class WandbConfig(BaseModel):
    """Where to log: ``off`` logs nothing, ``offline`` writes files to sync later, ``online`` needs a key."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    mode: Literal["off", "offline", "online"] = "off"
    project: str = "graphhandoff"
    entity: str | None = None

    @field_validator("mode", mode="before")
    @classmethod
    def _off_is_false_in_yaml(cls, mode: object) -> object:
        return "off" if mode is False else mode


def open_wandb_run(
    config: WandbConfig, group: str, job_type: str, directory: Path, values: Mapping[str, Any], notices: list[str]
) -> tuple[Any, str]:
    """Open a run and return it with the mode it got; without a key ``online`` becomes ``offline``, with a notice.

    An unattended run would stop at wandb's prompt otherwise. Whatever wandb raises comes through.
    """
    import wandb

    mode = "online" if config.mode == "online" else "offline"
    if mode == "online" and not (os.environ.get("WANDB_API_KEY") or wandb.api.api_key):
        mode = "offline"
        notices.append(NO_KEY)
    run = wandb.init(
        project=config.project,
        entity=config.entity,
        group=group,
        job_type=job_type,
        mode="online" if mode == "online" else "offline",
        dir=str(directory),
        config=dict(values),
        settings=wandb.Settings(silent=True, disable_git=True, x_disable_stats=True),
    )
    return run, mode
