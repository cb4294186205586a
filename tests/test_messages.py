"""Conversations in any state: every call becomes one step, and whatever was odd is told."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphhandoff.compress.contract import check_graph
from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data.environment import load_environment
from graphhandoff.data.label import label_trajectory
from graphhandoff.data.message_log import INSPECT, OPENAI, TAU2, Layout, read_messages
from graphhandoff.data.retail import load_tasks, load_tools
from graphhandoff.data.trajectories import Trajectory, reexecute
from tests.harness_logs import Message, inspect_messages, openai_messages, tau2_messages

TASKS = {task.id: task for task in load_tasks()}
TOOLS = load_tools()


def assistant(*calls: Any, content: Any = None) -> Message:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def function(name: Any, arguments: Any, call_id: Any = "a") -> Message:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(content: Any, call_id: Any = "a", **fields: Any) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **fields}


@pytest.mark.parametrize(
    ("arguments", "read", "told"),
    [
        ('{"a": 1}', {"a": 1}, None),
        ({"a": 1}, {"a": 1}, None),
        ("", {}, "left out"),
        (None, {}, "left out"),
        ('```json\n{"a": 1}\n```', {"a": 1}, "fence"),
        ('"{\\"a\\": 1}"', {"a": 1}, "twice"),
        ('{"a": 1', None, "not JSON"),
        ('{"a": 1, "a": 2}', None, "stands twice"),
        ('{"a": NaN}', None, "no JSON"),
        ("[1]", None, "no object"),
        (5, None, "no object"),
        ('{"a": "\\ud83d"}', None, "what JSON cannot"),
        ({"a": float("nan")}, None, "what JSON cannot"),
        ("[" * 100_000, None, "not JSON"),
        ('{"a": ' * 300 + "1" + "}" * 300, None, "what JSON cannot"),
    ],
)
def test_arguments_are_read_or_told_to_be_malformed(arguments: Any, read: Any, told: str | None) -> None:
    found = read_messages([assistant(function("f", arguments)), result("ok")], OPENAI)
    (step,) = found.steps
    assert step.call == ToolCall(name="f", arguments=read or {})
    assert (step.fault is None) == (read is not None)
    assert (told is None and found.oddities == ()) or (told is not None and told in found.oddities[0])


def test_parallel_calls_are_matched_by_id_and_missing_results_told() -> None:
    messages = [
        assistant(function("f", "{}", "a"), function("g", "{}", "b"), function("h", "{}", "c")),
        result("of b", "b"),
        result("of a", "a"),
    ]
    found = read_messages(messages, OPENAI)
    assert [step.observation for step in found.steps] == ["of a", "of b", None]
    assert found.oddities == ("message 1 calls 'h' (step 3) without a result",)


def test_repeated_ids_mean_the_latest_call() -> None:
    messages = [
        assistant(function("f", "{}")),
        assistant(function("g", "{}")),
        result("of g"),
        assistant(function("h", "{}"), function("i", "{}")),
        result("of h"),
        result("of i"),
        result("again"),
        result("and again"),
    ]
    found = read_messages(messages, OPENAI)
    # A result too many is given to nobody: an earlier call must not look done because of it.
    assert [step.observation for step in found.steps] == [None, "of g", "of h", "of i"]
    assert sum("repeats the call id" in oddity for oddity in found.oddities) == 3
    assert found.oddities[-3:] == (
        "message 7 holds a result that no call waits for: 'again'",
        "message 8 holds a result that no call waits for: 'and again'",
        "message 1 calls 'f' (step 1) without a result",
    )


def test_results_without_an_id_go_to_the_call_that_waits() -> None:
    messages = [
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": None},
        {"role": "function", "name": "f", "content": "late"},
        {"role": "assistant", "function_call": {"name": "g", "arguments": "{}"}},
        {"role": "function", "content": "of g"},
    ]
    found = read_messages(messages, OPENAI)
    assert [step.observation for step in found.steps] == ["", "of g"]
    assert "without an id" in found.oddities[0]
    assert "without content" in found.oddities[1]
    assert "result of 'f' that no call waits for" in found.oddities[2]


def test_odd_content_is_read_as_far_as_it_goes() -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "image_url", "image_url": {}}]},
        {"role": "user", "content": "", "tool_calls": [{"id": "u", "name": "reboot", "arguments": {}}]},
        assistant(content=[{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "Hi"}, "there"]),
        assistant(function("f", "{}"), content="Let me see"),
        result({"a": 1}, name="g"),
        assistant("f", function(None, "{}", "b")),
        result("no", "b"),
        assistant(content='Thought: x\nAction:\n{"name": "f"}'),
        assistant(content="cut \ud83d"),
    ]
    found = read_messages(messages, OPENAI)
    assert found.heard == ("Hello",)
    assert found.said == ("Hi\nthere", "cut ?")
    assert [step.observation for step in found.steps] == [None, None, "no"]
    for told in (
        "part of type 'image_url'",
        "a call of the customer's",
        "text beside a call",
        "written as JSON",
        "a result of 'g' that no call waits for",
        "names no tool: 'f'",
        "a call written as text",
        "half a surrogate pair",
    ):
        assert sum(told in oddity for oddity in found.oddities) == 1, told


def test_tau2_says_which_results_are_errors_and_whose_they_are() -> None:
    call = {"id": "a", "name": "f", "arguments": {}, "requestor": "assistant"}
    inner = [
        {"role": "tool", "id": "u", "requestor": "user", "content": "theirs"},
        {"role": "tool", "id": "a", "content": "bad", "error": True},
    ]
    found = read_messages([assistant(call), {"role": "tool", "tool_messages": inner}], TAU2)
    assert found.steps[0].ok is False
    assert found.oddities == ("message 2 answers a call of the customer's and was left out: 'theirs'",)


GOOD = {
    OPENAI: openai_messages(load_environment().run(TASKS["0"].actions).outcomes, "Done."),
    TAU2: tau2_messages(load_environment().run(TASKS["12"].actions).outcomes, "Done."),
    INSPECT: inspect_messages(load_environment().run(TASKS["64"].actions).outcomes, "Done."),
}
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["role", "content", "tool_calls", "tool_call_id", "id", "name", "arguments", "function", "error", "type"]


def damage(draw: st.DrawFn, value: Any) -> Any:
    """Replace, drop or repeat something somewhere inside a JSON value."""
    if isinstance(value, dict) and value and draw(st.integers(0, 3)):
        key = draw(st.sampled_from([*value]))
        return {**value, key: damage(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        place = draw(st.integers(0, len(value) - 1))
        changed = (
            [damage(draw, value[place])] if draw(st.booleans()) else [value[place]] * draw(st.sampled_from([0, 2]))
        )
        return [*value[:place], *changed, *value[place + 1 :]]
    if isinstance(value, dict):
        return {k: v for k, v in value.items() if k != draw(st.sampled_from(KEYS))} | {
            draw(st.sampled_from(KEYS)): None
        }
    if isinstance(value, str) and draw(st.booleans()):
        return value[: draw(st.integers(0, len(value)))]
    return draw(junk)


@st.composite
def damaged(draw: st.DrawFn) -> tuple[Layout, list[Any]]:
    layout = draw(st.sampled_from([*GOOD]))
    messages: Any = copy.deepcopy(GOOD[layout])
    if draw(st.booleans()):
        messages = draw(st.permutations(messages))
    for _ in range(draw(st.integers(0, 6))):
        messages = damage(draw, messages)
    return layout, messages


def count_calls(messages: Any) -> int:
    total = 0
    for message in messages if isinstance(messages, list) else []:
        if isinstance(message, dict) and message.get("role") == "assistant":
            calls = message.get("tool_calls")
            total += len(calls) if isinstance(calls, list) else calls is not None
            total += message.get("function_call") is not None
    return total


@given(damaged())
@settings(max_examples=300)
def test_damaged_messages_never_crash_and_every_call_is_accounted_for_once(
    drawn: tuple[Layout, list[Any]],
) -> None:
    layout, messages = drawn
    found = read_messages(messages, layout)
    assert len(found.steps) == count_calls(messages)
    trajectory = Trajectory(source="test", task_id="0", steps=found.steps, said=found.said, oddities=found.oddities)
    for one in (trajectory, reexecute(trajectory, load_environment())):
        labelled = label_trajectory(one, TOOLS)
        numbers = [*labelled.kept, *(int(text.split()[1]) for text in (*labelled.dropped, *labelled.unlabelled))]
        assert sorted(numbers) == list(range(1, len(found.steps) + 1))
        if labelled.graph is not None:
            assert list(check_graph(labelled.graph, TOOLS)) == [one.steps[number - 1].call for number in labelled.kept]
    assert Trajectory.model_validate_json(trajectory.model_dump_json()) == trajectory
    assert read_messages(messages, layout) == found
