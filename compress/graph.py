"""The message itself: a typed, directed, acyclic graph of what has to be done, in the paper's vocabulary.

**Order.** Five relations order their ends; the table ``EARLIER_END`` (``graph_vocabulary``) says which end comes first.
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
import json
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from graphhandoff.compress.graph_vocabulary import (
    NODE_ID,
    TOOL_NAME,
    GraphError,
    MalformedGraphError,
    Relation,
    TextType,
)
from graphhandoff.compress.normal_form import build_normal_form


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
        nodes, edges = build_normal_form(self.nodes, self.edges)
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
