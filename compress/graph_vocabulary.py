"""The words of a graph, which of its relations order their ends, and the rules it can break, each by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

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
