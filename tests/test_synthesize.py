"""Synthetic problems: legal, verified on the real tools, of the kinds the real tasks have, and the same for a seed."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import pytest

from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data.catalogue import load_catalogue
from graphhandoff.data.environment import READING_TOOLS, load_environment
from graphhandoff.data.problems import KINDS, Problem
from graphhandoff.data.retail import load_split, load_tasks
from graphhandoff.data.synthesize import SynthesisConfig, SynthesisError, find_fault, iter_problems, synthesize

CONFIG = SynthesisConfig(seed=3)
CATALOGUE = load_catalogue(CONFIG.split)


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    return list(iter_problems(CONFIG, 0, 600))


def test_no_problem_is_about_a_customer_of_a_pinned_task(problems: list[Problem]) -> None:
    pinned = set(load_split(CONFIG.split).task_ids)
    measured = {user for task in load_tasks() if task.id in pinned for user in task.user_ids}
    orders = {order for user in measured for order in CATALOGUE.rows["users"][user]["orders"]}
    assert CATALOGUE.pinned_users == measured
    for problem in problems:
        said = problem.model_dump_json()
        assert problem.customer.user_id not in measured
        assert not any(order in said for order in orders)


def test_every_call_succeeds_and_the_database_is_as_meant(problems: list[Problem]) -> None:
    for problem in problems:
        assert find_fault(problem, CATALOGUE) is None


def test_a_plan_that_does_other_than_meant_is_found_out(problems: list[Problem]) -> None:
    problem = next(p for p in problems if [step.kind for step in p.steps] == ["return"] and len(p.steps[0].items) == 1)
    step = problem.steps[0]
    other = next(item.item_id for item in step.kept) if step.kept else None
    broken = step.call.model_copy(update={"arguments": {**step.call.arguments, "item_ids": [other]}})
    calls = tuple(broken if call == step.call else call for call in problem.calls)
    assert "return" in str(find_fault(problem.model_copy(update={"calls": calls}), CATALOGUE))
    left_out = tuple(call for call in problem.calls if call != step.call)
    assert "meant 'return requested'" in str(find_fault(problem.model_copy(update={"calls": left_out}), CATALOGUE))
    refused = (*problem.calls, step.call)
    assert "was refused" in str(find_fault(problem.model_copy(update={"calls": refused}), CATALOGUE))


def test_a_change_that_nobody_meant_is_found_out(problems: list[Problem]) -> None:
    problem = next(p for p in problems if not p.steps)
    account = next(a for a in CATALOGUE.accounts if a.having("pending") and a.customer != problem.customer)
    order = account.having("pending")[0].order_id
    stray = ToolCall(name="cancel_pending_order", arguments={"order_id": order, "reason": "no longer needed"})
    fault = find_fault(problem.model_copy(update={"calls": (*problem.calls, stray)}), CATALOGUE)
    assert fault is not None
    assert "was not meant to" in fault


def test_all_kinds_and_both_fallbacks_and_slips_occur(problems: list[Problem]) -> None:
    many = [*problems, *iter_problems(CONFIG, 600, 2500)]
    kinds = Counter(step.kind for problem in many for step in problem.steps)
    assert set(kinds) == set(KINDS)
    fallbacks = {step.fallback for problem in many for step in problem.steps}
    assert {"sold_out", "one_item_only", "refund_elsewhere", "card_too_small"} <= fallbacks
    assert any(problem.misnamed for problem in many)
    assert {decoy.kind for problem in many for decoy in problem.decoys} == {"order", "item", "sold_out", "payment"}
    assert max(len(problem.steps) for problem in many) >= 5
    assert any(not problem.steps and problem.facts for problem in many)


def test_swaps_are_legal_and_first_choices_really_sold_out(problems: list[Problem]) -> None:
    for swap in (swap for problem in problems for step in problem.steps for swap in step.swaps):
        stock = {item.item_id: item for item in CATALOGUE.variants(swap.old.product_id, True)}
        assert swap.new == stock[swap.new.item_id]
        assert swap.new.item_id != swap.old.item_id
        if swap.rule != "options":
            assert swap.new.price == {"cheapest": min, "dearest": max}[swap.rule](v.price for v in stock.values())
        if swap.first_choice is not None:
            assert swap.first_choice.item_id not in stock


def test_decoys_are_no_part_of_the_plan(problems: list[Problem]) -> None:
    for problem in problems:
        used = " ".join(call.model_dump_json() for call in problem.calls if call.name not in READING_TOOLS)
        for decoy in problem.decoys:
            assert decoy.id not in used
        assert problem.misnamed is None or problem.misnamed not in CATALOGUE.rows["orders"]


def test_an_address_changes_before_the_items_of_its_order_and_a_transfer_comes_last(problems: list[Problem]) -> None:
    for problem in [*problems, *iter_problems(CONFIG, 600, 2000)]:
        place = {(step.kind, step.order_id): i for i, step in enumerate(problem.steps)}
        for (kind, order), i in place.items():
            if kind == "modify_address" and ("modify_items", order) in place:
                assert i < place["modify_items", order]
        if any(step.kind == "transfer" for step in problem.steps[:-1]):
            assert {step.kind for step in problem.steps[-1:]} == {"transfer"}


def test_facts_follow_from_the_records(problems: list[Problem]) -> None:
    environment = load_environment()
    for problem in problems:
        for fact in problem.facts:
            if fact.kind == "tracking":
                assert (
                    fact.value
                    in environment.run([ToolCall(name="get_order_details", arguments={"order_id": fact.about})])
                    .outcomes[0]
                    .text
                )
            if fact.kind == "balance":
                method = CATALOGUE.rows["users"][problem.customer.user_id]["payment_methods"][fact.about]
                assert float(fact.value) == method["balance"]


def test_facts_are_still_true_when_the_plan_is_done(problems: list[Problem]) -> None:
    environment = load_environment()
    told = 0
    for problem in [*problems, *iter_problems(CONFIG, 600, 2500)]:
        changes = {(c.table, c.key): json.loads(c.content) for c in environment.run(problem.calls).changes}
        user = changes.get(("users", problem.customer.user_id))
        for fact in problem.facts:
            if fact.kind == "balance" and user is not None:
                told += 1
                assert float(fact.value) == user["payment_methods"][fact.about]["balance"]
            if fact.kind == "price" and ("orders", fact.about) in changes:
                assert changes["orders", fact.about]["status"] != "pending (item modified)"
    assert told


def test_no_order_is_sent_to_a_profile_address_that_changes() -> None:
    moving = SynthesisConfig(seed=3, kinds={"modify_address": 1.0, "modify_user_address": 1.0}, n_steps=(0, 0, 1))
    for problem in iter_problems(moving, 0, 200):
        if any(step.kind == "modify_user_address" for step in problem.steps):
            assert all(step.address_source != "profile" for step in problem.steps)


def test_a_transfer_is_about_an_order_that_is_as_its_summary_says(problems: list[Problem]) -> None:
    for problem in [*problems, *iter_problems(CONFIG, 600, 3000)]:
        for step in (step for step in problem.steps if step.kind == "transfer"):
            status = CATALOGUE.rows["orders"][step.order_id]["status"] if step.order_id else None
            assert [other.order_id for other in problem.steps].count(step.order_id) == 1 or step.order_id is None
            assert "already pending" not in str(step.reason)
            if "never arrived" in str(step.reason):
                assert status in ("processed", "delivered")


def test_a_seed_gives_the_same_stream_wherever_it_is_cut_and_whoever_works_on_it(problems: list[Problem]) -> None:
    assert synthesize(CONFIG, 321) == problems[321]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        elsewhere = list(pool.map(partial(synthesize, CONFIG), range(40)))
    assert elsewhere == problems[:40]
    assert synthesize(SynthesisConfig(seed=4), 0) != problems[0]


def test_weights_that_ask_for_what_the_shop_lacks_are_named() -> None:
    with pytest.raises(SynthesisError, match=r"no problem 0 in 200 attempts .*n_steps a smaller one"):
        synthesize(SynthesisConfig(seed=1, n_steps=(0, 0, 0, 0, 0, 0, 0, 0, 1), kinds={"return": 1.0}), 0)
    with pytest.raises(ValueError, match="must be weights of 0 or more, not all 0"):
        SynthesisConfig(seed=1, n_facts=(0.0, 0.0))
    with pytest.raises(ValueError, match="seed"):
        SynthesisConfig.model_validate({})
