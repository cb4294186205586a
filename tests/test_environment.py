"""The shop in which plans are tried: it ends where the official tools end, and it never falls over or wears out."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from pydantic import JsonValue, ValidationError

from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data import environment as environment_module
from graphhandoff.data.environment import Episode, RetailEnvironment, load_environment
from graphhandoff.data.retail import Task, load_split, load_tasks, read_benchmark_file

TASKS = {task.id: task for task in load_tasks()}
PINNED = [TASKS[task_id] for task_id in load_split("retail_pinned_50").task_ids]
DO_NOTHING_DATABASE = ["10", "12", "24", "25", "50", "57", "62", "65", "67", "68", "105"]
DO_NOTHING_SUCCESS = ["10", "12", "25", "50", "57", "65", "105"]


@pytest.fixture(scope="module")
def environment() -> RetailEnvironment:
    return load_environment()


class OfficialShop:
    """Inspect's own tools on a database loaded anew for every sequence, hashed as a whole."""

    def __init__(self) -> None:
        from inspect_ai.tool import ToolDef, ToolError
        from inspect_evals.tau2.retail.data_model import RetailDB
        from inspect_evals.tau2.retail.RetailAgentTools import RetailAgentTools
        from inspect_evals.tau2.retail.tools import all_retail_tools
        from inspect_evals.tau2.utils import get_dict_hash
        from jsonschema import Draft7Validator  # type: ignore[import-untyped]

        self.tool_error = ToolError
        self.hash = get_dict_hash
        self.tools_class = RetailAgentTools
        self.database_class = RetailDB
        definitions = [ToolDef(build()) for build in all_retail_tools]
        self.validators = {
            definition.name: Draft7Validator(definition.parameters.model_dump(exclude_none=True))
            for definition in definitions
        }
        self.json = gzip.decompress(read_benchmark_file("db.json.gz"))
        self.base: dict[str, Any] = self.fresh().model_dump()
        self.base_hash: str = self.fresh().get_hash()
        self.gold_hashes: dict[str, str] = {}

    def fresh(self) -> Any:
        return self.database_class.model_validate_json(self.json)

    def run(self, calls: Sequence[ToolCall]) -> tuple[list[str | None], str]:
        """Texts that the tools answered or refused with (None if Inspect refuses the arguments), and the hash."""
        tools = self.tools_class(instance=str(uuid4()))
        tools.db = self.fresh()
        texts: list[str | None] = []
        for call in calls:
            if call.name not in self.validators or not self.validators[call.name].is_valid(call.arguments):
                texts.append(None)
            elif call.name in environment_module.STATELESS_TOOLS:
                texts.append("")
            else:
                try:
                    answer = getattr(tools, call.name)(**call.arguments)
                except self.tool_error as refusal:
                    answer = str(refusal)
                texts.append(answer if isinstance(answer, str) else json.dumps(answer, sort_keys=True))
        digest: str = tools.db.get_hash()
        tools.db = self.database_class()  # the Store would keep every database until the process ends
        return texts, digest

    def gold_hash(self, task: Task) -> str:
        if task.id not in self.gold_hashes:
            self.gold_hashes[task.id] = self.run(task.actions)[1]
        return self.gold_hashes[task.id]

    def hash_of(self, episode: Episode) -> str:
        """The official hash of the shared database with an episode's changed rows put in."""
        changed: dict[str, Any] = {table: dict(rows) for table, rows in self.base.items()}
        for change in episode.changes:
            changed[change.table][change.key] = json.loads(change.content)
        found: str = self.hash(changed)
        return found


@pytest.fixture(scope="module")
def official() -> OfficialShop:
    return OfficialShop()


def told(task: Task) -> str:
    return "\n".join(task.facts)


def call(name: str, **arguments: JsonValue) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


def iter_disturbed_plans(seed: int, n_plans: int) -> Iterator[tuple[Task, list[ToolCall]]]:
    """Yield gold plans with calls dropped, doubled, swapped, borrowed or spoilt, and some left as they are."""
    random = Random(seed)
    every_call = [action for task in TASKS.values() for action in task.actions]
    junk: list[JsonValue] = ["", "#W0000000", "nobody_here_1", 7, 1.5, None, True, ["x", 1], [], {"a": "b"}]
    for _ in range(n_plans):
        task = random.choice([task for task in TASKS.values() if task.actions])
        plan = list(task.actions)
        for _ in range(random.randrange(4)):
            at = random.randrange(len(plan) + 1)
            victim = plan[at] if at < len(plan) else random.choice(every_call)
            arguments = dict(victim.arguments)
            name = random.choice(list(arguments)) if arguments else "extra"
            donor = random.choice(every_call).arguments
            match random.randrange(8):
                case 0:
                    plan = [*plan[:at], *plan[at + 1 :]]
                case 1:
                    plan.insert(random.randrange(len(plan) + 1), victim)
                case 2:
                    random.shuffle(plan)
                case 3:
                    plan.insert(at, random.choice(every_call))
                case 4:
                    arguments[name] = donor.get(name, random.choice(junk))
                    plan.insert(at, ToolCall(name=victim.name, arguments=arguments))
                case 5:
                    arguments[name] = random.choice(junk)
                    plan[at : at + 1] = [ToolCall(name=victim.name, arguments=arguments)]
                case 6:
                    turned = {k: v[::-1] if isinstance(v, list) else v for k, v in arguments.items()}
                    plan[at : at + 1] = [ToolCall(name=victim.name, arguments=turned)]
                case _:
                    broken = random.choice([{}, {**arguments, "note": "x"}])
                    plan.insert(at, ToolCall(name=random.choice([victim.name, "refund"]), arguments=broken))
        yield task, plan


