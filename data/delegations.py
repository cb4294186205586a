"""The reference delegations: one JSON record a task, prose written by hand, graph built from the task's plan.

``retail_pinned.jsonl`` holds the 50 pinned tasks, ``retail_training.jsonl`` the 34 others that share no customer with a
pinned one, ``retail_validation.jsonl`` the 30 that do: nothing is ever trained on those, they are real prose to choose
settings with. Each record says who wrote its prose and how.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from graphhandoff.compress.contract import signatures_of
from graphhandoff.compress.graph import HandoffGraph
from graphhandoff.compress.protocol import Delegation
from graphhandoff.data.label import build_plan_graph
from graphhandoff.data.retail import Split, Task, load_tasks, load_tools, training_task_ids

Collection = Literal["pinned", "training", "validation"]


class DelegationMissingError(ValueError):
    """A task has no reference delegation."""


class CorruptDelegationsError(ValueError):
    """A record of delegations cannot be read; says the file and the line."""


class ReferenceDelegation(BaseModel):
    """One record: the task, who wrote the prose and how, the prose, and the plan's graph."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    task_id: str
    written_by: str
    prose: str
    graph: HandoffGraph


@lru_cache(maxsize=3)
def load_reference_delegations(collection: Collection) -> tuple[ReferenceDelegation, ...]:
    """Read the records of one collection, in the order of the task ids.

    Raises:
        CorruptDelegationsError: a line is no record, or a task stands twice.
    """
    name = f"retail_{collection}.jsonl"
    records: list[ReferenceDelegation] = []
    for number, line in enumerate(files("graphhandoff.data").joinpath(name).read_text("utf-8").splitlines(), start=1):
        try:
            records.append(ReferenceDelegation.model_validate_json(line))
        except ValidationError as error:
            raise CorruptDelegationsError(
                f"{name}, line {number}: {error.errors()[0]['msg']}; restore the file"
            ) from None
    ids = [record.task_id for record in records]
    repeated = sorted({task_id for task_id in ids if ids.count(task_id) > 1})
    if repeated:
        raise CorruptDelegationsError(f"{name}: tasks {', '.join(repeated)} stand twice; keep one record a task")
    return tuple(records)


def load_delegations(task_ids: Sequence[str], collection: Collection = "pinned") -> tuple[Delegation, ...]:
    """Return the delegations of these tasks, in this order, with the customer's text for routers.

    Raises:
        DelegationMissingError: some tasks have none; the message lists them.
    """
    records = {record.task_id: record for record in load_reference_delegations(collection)}
    missing = [task_id for task_id in task_ids if task_id not in records]
    if missing:
        raise DelegationMissingError(
            f"no {collection} delegation for tasks {', '.join(missing)}; there are {len(records)}: {', '.join(records)}"
        )
    texts = {task.id: task.text for task in load_tasks()}
    return tuple(
        Delegation(
            task_id=task_id, prose=records[task_id].prose, graph=records[task_id].graph, task_text=texts[task_id]
        )
        for task_id in task_ids
    )


def load_training_delegations(pinned: Split) -> tuple[Delegation, ...]:
    """Return the training delegations with hand-written prose that share no customer with a pinned task."""
    allowed = set(training_task_ids(pinned))
    records = load_reference_delegations("training")
    return load_delegations([record.task_id for record in records if record.task_id in allowed], "training")


def load_training_plans(pinned: Split) -> tuple[Delegation, ...]:
    """Return the plan of every training task as a delegation whose prose is the customer's own text."""
    allowed = set(training_task_ids(pinned))
    return tuple(
        Delegation(task_id=task.id, prose=task.text, task_text=task.text, graph=build_plan(task))
        for task in load_tasks()
        if task.id in allowed and task.actions
    )


def build_plan(task: Task) -> HandoffGraph:
    """Build the graph of a task's plan."""
    customer = task.user_ids[0] if len(task.user_ids) == 1 else None
    return build_plan_graph(task.actions, task.facts, customer, signatures_of(load_tools()))


def build_reference(task: Task, prose: str, written_by: str) -> ReferenceDelegation:
    """Put a hand-written prose beside the graph of its task's plan."""
    return ReferenceDelegation(task_id=task.id, written_by=written_by, prose=prose, graph=build_plan(task))
