"""What is learned from a trajectory: what policy asks for, nothing refused or idle, and every call accounted for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from graphhandoff.compress.contract import check_graph
from graphhandoff.compress.protocol import ToolCall, ToolSpec
from graphhandoff.data.environment import READING_TOOLS, RetailEnvironment, load_environment
from graphhandoff.data.label import Label, label_trajectory
from graphhandoff.data.message_log import Step
from graphhandoff.data.retail import Task, load_tasks, load_tools
from graphhandoff.data.trajectories import Trajectory, reexecute

TASKS = {task.id: task for task in load_tasks()}
TOOLS = load_tools()
FIND = ToolCall(
    name="find_user_id_by_name_zip", arguments={"first_name": "Yusuf", "last_name": "Rossi", "zip": "19122"}
)
ORDER = ToolCall(name="get_order_details", arguments={"order_id": "#W2378156"})
WRITE = TASKS["0"].actions[-1]
CHANGES = {tool.name for tool in TOOLS} - READING_TOOLS
CANCEL = ToolCall(name="cancel_pending_order", arguments={"order_id": "#W6247578", "reason": "no longer needed"})


@pytest.fixture(scope="module")
def environment() -> RetailEnvironment:
    return load_environment()


def label(*steps: Step, said: Sequence[str] = (), facts: Sequence[str] = ()) -> Label:
    return label_trajectory(Trajectory(source="test", task_id="0", steps=steps, said=tuple(said)), TOOLS, facts)


def done(call: ToolCall, observation: str = "done") -> Step:
    return Step(call=call, observation=observation, ok=True)


def carried_out(*calls: ToolCall) -> tuple[Step, ...]:
    outcomes = load_environment().run(calls).outcomes
    return tuple(Step(call=outcome.call, observation=outcome.text, ok=outcome.ok) for outcome in outcomes)


def calls_of(found: Label) -> list[ToolCall]:
    assert found.graph is not None
    return list(check_graph(found.graph, TOOLS))


def as_plan(task: Task) -> Trajectory:
    return Trajectory(
        source="gold", task_id=task.id, steps=tuple(Step(call=call) for call in task.actions), said=task.facts
    )


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.id)
def test_the_graph_of_a_carried_out_plan_leaves_the_shop_as_gold_does(
    task: Task, environment: RetailEnvironment
) -> None:
    found = label_trajectory(reexecute(as_plan(task), environment), TOOLS, task.facts)
    assert not found.unlabelled
    calls = calls_of(found) if found.graph else []
    assert environment.verdict(task, calls, " ".join(task.facts)).success
    refused = [outcome.call for outcome in environment.run(task.actions).outcomes if not outcome.ok]
    assert not [call for call in calls if call in refused]
    if found.graph is not None:
        told = [text.removeprefix("tell ") for text in found.graph.iter_texts("postcondition")]
        assert told == list(task.facts)


@pytest.mark.parametrize("task_id", ["12", "13", "64"])
def test_gold_changes_that_the_shop_refuses_are_not_learned(task_id: str, environment: RetailEnvironment) -> None:
    trajectory = reexecute(as_plan(TASKS[task_id]), environment)
    found = label_trajectory(trajectory, TOOLS)
    refused = [i for i, step in enumerate(trajectory.steps, start=1) if step.call.name in CHANGES and not step.ok]
    assert len(refused) == 1
    assert not set(refused) & set(found.kept)
    assert any(text.startswith(f"step {refused[0]} (") and ": refused: " in text for text in found.dropped)


def test_requirements_come_from_the_policy_and_not_from_what_was_seen() -> None:
    found = label(*carried_out(FIND, ORDER, WRITE))
    assert found.graph is not None
    assert list(found.graph.iter_texts("precondition")) == ["delivered"]
    assert list(found.graph.iter_texts("constraint")) == ["one call"]
    assert list(found.graph.iter_texts("entity")) == ["yusuf_rossi_9620"]
    blind = label(done(WRITE))
    assert blind.graph is not None
    assert list(blind.graph.iter_texts("precondition")) == ["delivered"]
    assert blind.remarks == ("no look-up identified the customer, which the policy asks for before anything else",)


def test_only_the_look_ups_that_a_change_needs_are_kept() -> None:
    def look(name: str, **arguments: str) -> ToolCall:
        return ToolCall(name=name, arguments=dict(arguments))

    found = label(
        *carried_out(
            look("find_user_id_by_email", email="nobody@example.com"),
            FIND,
            look("find_user_id_by_email", email="yusuf.rossi7301@example.com"),
            look("list_all_product_types"),
            look("get_order_details", order_id="#W6247578"),
            ORDER,
            ORDER,
            look("get_product_details", product_id="1656367028"),
            look("get_product_details", product_id="4896585277"),
            look("get_product_details", product_id="9523456873"),
            look("get_user_details", user_id="mia_garcia_4516"),
            look("get_user_details", user_id="yusuf_rossi_9620"),
            look("calculate", expression="1050.5 + 4.25"),
            look("calculate", expression="2 + 2"),
            WRITE,
            ORDER,
        ),
        said=["The difference is $1,054.75."],
    )
    assert found.kept == (2, 6, 8, 9, 12, 13, 15)
    assert [text.split(": ")[1] for text in found.dropped] == [
        "refused",
        "another look-up identifies the customer",
        "look-up that no later change needs",
        "look-up that no later change needs",
        "looked up before",
        "look-up that no later change needs",
        "look-up that no later change needs",
        "its result was not told to the customer",
        "look-up that no later change needs",
    ]
    assert found.complete


def test_the_customer_is_the_one_whose_order_is_changed() -> None:
    other = ToolCall(name="find_user_id_by_email", arguments={"email": "mia.garcia2723@example.com"})
    assert label(*carried_out(other, FIND, WRITE)).kept == (2, 3)
    assert label(*carried_out(other, FIND)).kept == (1,)


def test_of_two_tries_the_one_that_succeeded_is_kept() -> None:
    bad = WRITE.model_copy(update={"arguments": {**WRITE.arguments, "payment_method_id": "gift_card_0"}})
    found = label(*carried_out(FIND, bad, WRITE, WRITE))
    assert found.kept == (1, 3)
    assert calls_of(found) == [FIND, WRITE]
    same = Step(call=WRITE, observation="Error: timeout")
    assert label(same, done(WRITE)).kept == (2,)


def test_what_cannot_be_judged_is_told_and_left_out() -> None:
    found = label(
        Step(call=CANCEL),
        Step(call=ToolCall(name="book_flight"), observation="booked"),
        Step(call=ToolCall(name=CANCEL.name, arguments={"order_id": 5}), observation="{}"),
        Step(call=ToolCall(name=CANCEL.name), observation="{}", fault="the arguments are not JSON"),
        Step(call=ORDER),
        Step(call=ToolCall(name="think", arguments={"thought": "hm"}), observation=""),
        Step(call=ToolCall(name="book_flight"), ok=False, observation="no such tool"),
        done(CANCEL),
    )
    assert found.kept == (8,)
    assert [text.split(")")[0] for text in found.unlabelled] == [
        "step 1 (cancel_pending_order",
        "step 2 (book_flight",
        "step 3 (cancel_pending_order",
        "step 4 (cancel_pending_order",
    ]
    assert [text.split(")")[0] for text in found.dropped] == [
        "step 5 (get_order_details",
        "step 6 (think",
        "step 7 (book_flight",
    ]
    assert not found.complete
    published = label_trajectory(
        Trajectory(source="test", task_id="0", steps=(Step(call=ToolCall(name="book_flight"), ok=True),)),
        [ToolSpec(name="book_flight")],
    )
    assert "no rule says" in published.unlabelled[0]


def test_only_given_facts_are_facts() -> None:
    found = label(done(CANCEL), said=["You get $41.50 back."], facts=["41.50", "7"])
    assert found.graph is not None
    assert list(found.graph.iter_texts("postcondition")) == ["tell 41.50", "tell 7"]
    assert found.remarks[0] == "the fact '7' was not told"
    silent = label(done(CANCEL), said=["You get $41.50 back."])
    assert silent.graph is not None
    assert not list(silent.graph.iter_texts("postcondition"))


def test_without_anything_to_hand_over_there_is_no_graph() -> None:
    found = label(Step(call=CANCEL, ok=False, observation="no"))
    assert found.graph is None
    assert not found.complete
    assert len(found.dropped) == 1
    assert label().graph is None