def assert_same_end(shop: RetailEnvironment, official: OfficialShop, task: Task, plan: list[ToolCall]) -> bool:
    texts, official_hash = official.run(plan)
    if tuple(plan) == task.actions:
        official.gold_hashes[task.id] = official_hash
    verdict = shop.verdict(task, plan, told(task))
    for outcome, text in zip(verdict.episode.outcomes, texts, strict=True):
        if text is None:
            assert not outcome.ok
        elif outcome.call.name not in environment_module.STATELESS_TOOLS:
            assert outcome.text == text
    assert official.hash_of(verdict.episode) == official_hash
    assert verdict.database == (official_hash == official.gold_hash(task))
    return verdict.database


def test_carrying_out_the_gold_calls_and_telling_the_facts_succeeds_in_every_task(
    environment: RetailEnvironment,
) -> None:
    failed = [task.id for task in TASKS.values() if not environment.verdict(task, task.actions, told(task)).success]
    assert failed == []


def test_on_the_pinned_50_every_answer_and_the_final_state_are_the_official_ones(
    environment: RetailEnvironment, official: OfficialShop
) -> None:
    assert official.hash_of(environment.run([])) == official.base_hash
    assert all(assert_same_end(environment, official, task, list(task.actions)) for task in PINNED)


def test_disturbed_plans_end_as_they_do_officially(environment: RetailEnvironment, official: OfficialShop) -> None:
    verdicts = {
        assert_same_end(environment, official, task, plan) for task, plan in iter_disturbed_plans(seed=7, n_plans=24)
    }
    assert verdicts == {True, False}, "the sample must hold plans that still succeed and plans that fail"


@pytest.mark.slow
def test_500_disturbed_plans_end_as_they_do_officially(environment: RetailEnvironment, official: OfficialShop) -> None:
    plans = list(iter_disturbed_plans(seed=11, n_plans=500))
    right = sum(assert_same_end(environment, official, task, plan) for task, plan in plans)
    assert 50 < right < 450


@pytest.mark.parametrize("task_id", ["20", "21", "36", "37", "100"])
def test_the_order_of_item_pairs_is_data(environment: RetailEnvironment, official: OfficialShop, task_id: str) -> None:
    # The official tool gives every changed item the price and options of the last pair.
    task = TASKS[task_id]
    reordered = [
        ToolCall(
            name=action.name,
            arguments={k: v[::-1] if isinstance(v, list) else v for k, v in action.arguments.items()},
        )
        if action.name == "modify_pending_order_items"
        else action
        for action in task.actions
    ]
    assert environment.verdict(task, task.actions, told(task)).success
    assert not assert_same_end(environment, official, task, reordered)


def test_two_equal_items_of_one_order_are_exchanged_as_two(environment: RetailEnvironment) -> None:
    (gold,) = TASKS["105"].actions
    (outcome,) = environment.run([gold]).outcomes
    assert not outcome.ok
    assert outcome.text == "Insufficient gift card balance to pay for the price difference"

    affordable: dict[str, JsonValue] = {**gold.arguments, "new_item_ids": ["3761330360", "3761330360"]}
    once = {**affordable, "item_ids": ["7292993796"], "new_item_ids": ["3761330360"]}
    thrice = {**affordable, "item_ids": ["7292993796"] * 3, "new_item_ids": ["3761330360"] * 3}
    done, done_once, refused = (
        environment.run([call(gold.name, **arguments)]) for arguments in (affordable, once, thrice)
    )
    assert json.loads(done.outcomes[0].text)["exchange_items"] == ["7292993796", "7292993796"]
    assert json.loads(done.outcomes[0].text)["exchange_price_difference"] == 12.64
    assert done.changes != done_once.changes
    assert refused.outcomes[0].text == "Number of 7292993796 not found."


def test_doing_and_saying_nothing_passes_seven_tasks(environment: RetailEnvironment) -> None:
    idle = {task.id: environment.verdict(task, [], "") for task in TASKS.values()}
    assert [task_id for task_id, verdict in idle.items() if verdict.database] == DO_NOTHING_DATABASE
    assert [task_id for task_id, verdict in idle.items() if verdict.success] == DO_NOTHING_SUCCESS


@pytest.mark.slow
def test_doing_nothing_passes_the_same_tasks_officially(official: OfficialShop) -> None:
    passed = [task.id for task in TASKS.values() if official.gold_hash(task) == official.base_hash]
    assert passed == DO_NOTHING_DATABASE


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


def test_the_shared_database_is_the_same_after_many_episodes(
    environment: RetailEnvironment, official: OfficialShop
) -> None:
    for task, plan in iter_disturbed_plans(seed=3, n_plans=400):
        environment.verdict(task, plan, "")
    assert environment._database.get_hash() == official.base_hash


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


def test_threads_share_one_shop() -> None:
    shop = RetailEnvironment()  # new, so that the threads also meet empty caches
    plans = list(iter_disturbed_plans(seed=5, n_plans=200))
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda pair: shop.verdict(pair[0], pair[1], ""), plans))
    assert together == [load_environment().verdict(task, plan, "") for task, plan in plans]


def test_episodes_survive_a_round_trip_and_are_frozen(environment: RetailEnvironment) -> None:
    episode = environment.run(TASKS["0"].actions)
    assert Episode.model_validate_json(episode.model_dump_json()) == episode
    with pytest.raises(ValidationError):
        episode.outcomes = ()  # type: ignore[misc]
