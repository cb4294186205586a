"""The shop ends where the official tools end: on every gold plan, in every order, and on thousands of random plans."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain, permutations
from pathlib import Path
from time import perf_counter
from uuid import uuid4

import pytest
from pydantic import JsonValue

from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data.environment import READING_TOOLS, STATELESS_TOOLS, RetailEnvironment, Verdict, load_environment
from graphhandoff.data.retail import Task, load_tasks
from tests.official import MendedShop, OfficialShop, changed_rows, load_official_shop
from tests.plans import call, iter_disturbed_plans, iter_drawn_plans, told, turned_round, with_arguments

TASKS = {task.id: task for task in load_tasks()}
PAIRED = ["20", "21", "36", "37", "100"]
DO_NOTHING_DATABASE = ["10", "12", "24", "25", "50", "57", "62", "65", "67", "68", "105"]

Plans = Iterable[tuple[Task, Sequence[ToolCall]]]


@pytest.fixture(scope="module")
def environment() -> RetailEnvironment:
    return load_environment()


@pytest.fixture(scope="module")
def official() -> OfficialShop:
    return load_official_shop()


@pytest.fixture(scope="module")
def mended(official: OfficialShop) -> MendedShop:
    return MendedShop(official)


def assert_same_answers(verdict: Verdict, texts: Sequence[str | None]) -> None:
    for outcome, text in zip(verdict.episode.outcomes, texts, strict=True):
        if text is None:
            assert not outcome.ok
        elif outcome.call.name not in STATELESS_TOOLS:
            assert outcome.text == text


def assert_same_rows(environment: RetailEnvironment, mended: MendedShop, task: Task, plan: Sequence[ToolCall]) -> bool:
    """Compare answers, changed rows and verdict with the official tools' on the mended database."""
    verdict = environment.verdict(task, plan, told(task))
    texts, rows = mended.run(plan)
    assert_same_answers(verdict, texts)
    assert changed_rows(verdict.episode) == rows
    assert verdict.database == (rows == mended.gold_rows(task))
    return verdict.database


def assert_same_hash(
    environment: RetailEnvironment, official: OfficialShop, task: Task, plan: Sequence[ToolCall]
) -> bool:
    """Compare answers, final state and verdict with the official ones: reloaded, replayed and hashed as a whole."""
    verdict = environment.verdict(task, plan, told(task))
    texts, digest = official.run(plan)
    assert_same_answers(verdict, texts)
    assert official.hash_of(verdict.episode) == digest
    assert verdict.database == (digest == official.gold_hash(task))
    return verdict.database


def assert_same_ends(
    environment: RetailEnvironment, official: OfficialShop, mended: MendedShop, plans: Plans, whole_every: int
) -> Counter[str]:
    """Compare every plan by rows and every so many also by whole hashes; count what the plans were like.

    Both ways judge the same plan against the same environment, so on the sample they are held against each other too.
    """
    seen: Counter[str] = Counter()
    for number, (task, plan) in enumerate(plans):
        right = assert_same_rows(environment, mended, task, plan)
        seen["plans"] += 1
        seen["right" if right else "wrong"] += 1
        if number % whole_every == 0:
            assert assert_same_hash(environment, official, task, plan) == right
            seen["whole, right" if right else "whole, wrong"] += 1
        episode = environment.run(plan)
        seen["changing something"] += bool(episode.changes)
        for outcome in episode.outcomes:
            kind = "reading" if outcome.call.name in READING_TOOLS else "writing"
            seen[kind if outcome.ok else f"refused {kind}"] += 1
            seen[f"{outcome.call.name} {'done' if outcome.ok else 'refused'}"] += 1
    assert mended.whole_hash() == official.base_hash, "a row changed that the mended shop did not see"
    return seen


def reordered(task: Task, order: Sequence[int]) -> list[ToolCall]:
    """The gold plan with the pairs of its one call that modifies several items in another order."""
    plan = []
    for action in task.actions:
        if action.name == "modify_pending_order_items":
            pairs = {name: [action.arguments[name][at] for at in order] for name in ("item_ids", "new_item_ids")}  # type: ignore[index]
            action = with_arguments(action, **pairs)
        plan.append(action)
    return plan


