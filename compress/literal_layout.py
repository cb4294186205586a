"""How the reader of plain text divides it: blocks (paragraphs and list items) and the sentences in them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphhandoff.compress.protocol import ToolSpec

_BLOCK_END = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*•–]|\(?[0-9a-zA-Z]{1,2}[.):])[ \t])")
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\"'”]?\s+(?=[\"'“(]?[A-Z0-9#*•–-])|\n+|;\s")
# A sentence with such words warns of what stands in it, so it lends no values to calls.
_WARNS = re.compile(
    r"\b(?:\w+n['’]t|do not|never|not|ignore|beware|careful|stay away|stays?|keeps?|kept|out of stock|sold out"
    r"|lookalikes?|confuse|untouched|leave|leaves|avoid|instead of|hands off|keep clear|unavailable|no part|wrong)\b",
    re.IGNORECASE,
)


_LIST_MARK = re.compile(r"[ \t]*(?:[-*•–]|\(?[0-9a-zA-Z]{1,2}[.):])[ \t]")
# A fragment such as ", not the blue one" or "and not sooner" denies itself only, not the sentence it stands in.
_CONTRAST = re.compile(r"(?:(?:[,;(–—]|\s-)\s*(?:(?:and|but)\s+)?|\b(?:and|but)\s+)not\b[^,;:.()–—\n]*", re.IGNORECASE)


# Longer runs are cut at white space: what a call needs stands near it, and every search stays bounded.
MAX_SENTENCE = 500
MAX_BLOCK = 2000


class Unit(NamedTuple):
    """A sentence: where it stands, and in which block."""

    start: int
    end: int
    block: int


class Mention(NamedTuple):
    """A tool's mention: where it stands, which tool, and whether by its exact name."""

    start: int
    end: int
    tool: ToolSpec
    exact: bool


class Layout:
    """A text with its blocks and sentences.

    A block also ends before a line that begins with one of ``names``. A paragraph that ends in a colon, or without a
    full stop before one that begins with a small letter, goes on into the next.
    """

    def __init__(self, text: str, names: Sequence[str] = ()) -> None:
        self.text = text
        named = "|".join(map(re.escape, names))
        line_of_call = re.compile(rf"[ \t]*(?:{named})(?!\w)") if named else None
        ends = re.compile(rf"{_BLOCK_END.pattern}|\n(?={line_of_call.pattern})") if line_of_call else _BLOCK_END
        joined: list[tuple[int, int]] = []
        for start, end in _spans(ends, text, 0, len(text)):
            if (
                joined
                and not (line_of_call and line_of_call.match(text, start))
                and _goes_on(text, joined[-1][1], start)
            ):
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((start, end))
        self.blocks = [part for span in joined for part in _cut(text, *span, MAX_BLOCK)]
        self.units = [
            Unit(start, end, b)
            for b, block in enumerate(self.blocks)
            for span in _spans(_SENTENCE_END, text, *block)
            for start, end in _cut(text, *span, MAX_SENTENCE)
        ]
        self._calm = [
            Unit(start, end, unit.block)
            for unit in self.units
            for start, end in _calm_spans(text, unit.start, unit.end)
        ]

    def unit_at(self, at: int) -> Unit:
        """Return the sentence that holds a place."""
        return self.units[max(0, bisect_right(self.units, at, key=lambda unit: unit.start) - 1)]

    def iter_calm(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the sentences between two places that do not warn, without their contrasting fragments."""
        first = bisect_left(self._calm, start, key=lambda unit: unit.start)
        for unit in self._calm[first:]:
            if unit.end > end:
                return
            yield unit.start, unit.end


def _spans(separator: re.Pattern[str], text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for found in separator.finditer(text, start, end):
        if found.start() > at:
            yield at, found.start()
        at = found.end()
    if end > at or (start == end == 0 and not text):
        yield at, end


def _goes_on(text: str, end: int, start: int) -> bool:
    before, first = text[max(0, end - 1) : end], text[start : start + 1]
    if _LIST_MARK.match(text, start) or not text[end:start].isspace():
        return False
    return before == ":" or (first.islower() and before not in (".", "!", "?"))


def _calm_spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    spans = list(_spans(_CONTRAST, text, start, end))
    return [] if any(_WARNS.search(text, *span) for span in spans) else spans


def _cut(text: str, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    while end - start > most:
        space = text.rfind(" ", start + 1, start + most)
        middle = space if space > 0 else start + most
        yield start, middle
        start = middle
    yield start, end
