"""Which words of a delegation its graph needs: the labels that a token classifier for LLMLingua-2 is trained on.

A word is kept if it carries a value of the plan where the plan is given in order, names the operation, joins an old
item to its new one, or belongs to what the customer is told. A value that is said often is kept where the operation
is, not everywhere. Words are those of :func:`graphhandoff.compress.fields.split_words`, line by line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from pydantic import JsonValue

from graphhandoff.compress.fields import split_words
from graphhandoff.compress.graph import Call, HandoffGraph
from graphhandoff.compress.keeping import join_lines
from graphhandoff.compress.literal import read_message
from graphhandoff.compress.literal_arguments import MAX_PAIR_GAP
from graphhandoff.compress.literal_layout import Layout, Unit
from graphhandoff.compress.literal_text import TELLS
from graphhandoff.compress.protocol import Delegation, ToolCall
from graphhandoff.data.environment import load_environment
from graphhandoff.data.retail import load_tools

_VERBS = {
    "cancel": r"cancel(?!led|lation)\w*|call off|cancellation",
    "return": r"return(?!ed)\w*|send back|give back",
    "exchange": r"exchange(?!d)\w*|swap(?!ped)\w*",
    "modify": r"modif(?!ied)\w*|change(?!d)\w*|update(?!d)\w*|redirect\w*|edit\w*|switch\w*|replace\w*",
    "transfer": r"transfer\w*|hand\w* over",
}
_NOUNS = {
    "address": r"address\w*|redirect\w*|ship\w*",
    "user": r"profile|default|account|user",
    "payment": r"payment\w*|pa(?:y|id)\w*",
    "items": r"items?|order",
}
_JOINS = re.compile(r"->|→|=>|\b(?:to|for|into|by|with|becomes?|new|replaced)\b", re.IGNORECASE)
_BLANK = re.compile(
    r"\b(?:address2|second line|line two|line 2)?\W{0,3}(?:is |left |stays )?(?:blank|empty)\b", re.IGNORECASE
)
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*•–]|\(?[0-9a-zA-Z]{1,2}[.):])[ \t]")
_READING = frozenset({"find", "get", "list", "calculate"})
_FACT_WORDS = 3


class Span(NamedTuple):
    """A stretch of the text."""

    start: int
    end: int


def label_words(prose: str, graph: HandoffGraph) -> list[bool]:
    """Label every word of a prose: does its graph need it?

    Args:
        prose: the delegation in words.
        graph: what it means; its calls and its ``tell`` postconditions count.

    Returns:
        One label per word of ``split_words`` over the prose's lines, in reading order.
    """
    aligner = _Aligner(prose, [call.node.tool for call in graph.iter_calls()])
    calls = list(graph.iter_calls())
    for call in calls:
        if call.node.tool.split("_")[0] not in _READING:
            aligner.align_write(call)
    for call in calls:
        if call.node.tool.split("_")[0] in _READING:
            aligner.align_look_up(call)
    for text in graph.iter_texts("postcondition"):
        aligner.align_fact(text.partition(" ")[2])
    return aligner.labels()


def gives_the_plan(delegation: Delegation, keep: Sequence[bool]) -> bool:
    """Tell whether the kept words alone, read literally, do what the graph does and say what it tells.

    Args:
        delegation: with a graph.
        keep: one mark a word, as :func:`label_words` gives them.
    """
    assert delegation.graph is not None
    lines = [split_words(line) for line in delegation.prose.split("\n")]
    reading = read_message(join_lines(lines, keep), load_tools())
    calls = [
        ToolCall(name=call.node.tool, arguments={argument.name: argument.value for argument in call.arguments})
        for call in delegation.graph.iter_calls()
    ]
    environment = load_environment()
    said = reading.said.lower().replace(",", "")
    told = (text.partition(" ")[2].lower() for text in delegation.graph.iter_texts("postcondition"))
    return all(fact in said for fact in told) and (
        environment.run(reading.calls).changes == environment.run(calls).changes
    )


class _Aligner:
    def __init__(self, prose: str, tools: Sequence[str]) -> None:
        self.prose = prose
        self.layout = Layout(prose, tools)
        self.kept: list[Span] = []
        self._placed: set[str] = set()
        self._named = {tool for tool in tools if tool in prose}

    def labels(self) -> list[bool]:
        covered = bytearray(len(self.prose))
        for span in self.kept:
            covered[span.start : span.end] = b"\x01" * (span.end - span.start)
        marks: list[bool] = []
        at = 0
        for line in self.prose.split("\n"):
            for word in split_words(line):
                at = self.prose.index(word.text, at)
                end = at + len(word.text)
                marks.append(1 in covered[at:end])
                at = end
        return marks

    def align_write(self, call: Call) -> None:
        values = list(dict.fromkeys(v for a in call.arguments for v in _strings(a.value)))
        best = max(self.layout.units, key=lambda unit: self._fit(unit, call.node.tool, values), default=None)
        if best is None:
            return
        self._keep_operation(best, call.node.tool)
        for value in values:
            self._keep_value(value, best)
        for argument in call.arguments:
            if argument.value == "":
                self._keep_first(_BLANK, best)
            if isinstance(argument.value, list):
                for value in _strings(argument.value):
                    self._keep_all(value, best)
        for argument in call.arguments:  # "item_ids … new_item_ids …", "reason …", "address2 left blank"
            for found in re.finditer(rf"(?<!\w){re.escape(argument.name)}(?!\w)", self.prose[best.start : best.end]):
                self.kept.append(Span(best.start + found.start(), best.start + found.end()))
        lists = [list(_strings(argument.value)) for argument in call.arguments if isinstance(argument.value, list)]
        if len(lists) > 1:
            self._keep_joins(lists[0], lists[1])

    def _fit(self, unit: Unit, tool: str, values: Sequence[str]) -> float:
        text = self.prose[unit.start : unit.end]
        found = sum(_find(value, text) is not None for value in values) / max(1, len(values))
        operation = 1.0 if tool in text else 0.6 if self._verb(tool).search(text) and tool not in self._named else 0.0
        denied = 0.7 if re.search(r"\b(?:not|never|don't|cannot|can't)\b", text) else 0.0
        return found + operation - denied

    def _keep_operation(self, unit: Unit, tool: str) -> None:
        start, end = self.layout.blocks[unit.block]
        for place in (Span(unit.start, unit.end), Span(start, end)):
            at = self.prose.find(tool, place.start, place.end)
            if at >= 0:
                self.kept.append(Span(at, at + len(tool)))
                return
            verb = self._verb(tool).search(self.prose, place.start, place.end)
            if verb is not None:
                self.kept.append(Span(*verb.span()))
                for noun in tool.split("_")[1:]:
                    pattern = _NOUNS.get(noun)
                    found = pattern and re.compile(pattern, re.IGNORECASE).search(self.prose, verb.end(), place.end)
                    if found and tool.startswith("modify"):
                        self.kept.append(Span(*found.span()))
                return

    @staticmethod
    @lru_cache(maxsize=64)
    def _verb(tool: str) -> re.Pattern[str]:
        verb = tool.split("_")[0]
        return re.compile(rf"\b(?:{_VERBS.get(verb, re.escape(verb))})\b", re.IGNORECASE)

    def _keep_value(self, value: str, near: Unit) -> None:
        block = self.layout.blocks[near.block]
        for place in (Span(near.start, near.end), Span(near.start, block[1]), Span(*block)):
            at = _find(value, self.prose, place)
            if at is not None:
                self._keep(value, at)
                return
        places = list(_find_all(value, self.prose))
        if places:
            self._keep(value, min(places, key=lambda at: abs(at - near.start)))

    def _keep_first(self, pattern: re.Pattern[str], near: Unit) -> None:
        block = self.layout.blocks[near.block]
        found = pattern.search(self.prose, near.start, near.end) or pattern.search(self.prose, *block)
        if found is not None:
            self.kept.append(Span(*found.span()))

    def _keep_all(self, value: str, unit: Unit) -> None:
        for at in _find_all(value, self.prose, Span(unit.start, unit.end)):  # "exchange A for A": both sides count
            self._keep(value, at)

    def _keep(self, value: str, at: int) -> None:
        self._placed.add(value)
        self.kept.append(Span(at, at + len(value)))

    def _keep_joins(self, old: Sequence[str], new: Sequence[str]) -> None:
        """Keep what stands between an old item and its new one: *for, to, ->* …"""
        places = sorted(
            at
            for value in {*old, *new}
            for at in _find_all(value, self.prose)
            if any(span.start == at for span in self.kept)
        )
        for one, other in pairwise(places):
            if other - one < MAX_PAIR_GAP:
                self.kept.extend(Span(*found.span()) for found in _JOINS.finditer(self.prose, one, other))

    def align_look_up(self, call: Call) -> None:
        values = [v for a in call.arguments for v in _strings(a.value)]
        unit = max(
            self.layout.units,
            key=lambda u: (
                sum(_find(v, self.prose, Span(u.start, u.end)) is not None for v in values)
                + 0.5 * (call.node.tool in self.prose[u.start : u.end])
            ),
            default=None,
        )
        if unit is None:
            return
        fresh = [value for value in values if value not in self._placed]
        if fresh:
            at = self.prose.find(call.node.tool, unit.start, unit.end)
            if at >= 0:
                self.kept.append(Span(at, at + len(call.node.tool)))
        for value in fresh:
            self._keep_value(value, unit)

    def align_fact(self, fact: str) -> None:
        if not fact:
            return
        places = list(_find_all(fact, self.prose))
        if not places:
            return
        unit, at, lead = max((self._telling(at) for at in places), key=lambda told: (told[2] is not None, told[1]))
        self.kept.append(Span(at, at + len(fact)))
        before = list(re.finditer(r"\S+", self.prose[unit.start : at]))[-_FACT_WORDS:]
        self.kept.extend(Span(unit.start + word.start(), unit.start + word.end()) for word in before)
        if lead is not None:
            self.kept.append(lead)

    def _telling(self, at: int) -> tuple[Unit, int, Span | None]:
        """Find the word that orders to tell what stands at a place: in its sentence, or earlier in its block."""
        unit = self.layout.unit_at(at)
        found = TELLS.search(self.prose, unit.start, unit.end)
        if found is None:
            earlier = list(TELLS.finditer(self.prose, self.layout.blocks[unit.block][0], unit.start))
            found = earlier[-1] if earlier else None
        lead = unit.block
        while found is None and lead > 0 and _LIST_ITEM.match(self.prose, self.layout.blocks[lead][0]):
            lead -= 1
        if found is None and lead < unit.block:
            last = self.layout.unit_at(self.layout.blocks[lead][1] - 1)
            found = TELLS.search(self.prose, last.start, last.end)
        return unit, at, Span(*found.span()) if found else None


def _strings(value: JsonValue) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, str) and value:
        yield value


def _find_all(value: str, text: str, place: Span | None = None) -> Iterator[int]:
    """Yield where a value stands whole: not inside of a longer word, and not without its ``#``."""
    start, end = place or Span(0, len(text))
    at = text.find(value, start, end)
    while at >= 0:
        after = at + len(value)
        before_is_edge = at == 0 or not (text[at - 1].isalnum() or text[at - 1] in "_#")
        if before_is_edge and (after == len(text) or not (text[after].isalnum() or text[after] == "_")):
            yield at
        at = text.find(value, at + 1, end)


def _find(value: str, text: str, place: Span | None = None) -> int | None:
    return next(_find_all(value, text, place), None)
