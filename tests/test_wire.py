"""Both wires give back exactly the graph they were given, and say where a text cannot be read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphhandoff.compress.graph import HandoffGraph
from graphhandoff.compress.graph_vocabulary import GraphError
from graphhandoff.compress.wire import CompactSyntaxError, JsonSyntaxError, parse, write
from tests.strategies import SIGNATURES, graphs, texts

CALL = [{"id": "1", "type": "tool_call", "tool": "exchange"}]


@given(graphs())
@settings(max_examples=300, deadline=None)
def test_json_gives_back_the_graph(graph: HandoffGraph) -> None:
    again = parse(write(graph, "json"), "json")
    assert again == graph
    assert again.canonical() == graph.canonical()  # tells True from 1 and 1.0


@given(graphs(), st.sampled_from([None, SIGNATURES]))
@settings(max_examples=600, deadline=None)
def test_compact_gives_back_the_graph(graph: HandoffGraph, signatures: dict[str, tuple[str, ...]] | None) -> None:
    text = write(graph, "compact", signatures)
    again = parse(text, "compact", signatures)
    assert again == graph, text
    assert again.canonical() == graph.canonical(), text


@given(graphs())
@settings(max_examples=100, deadline=None)
def test_compact_has_one_line_a_step(graph: HandoffGraph) -> None:
    text = write(graph, "compact", SIGNATURES)
    assert len(text.split("\n")) == sum(node.type != "tool_arg" for node in graph.nodes)


@given(st.text(max_size=60) | st.lists(texts, max_size=6).map(" ".join) | st.lists(texts, max_size=6).map("\n".join))
@settings(max_examples=500, deadline=None)
def test_any_text_is_a_graph_or_a_named_error(text: str) -> None:
    for wire in ("compact", "json"):
        try:
            graph = parse(text, wire, SIGNATURES)  # type: ignore[arg-type]
        except (CompactSyntaxError, JsonSyntaxError, GraphError):
            continue
        assert parse(write(graph, wire, SIGNATURES), wire, SIGNATURES) == graph  # type: ignore[arg-type]


def test_a_plan_reads_at_a_glance() -> None:
    text = "\n".join(
        [
            "goal: exchange a keyboard, cancel an order",
            "get_order_details #W4400917",
            "pre: order delivered",
            "exchange #W4400917 [7700112233 7700112233] [01234]",
            'cancel order_id=#W9 reason="no longer needed" notify=:true',
            "post: tell 54.04",
        ]
    )
    graph = parse(text, "compact", SIGNATURES)
    assert write(graph, "compact", SIGNATURES) == text
    assert not set("{}<>") & set(text)
    exchange = list(graph.iter_calls())[1]
    assert [argument.value for argument in exchange.arguments] == ["#W4400917", ["7700112233"] * 2, ["01234"]]
    relations = {(edge.src, edge.relation, edge.dst) for edge in graph.edges if "." not in edge.src}
    assert relations == {
        ("2", "targets", "1"),
        ("2", "depends_on", "4"),
        ("4", "requires", "3"),
        ("4", "depends_on", "5"),
        ("5", "depends_on", "6"),
    }


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("exchange #W1\n\nexchange #W2", 2, "empty line"),
        ("exchange #W1 ; after 1", 1, "earlier lines only"),
        ("goal: a\nexchange ; after 3", 2, "earlier lines only"),
        ("goal: a\nexchange ; before 1", 2, "expected one of after"),
        ("goal: a\nexchange ; after x", 2, "no line number"),
        ('goal: a\ncancel reason="no longer', 2, "unfinished"),
        ("cancel #W1", 1, "signature is not known"),
        ("get_order_details #W1 #W2", 1, "only 1 parameters"),
        ("exchange x=1 #W1", 1, "follows a named one"),
        ("exchange [a", 1, "expected a space or"),
        ("exchange :nan", 1, "expected a number"),
        ("exchange (a=1 a=2)", 1, "stands twice"),
        ("exchange " + "[" * 100, 1, "nested deeper"),
        ("Please return the desk lamp.", 1, "signature is not known"),
    ],
)
def test_a_compact_error_says_line_and_reason(text: str, line: int, reason: str) -> None:
    with pytest.raises(CompactSyntaxError, match=reason) as caught:
        parse(text, "compact", SIGNATURES)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("text", "error", "reason"),
    [
        ('{"nodes": [}', JsonSyntaxError, "line 1"),
        ('{"nodes": [],\n"nodes": []}', JsonSyntaxError, "stands twice"),
        ('{"nodes": [{"id": "1", "type": "tool_arg", "name": "x", "value": NaN}]}', JsonSyntaxError, "NaN"),
        ("[" * 100_000, JsonSyntaxError, "nested too deeply"),
        ("9" * 10_000, JsonSyntaxError, "digits"),
        ("[]", GraphError, "expected an object"),
        ('{"nodes": [], "edges": []}', GraphError, "at least one node"),
        ('{"nodes": [{"id": "1", "type": "goal", "text": "x"}], "note": 1}', GraphError, "unknown keys"),
        ('{"nodes": [{"id": "1", "type": "goal", "text": "x", "name": "y"}]}', GraphError, "name"),
        ('{"nodes": {"id": 1}}', GraphError, "must be a list"),
    ],
)
def test_a_json_error_is_named(text: str, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        parse(text, "json")


def test_long_chains_and_wide_graphs_take_linear_time() -> None:
    chain = [{"id": str(i + 1), "type": "action", "text": f"step {i}"} for i in range(200)]
    edges = [{"src": str(i + 1), "dst": str(i + 2), "relation": "depends_on"} for i in range(199)]
    wide = [{"id": f"n{i}", "type": "entity", "text": f"thing {i}"} for i in range(500)]
    for graph in (HandoffGraph.build(chain, edges), HandoffGraph.build(wide)):
        for wire in ("json", "compact"):
            assert parse(write(graph, wire), wire) == graph  # type: ignore[arg-type]


def test_numbers_and_strings_stay_what_they_are() -> None:
    values = ["5", 5, "5.0", 5.0, "true", True, "null", None, "01234", [], {}, "", 10**30, -0.0]
    arguments = [
        {"id": f"1.{i}", "type": "tool_arg", "name": f"a{i}", "value": v} for i, v in enumerate(values, start=1)
    ]
    edges = [{"src": argument["id"], "dst": "1", "relation": "targets"} for argument in arguments]
    graph = HandoffGraph.build(CALL + arguments, edges)
    again = parse(write(graph, "compact"), "compact")
    assert json.dumps([a.value for c in again.iter_calls() for a in c.arguments]) == json.dumps(values)
