"""The graph as a JSON schema for tool input: what a model is constrained to when it writes a handoff itself.

Kept to the keywords that every provider's constrained decoding takes (objects with all properties required and no
others, ``enum``, ``anyOf``, arrays): no references, no patterns, no bounds. JSON Schema cannot say that ids are unique,
that an edge's ends exist or that there is no cycle: the contract checks those. Values are scalars and lists of scalars,
narrower than the graph's own any JSON, because open objects are refused by strict decoders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphhandoff.compress.graph_vocabulary import RELATIONS, TEXT_TYPES

TOOL_NAME = "hand_off"
TOOL_DESCRIPTION = (
    "Hand a task to another agent as a typed dependency graph. For depends_on, src must complete before dst; every "
    "tool_arg targets its tool_call; other relations read src <relation> dst."
)


def build_tool_input_schema(tool_names: Sequence[str] = ()) -> dict[str, Any]:
    """Build the schema of ``{"nodes": [...], "edges": [...]}``.

    Args:
        tool_names: the tools a ``tool_call`` may name; any name if empty.
    """
    scalar = [{"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}]
    value = {"anyOf": [*scalar, {"type": "array", "items": {"anyOf": scalar}}]}
    text = {"type": "string"}
    tool = {"type": "string", "enum": list(tool_names)} if tool_names else text
    node = {
        "anyOf": [
            _object(id=text, type={"type": "string", "enum": list(TEXT_TYPES)}, text=text),
            _object(id=text, type={"type": "string", "enum": ["tool_call"]}, tool=tool),
            _object(id=text, type={"type": "string", "enum": ["tool_arg"]}, name=text, value=value),
        ]
    }
    edge = _object(src=text, dst=text, relation={"type": "string", "enum": list(RELATIONS)})
    return _object(nodes={"type": "array", "items": node}, edges={"type": "array", "items": edge})


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
