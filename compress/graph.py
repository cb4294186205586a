"""The message itself: a typed, directed, acyclic graph of what has to be done, in the paper's vocabulary.

**Order.** Five relations order their ends; the table :data:`EARLIER_END` says which end comes first.
``depends_on`` reads as in the paper (*src must complete before dst*); so do ``enables`` and ``blocks`` (what enables
or blocks is settled first). ``requires`` and ``follows`` read the other way (*src requires dst*, *src follows dst*:
dst comes first). ``targets`` and ``contradicts`` order nothing. The ordering relations together must be acyclic; an
argument is part of its call, so an ordering edge at an argument orders the call.

**Normal form.** A graph stores its nodes in topological order, ties broken by appearance, every call followed by its
arguments; edges by the place of their later end. So equal content in equal order of appearance is equal, and the
order of nodes that nothing orders is the author's.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

TextType = Literal["goal", "constraint", "entity", "action", "precondition", "postcondition"]
NodeType = Literal["goal", "constraint", "entity", "action", "precondition", "postcondition", "tool_call", "tool_arg"]
Relation = Literal["requires", "targets", "blocks", "enables", "depends_on", "contradicts", "follows"]

TEXT_TYPES: tuple[TextType, ...] = get_args(TextType)
NODE_TYPES: tuple[NodeType, ...] = get_args(NodeType)
RELATIONS: tuple[Relation, ...] = get_args(Relation)

EARLIER_END: Mapping[Relation, Literal["src", "dst"]] = {
    "depends_on": "src",
    "enables": "src",
    "blocks": "src",
    "requires": "dst",
    "follows": "dst",
}
"""The end of an ordering edge that comes first; relations not listed order nothing."""

NODE_ID = r"[A-Za-z0-9_.\-]{1,64}"
TOOL_NAME = r"[A-Za-z0-9_./\-]{1,128}"

MAX_VALUE_DEPTH = 32
"""Deepest nesting of lists and objects in an argument's value."""


class GraphError(ValueError):
    """A graph breaks a rule; the subclass names the rule and the message names the node."""


class EmptyGraphError(GraphError):
    """The graph has no nodes."""


class MalformedGraphError(GraphError):
    """A field is missing, unknown or of the wrong type."""


class DuplicateNodeError(GraphError):
    """Two nodes have one id."""


class DuplicateEdgeError(GraphError):
    """The same edge stands twice."""


class DanglingEdgeError(GraphError):
    """An edge ends at a node that is not there."""


class SelfLoopError(GraphError):
    """An edge joins a node to itself, or orders a call against its own argument."""


class CycleError(GraphError):
    """The ordering relations form a cycle."""


class ArgumentError(GraphError):
    """A tool argument has no tool call, or two; or a call has two arguments of one name."""


class ValueNotJsonError(GraphError):
    """A value is NaN, infinite or nested too deeply, or a text holds half a surrogate pair."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


NodeId = Annotated[str, Field(pattern=f"^{NODE_ID}$")]
ToolName = Annotated[str, Field(pattern=f"^{TOOL_NAME}$")]


class TextNode(_Part):
    """A goal, constraint, entity, action, precondition or postcondition, in words."""

    id: NodeId
    type: TextType
    text: str


class ToolCallNode(_Part):
    """A call of the tool named ``tool``; its arguments are ``tool_arg`` nodes that target it."""

    id: NodeId
    type: Literal["tool_call"] = "tool_call"
    tool: ToolName


class ToolArgNode(_Part):
    """One argument: the parameter's ``name`` and its JSON ``value``. Lists keep their order and their repeats."""

    id: NodeId
    type: Literal["tool_arg"] = "tool_arg"
    name: Annotated[str, Field(min_length=1)]
    value: JsonValue


Node = Annotated[TextNode | ToolCallNode | ToolArgNode, Field(discriminator="type")]


class Edge(_Part):
    """A relation from ``src`` to ``dst``; for ``depends_on``, *src must complete before dst*."""

    src: NodeId
    dst: NodeId
    relation: Relation


class Call(NamedTuple):
    """A tool call with its arguments, in order of appearance."""

    node: ToolCallNode
    arguments: tuple[ToolArgNode, ...]


class HandoffGraph(_Part):
    """A valid handoff graph in normal form (see the module).

    Use :meth:`build` to get the named error itself; the plain constructor reports the same error inside pydantic's
    ``ValidationError`` (also a ``ValueError``), as nested models do.
    """

    nodes: tuple[Node, ...] = Field(strict=False)
    edges: tuple[Edge, ...] = Field(default=(), strict=False)

    @classmethod
    def build(cls, nodes: Iterable[Any], edges: Iterable[Any] = ()) -> HandoffGraph:
        """Validate nodes and edges (records or mappings) and return the graph in normal form.

        Raises:
            GraphError: the subclass names the broken rule; the message says which node or field.
        """
        try:
            return cls.model_validate({"nodes": tuple(nodes), "edges": tuple(edges)})
        except ValidationError as error:
            raise named_error(error) from None

    @model_validator(mode="after")
    def _normalise(self) -> HandoffGraph:
        nodes, edges = _normal_form(self.nodes, self.edges)
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "edges", edges)
        return self

    def iter_calls(self) -> Iterator[Call]:
        """Yield the tool calls in topological order, each with its arguments."""
        call: ToolCallNode | None = None
        arguments: list[ToolArgNode] = []
        for node in self.nodes:
            if node.type == "tool_arg":
                arguments.append(node)
                continue
            if call is not None:
                yield Call(call, tuple(arguments))
            call, arguments = (node if node.type == "tool_call" else None), []
        if call is not None:
            yield Call(call, tuple(arguments))

    def iter_texts(self, node_type: TextType) -> Iterator[str]:
        """Yield the texts of one type of node in topological order."""
        for node in self.nodes:
            if node.type == node_type:
                yield node.text

    def canonical(self) -> str:
        """Return one JSON text for all orders of the same nodes and edges; lists inside values keep their order."""
        nodes = sorted((node.model_dump() for node in self.nodes), key=lambda node: str(node["id"]))
        edges = sorted([edge.src, edge.dst, edge.relation] for edge in self.edges)
        return json.dumps({"nodes": nodes, "edges": edges}, sort_keys=True, ensure_ascii=False)

    def digest(self) -> str:
        """Return the SHA-256 of :meth:`canonical` in hexadecimal."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()


def named_error(error: ValidationError) -> GraphError:
    """Turn pydantic's report into the graph's own error: the broken rule if one was named, else the first field."""
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, GraphError):
        return cause
    path = ".".join(str(part) for part in first["loc"]) or "graph"
    got = repr(first["input"])
    return MalformedGraphError(f"{path}: {first['msg']} (got {got if len(got) <= 80 else got[:77] + '...'})")


def _normal_form(nodes: tuple[Node, ...], edges: tuple[Edge, ...]) -> tuple[tuple[Node, ...], tuple[Edge, ...]]:
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
