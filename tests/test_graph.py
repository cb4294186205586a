"""The graph refuses what is not a plan, by name, and keeps one order for what is."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from graphhandoff.compress.graph import HandoffGraph
from graphhandoff.compress.graph_vocabulary import (
    EARLIER_END,
    NODE_TYPES,
    RELATIONS,
    ArgumentError,
    CycleError,
    DanglingEdgeError,
    DuplicateEdgeError,
    DuplicateNodeError,
    EmptyGraphError,
    GraphError,
    MalformedGraphError,
    SelfLoopError,
    ValueNotJsonError,
)
from tests.strategies import graphs


def action(node_id: str) -> dict[str, Any]:
    return {"id": node_id, "type": "action", "text": f"do {node_id}"}


def call(node_id: str, tool: str = "cancel") -> dict[str, Any]:
    return {"id": node_id, "type": "tool_call", "tool": tool}


def argument(node_id: str, name: str = "x", value: Any = 1) -> dict[str, Any]:
    return {"id": node_id, "type": "tool_arg", "name": name, "value": value}


def edge(src: str, relation: str, dst: str) -> dict[str, str]:
    return {"src": src, "dst": dst, "relation": relation}


def test_the_vocabulary_is_the_papers() -> None:
    assert set(NODE_TYPES) == {
        "goal",
        "constraint",
        "entity",
        "action",
        "precondition",
        "postcondition",
        "tool_call",
        "tool_arg",
    }
    assert set(RELATIONS) == {"requires", "targets", "blocks", "enables", "depends_on", "contradicts", "follows"}


@pytest.mark.parametrize(
    ("nodes", "edges", "error", "says"),
    [
        ([], [], EmptyGraphError, "at least one node"),
        ([action("a"), action("a")], [], DuplicateNodeError, "'a'"),
        ([action("a")], [edge("a", "follows", "ghost")], DanglingEdgeError, "'ghost'"),
        ([action("a")], [edge("a", "contradicts", "a")], SelfLoopError, "'a'"),
        ([action("a"), action("b")], [edge("a", "targets", "b")] * 2, DuplicateEdgeError, "a targets b"),
        ([argument("z")], [], ArgumentError, "'z'"),
        ([argument("z"), action("a")], [edge("z", "targets", "a")], ArgumentError, "'z'"),
        (
            [call("c"), call("d"), argument("z")],
            [edge("z", "targets", "c"), edge("z", "targets", "d")],
            ArgumentError,
            "two calls",
        ),
        (
            [call("c"), argument("y"), argument("z")],
            [edge("y", "targets", "c"), edge("z", "targets", "c")],
            ArgumentError,
            "two arguments named 'x'",
        ),
        ([call("c"), argument("z", value=float("nan"))], [edge("z", "targets", "c")], ValueNotJsonError, "'z'"),
        ([call("c"), argument("z", value=[float("inf")])], [edge("z", "targets", "c")], ValueNotJsonError, "'z'"),
        ([{**action("a"), "text": "\ud800"}], [], ValueNotJsonError, "'a' holds half a surrogate"),
        ([call("c"), argument("z", value={"k": ["\udc00"]})], [edge("z", "targets", "c")], ValueNotJsonError, "'z'"),
        ([{"id": "a", "type": "wish", "text": "x"}], [], MalformedGraphError, "wish"),
        ([{**action("a"), "colour": "red"}], [], MalformedGraphError, "colour"),
        ([{"id": "a b", "type": "action", "text": "x"}], [], MalformedGraphError, "id"),
        ([{"id": "a", "type": "action", "text": 5}], [], MalformedGraphError, "text"),
        ([action("a"), action("b")], [edge("a", "after", "b")], MalformedGraphError, "relation"),
    ],
)
def test_a_broken_graph_has_a_named_error(
    nodes: list[Any], edges: list[Any], error: type[GraphError], says: str
) -> None:
    with pytest.raises(error, match=says):
        HandoffGraph.build(nodes, edges)
    with pytest.raises(ValidationError):  # and the plain constructor refuses it too
        HandoffGraph.model_validate({"nodes": nodes, "edges": edges})


def test_a_value_nested_too_deep_is_refused_without_a_recursion_error() -> None:
    value: Any = "x"
    for _ in range(100):
        value = [value]
    with pytest.raises((ValueNotJsonError, MalformedGraphError)):
        HandoffGraph.build([call("c"), argument("z", value=value)], [edge("z", "targets", "c")])


@pytest.mark.parametrize("relation", sorted(EARLIER_END))
def test_every_ordering_relation_takes_part_in_cycles(relation: str) -> None:
    back = edge("b", "depends_on", "a")
    forth = edge("a", relation, "b") if EARLIER_END[relation] == "src" else edge("b", relation, "a")  # type: ignore[index]
    with pytest.raises(CycleError, match=r"a -> b -> a|b -> a -> b"):
        HandoffGraph.build([action("a"), action("b")], [forth, back])


def test_an_argument_is_part_of_its_call_when_order_is_checked() -> None:
    nodes = [call("c"), argument("z"), action("a")]
    edges = [edge("z", "targets", "c"), edge("a", "depends_on", "z"), edge("c", "depends_on", "a")]
    with pytest.raises(CycleError):
        HandoffGraph.build(nodes, edges)
    with pytest.raises(SelfLoopError):
        HandoffGraph.build(nodes, [edges[0], edge("z", "depends_on", "c")])


def test_relations_that_order_nothing_may_run_both_ways() -> None:
    both = [edge("a", "contradicts", "b"), edge("b", "contradicts", "a"), edge("a", "targets", "b")]
    assert len(HandoffGraph.build([action("a"), action("b")], both).edges) == 3


def test_depends_on_reads_as_in_the_paper_and_ties_keep_the_order_of_appearance() -> None:
    graph = HandoffGraph.build(
        [action("late"), action("x"), action("y"), action("early")],
        [edge("early", "depends_on", "late"), edge("y", "requires", "early")],
    )
    assert [node.id for node in graph.nodes] == ["x", "early", "late", "y"]


@given(graphs(), st.randoms(use_true_random=False))
def test_hash_is_free_of_node_order(graph: HandoffGraph, shuffler: random.Random) -> None:
    nodes, edges = list(graph.nodes), list(graph.edges)
    shuffler.shuffle(nodes)
    shuffler.shuffle(edges)
    assert HandoffGraph.build(nodes, edges).digest() == graph.digest()


def test_hash_is_not_free_of_the_order_in_a_value() -> None:
    def with_items(items: list[str]) -> HandoffGraph:
        return HandoffGraph.build([call("c"), argument("z", value=items)], [edge("z", "targets", "c")])

    digests = {with_items(items).digest() for items in (["1", "2"], ["2", "1"], ["1", "2", "2"])}
    assert len(digests) == 3


def test_a_graph_cannot_be_changed() -> None:
    graph = HandoffGraph.build([action("a")])
    with pytest.raises(ValidationError):
        graph.nodes = ()  # type: ignore[misc]
    with pytest.raises(ValidationError):
        graph.nodes[0].text = "other"  # type: ignore[misc,union-attr]


def test_calls_come_in_topological_order_with_their_arguments() -> None:
    graph = HandoffGraph.build(
        [call("second", "b"), call("first", "a"), argument("p", "n", ["7", "7"]), argument("q", "m", "01234")],
        [edge("first", "depends_on", "second"), edge("p", "targets", "second"), edge("q", "targets", "second")],
    )
    calls = [(c.node.tool, {a.name: a.value for a in c.arguments}) for c in graph.iter_calls()]
    assert calls == [("a", {}), ("b", {"n": ["7", "7"], "m": "01234"})]


def test_five_hundred_nodes_validate_in_ten_milliseconds() -> None:
    nodes = [action(f"n{i}") for i in range(500)]
    edges = [edge(f"n{i}", "depends_on", f"n{i + 1}") for i in range(499)]
    best = min(_seconds(nodes, edges) for _ in range(10))
    assert best < 0.010


def _seconds(nodes: list[Any], edges: list[Any]) -> float:
    start = time.perf_counter()
    HandoffGraph.build(nodes, edges)
    return time.perf_counter() - start
