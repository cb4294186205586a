"""The reference delegations: real prose, complete, never a template, and each graph says what the plan says."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from statistics import mean

import pytest
from pydantic import JsonValue

from graphhandoff.compress.contract import check_graph, signatures_of
from graphhandoff.compress.tokens import count_tokens
from graphhandoff.compress.wire import parse, write
from graphhandoff.data.delegations import (
    DelegationMissingError,
    ReferenceDelegation,
    build_reference,
    load_delegations,
    load_reference_delegations,
)
from graphhandoff.data.retail import load_split, load_tasks, load_tools, training_task_ids
from graphhandoff.eval.comparison import write_floor

PINNED = load_reference_delegations("pinned")
TRAINING = load_reference_delegations("training")
VALIDATION = load_reference_delegations("validation")
EVERY = [*PINNED, *TRAINING, *VALIDATION]
TASKS = {task.id: task for task in load_tasks()}
SPLIT = load_split("retail_pinned_50")


def strings_in(value: JsonValue) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from strings_in(item)
    elif value != "":
        yield str(value)


def sentences_of(prose: str) -> set[str]:
    parts = re.split(r"(?<=[.!?;:])\s+|\n+", prose)
    return {re.sub(r"\W+", " ", part).strip().lower() for part in parts if len(part.split()) >= 3}


def test_every_pinned_task_has_one_and_training_has_none_of_their_customers() -> None:
    assert [record.task_id for record in PINNED] == sorted(SPLIT.task_ids, key=int)
    pinned_customers = {user for record in PINNED for user in TASKS[record.task_id].user_ids}
    assert {record.task_id for record in TRAINING} <= set(training_task_ids(SPLIT))
    for record in TRAINING:
        assert not pinned_customers & set(TASKS[record.task_id].user_ids)
        assert not any(user in record.prose for user in pinned_customers)


@pytest.mark.parametrize("record", EVERY, ids=lambda record: record.task_id)
def test_everything_the_plan_needs_stands_in_the_prose(record: ReferenceDelegation) -> None:
    task = TASKS[record.task_id]
    for call in task.actions:
        for value in call.arguments.values():
            for text in strings_in(value):
                assert text in record.prose, f"{call.name} needs {text!r}"
    for fact in task.facts:
        assert fact.lower() in record.prose.lower().replace(",", "")
    assert 180 <= len(record.prose.split()) <= 500
    assert record.written_by


def test_every_task_of_the_benchmark_has_a_delegation_and_those_about_a_pinned_customer_are_kept_from_training() -> (
    None
):
    assert sorted(record.task_id for record in EVERY) == sorted(TASKS)
    assert not {record.task_id for record in VALIDATION} & set(training_task_ids(SPLIT))


def test_the_prose_is_as_long_as_capable_orchestrators_write_it() -> None:
    assert mean(count_tokens(record.prose) for record in PINNED) >= 450


def test_hardly_a_sentence_recurs_across_tasks() -> None:
    tasks_with: dict[str, set[str]] = defaultdict(set)
    for record in EVERY:
        for sentence in sentences_of(record.prose):
            tasks_with[sentence].add(record.task_id)
    recurring = [sentence for sentence, ids in tasks_with.items() if len(ids) > 1]
    assert len(recurring) / len(tasks_with) < 0.05, recurring


@pytest.mark.parametrize("record", EVERY, ids=lambda record: record.task_id)
def test_the_graph_is_the_plan(record: ReferenceDelegation) -> None:
    task = TASKS[record.task_id]
    assert build_reference(task, record.prose, record.written_by) == record
    calls = check_graph(record.graph, load_tools())
    assert [(call.name, call.arguments) for call in calls] == [(a.name, a.arguments) for a in task.actions]
    posts = list(record.graph.iter_texts("postcondition"))
    assert [post.removeprefix("tell ") for post in posts] == list(task.facts)
    assert len(list(record.graph.iter_texts("goal"))) == 1


def test_compact_costs_at_most_1_6_times_the_bare_plan() -> None:
    signatures = signatures_of(load_tools())
    floor = mean(count_tokens(write_floor(TASKS[record.task_id])) for record in PINNED)
    compact = mean(count_tokens(write(record.graph, "compact", signatures)) for record in PINNED)
    paper = mean(count_tokens(write(record.graph, "json")) for record in PINNED)
    print(f"mean tokens on the pinned graphs: json {paper:.1f}, compact {compact:.1f}, bare plan {floor:.1f}")
    assert compact <= 1.6 * floor
    for record in PINNED:
        assert parse(write(record.graph, "compact", signatures), "compact", signatures) == record.graph


def test_a_task_without_a_delegation_is_named() -> None:
    with pytest.raises(DelegationMissingError, match="tasks 0, 999"):
        load_delegations(["5", "0", "999"])
