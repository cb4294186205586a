"""``graphhandoff tasks``: what is in the benchmark."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from graphhandoff.compress.contract import signatures_of
from graphhandoff.compress.wire import write
from graphhandoff.data.delegations import load_reference_delegations
from graphhandoff.data.environment import READING_TOOLS, STATELESS_TOOLS
from graphhandoff.data.retail import Split, Task, load_split, load_tasks, load_tools, training_task_ids

app = typer.Typer(add_completion=False)


class UnknownTaskError(ValueError):
    """No task has that id."""


@app.command()
def tasks(
    task: Annotated[str | None, typer.Argument(help="Show this task.")] = None,
    split: Annotated[str, typer.Option(help="The split that the column 'use' refers to.")] = "retail_pinned_50",
    as_json: Annotated[bool, typer.Option("--json", help="Print records, one a line.")] = False,
) -> None:
    """List the 114 tau2-retail tasks, or show one: what the customer wants, the plan, the facts, the delegation."""
    known = {record.id: record for record in load_tasks()}
    if task is not None and task not in known:
        raise UnknownTaskError(f"unknown task {task!r}; allowed: 0 to {len(known) - 1}, see `graphhandoff tasks`")
    chosen = [known[task]] if task is not None else list(known.values())
    if as_json:
        for record in chosen:
            print(record.model_dump_json())
    elif task is not None:
        _show(known[task])
    else:
        _list(chosen, load_split(split))


def _list(chosen: list[Task], split: Split) -> None:
    pinned, training = set(split.task_ids), set(training_task_ids(split))
    table = Table(title=f"{len(chosen)} tau2-retail tasks", caption=f"pinned: the {len(pinned)} of {split.name}")
    for column in ("task", "split", "use", "calls", "writes", "facts", "customer"):
        table.add_column(column, justify="right" if column in ("task", "calls", "writes", "facts") else "left")
    for record in chosen:
        writes = sum(call.name not in READING_TOOLS | STATELESS_TOOLS for call in record.actions)
        use = "pinned" if record.id in pinned else "training" if record.id in training else "shares a customer"
        counts = (str(len(record.actions)), str(writes), str(len(record.facts)))
        table.add_row(record.id, record.split, use, *counts, ", ".join(record.user_ids))
    Console().print(table)


def _show(record: Task) -> None:
    console = Console(highlight=False)

    def section(title: str, text: str) -> None:
        console.print(title, style="bold")
        console.print(text or "(none)", markup=False, soft_wrap=True)
        console.print()

    section(f"task {record.id} ({record.split})", record.text)
    section("plan", "\n".join(f"{call.name} {call.arguments}" for call in record.actions))
    section("facts to tell", ", ".join(record.facts))
    for delegation in (*load_reference_delegations("pinned"), *load_reference_delegations("training")):
        if delegation.task_id == record.id:
            section("delegation as prose", delegation.prose)
            section("written by", delegation.written_by)
            section("delegation as graph", write(delegation.graph, "compact", signatures_of(load_tools())))
