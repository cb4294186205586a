"""The two lossless texts of a graph: ``json`` (the paper's shape) and ``compact`` (see ``compress/compact``)."""

from __future__ import annotations

import json
from typing import Any, Literal, NoReturn

from graphhandoff.compress.compact import Signatures, write_compact
from graphhandoff.compress.compact_parser import CompactSyntaxError, parse_compact
from graphhandoff.compress.graph import HandoffGraph
from graphhandoff.compress.graph_vocabulary import MalformedGraphError

Wire = Literal["json", "compact"]

__all__ = ["CompactSyntaxError", "JsonSyntaxError", "Signatures", "Wire", "parse", "parse_json", "write", "write_json"]


class JsonSyntaxError(ValueError):
    """A text is not the JSON of a graph; ``line`` (from 1) and ``reason`` say where and why."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


def write(graph: HandoffGraph, wire: Wire = "compact", signatures: Signatures | None = None) -> str:
    """Write a graph on a wire; ``parse(write(graph, wire, s), wire, s) == graph`` for every valid graph.

    Args:
        graph: any valid graph.
        wire: ``json`` or ``compact``.
        signatures: parameter names of the tools in published order, known to both sides; only ``compact`` uses them.
    """
    return write_json(graph) if wire == "json" else write_compact(graph, signatures)


def parse(text: str, wire: Wire = "compact", signatures: Signatures | None = None) -> HandoffGraph:
    """Read a graph from a wire.

    Raises:
        JsonSyntaxError | CompactSyntaxError: not of that form; says the line and the reason.
        GraphError: well formed, but not a valid graph; the subclass names the broken rule.
    """
    return parse_json(text) if wire == "json" else parse_compact(text, signatures)


def write_json(graph: HandoffGraph) -> str:
    """Write ``{"nodes": [...], "edges": [...]}`` without spaces."""
    return json.dumps(graph.model_dump(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def parse_json(text: str) -> HandoffGraph:
    """Read the JSON wire; a key that stands twice, NaN and infinities are refused.

    Raises:
        JsonSyntaxError: not JSON, or JSON with a repeated key or a non-finite number.
        GraphError: JSON, but not a valid graph.
    """

    def refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record: dict[str, Any] = {}
        for key, value in pairs:
            if key in record:
                raise JsonSyntaxError(1, f"key {key!r} stands twice in one object")
            record[key] = value
        return record

    def refuse_constant(name: str) -> NoReturn:
        raise JsonSyntaxError(1, f"{name} is no JSON number")

    try:
        value = json.loads(text, object_pairs_hook=refuse_repeats, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        raise JsonSyntaxError(error.lineno, f"{error.msg} at column {error.colno}") from None
    except RecursionError:
        raise JsonSyntaxError(1, "nested too deeply") from None
    except JsonSyntaxError:
        raise
    except ValueError as error:  # an integer beyond Python's conversion limit
        raise JsonSyntaxError(1, str(error)) from None
    if not isinstance(value, dict) or "nodes" not in value:
        raise MalformedGraphError(f"expected an object with 'nodes' and 'edges', got {type(value).__name__}")
    unknown = value.keys() - {"nodes", "edges"}
    if unknown:
        raise MalformedGraphError(f"unknown keys {sorted(unknown)}; allowed: nodes, edges")
    for key in ("nodes", "edges"):
        if not isinstance(value.get(key, []), list):
            raise MalformedGraphError(f"{key} must be a list, got {type(value[key]).__name__}")
    return HandoffGraph.build(value["nodes"], value.get("edges", []))
