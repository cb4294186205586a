r"""The compact wire: one line a step, few tokens, readable at a glance, acyclic by construction.

::

    goal: exchange two items, cancel one order
    pre: order delivered
    exchange_delivered_order_items #W4400917 [7700112233] [7700445566] credit_card_331883
    cancel_pending_order #W4400918 "no longer needed" ; after 3
    post: tell 54.04

**Lines** are numbered from 1. A line is ``word: text`` (``goal constraint entity action pre post``) or a tool's name
and its arguments. Ids are the line numbers, and ``3.2`` is the second argument of line 3; a node with an id of its own
is marked (``@id`` before the line, ``name@id=value`` for an argument).

**Arguments** are ``name=value``, or just ``value`` where the tool's published signature names it by position (both
sides hold the signatures, see :func:`write_compact`).

**Values**: a bare word is always a *string* (``01234`` keeps its zero). Strings that need it are quoted as in JSON.
``:5`` ``:1.5`` ``:true`` ``:null`` are JSON scalars, ``[a b]`` is a list, ``(key=value key=value)`` an object.

**Edges** stand on the line of their later end and point backwards, so no text can spell a cycle: ``; after 1 2``
(depends_on), ``requires``, ``follows``, ``enabled_by``, ``blocked_by``, ``targets`` / ``targeted_by``,
``contradicts`` / ``contradicted_by``; ``.2 requires 1`` speaks of this line's second argument. A line without a
``;`` has the usual edges: a call or action comes after the one before it, requires the preconditions, is blocked by
the constraints and targets the goals and entities that stand between the two; a postcondition comes after the last
call or action. A bare ``;`` means no edges.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from graphhandoff.compress.graph import HandoffGraph, TextNode, ToolArgNode, ToolCallNode
from graphhandoff.compress.graph_vocabulary import Relation, TextType

Signatures = Mapping[str, Sequence[str]]
"""Tool name to parameter names in published order."""

_WORD_OF_TYPE: Mapping[TextType, str] = {
    "goal": "goal",
    "constraint": "constraint",
    "entity": "entity",
    "action": "action",
    "precondition": "pre",
    "postcondition": "post",
}
TYPE_OF_WORD: Mapping[str, TextType] = {word: node_type for node_type, word in _WORD_OF_TYPE.items()}

# The word that the later line uses for an edge, by relation and by whether the later end is its src.
_CLAUSE_OF: Mapping[tuple[Relation, bool], str] = {
    ("depends_on", False): "after",
    ("requires", True): "requires",
    ("follows", True): "follows",
    ("enables", False): "enabled_by",
    ("blocks", False): "blocked_by",
    ("targets", True): "targets",
    ("targets", False): "targeted_by",
    ("contradicts", True): "contradicts",
    ("contradicts", False): "contradicted_by",
}
MEANING_OF: Mapping[str, tuple[Relation, bool]] = {word: meaning for meaning, word in _CLAUSE_OF.items()}

SPECIAL = frozenset(' "[]()=;')


class Link(NamedTuple):
    """One edge as the later line sees it: own end (0 is the line, j its j-th argument), word, earlier end."""

    own: int
    word: str
    other: tuple[int, int]


def write_compact(graph: HandoffGraph, signatures: Signatures | None = None) -> str:
    """Write a graph on the compact wire.

    Args:
        graph: any valid graph.
        signatures: tool name to parameter names; arguments in published order are then written without names. The
            reader needs the same signatures. ``None`` writes every name.

    Returns:
        Text without a final newline, such that ``parse_compact(text, signatures) == graph``.
    """
    signatures = signatures or {}
    links = _links_by_line(graph, _places(graph))
    kinds: list[str] = []
    lines: list[str] = []
    for number, (node, arguments) in enumerate(_iter_steps(graph), start=1):
        kinds.append(node.type)
        mark = "" if node.id == str(number) else f"@{node.id} "
        if node.type == "tool_call":
            body = node.tool + "".join(_write_arguments(arguments, number, signatures.get(node.tool, ())))
        else:
            body = f"{_WORD_OF_TYPE[node.type]}: {_write_text(node.text)}"
        actual = links.get(number, [])
        usual = set(actual) == set(usual_links(node.type, number, kinds))
        lines.append(mark + body + ("" if usual else _write_clauses(actual)))
    return "\n".join(lines)


def _iter_steps(graph: HandoffGraph) -> Iterator[tuple[TextNode | ToolCallNode, list[ToolArgNode]]]:
    steps: list[tuple[TextNode | ToolCallNode, list[ToolArgNode]]] = []
    for node in graph.nodes:
        if node.type == "tool_arg":
            steps[-1][1].append(node)
        else:
            steps.append((node, []))
    return iter(steps)


def _places(graph: HandoffGraph) -> dict[str, tuple[int, int]]:
    """Map each id to (line, argument), argument 0 being the line itself."""
    places: dict[str, tuple[int, int]] = {}
    line = argument = 0
    for node in graph.nodes:
        line, argument = (line, argument + 1) if node.type == "tool_arg" else (line + 1, 0)
        places[node.id] = (line, argument)
    return places


def _links_by_line(graph: HandoffGraph, place: Mapping[str, tuple[int, int]]) -> dict[int, list[Link]]:
    links: dict[int, list[Link]] = {}
    for edge in graph.edges:
        src, dst = place[edge.src], place[edge.dst]
        if edge.relation == "targets" and src[0] == dst[0] and dst[1] == 0:
            continue  # an argument standing on its call's line says this already
        src_is_later = src > dst
        later, earlier = (src, dst) if src_is_later else (dst, src)
        links.setdefault(later[0], []).append(Link(later[1], _CLAUSE_OF[edge.relation, src_is_later], earlier))
    return links


def usual_links(kind: str, number: int, kinds: Sequence[str]) -> Iterator[Link]:
    """Yield the edges that a line of this kind has when it says nothing about edges."""
    if kind not in ("tool_call", "action", "postcondition"):
        return
    word_of = {"precondition": "requires", "constraint": "blocked_by", "goal": "targets", "entity": "targets"}
    for earlier in range(number - 1, 0, -1):
        if kinds[earlier - 1] in ("tool_call", "action"):
            yield Link(0, "after", (earlier, 0))
            return
        if kind != "postcondition" and kinds[earlier - 1] in word_of:
            yield Link(0, word_of[kinds[earlier - 1]], (earlier, 0))


def _write_clauses(links: Sequence[Link]) -> str:
    grouped: dict[tuple[int, str], list[str]] = {}
    for link in links:
        line, argument = link.other
        grouped.setdefault((link.own, link.word), []).append(f"{line}.{argument}" if argument else str(line))
    if not grouped:
        return " ;"
    return "".join(
        f" ; {f'.{own} ' if own else ''}{word} {' '.join(references)}" for (own, word), references in grouped.items()
    )


def _write_arguments(arguments: Sequence[ToolArgNode], line: int, signature: Sequence[str]) -> Iterator[str]:
    by_position = True
    for i, argument in enumerate(arguments):
        own_id = "" if argument.id == f"{line}.{i + 1}" else f"@{argument.id}"
        by_position = by_position and not own_id and i < len(signature) and argument.name == signature[i]
        value = write_value(argument.value)
        if by_position:
            yield f" {value}"
        else:
            name = argument.name if _is_bare(argument.name) and "@" not in argument.name else _quote(argument.name)
            yield f" {name}{own_id}={value}"


def write_value(value: JsonValue) -> str:
    """Write one JSON value as the compact wire does."""
    if isinstance(value, str):
        return value if _is_bare(value) else _quote(value)
    if isinstance(value, list):
        return f"[{' '.join(map(write_value, value))}]"
    if isinstance(value, dict):
        return f"({' '.join(f'{write_value(key)}={write_value(item)}' for key, item in value.items())})"
    return ":" + json.dumps(value, allow_nan=False)


def _is_bare(text: str) -> bool:
    return bool(text) and text[0] not in ":@" and text.isprintable() and not SPECIAL.intersection(text)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _write_text(text: str) -> str:
    plain = bool(text) and text.isprintable() and text.strip() == text and text[0] not in '";' and " ;" not in text
    return text if plain else _quote(text)
