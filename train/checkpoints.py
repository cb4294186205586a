"""What every trainer needs around its checkpoints: whole ones told from half ones, the card, and when to stop.

A trainer's own checkpoints, to resume from, lie in ``<run>/trainer/checkpoint-<step>`` and are marked when they are
whole. The finished one is ``<run>/checkpoint``: it appears under that name only once it is complete.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphhandoff.compress.checkpoint_card import CARD_NAME, CheckpointCard
from graphhandoff.configs.files import digest_config, digest_file, write_atomically

FINISHED = "checkpoint"
"""The folder of the finished checkpoint in a run directory."""

_MARK = "whole.json"
_STEP = re.compile(r"checkpoint-(\d+)")


class DeviceMissingError(ValueError):
    """The device asked for is not there."""


class NonFiniteError(Exception):
    """Training stopped because the loss, a gradient or a weight was not finite; the last good checkpoint is kept."""


def check_device(device: str) -> str:
    """Return what computes, in words, if ``device`` (cpu, cuda or mps) is there.

    Raises:
        DeviceMissingError: it is not; a trainer would go on silently on the CPU.
    """
    import torch

    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there[device]:
        found = ", ".join(name for name, is_there in there.items() if is_there)
        raise DeviceMissingError(f"device {device} is not there; found: {found}. Choose one with --set device=")
    return torch.cuda.get_device_name() if device == "cuda" else device


def digest_folder(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder by its relative path, its card left out."""
    return {name: digest_file(folder / name) for name in _sizes(folder) if name != CARD_NAME}


def _sizes(folder: Path) -> dict[str, int]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != _MARK)
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in paths}


def mark_whole(folder: Path) -> None:
    """Mark a folder as whole, with the sizes of its files: to be called when all of them have been written."""
    write_atomically(folder / _MARK, json.dumps({"bytes": _sizes(folder)}, indent=2) + "\n")


def is_whole(folder: Path) -> bool:
    """Tell whether a folder was marked and still holds all files at the sizes they had then."""
    try:
        expected = json.loads((folder / _MARK).read_text(encoding="utf-8"))["bytes"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(expected == _sizes(folder))


def find_last_whole(folder: Path) -> Path | None:
    """Return the whole checkpoint of the highest step, ``None`` if there is none."""
    steps = _steps(folder)
    return next((steps[step] for step in sorted(steps, reverse=True) if is_whole(steps[step])), None)


def drop_after(folder: Path, last: Path | None) -> list[str]:
    """Remove the checkpoints of steps after ``last`` (all, if ``None``), which are not whole; return their names."""
    steps = _steps(folder)
    kept = next((step for step, path in steps.items() if path == last), -1)
    dropped = [steps[step] for step in sorted(steps) if step > kept]
    for path in dropped:
        shutil.rmtree(path)
    return [path.name for path in dropped]


def _steps(folder: Path) -> dict[int, Path]:
    found = ((_STEP.fullmatch(path.name), path) for path in (folder.iterdir() if folder.is_dir() else ()))
    return {int(match[1]): path for match, path in found if match}


@contextmanager
def finishing(run: Path) -> Iterator[Path]:
    """Lend an empty folder to write the finished checkpoint to; it gets its name when the block ends well.

    Args:
        run: the run directory, whose lock the caller holds.
    """
    partial = run / f"{FINISHED}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    yield partial
    os.replace(partial, run / FINISHED)


def write_card(
    folder: Path,
    kind: str,
    config: Mapping[str, Any],
    data_sha256: Mapping[str, str],
    metrics: Mapping[str, Any],
    provenance: Mapping[str, Any],
) -> CheckpointCard:
    """Write the card of a finished checkpoint, after all its other files.

    Args:
        folder: of the checkpoint.
        kind: of model, which is the name of its trainer.
        config: resolved.
        data_sha256: digest of each set of examples.
        metrics: what it reaches.
        provenance: commit, versions and device.
    """
    card = CheckpointCard(
        kind=kind,
        config=dict(config),
        config_sha256=digest_config(config),
        data_sha256=dict(data_sha256),
        metrics=dict(metrics),
        provenance=dict(provenance),
        files=digest_folder(folder),
    )
    write_atomically(folder / CARD_NAME, card.model_dump_json(indent=2) + "\n")
    return card


StepProgress = Callable[[int, int, Mapping[str, float]], None]
"""Called with the step, how many there are, and what was last logged (loss, grad_norm, learning_rate)."""


def build_guard(progress: StepProgress | None = None) -> Any:
    """Build the callback for transformers' ``Trainer`` that marks whole checkpoints and stops before bad weights.

    It raises :class:`NonFiniteError` before the optimizer would take a step with a gradient that is not finite, so
    every checkpoint it marks has finite weights.

    Args:
        progress: called after every step.
    """
    import torch
    from transformers import TrainerCallback

    class Guard(TrainerCallback):  # type: ignore[misc]
        def __init__(self) -> None:
            self.logged: dict[str, float] = {}

        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            gradients = [p.grad for p in model.parameters() if p.grad is not None]
            if not torch.stack([gradient.isfinite().all() for gradient in gradients]).all():
                raise NonFiniteError(
                    explain_non_finite("the loss or a gradient", state.global_step + 1, Path(args.output_dir))
                )

        def on_save(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            if not all(bool(weight.isfinite().all()) for weight in model.parameters()):
                raise NonFiniteError(explain_non_finite("a weight", state.global_step, Path(args.output_dir)))
            if state.is_world_process_zero:
                mark_whole(Path(args.output_dir) / f"checkpoint-{state.global_step}")

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            self.logged = dict(logs or {})

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if progress is not None:
                progress(state.global_step, state.max_steps, self.logged)

    return Guard()


def explain_non_finite(what: str, step: int, folder: Path) -> str:
    """Say what was not finite, where the last good checkpoint is, and what to try."""
    last = find_last_whole(folder)
    kept = f"the last good checkpoint is {last}" if last else "no checkpoint had been written yet"
    return (
        f"{what} is not finite at step {step}; {kept}. Lower optimisation.learning_rate or optimisation.clip, or set "
        "precision=fp32, and choose another name with --set name=…"
    )
