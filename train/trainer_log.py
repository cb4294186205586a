"""What a training run tells while it runs and afterwards: its log as JSON lines, and Weights & Biases if wanted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from graphhandoff.configs.files import write_atomically
from graphhandoff.configs.wandb import WandbConfig, open_wandb_run


def write_log(path: Path, history: Sequence[Mapping[str, Any]]) -> float | None:
    """Write what transformers' ``Trainer`` logged, one line a step, and return the last loss (``None`` if none).

    The trainer keeps the history in its checkpoints, so a resumed run has the lines from before.
    """
    lines = [entry for entry in history if "loss" in entry]
    write_atomically(path, "".join(json.dumps(entry) + "\n" for entry in lines))
    return float(lines[-1]["loss"]) if lines else None


class TrainingLog:
    """Where a training run is logged besides its directory: nowhere, unless a W&B run is given."""

    def __init__(self, run: Any = None) -> None:
        self._run = run

    @property
    def callbacks(self) -> list[Any]:
        """Callbacks for transformers' ``Trainer``."""
        if self._run is None:
            return []
        from transformers import TrainerCallback

        run = self._run

        class WandbLog(TrainerCallback):  # type: ignore[misc]
            def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
                with suppress(Exception):  # a logger must not take a training down with it
                    run.log({f"train/{key}": value for key, value in (logs or {}).items()}, step=state.global_step)

        return [WandbLog()]

    def summarise(self, metrics: Mapping[str, Mapping[str, Any]]) -> None:
        """Log the final figures of each set."""
        if self._run is not None:
            with suppress(Exception):
                for name, figures in metrics.items():
                    self._run.summary.update({f"{name}/{key}": value for key, value in figures.items()})


@contextmanager
def open_training_log(
    config: WandbConfig, group: str, directory: Path, values: Mapping[str, Any], notices: list[str]
) -> Iterator[TrainingLog]:
    """Open the log of a training run; whatever goes wrong at W&B is a notice: the local records are the truth."""
    if config.mode == "off":
        yield TrainingLog()
        return
    try:
        run, mode = open_wandb_run(config, group, "train", directory, values, notices)
    except Exception as error:
        notices.append(f"W&B: not logged ({type(error).__name__}: {error}); the local records are complete")
        yield TrainingLog()
        return
    exit_code = 1
    try:
        yield TrainingLog(run)
        exit_code = 0
    finally:
        with suppress(Exception):
            run.finish(exit_code=exit_code)
        notices.append(f"W&B: logged {mode} to {Path(run.dir).parent}")
