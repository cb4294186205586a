"""What a model wrote reaches an executor only as a valid graph of calls that the tools accept."""

from __future__ import annotations

import json

import pytest

from graphhandoff.compress.contract import (
    ArgumentTypeError,
    MissingArgumentError,
    TruncatedError,
    UnknownParameterError,
    UnknownToolError,
    check_graph,
    fits,
    read_graph,
    signatures_of,
)
from graphhandoff.compress.graph import HandoffGraph
from graphhandoff.compress.wire import JsonSyntaxError, parse, write
from tests.tools import ITEMS, TOOLS

PLAN = 'cancel_pending_order #W4400917 "no longer needed"'


def graph_of(text: str) -> HandoffGraph:
    return parse(text, "compact", signatures_of(TOOLS))


def test_a_good_graph_becomes_calls() -> None:
    (call,) = check_graph(graph_of(PLAN), TOOLS)
    assert call.name == "cancel_pending_order"
    assert call.arguments == {"order_id": "#W4400917", "reason": "no longer needed"}


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("drop_tables x=1", UnknownToolError, "node 1 .*drop_tables"),
        ("get_order_details order=#W1", UnknownParameterError, "no parameter 'order'.*order_id"),
        ("get_order_details order_id=:5", ArgumentTypeError, "must be a string, got 5"),
        ("get_order_details", MissingArgumentError, "lacks order_id"),
        (
            "return_delivered_order_items #W1 [:1] credit_card_1",
            ArgumentTypeError,
            "must be an array of strings",
        ),
    ],
)
def test_a_call_that_no_tool_takes_is_a_named_error(text: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        check_graph(graph_of(text), TOOLS)


@pytest.mark.parametrize("wire", ["json", "compact"])
def test_both_wires_are_recognised(wire: str) -> None:
    graph = graph_of(PLAN)
    reading = read_graph(write(graph, wire, signatures_of(TOOLS)), TOOLS)  # type: ignore[arg-type]
    assert reading == (graph, wire, False)


@pytest.mark.parametrize(
    "around",
    ["```json\n{}\n```", "Here is the graph:\n```\n{}\n```\nGood luck!", "Sure! {} Let me know.", "\n\n{}\n"],
)
def test_fences_and_prose_around_json_are_taken_off_and_counted(around: str) -> None:
    text = write(graph_of(PLAN), "json")
    reading = read_graph(around.replace("{}", text), TOOLS)
    assert reading.graph == graph_of(PLAN)
    assert reading.repaired == (around.strip() != "{}")


def test_json_is_found_however_it_is_laid_out() -> None:
    record = json.loads(write(graph_of(PLAN), "json"))
    for text in (json.dumps(record, indent=2), json.dumps({"edges": record["edges"], "nodes": record["nodes"]})):
        assert read_graph(f"The plan: {text} Thanks!", TOOLS).graph == graph_of(PLAN)


def test_stray_white_space_around_compact_lines_is_a_repair() -> None:
    reading = read_graph(f"goal: cancel  \n\n{PLAN}\t\n", TOOLS)
    assert reading.repaired
    assert reading.graph == graph_of(f"goal: cancel\n{PLAN}")


def test_a_message_cut_inside_a_string_is_named_truncated() -> None:
    text = write(graph_of(PLAN), "json")
    for end in range(20, len(text) - 1):
        with pytest.raises(TruncatedError):
            read_graph(text[:end], TOOLS)
    with pytest.raises(TruncatedError, match="line 1"):
        read_graph(PLAN[:-3], TOOLS)


def test_json_that_is_wrong_but_whole_is_not_called_truncated() -> None:
    text = json.dumps({"nodes": [], "edges": []}).replace("[]", "[,]", 1)
    with pytest.raises(JsonSyntaxError):
        read_graph(text, TOOLS)


def test_a_boolean_is_no_number_and_an_array_checks_its_items() -> None:
    number = ITEMS.model_copy(update={"type": "integer", "items": None})
    assert fits(3, number)
    assert not fits(True, number)
    assert fits(["1"], ITEMS)
    assert not fits([1], ITEMS)
