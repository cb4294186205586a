"""The benchmark as it is read: its tasks and whose they are, its tools, and the split that is measured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from graphhandoff.compress.protocol import ToolParameter
from graphhandoff.data import retail
from graphhandoff.data.argument_faults import find_argument_fault

TASKS = {task.id: task for task in retail.load_tasks()}


@pytest.fixture(scope="module")
def pinned() -> retail.Split:
    return retail.load_split("retail_pinned_50")


def test_the_benchmark_has_114_tasks_74_to_train_and_40_to_test() -> None:
    tasks = retail.load_tasks()
    assert [task.id for task in tasks] == [str(number) for number in range(114)]
    assert sum(task.split == "train" for task in tasks) == 74
    assert sum(task.split == "test" for task in tasks) == 40
    assert retail.load_tasks() is tasks


def test_a_task_holds_the_gold_calls_in_order_with_their_arguments() -> None:
    task = TASKS["105"]
    assert [call.name for call in task.actions] == ["exchange_delivered_order_items"]
    assert task.actions[0].arguments["item_ids"] == ["7292993796", "7292993796"]
    assert TASKS["29"].facts == ("180.1", "189.57", "208.6")


def test_the_customers_side_reads_as_one_text_without_empty_fields() -> None:
    assert TASKS["0"].text.splitlines()[1:] == [
        "Known info: You are Yusuf Rossi in zip code 19122.",
        "Unknown info: You do not remember your email address.",
        "Task instructions: You are detail-oriented and want to make sure everything is addressed in one go.",
    ]
    assert TASKS["0"].text.startswith("Reason for call: You received your order #W2378156 and wish")
    assert "Task instructions" not in TASKS["23"].text, "this task fills the field with a lone full stop"
    assert "None" not in TASKS["10"].text


def test_every_task_is_about_exactly_one_customer() -> None:
    assert [task.id for task in TASKS.values() if len(task.user_ids) != 1] == []


@pytest.mark.parametrize(
    ("task_id", "user_id", "why"),
    [
        ("0", "yusuf_rossi_9620", "found by a look-up of name and ZIP code"),
        ("24", "sofia_hernandez_5364", "has no gold call: name and ZIP code stand in the text only"),
        ("39", "fatima_taylor_3452", "its look-up names a ZIP code that nobody of that name has"),
        ("70", "sofia_hernandez_5364", "its only gold call names an order"),
        ("104", "lucas_brown_6720", "the text gives an e-mail address"),
    ],
)
def test_the_customer_is_found_however_the_task_names_them(task_id: str, user_id: str, why: str) -> None:
    assert TASKS[task_id].user_ids == (user_id,), why


def test_the_pinned_50_are_all_test_tasks_and_ten_whose_customers_a_test_task_names(
    pinned: retail.Split,
) -> None:
    test_ids = {task.id for task in TASKS.values() if task.split == "test"}
    assert len(pinned.task_ids) == 50
    assert list(pinned.task_ids) == sorted(pinned.task_ids, key=int)
    assert test_ids < set(pinned.task_ids)
    added = set(pinned.task_ids) - test_ids
    assert added == {"16", "23", "28", "29", "34", "37", "41", "54", "98", "112"}
    test_users = {user for task_id in test_ids for user in TASKS[task_id].user_ids}
    assert all(test_users.issuperset(TASKS[task_id].user_ids) for task_id in added)


def test_no_customer_of_a_pinned_task_appears_in_training(pinned: retail.Split) -> None:
    training = retail.training_task_ids(pinned)
    pinned_users = {user for task_id in pinned.task_ids for user in TASKS[task_id].user_ids}
    assert len(training) == 34
    assert all(pinned_users.isdisjoint(TASKS[task_id].user_ids) for task_id in training)
    assert all(TASKS[task_id].split == "train" for task_id in training)
    assert "24" not in training, "it names no account, but its customer is that of the pinned tasks 23 and 70"
    left_out = set(TASKS) - set(training) - set(pinned.task_ids)
    assert all(pinned_users.intersection(TASKS[task_id].user_ids) for task_id in left_out)


def test_a_split_of_ones_own_is_read_from_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text('name: mine\ntask_ids: ["7", "3"]\n')
    assert retail.load_split(path) == retail.load_split(str(path))
    assert retail.load_split(path).task_ids == ("7", "3"), "the order is the author's"


@pytest.mark.parametrize("missing", ["retail_pinned_5O", "no/such.yaml", Path("absent.yaml"), ""])
def test_a_missing_split_names_those_that_exist(missing: str | Path) -> None:
    with pytest.raises(retail.SplitNotFoundError, match=r"available: .*retail_pinned_50"):
        retail.load_split(missing)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('name: a\ntask_ids: ["1", "x9", "200"]', r"unknown task ids \['x9', '200'\]"),
        ('name: a\ntask_ids: ["1", "2", "1"]', r"repeated task ids \['1'\]"),
        ("name: a\ntask_ids: [1, 2]", "quoted ids"),
        ('name: a\ntask_ids: ["1"]\nseed: 3', "seed"),
        ("name: a\ntask_ids: []", "at least 1"),
        ("task_ids: [", "not a split"),
        ("", "not a split"),
    ],
)
def test_a_faulty_split_is_refused_in_words(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "faulty.yaml"
    path.write_text(content)
    with pytest.raises(retail.InvalidSplitError, match=message) as raised:
        retail.load_split(path)
    assert "faulty.yaml" in str(raised.value)


def test_the_tools_are_those_that_inspect_publishes() -> None:
    tools = {tool.name: tool for tool in retail.load_tools()}
    assert list(tools)[:3] == ["calculate", "cancel_pending_order", "exchange_delivered_order_items"]
    assert len(tools) == 15
    exchange = tools["exchange_delivered_order_items"]
    assert exchange.signature == ("order_id", "item_ids", "new_item_ids", "payment_method_id")
    assert exchange.parameters[1] == ToolParameter(
        name="item_ids",
        type="array",
        items="string",
        description="The item ids to be exchanged, each such as '1008292230'. "
        "There could be duplicate items in the list.",
    )
    assert exchange.description.startswith("Exchange items in a delivered order")
    assert tools["list_all_product_types"].signature == ()
    assert {p.type for tool in tools.values() for p in tool.parameters} == {"string", "array"}


def test_every_gold_call_fits_the_published_parameters() -> None:
    tools = {tool.name: tool for tool in retail.load_tools()}
    calls = [call for task in TASKS.values() for call in task.actions]
    assert len(calls) == 553
    assert [call for call in calls if find_argument_fault(tools[call.name], call.arguments)] == []


def test_the_policy_is_the_shops() -> None:
    assert "retail" in retail.load_policy().splitlines()[0].lower()


def test_the_installed_files_are_the_ones_measured() -> None:
    assert retail.data_hashes() == dict(retail.EXPECTED_HASHES)


def test_a_changed_benchmark_is_refused_with_both_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = retail.data_hashes()
    monkeypatch.setattr(retail, "EXPECTED_HASHES", {**installed, "policy.txt": "0" * 64})
    with pytest.raises(retail.BenchmarkDataChangedError, match=r"policy\.txt") as raised:
        retail.load_policy()
    assert installed["policy.txt"] in str(raised.value)
    assert "0" * 64 in str(raised.value)
    assert "pip install" in str(raised.value)
    assert retail.data_hashes() == installed, "provenance tells what is there, right or wrong"


def test_a_benchmark_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retail, "find_spec", lambda name: None)
    with pytest.raises(retail.BenchmarkDataChangedError, match="not installed"):
        retail.load_policy()


def test_reading_the_tasks_imports_neither_inspect_nor_torch() -> None:
    code = (
        "import sys; from graphhandoff.data.retail import load_tasks, load_split; load_tasks();"
        "load_split('retail_pinned_50');"
        "print(sorted({'inspect_ai', 'inspect_evals', 'torch', 'transformers'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"


def test_records_are_frozen_and_closed() -> None:
    with pytest.raises(ValidationError):
        TASKS["0"].text = "other"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        retail.Task.model_validate({"id": "x", "split": "train", "text": "", "mood": "busy"})
    again = retail.Task.model_validate_json(TASKS["20"].model_dump_json())
    assert again == TASKS["20"]
