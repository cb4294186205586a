"""What plans are made of, counted: the generated ones and the benchmark's real ones by the same rules."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data.environment import READING_TOOLS
from graphhandoff.data.examples import KIND_OF_TOOL
from graphhandoff.data.manifest import Manifest
from graphhandoff.data.parquet_files import iter_rows
from graphhandoff.data.retail import Split, load_tasks


class Dimension(NamedTuple):
    """Something that is counted: what the chart is called and what its bars are shares of."""

    title: str
    unit: str


DIMENSIONS: Mapping[str, Dimension] = {
    "tool": Dimension("Tools", "share of calls"),
    "write": Dimension("Tools that act", "share of their calls"),
    "n_calls": Dimension("Calls in a plan", "share of plans"),
    "n_writes": Dimension("Acting calls in a plan", "share of plans"),
    "n_items": Dimension("Items in an acting call", "share of calls with items"),
    "payment": Dimension("Kind of payment method", "share of payment arguments"),
    "found_by": Dimension("How the customer is found", "share of plans"),
    "reason": Dimension("Reason for a cancellation", "share of cancellations"),
    "n_facts": Dimension("Facts to tell", "share of plans"),
}

Counts = Mapping[str, Counter[str]]
"""For every dimension, how often each value occurs."""


def count_plans(plans: Iterable[tuple[Sequence[ToolCall], int]]) -> Counts:
    """Count what plans are made of.

    Args:
        plans: the calls of each plan, and how many facts it has to tell.
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in DIMENSIONS}
    for calls, n_facts in plans:
        _count(calls, n_facts, counts)
    return counts


def _count(calls: Sequence[ToolCall], n_facts: int, counts: Mapping[str, Counter[str]]) -> None:
    names = [call.name for call in calls]
    counts["tool"].update(names)
    counts["write"].update(name for name in names if name in KIND_OF_TOOL)
    counts["n_calls"][str(len(calls))] += 1
    counts["n_writes"][str(sum(name not in READING_TOOLS for name in names))] += 1
    counts["n_facts"][str(n_facts)] += 1
    by = [name.removeprefix("find_user_id_by_") for name in dict.fromkeys(names) if name.startswith("find_user_id_by_")]
    counts["found_by"]["both" if len(by) > 1 else by[0] if by else "not looked up"] += 1
    for call in calls:
        items, payment = call.arguments.get("item_ids"), call.arguments.get("payment_method_id")
        if isinstance(items, list):
            counts["n_items"][str(len(items))] += 1
        if isinstance(payment, str):
            counts["payment"][payment.rpartition("_")[0] or payment] += 1
        if call.name == "cancel_pending_order":
            counts["reason"][str(call.arguments.get("reason"))] += 1


def count_set(folder: Path, manifest: Manifest) -> Counts:
    """Count the synthetic plans of a data set; reads a batch at a time, and neither prose nor observations.

    Raises:
        CorruptFileError: a file is no Parquet file, or lacks a column.
    """
    columns = ("source", "facts", "calls.list.element.tool", "calls.list.element.arguments")

    def iter_plans() -> Iterable[tuple[Sequence[ToolCall], int]]:
        for file in manifest.parquet_files():
            for row in iter_rows(folder / file.path, columns):
                if row["source"] == "synthetic":
                    calls = [ToolCall(name=c["tool"], arguments=json.loads(c["arguments"])) for c in row["calls"]]
                    yield calls, len(row["facts"])

    return count_plans(iter_plans())


def count_tasks(pinned: Split | None = None) -> Counts:
    """Count the gold plans of the benchmark's tasks: of all, or of those that are not pinned."""
    left_out = set(pinned.task_ids) if pinned is not None else set()
    return count_plans((task.actions, len(task.facts)) for task in load_tasks() if task.id not in left_out)


def total_variation(first: Counter[str], second: Counter[str]) -> float:
    """Return the total variation distance of two distributions: 0 for equal ones, 1 for ones that share no value.

    Half the sum of the absolute differences of shares; two empty ones are equal, one empty one is at distance 1.
    """
    n_first, n_second = first.total(), second.total()
    if not n_first or not n_second:
        return 0.0 if n_first == n_second else 1.0
    return sum(abs(first[value] / n_first - second[value] / n_second) for value in first.keys() | second.keys()) / 2


def values_in_order(*counters: Counter[str]) -> list[str]:
    """Return all values that occur: numbers in order, words by how often they occur in the first counter."""
    values = {value for counter in counters for value in counter}
    if all(value.isdigit() for value in values):
        return sorted(values, key=int)
    return sorted(values, key=lambda value: (-counters[0][value], value))