def test_nothing_done_leaves_the_official_database(environment: RetailEnvironment, official: OfficialShop) -> None:
    assert official.hash_of(environment.run([])) == official.base_hash
    assert environment._database.get_hash() == official.base_hash


def test_every_gold_plan_ends_as_officially(environment: RetailEnvironment, mended: MendedShop) -> None:
    assert len(TASKS) == 114
    assert all(assert_same_rows(environment, mended, task, task.actions) for task in TASKS.values())


def test_random_plans_end_as_officially(
    environment: RetailEnvironment, official: OfficialShop, mended: MendedShop
) -> None:
    plans = chain(iter_drawn_plans(seed=7, n_plans=60), iter_disturbed_plans(seed=7, n_plans=24))
    seen = assert_same_ends(environment, official, mended, plans, whole_every=21)
    assert min(seen["right"], seen["wrong"]) > 10


@pytest.mark.slow
def test_5000_random_plans_end_as_officially(
    environment: RetailEnvironment,
    official: OfficialShop,
    mended: MendedShop,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Loading and hashing the whole database twice for each of 5,000 plans would take half an hour. All plans are held
    # against the official tools on one database that is mended after each plan, row by row (MendedShop says why
    # nothing can be missed); one plan in 17 is also judged the scorer's own way, and both must say the same.
    started = perf_counter()
    plans = chain(iter_drawn_plans(seed=11, n_plans=4000), iter_disturbed_plans(seed=11, n_plans=1000))
    seen = assert_same_ends(environment, official, mended, plans, whole_every=17)
    whole = seen["whole, right"] + seen["whole, wrong"]
    with capsys.disabled():
        print(
            f"\nrandom plans against the official tools: {seen['plans']} in {perf_counter() - started:.0f} s, "
            f"{whole} of them by whole hashes too; {seen['right']} right, "
            f"{seen['changing something']} changing something; "
            f"{seen['writing']} of {seen['writing'] + seen['refused writing']} writing calls done"
        )
    assert seen["plans"] == 5000
    assert min(seen["right"], seen["wrong"]) > 1000
    assert min(seen["whole, right"], seen["whole, wrong"]) > 60
    assert seen["changing something"] > 3500
    assert seen["writing"] > 0.4 * (seen["writing"] + seen["refused writing"])
    tools = [tool for tool in environment._specs if tool != "list_all_product_types"]  # takes nothing, refuses nothing
    assert [tool for tool in tools if seen[f"{tool} done"] < 100 or seen[f"{tool} refused"] < 50] == []


@pytest.mark.slow
def test_every_gold_plan_is_right_by_the_hash_that_the_official_tools_end_with(
    environment: RetailEnvironment, official: OfficialShop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inspect_evals.tau2.retail.RetailAgentTools import RetailAgentTools

    # The official loader leaves an unpacked database in the temporary folder at every reload.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    right_by_doing_nothing = []
    for task in TASKS.values():
        tools = RetailAgentTools(instance=str(uuid4()))
        tools.initialize()
        for action in task.actions:
            if action.name not in STATELESS_TOOLS:
                with suppress(official.tool_error):
                    getattr(tools, action.name)(**action.arguments)
        digest = tools.db.get_hash()
        tools.db = official.database_class()
        for left_behind in tmp_path.iterdir():
            left_behind.unlink()
        verdict = environment.verdict(task, task.actions, told(task))
        assert verdict.database
        assert official.hash_of(verdict.episode) == digest
        idle = digest == official.base_hash
        assert environment.verdict(task, [], "").database == idle
        if idle:
            right_by_doing_nothing.append(task.id)
    assert right_by_doing_nothing == DO_NOTHING_DATABASE


@pytest.mark.parametrize("task_id", PAIRED)
def test_the_order_of_item_pairs_is_data(environment: RetailEnvironment, official: OfficialShop, task_id: str) -> None:
    # The official tool gives every changed item the price and options of the last pair.
    task = TASKS[task_id]
    backwards = [turned_round(action) if "modify" in action.name else action for action in task.actions]
    assert environment.verdict(task, task.actions, told(task)).success
    assert not assert_same_hash(environment, official, task, backwards)


@pytest.mark.slow
@pytest.mark.parametrize(("task_id", "n_pairs"), list(zip(PAIRED, [4, 2, 3, 3, 2], strict=True)))
def test_every_order_of_item_pairs_is_judged_as_officially(
    environment: RetailEnvironment, official: OfficialShop, task_id: str, n_pairs: int
) -> None:
    right = {
        order
        for order in permutations(range(n_pairs))
        if assert_same_hash(environment, official, TASKS[task_id], reordered(TASKS[task_id], order))
    }
    assert tuple(range(n_pairs)) in right
    assert {order[-1] for order in right} == {n_pairs - 1}, "another last pair is another price for every item"


def test_two_equal_items_of_one_order_are_exchanged_as_two(
    environment: RetailEnvironment, official: OfficialShop
) -> None:
    task = TASKS["105"]
    (gold,) = task.actions
    item, cheap, dear = "7292993796", "3761330360", "9647374798"
    assert gold.arguments["item_ids"] == [item, item]
    assert gold.arguments["new_item_ids"] == [cheap, dear]
    (outcome,) = environment.run([gold]).outcomes
    assert not outcome.ok
    assert outcome.text == "Insufficient gift card balance to pay for the price difference"

    def exchange(*new_item_ids: JsonValue) -> ToolCall:
        return with_arguments(gold, item_ids=[item] * len(new_item_ids), new_item_ids=list(new_item_ids))

    done, refused = environment.run([exchange(cheap, cheap)]), environment.run([exchange(cheap, cheap, cheap)])
    assert json.loads(done.outcomes[0].text)["exchange_items"] == [item, item]
    assert json.loads(done.outcomes[0].text)["exchange_price_difference"] == 12.64
    assert refused.outcomes[0].text == f"Number of {item} not found."

    # The gold call is refused, so the other order, which is refused as well, is right; one that succeeds is wrong.
    judged = {
        new: assert_same_hash(environment, official, task, [exchange(*new)])
        for new in [(cheap, dear), (dear, cheap), (cheap, cheap), (cheap,), (cheap, cheap, cheap)]
    }
    assert [new for new, right in judged.items() if not right] == [(cheap, cheap), (cheap,)]
    # Once for two is not the same as twice for two, and the same variants in another order are the same exchange.
    twice = Task(id="twice", split="test", text="", actions=(exchange(cheap, cheap),))
    assert not assert_same_hash(environment, official, twice, [exchange(cheap)])
    assert assert_same_hash(environment, official, twice, [exchange(cheap, cheap), exchange(cheap, cheap)])


def test_what_a_tool_changed_before_it_fell_over_counts_as_officially(
    environment: RetailEnvironment, official: OfficialShop
) -> None:
    # Half a surrogate pair is a string to the tool but no text to its answer, which fails when all is written.
    user_id = TASKS["0"].user_ids[0]
    address = dict.fromkeys(("address1", "address2", "city", "state", "country", "zip"), "")
    task = Task(id="half", split="test", text="", actions=(call("modify_user_address", user_id=user_id, **address),))
    broken = call("modify_user_address", user_id=user_id, **{**address, "city": "\ud800"})
    assert not environment.run([broken]).outcomes[0].ok
    assert [change.key for change in environment.run([broken]).changes] == [user_id]
    assert not assert_same_hash(environment, official, task, [broken])
    assert assert_same_hash(environment, official, task, [broken, *task.actions])


def test_the_mended_shop_notices_a_row_that_changed_without_being_asked_for(official: OfficialShop) -> None:
    # What the long comparison rests on: no change can hide from it.
    user_id = TASKS["0"].user_ids[0]
    ask = call("get_user_details", user_id=user_id)
    shop = MendedShop(official)
    assert shop.run([ask])[1] == {}
    dict.__getitem__(shop._database.users, user_id).name.first_name = "Nobody"
    assert shop.whole_hash() != official.base_hash
    with pytest.raises(AssertionError, match="an earlier sequence left a mark"):
        shop._tables["users"][user_id]
