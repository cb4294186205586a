"""The rules of a graph, and the one order in which its nodes and edges are stored; linear, without recursion."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphhandoff.compress.graph_vocabulary import (
    EARLIER_END,
    MAX_VALUE_DEPTH,
    RELATIONS,
    ArgumentError,
    CycleError,
    DanglingEdgeError,
    DuplicateEdgeError,
    DuplicateNodeError,
    EmptyGraphError,
    SelfLoopError,
    ValueNotJsonError,
)

if TYPE_CHECKING:
    from graphhandoff.compress.graph import Edge, Node, ToolArgNode


def build_normal_form(nodes: tuple[Node, ...], edges: tuple[Edge, ...]) -> tuple[tuple[Node, ...], tuple[Edge, ...]]:
    """Check every rule and return nodes in topological order, calls followed by arguments, edges by their later end.

    Raises:
        GraphError: the subclass names the broken rule, the message the node.
    """
    if not nodes:
        raise EmptyGraphError("a graph needs at least one node, got none; send prose instead")
    by_id: dict[str, Node] = {}
    for node in nodes:
        if node.id in by_id:
            raise DuplicateNodeError(f"node id {node.id!r} stands twice; give every node its own id")
        by_id[node.id] = node
        if node.type == "tool_arg":
            _check_value(node)
            _check_unicode(node.id, node.name)
        elif node.type != "tool_call":
            _check_unicode(node.id, node.text)
    _check_edges(edges, by_id)
    owner = _owners(nodes, edges, by_id)
    order = _topological_order(nodes, edges, owner)
    arguments: dict[str, list[Node]] = {}
    for node in nodes:
        if node.type == "tool_arg":
            arguments.setdefault(owner[node.id], []).append(node)
    ordered = tuple(node for step in order for node in (by_id[step], *arguments.get(step, ())))
    place = {node.id: i for i, node in enumerate(ordered)}

    def edge_key(edge: Edge) -> tuple[int, int, int, bool]:
        src, dst = place[edge.src], place[edge.dst]
        return max(src, dst), RELATIONS.index(edge.relation), min(src, dst), src < dst

    return ordered, tuple(sorted(edges, key=edge_key))


def _check_value(node: ToolArgNode) -> None:
    level: list[Any] = [node.value]
    for _depth in range(MAX_VALUE_DEPTH + 1):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueNotJsonError(f"argument {node.id!r} ({node.name}) is {value}; JSON has no such number")
            if isinstance(value, str):
                _check_unicode(node.id, value)
            elif isinstance(value, list):
                inner.extend(value)
            elif isinstance(value, dict):
                inner.extend(value.values())
                for key in value:
                    _check_unicode(node.id, key)
        if not inner:
            return
        level = inner
    raise ValueNotJsonError(
        f"argument {node.id!r} ({node.name}) is nested deeper than {MAX_VALUE_DEPTH} levels; flatten it"
    )


def _check_unicode(node_id: str, text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueNotJsonError(
            f"node {node_id!r} holds half a surrogate pair at character {error.start}; no text can carry it"
        ) from None


def _check_edges(edges: tuple[Edge, ...], by_id: Mapping[str, Node]) -> None:
    seen: set[tuple[str, str, str]] = set()
    for edge in edges:
        name = f"{edge.src} {edge.relation} {edge.dst}"
        for end in (edge.src, edge.dst):
            if end not in by_id:
                raise DanglingEdgeError(f"edge {name!r} ends at {end!r}, which is no node")
        if edge.src == edge.dst:
            raise SelfLoopError(f"edge {name!r} joins node {edge.src!r} to itself")
        key = (edge.src, edge.dst, edge.relation)
        if key in seen:
            raise DuplicateEdgeError(f"edge {name!r} stands twice")
        seen.add(key)


def _owners(nodes: tuple[Node, ...], edges: tuple[Edge, ...], by_id: Mapping[str, Node]) -> dict[str, str]:
    """Map every node to the step it belongs to: an argument to its call, any other node to itself."""
    owner = {node.id: node.id for node in nodes if node.type != "tool_arg"}
    for edge in edges:
        if edge.relation == "targets" and by_id[edge.src].type == "tool_arg" and by_id[edge.dst].type == "tool_call":
            if edge.src in owner:
                raise ArgumentError(
                    f"argument {edge.src!r} targets two calls, {owner[edge.src]!r} and {edge.dst!r}; repeat it"
                )
            owner[edge.src] = edge.dst
    names: set[tuple[str, str]] = set()
    for node in nodes:
        if node.type != "tool_arg":
            continue
        if node.id not in owner:
            raise ArgumentError(
                f"argument {node.id!r} ({node.name}) belongs to no call; add an edge {node.id} targets <its tool_call>"
            )
        if (owner[node.id], node.name) in names:
            raise ArgumentError(
                f"call {owner[node.id]!r} has two arguments named {node.name!r}; the second is {node.id!r}"
            )
        names.add((owner[node.id], node.name))
    return owner


def _topological_order(nodes: tuple[Node, ...], edges: tuple[Edge, ...], owner: Mapping[str, str]) -> list[str]:
    steps = [node.id for node in nodes if node.type != "tool_arg"]
    place = {step: i for i, step in enumerate(steps)}
    after: dict[str, list[str]] = {step: [] for step in steps}
    waiting = dict.fromkeys(steps, 0)
    for edge in edges:
        first_end = EARLIER_END.get(edge.relation)
        if first_end is None:
            continue
        src, dst = owner[edge.src], owner[edge.dst]
        if src == dst:
            raise SelfLoopError(f"edge '{edge.src} {edge.relation} {edge.dst}' orders call {src!r} against itself")
        first, second = (src, dst) if first_end == "src" else (dst, src)
        after[first].append(second)
        waiting[second] += 1
    ready = [place[step] for step in steps if not waiting[step]]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        step = steps[heapq.heappop(ready)]
        order.append(step)
        for later in after[step]:
            waiting[later] -= 1
            if not waiting[later]:
                heapq.heappush(ready, place[later])
    if len(order) < len(steps):
        raise CycleError(f"the order of nodes is circular: {' -> '.join(_find_cycle(after, waiting))}")
    return order


def _find_cycle(after: Mapping[str, list[str]], waiting: Mapping[str, int]) -> list[str]:
    """Walk backwards along unfinished nodes until one repeats: every such node has an unfinished predecessor."""
    before: dict[str, str] = {}
    for step, later in after.items():
        if waiting[step]:
            for node in later:
                before.setdefault(node, step)
    node = next(step for step, count in waiting.items() if count)
    path: dict[str, int] = {}
    trail: list[str] = []
    while node not in path:
        path[node] = len(trail)
        trail.append(node)
        node = before[node]
    cycle = trail[path[node] :][::-1]
    return [*cycle, cycle[0]]
