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
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import JsonValue

from graphhandoff.compress.graph import (
    EARLIER_END,
    MAX_VALUE_DEPTH,
    NODE_ID,
    RELATIONS,
    TOOL_NAME,
    Edge,
    HandoffGraph,
    Relation,
    TextNode,
    TextType,
    ToolArgNode,
    ToolCallNode,
)

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
_TYPE_OF_WORD: Mapping[str, TextType] = {word: node_type for node_type, word in _WORD_OF_TYPE.items()}

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
_MEANING_OF: Mapping[str, tuple[Relation, bool]] = {word: meaning for meaning, word in _CLAUSE_OF.items()}

_TEXT_LINE = re.compile(r"(goal|constraint|entity|action|pre|post):(?: |$)")
_TOOL = re.compile(rf"{TOOL_NAME}(?![^ ])")
_EXPLICIT_ID = re.compile(rf"@({NODE_ID}) ")
_REFERENCE = re.compile(r"([1-9][0-9]{0,8})(?:\.([1-9][0-9]{0,8}))?$")
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_OWN_ID = re.compile(rf"@({NODE_ID})(?==)")
_SPECIAL = frozenset(' "[]()=;')


class CompactSyntaxError(ValueError):
    """A compact text cannot be read; ``line`` (from 1) and ``reason`` say where and why."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


class _Link(NamedTuple):
    """One edge as the later line sees it: own end (0 is the line, j its j-th argument), word, earlier end."""

    own: int
    word: str
    other: tuple[int, int]


# ---------------------------------------------------------------------------------------------------- writing


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
        usual = set(actual) == set(_usual_links(node.type, number, kinds))
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


def _links_by_line(graph: HandoffGraph, place: Mapping[str, tuple[int, int]]) -> dict[int, list[_Link]]:
    links: dict[int, list[_Link]] = {}
    for edge in graph.edges:
        src, dst = place[edge.src], place[edge.dst]
        if edge.relation == "targets" and src[0] == dst[0] and dst[1] == 0:
            continue  # an argument standing on its call's line says this already
        src_is_later = src > dst
        later, earlier = (src, dst) if src_is_later else (dst, src)
        links.setdefault(later[0], []).append(_Link(later[1], _CLAUSE_OF[edge.relation, src_is_later], earlier))
    return links


def _usual_links(kind: str, number: int, kinds: Sequence[str]) -> Iterator[_Link]:
    """Yield the edges that a line of this kind has when it says nothing about edges."""
    if kind not in ("tool_call", "action", "postcondition"):
        return
    word_of = {"precondition": "requires", "constraint": "blocked_by", "goal": "targets", "entity": "targets"}
    for earlier in range(number - 1, 0, -1):
        if kinds[earlier - 1] in ("tool_call", "action"):
            yield _Link(0, "after", (earlier, 0))
            return
        if kind != "postcondition" and kinds[earlier - 1] in word_of:
            yield _Link(0, word_of[kinds[earlier - 1]], (earlier, 0))


def _write_clauses(links: Sequence[_Link]) -> str:
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
    return bool(text) and text[0] not in ":@" and text.isprintable() and not _SPECIAL.intersection(text)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _write_text(text: str) -> str:
    plain = bool(text) and text.isprintable() and text.strip() == text and text[0] not in '";' and " ;" not in text
    return text if plain else _quote(text)


# ---------------------------------------------------------------------------------------------------- parsing


def parse_compact(text: str, signatures: Signatures | None = None) -> HandoffGraph:
    """Read a compact text.

    Raises:
        CompactSyntaxError: the text is not of this form; says the line and the reason.
        GraphError: the lines are well formed but the graph is not valid (two nodes with one id, say).
    """
    signatures = signatures or {}
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, str]] = []
    kinds: list[str] = []
    ids: dict[tuple[int, int], str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            raise CompactSyntaxError(number, "empty line; every line is a node")
        reader = _Line(line, number)
        own_id = reader.read_explicit_id() or str(number)
        ids[number, 0] = own_id
        head = reader.match(_TEXT_LINE)
        if head:
            kind: str = _TYPE_OF_WORD[head.group(1)]
            nodes.append({"id": own_id, "type": kind, "text": reader.read_text()})
        else:
            kind = "tool_call"
            tool = reader.read_tool()
            nodes.append({"id": own_id, "type": kind, "tool": tool})
            for j, (name, argument_id, value) in enumerate(reader.read_arguments(signatures.get(tool)), start=1):
                ids[number, j] = argument_id or f"{number}.{j}"
                nodes.append({"id": ids[number, j], "type": "tool_arg", "name": name, "value": value})
                edges.append({"src": ids[number, j], "dst": own_id, "relation": "targets"})
        kinds.append(kind)
        links = reader.read_clauses()
        for link in _usual_links(kind, number, kinds) if links is None else links:
            own, other = ids.get((number, link.own)), ids.get(link.other)
            if own is None:
                raise CompactSyntaxError(number, f"this line has no argument .{link.own}")
            if other is None or link.other >= (number, link.own):
                raise CompactSyntaxError(
                    number,
                    f"'{link.word} {_reference(link.other)}' points at nothing above; refer to earlier lines only",
                )
            relation, own_is_src = _MEANING_OF[link.word]
            if link.other[0] == number and relation in EARLIER_END:
                raise CompactSyntaxError(number, f"{link.word!r} would order the line against itself")
            src, dst = (own, other) if own_is_src else (other, own)
            edges.append({"src": src, "dst": dst, "relation": relation})
    return HandoffGraph.build(nodes, [Edge.model_validate(edge) for edge in edges])


def _reference(place: tuple[int, int]) -> str:
    return f"{place[0]}.{place[1]}" if place[1] else str(place[0])


class _Line:
    """A cursor over one line."""

    def __init__(self, text: str, number: int) -> None:
        self.text = text
        self.number = number
        self.at = 0

    def fail(self, reason: str) -> CompactSyntaxError:
        return CompactSyntaxError(self.number, f"{reason} at column {self.at + 1}")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    @property
    def rest(self) -> str:
        return self.text[self.at :]

    def read_explicit_id(self) -> str | None:
        found = self.match(_EXPLICIT_ID)
        return found.group(1) if found else None

    def read_tool(self) -> str:
        found = self.match(_TOOL)
        if not found:
            raise self.fail("expected a tool name or one of goal: constraint: entity: action: pre: post:")
        return found.group()

    def read_text(self) -> str:
        if self.text.startswith('"', self.at):
            return self.read_quoted()
        end = self.text.find(" ;", self.at)
        if self.text.startswith(";", self.at):
            end = self.at
        end = len(self.text) if end < 0 else end
        text, self.at = self.text[self.at : end], end
        if not text:
            raise self.fail('expected text (an empty text is written "")')
        return text

    def read_quoted(self) -> str:
        try:
            value, self.at = json.JSONDecoder().raw_decode(self.text, self.at)
        except ValueError as error:
            raise self.fail(f"unfinished or malformed quoted string ({error})") from None
        if not isinstance(value, str):
            raise self.fail("expected a quoted string")
        return value

    def read_arguments(self, signature: Sequence[str] | None) -> Iterator[tuple[str, str | None, JsonValue]]:
        named = False
        position = 0
        while self.at < len(self.text) and not self.text.startswith(" ;", self.at):
            if self.text[self.at] != " ":
                raise self.fail("expected a space between arguments")
            self.at += 1
            start = self.at
            name = self.read_name()
            if name is not None:
                named = True
                yield *name, self.read_value()
                continue
            self.at = start
            if named or signature is None or position >= len(signature):
                reason = (
                    "a value without a name follows a named one"
                    if named
                    else "the tool's signature is not known, so write name=value"
                    if signature is None
                    else f"the tool has only {len(signature)} parameters"
                )
                raise self.fail(reason)
            yield signature[position], None, self.read_value()
            position += 1

    def read_name(self) -> tuple[str, str | None] | None:
        """Read ``name=`` or ``name@id=``; ``None`` when a value without a name stands here."""
        quoted = self.text.startswith('"', self.at)
        name = self.read_quoted() if quoted else self.read_bare()
        own_id: str | None = None
        if quoted:
            found = self.match(_OWN_ID)
            own_id = found.group(1) if found else None
        if not name or not self.text.startswith("=", self.at):
            return None
        self.at += 1
        if not quoted and "@" in name:
            name, own_id = name.split("@", 1)
            if not name or not re.fullmatch(NODE_ID, own_id):
                raise self.fail(f"{own_id!r} is no id; write name@id=value")
        return name, own_id

    def read_bare(self) -> str:
        end = self.at
        while end < len(self.text) and not self.text[end].isspace() and self.text[end] not in _SPECIAL:
            end += 1
        word, self.at = self.text[self.at : end], end
        return word

    def read_value(self, depth: int = 0) -> JsonValue:
        if depth > MAX_VALUE_DEPTH:
            raise self.fail(f"nested deeper than {MAX_VALUE_DEPTH} levels")
        mark = self.text[self.at : self.at + 1]
        if mark == '"':
            return self.read_quoted()
        if mark == ":":
            self.at += 1
            found = self.match(_SCALAR)
            if not found:
                raise self.fail("expected a number, true, false or null after ':'")
            return self._scalar(found.group())
        if mark == "[":
            return list(self._read_items("]", depth))
        if mark == "(":
            return self._read_object(depth)
        word = self.read_bare()
        if not word:
            raise self.fail("expected a value")
        return word

    def _scalar(self, text: str) -> JsonValue:
        try:
            value: JsonValue = json.loads(text)
        except ValueError:  # an integer beyond Python's conversion limit
            raise self.fail(f"number of {len(text)} digits is too long") from None
        return value

    def _read_items(self, close: str, depth: int) -> Iterator[JsonValue]:
        self.at += 1
        while not self.text.startswith(close, self.at):
            yield self.read_value(depth + 1)
            if self.text.startswith(" ", self.at):
                self.at += 1
            elif not self.text.startswith(close, self.at):
                raise self.fail(f"expected a space or '{close}'")
        self.at += 1

    def _read_object(self, depth: int) -> dict[str, JsonValue]:
        value: dict[str, JsonValue] = {}
        self.at += 1
        while not self.text.startswith(")", self.at):
            key = self.read_quoted() if self.text.startswith('"', self.at) else self.read_bare()
            if not self.text.startswith("=", self.at):
                raise self.fail("expected key=value")
            if key in value:
                raise self.fail(f"key {key!r} stands twice")
            self.at += 1
            value[key] = self.read_value(depth + 1)
            if self.text.startswith(" ", self.at):
                self.at += 1
            elif not self.text.startswith(")", self.at):
                raise self.fail("expected a space or ')'")
        self.at += 1
        return value

    def read_clauses(self) -> list[_Link] | None:
        """Read ``; word refs ; word refs``; ``None`` when the line says nothing about edges."""
        if self.at == len(self.text):
            return None
        if not self.text.startswith(" ;", self.at):
            raise self.fail("expected ' ;' or the end of the line")
        links: list[_Link] = []
        clauses = self.rest.split(" ;")[1:]
        for clause in clauses:
            words = clause.split()
            if not words and len(clauses) == 1:
                break
            own = 0
            if words and re.fullmatch(r"\.[1-9][0-9]{0,8}", words[0]):
                own = int(words.pop(0)[1:])
            if len(words) < 2 or words[0] not in _MEANING_OF:
                raise self.fail(f"expected one of {', '.join(_MEANING_OF)} and line numbers, got {clause.strip()!r}")
            for reference in words[1:]:
                found = _REFERENCE.match(reference)
                if not found:
                    raise self.fail(f"{reference!r} is no line number")
                links.append(_Link(own, words[0], (int(found.group(1)), int(found.group(2) or 0))))
        return links


assert {relation for relation, _ in _CLAUSE_OF} == set(RELATIONS)
