"""The shop in which plans are tried: what it answers, what it counts as changed, and that no call can break it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data import environment as environment_module
from graphhandoff.data.environment import Episode, RetailEnvironment, load_environment
from graphhandoff.data.retail import Task, load_split, load_tasks
from tests.official import load_official_shop
from tests.plans import call, iter_disturbed_plans, told

TASKS = {task.id: task for task in load_tasks()}
PINNED = [TASKS[task_id] for task_id in load_split("retail_pinned_50").task_ids]
DO_NOTHING_DATABASE = ["10", "12", "24", "25", "50", "57", "62", "65", "67", "68", "105"]
DO_NOTHING_SUCCESS = ["10", "12", "25", "50", "57", "65", "105"]


@pytest.fixture(scope="module")
def environment() -> RetailEnvironment:
    return load_environment()


def test_carrying_out_the_gold_calls_and_telling_the_facts_succeeds_in_every_task(
    environment: RetailEnvironment,
) -> None:
    failed = [task.id for task in TASKS.values() if not environment.verdict(task, task.actions, told(task)).success]
    assert failed == []


def test_doing_and_saying_nothing_passes_seven_tasks(environment: RetailEnvironment) -> None:
    idle = {task.id: environment.verdict(task, [], "") for task in TASKS.values()}
    assert [task_id for task_id, verdict in idle.items() if verdict.database] == DO_NOTHING_DATABASE
    assert [task_id for task_id, verdict in idle.items() if verdict.success] == DO_NOTHING_SUCCESS


def test_facts_count_by_the_official_rule_without_case_or_commas(environment: RetailEnvironment) -> None:
    task = TASKS["54"]
    assert task.facts == ("3646.68",)
    assert environment.verdict(task, task.actions, "The total is $3,646.68.").communicated
    silent = environment.verdict(task, task.actions, "Done!")
    assert (silent.database, silent.communicated, silent.success) == (True, False, False)
    camera, amount = TASKS["36"].facts
    assert environment.verdict(TASKS["36"], [], f"The CAMERA costs {amount}").communicated
    assert not environment.verdict(TASKS["36"], [], f"The {camera} is dear").communicated


def test_a_row_that_is_changed_and_changed_back_is_unchanged(environment: RetailEnvironment) -> None:
    user_id = TASKS["0"].user_ids[0]
    answer = environment.run([call("get_user_details", user_id=user_id)]).outcomes[0].text
    home = json.loads(answer)["address"]
    away = {**home, "address1": "1 Elsewhere Road"}
    there = call("modify_user_address", user_id=user_id, **away)
    back = call("modify_user_address", user_id=user_id, **home)
    assert [change.key for change in environment.run([there]).changes] == [user_id]
    assert environment.run([there, back]).changes == ()
    assert environment.verdict(TASKS["10"], [there, back], "").success


def test_later_calls_see_what_earlier_ones_wrote_and_the_next_episode_does_not(
    environment: RetailEnvironment,
) -> None:
    user_id = TASKS["0"].user_ids[0]
    move = call(
        "modify_user_address",
        user_id=user_id,
        address1="1 Elsewhere Road",
        address2="",
        city="Austin",
        state="TX",
        country="USA",
        zip="00001",
    )
    look_up = call("find_user_id_by_name_zip", first_name="yusuf", last_name="ROSSI", zip="00001")
    before, _, after = environment.run([look_up, move, look_up]).outcomes
    assert (before.ok, before.text) == (False, "User not found")
    assert (after.ok, after.text) == (True, user_id)
    assert not environment.run([look_up]).outcomes[0].ok


def test_money_is_compared_unrounded_as_the_official_hash_does(environment: RetailEnvironment) -> None:
    # 0.1 + 0.2 is not 0.3 in the official hash; nothing here may round it.
    amounts = [
        payment["amount"]
        for task in PINNED
        for change in environment.run(task.actions).changes
        if change.table == "orders"
        for payment in json.loads(change.content)["payment_history"]
    ]
    assert [amount for amount in amounts if amount != round(amount, 2)]
    assert all(isinstance(amount, float) for amount in amounts)


def test_canonical_rows_tell_apart_what_the_official_hash_tells_apart() -> None:
    from inspect_evals.tau2.retail.data_model import OrderPayment

    def row(amount: float) -> Any:
        return OrderPayment.model_construct(transaction_type="refund", amount=amount, payment_method_id="p")

    canonical = environment_module._canonical
    assert len({canonical(row(amount)) for amount in (0.0, -0.0, 0, 1.0, 1, 1.0000000000000002)}) == 6


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (call("refund_everything"), "no tool 'refund_everything'; tools: calculate"),
        (call("initialize"), "no tool"),
        (call("_get_user", user_id="x"), "no tool"),
        (call("get_order_details"), "missing argument 'order_id'"),
        (call("get_order_details", order_id="#W2378156", verbose=True), "unexpected argument 'verbose'"),
        (call("get_order_details", order_id=2378156), "must be of type string, got 2378156"),
        (call("get_order_details", order_id=None), "must be of type string, got null"),
        (call("get_order_details", order_id={"id": "#W2378156"}), "must be of type string"),
        (call("get_order_details", order_id="#w0"), "Order not found"),
        (
            call("return_delivered_order_items", order_id="a", item_ids="1", payment_method_id="b"),
            "'item_ids' must be of type array",
        ),
        (
            call("return_delivered_order_items", order_id="a", item_ids=["1", 2, 2], payment_method_id="b"),
            "each item of argument 'item_ids' must be of type string, got 2",
        ),
        (call("cancel_pending_order", order_id="#W2378156", reason="bored"), "Non-pending order"),
        (call("calculate", expression="__import__('os')"), "Invalid characters"),
        (call("calculate", expression="1/0"), "division by zero"),
        (call("calculate", expression="(" * 5000), "Invalid expression"),
    ],
)
def test_a_bad_call_is_an_outcome_with_its_reason(environment: RetailEnvironment, bad: ToolCall, reason: str) -> None:
    good = call("calculate", expression="(2 + 2.555) * 2")
    episode = environment.run([bad, good])
    refused, done = episode.outcomes
    assert (refused.call, refused.ok) == (bad, False)
    assert reason in refused.text
    assert (done.ok, done.text) == (True, "9.11")
    assert episode.changes == ()


def test_an_error_inside_a_tool_is_recorded_by_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    from inspect_evals.tau2.retail.RetailAgentTools import RetailAgentTools

    def fall_over(self: object, user_id: str) -> str:
        raise KeyError(user_id)

    monkeypatch.setattr(RetailAgentTools, "get_user_details", fall_over)
    (outcome,) = RetailEnvironment().run([call("get_user_details", user_id="ann_lee_1")]).outcomes
    assert (outcome.ok, outcome.text) == (False, "KeyError: 'ann_lee_1'")


def test_a_tool_that_breaks_off_half_way_leaves_only_its_own_episode_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from inspect_evals.tau2.retail.RetailAgentTools import RetailAgentTools

    def spoil(self: Any, order_id: str, reason: str) -> str:
        self._get_order(order_id).items.clear()
        for product in self.db.products.values():
            product.variants.clear()
        raise RuntimeError(reason)

    monkeypatch.setattr(RetailAgentTools, "cancel_pending_order", spoil)
    shop = RetailEnvironment()
    episode = shop.run([call("cancel_pending_order", order_id="#W2378156", reason="half way")])
    assert episode.outcomes[0].text == "RuntimeError: half way"
    assert len(episode.changes) == 51, "what it changed before it broke off counts, as officially"
    assert shop._database.get_hash() == load_environment()._database.get_hash()


def test_the_shared_database_is_the_same_after_many_episodes(environment: RetailEnvironment) -> None:
    for task, plan in iter_disturbed_plans(seed=3, n_plans=400):
        environment.verdict(task, plan, "")
    assert environment._database.get_hash() == load_official_shop().base_hash


def test_the_copy_of_any_row_equals_the_row(environment: RetailEnvironment) -> None:
    for table in environment._tables.values():
        for key, row in table.rows.items():
            copy = table.copy_row(key)
            assert copy is not row
            assert environment_module._canonical(copy) == table.canonical_row(key)


def test_arguments_of_a_call_stay_outside_the_database(environment: RetailEnvironment) -> None:
    task = TASKS["0"]
    before = task.model_dump_json()
    environment.verdict(task, task.actions, "")
    assert task.model_dump_json() == before


def test_a_task_with_anothers_id_is_judged_by_its_own_gold(environment: RetailEnvironment) -> None:
    # The gold replays are cached; what is cached must not outlive the calls that made it.
    assert environment.verdict(TASKS["0"], TASKS["0"].actions, "").success
    harmless = Task(id="0", split="train", text="", actions=())
    assert not environment.verdict(harmless, TASKS["0"].actions, "").success
    assert environment.verdict(harmless, [], "").success
    assert environment.verdict(TASKS["0"], TASKS["0"].actions, "").success


def test_episodes_survive_a_round_trip_and_are_frozen(environment: RetailEnvironment) -> None:
    episode = environment.run(TASKS["0"].actions)
    assert Episode.model_validate_json(episode.model_dump_json()) == episode
    with pytest.raises(ValidationError):
        episode.outcomes = ()  # type: ignore[misc]
