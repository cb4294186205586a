"""``graphhandoff compare``: the main job, with a progress bar and a table at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from graphhandoff.configs.loader import load_config
from graphhandoff.eval.comparison import CompareConfig, compare

app = typer.Typer(add_completion=False)


@app.command(name="compare")
def compare_command(
    config: Annotated[Path, typer.Option(help="A YAML file; configs/… is also found in the installed package.")],
    set_: Annotated[list[str] | None, typer.Option("--set", help="Override a key: a.b=value. May be repeated.")] = None,
) -> None:
    """Measure the protocols of a configuration against natural language; resumes what was killed."""
    checked = load_config(CompareConfig, config, set_ or [])
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description:<18}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=not console.is_terminal) as bar:
        bars = {}

        def show(row: str, done: int, planned: int) -> None:
            if row not in bars:
                bars[row] = bar.add_task(row, total=planned)
            bar.update(bars[row], completed=done)

        table, run = compare(checked, show)
    for notice in run.notices:
        console.print(f"note: {notice}", style="yellow", markup=False)
    out = Console()
    if not out.is_terminal:
        out = Console(width=160)  # wide enough for every column
    out.print(table.to_rich(out.width))
    console.print(f"records and table.md, table.csv, table.json in {run.path}", markup=False)
