"""The literal executor reads graphs in order and acts on nothing that is malformed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphhandoff.compress.contract import signatures_of
from graphhandoff.compress.literal import read_message
from graphhandoff.compress.wire import parse, write
from tests.strategies import texts
from tests.tools import TOOLS

SIGNATURES = signatures_of(TOOLS)


def test_both_wires_are_carried_out_alike() -> None:
    plan = 'goal: cancel\nget_order_details #W1\ncancel_pending_order #W1 "no longer needed"\npost: tell 54.04'
    compact = read_message(plan, TOOLS)
    paper = read_message(write(parse(plan, "compact", SIGNATURES), "json"), TOOLS)
    assert (compact.form, paper.form) == ("compact", "json")
    assert compact.calls == paper.calls
    assert [call.name for call in compact.calls] == ["get_order_details", "cancel_pending_order"]
    assert compact.said == paper.said == "54.04"


def test_calls_follow_the_dependencies_not_the_order_of_appearance() -> None:
    paper = (
        '{"nodes":[{"id":"b","type":"tool_call","tool":"cancel_pending_order"},'
        '{"id":"o","type":"tool_arg","name":"order_id","value":"#W1"},'
        '{"id":"r","type":"tool_arg","name":"reason","value":"no longer needed"},'
        '{"id":"a","type":"tool_call","tool":"get_order_details"},'
        '{"id":"p","type":"tool_arg","name":"order_id","value":"#W1"}],'
        '"edges":[{"src":"o","dst":"b","relation":"targets"},{"src":"r","dst":"b","relation":"targets"},'
        '{"src":"p","dst":"a","relation":"targets"},{"src":"b","dst":"a","relation":"requires"}]}'
    )
    assert [call.name for call in read_message(paper, TOOLS).calls] == ["get_order_details", "cancel_pending_order"]


def test_a_call_without_its_required_argument_is_skipped_and_recorded() -> None:
    reading = read_message("goal: cancel\ncancel_pending_order #W1\nget_order_details #W1", TOOLS)
    assert [call.name for call in reading.calls] == ["get_order_details"]
    assert reading.skipped == ("MissingArgumentError: node 2: cancel_pending_order lacks reason",)


def test_an_unknown_tool_in_a_graph_is_skipped_and_recorded() -> None:
    reading = read_message("goal: x\ndrop_tables x=1\nget_order_details #W1", TOOLS)
    assert [call.name for call in reading.calls] == ["get_order_details"]
    assert "UnknownToolError" in reading.skipped[0]


def test_a_malformed_graph_is_not_acted_on() -> None:
    for text in (
        '{"nodes":[{"id":"1","type":"tool_call","tool":"get_order_details"}],"edges":[{"src":"1","dst":"9"',
        '{"nodes":[{"id":"1","type":"goal","text":"x"},{"id":"1","type":"goal","text":"y"}],"edges":[]}',
        "goal: x\nget_order_details #W1 ; after 7",
    ):
        reading = read_message(text, TOOLS)
        assert (reading.form, reading.calls, reading.said) == ("invalid", (), "")
        assert reading.problem


def test_a_repair_is_counted() -> None:
    reading = read_message("```\ngoal: look\nget_order_details #W1\n```", TOOLS)
    assert reading.repaired
    assert len(reading.calls) == 1


@given(st.text(max_size=80) | st.lists(texts, max_size=6).map("\n".join))
def test_any_text_is_read_without_an_error_and_the_same_way_twice(text: str) -> None:
    assert read_message(text, TOOLS) == read_message(text, TOOLS)
