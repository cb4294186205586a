"""Reading the compact wire (its grammar is in ``compress/compact``) line by line, with errors that say where."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import JsonValue

from graphhandoff.compress.compact import MEANING_OF, SPECIAL, TYPE_OF_WORD, Link, Signatures, usual_links
from graphhandoff.compress.graph import Edge, HandoffGraph
from graphhandoff.compress.graph_vocabulary import EARLIER_END, MAX_VALUE_DEPTH, NODE_ID, TOOL_NAME

_TEXT_LINE = re.compile(r"(goal|constraint|entity|action|pre|post):(?: |$)")
_TOOL = re.compile(rf"{TOOL_NAME}(?![^ ])")
_EXPLICIT_ID = re.compile(rf"@({NODE_ID}) ")
_REFERENCE = re.compile(r"([1-9][0-9]{0,8})(?:\.([1-9][0-9]{0,8}))?$")
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_OWN_ID = re.compile(rf"@({NODE_ID})(?==)")


class CompactSyntaxError(ValueError):
    """A compact text cannot be read; ``line`` (from 1) and ``reason`` say where and why."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


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
            kind: str = TYPE_OF_WORD[head.group(1)]
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
        for link in usual_links(kind, number, kinds) if links is None else links:
            own, other = ids.get((number, link.own)), ids.get(link.other)
            if own is None:
                raise CompactSyntaxError(number, f"this line has no argument .{link.own}")
            if other is None or link.other >= (number, link.own):
                raise CompactSyntaxError(
                    number,
                    f"'{link.word} {_reference(link.other)}' points at nothing above; refer to earlier lines only",
                )
            relation, own_is_src = MEANING_OF[link.word]
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
        while end < len(self.text) and not self.text[end].isspace() and self.text[end] not in SPECIAL:
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

    def read_clauses(self) -> list[Link] | None:
        """Read ``; word refs ; word refs``; ``None`` when the line says nothing about edges."""
        if self.at == len(self.text):
            return None
        if not self.text.startswith(" ;", self.at):
            raise self.fail("expected ' ;' or the end of the line")
        links: list[Link] = []
        clauses = self.rest.split(" ;")[1:]
        for clause in clauses:
            words = clause.split()
            if not words and len(clauses) == 1:
                break
            own = 0
            if words and re.fullmatch(r"\.[1-9][0-9]{0,8}", words[0]):
                own = int(words.pop(0)[1:])
            if len(words) < 2 or words[0] not in MEANING_OF:
                raise self.fail(f"expected one of {', '.join(MEANING_OF)} and line numbers, got {clause.strip()!r}")
            for reference in words[1:]:
                found = _REFERENCE.match(reference)
                if not found:
                    raise self.fail(f"{reference!r} is no line number")
                links.append(Link(own, words[0], (int(found.group(1)), int(found.group(2) or 0))))
        return links
