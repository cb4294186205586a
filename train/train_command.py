"""``graphhandoff train``: one subcommand a trainer, each with a configuration and overrides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from graphhandoff.configs.loader import load_config

app = typer.Typer(add_completion=False)

STOPPED = 1
"""Exit code of a training that stopped because something was not finite."""


@app.callback()
def train() -> None:
    """Train a compressor; what was killed resumes with the same command."""


@app.command(name="token-classifier")
def token_classifier_command(
    config: Annotated[Path, typer.Option(help="A YAML file; configs/… is also found in the installed package.")],
    set_: Annotated[list[str] | None, typer.Option("--set", help="Override a key: a.b=value. May be repeated.")] = None,
) -> None:
    """Train the token classifier of LLMLingua-2 and hybrid."""
    from graphhandoff.train.token_classifier_config import TokenClassifierConfig

    checked = load_config(TokenClassifierConfig, config, set_ or [])

    from graphhandoff.train.checkpoints import NonFiniteError
    from graphhandoff.train.pair_sources import load_pairs
    from graphhandoff.train.token_classifier import train_token_classifier

    pairs = load_pairs(checked.data)
    console = Console(stderr=True, highlight=False)
    _hide_library_bars()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=not console.is_terminal) as bar:
        task = bar.add_task("steps", total=None)

        def show(step: int, n_steps: int, logged: Mapping[str, float]) -> None:
            loss = f"loss {logged['loss']:.4f}" if "loss" in logged else "steps"
            bar.update(task, completed=step, total=n_steps, description=loss)

        try:
            trained = train_token_classifier(checked, pairs.train, pairs.validation, show)
        except NonFiniteError as error:
            console.print(f"stopped: {error}", style="red", markup=False)
            raise typer.Exit(STOPPED) from None
    for notice in (*pairs.notices, *trained.notices):
        console.print(f"note: {notice}", style="yellow", markup=False)
    out = Console(highlight=False)
    for name, figures in trained.card.metrics.items():
        assert isinstance(figures, dict)
        out.print(f"{name}:", ", ".join(f"{key} {_round(value)}" for key, value in figures.items()), soft_wrap=True)
    out.print(f"checkpoint in {trained.folder}; use it with", markup=False, soft_wrap=True)
    out.print(f"  --set protocols.llmlingua2.model={trained.folder}", markup=False, soft_wrap=True)


def _round(value: object) -> object:
    return round(value, 4) if isinstance(value, float) else value


def _hide_library_bars() -> None:
    from transformers.utils import logging

    logging.disable_progress_bar()
