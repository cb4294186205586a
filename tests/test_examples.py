"""Training examples: what a row holds comes back as it was, and a customer belongs to one split for ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data import examples
from graphhandoff.data.environment import Outcome
from graphhandoff.data.examples import (
    COLUMNS,
    CorruptRowError,
    Example,
    PinnedCustomerError,
    build_example,
    build_hand_written_examples,
    features,
    from_row,
    is_success,
    pinned_customers,
    split_of,
    to_row,
    validation_customers,
)
from graphhandoff.data.prose import write_prose
from graphhandoff.data.retail import load_split, training_task_ids
from graphhandoff.data.synthesize import SynthesisConfig, synthesize

PINNED = load_split("retail_pinned_50")
CONFIG = SynthesisConfig(seed=7)


def make(index: int) -> Example:
    problem = synthesize(CONFIG, index)
    return build_example(problem, write_prose(problem, 7), PINNED)


@pytest.fixture(scope="module")
def some() -> list[Example]:
    return [*map(make, range(20)), *build_hand_written_examples(PINNED)]


def test_an_example_holds_the_plan_as_it_was_executed(some: list[Example]) -> None:
    for index, example in enumerate(some[:20]):
        problem = synthesize(CONFIG, index)
        assert example.calls == problem.calls
        assert example.success
        assert all(outcome.ok and outcome.text for outcome in example.outcomes)
        assert len(example.kinds) == len(problem.steps)
        assert example.to_delegation().graph == example.graph


def test_every_hand_written_delegation_is_a_validation_example(some: list[Example]) -> None:
    written = some[20:]
    assert [example.id for example in written] == [f"hand_written-{task}" for task in training_task_ids(PINNED)]
    assert {example.split for example in written} == {"validation"}
    assert all(example.success for example in written)
    refused = [outcome for example in written for outcome in example.outcomes if not outcome.ok]
    assert len(refused) == 7, "look-ups that fail by design are kept as they are"


def test_a_row_gives_its_example_back(some: list[Example]) -> None:
    for example in some:
        assert list(to_row(example)) == list(COLUMNS)
        assert from_row(to_row(example)) == example


def test_datasets_keeps_every_type(some: list[Example], tmp_path: Path) -> None:
    from datasets import Dataset

    table = Dataset.from_list([to_row(example) for example in some], features=features())
    table.to_parquet(tmp_path / "some.parquet")
    again = Dataset.from_parquet(str(tmp_path / "some.parquet"), cache_dir=str(tmp_path / "cache"))
    assert again.features == features()
    assert [from_row(row) for row in again] == some


def test_every_column_is_explained_in_a_sentence() -> None:
    assert all(column.meaning.endswith(".") and len(column.meaning) > 20 for column in COLUMNS.values())


def test_splits_are_by_customer_and_the_same_for_every_set() -> None:
    from graphhandoff.data.catalogue import load_catalogue

    users = [account.customer.user_id for account in load_catalogue(PINNED.name).accounts]
    validation = validation_customers(PINNED)
    assert len(validation) == 22
    assert not validation & pinned_customers(PINNED)
    splits = {user: split_of(user, validation) for user in users}
    assert {user for user, split in splits.items() if split == "validation"} == validation
    n_test = sum(split == "test" for split in splits.values())
    assert 0.03 < n_test / (len(users) - len(validation)) < 0.08
    # Two that must never change sides: sets that were built before would leak into sets that are built now.
    assert splits["noah_brown_6181"] == "train"
    assert min(user for user, split in splits.items() if split == "test") == "amelia_silva_5103"


def test_a_pinned_customer_is_refused() -> None:
    problem = synthesize(CONFIG, 0)
    theirs = min(pinned_customers(PINNED))
    taken = problem.model_copy(update={"customer": problem.customer.model_copy(update={"user_id": theirs})})
    with pytest.raises(PinnedCustomerError, match=f"{theirs}, whom a task of retail_pinned_50 names"):
        build_example(taken, write_prose(problem, 7), PINNED)


def test_only_refused_writes_make_a_failure() -> None:
    look_up = Outcome(call=ToolCall(name="get_product_details"), ok=False, text="Product not found")
    write = Outcome(call=ToolCall(name="cancel_pending_order"), ok=False, text="Order not found")
    assert is_success((look_up,))
    assert not is_success((look_up, write))
    assert is_success(())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"graph": "{"}, "graph: line 1"),
        ({"graph_compact": "goal: other"}, "not the same graph"),
        ({"graph_compact": 'x "'}, "graph_compact: line 1"),
        ({"kinds": ["dance"]}, "kinds.0"),
        ({"split": "dev"}, "split"),
        ({"success": "yes"}, "success"),
        ({"calls": [{"tool": "x", "arguments": "[", "ok": True, "observation": ""}]}, "calls"),
        ({"calls": [{"tool": "x", "arguments": "[1]", "ok": True, "observation": ""}]}, "arguments"),
        ({"calls": [{"tool": "x"}]}, "no 'arguments' in calls"),
        ({"calls": None}, "calls"),
    ],
)
def test_a_corrupt_row_is_named_with_its_column(some: list[Example], change: dict[str, Any], says: str) -> None:
    row = {**to_row(some[0]), **change}
    with pytest.raises(CorruptRowError) as raised:
        from_row(row)
    assert str(raised.value).startswith("row 'synthetic-7-0': ")
    assert says in str(raised.value)


def test_a_missing_column_is_named(some: list[Example]) -> None:
    row = to_row(some[0])
    del row["prose"]
    with pytest.raises(CorruptRowError, match="no 'prose'"):
        from_row(row)


def test_kinds_name_every_tool_that_acts() -> None:
    from graphhandoff.data.environment import READING_TOOLS
    from graphhandoff.data.problems import KINDS
    from graphhandoff.data.retail import load_tools

    acting = {tool.name for tool in load_tools()} - READING_TOOLS
    assert acting | {"transfer_to_human_agents"} == set(examples.KIND_OF_TOOL)
    assert set(examples.KIND_OF_TOOL.values()) == set(KINDS)
