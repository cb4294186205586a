"""What may not get lost when words are dropped: a plan's identifiers, and the words that turn a meaning round.

A classifier proposes which words to keep; these rules put back what it must not drop, at the place where the text is
likeliest to need it. Where no plan is known, every identifier of the text stays (:func:`fields.must_stay`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from graphhandoff.compress.fields import Word, is_operation, join_words
from graphhandoff.compress.identifiers import find_readable_identifiers, strip_edges
from graphhandoff.compress.literal_text import TELLS

_EXCEPTS = re.compile(r"\W*(?:except(?:ing|ion)?|excluding|without)\W*", re.IGNORECASE)
_TWO_WORD_EXCEPTIONS = frozenset({("other", "than"), ("apart", "from"), ("but", "not"), ("instead", "of")})
_AFTER_EXCEPTION = 3
_DENIES = re.compile(r"\W*(?:not|never|no|nor|neither|cannot|without|except|excluding|\w+n['’]t)\W*", re.IGNORECASE)
_DENIAL_REACH = 3
_CLAUSE_REACH = 8
_CLAUSE_WORDS = frozenset("and but so then because as which who where while".split())
_CLAUSE_END = re.compile(r"[,;:.!?–—][)\]\"'”’]*$")
_JOINS = re.compile(r"\W*(?:->|→|=>|to|for|into|by|with|becomes?|replaced|new_item_ids|item_ids)\W*", re.IGNORECASE)
_JOIN_REACH = 12
_TELL_REACH = 40
_SENTENCE_END = re.compile(r"([.!?]|:)[\"'”’)\]]*$")
_EDGE = re.compile(r"\W+")


class Kept(NamedTuple):
    """Which words are kept, and how many were put back because a plan's identifier would have been lost."""

    keep: list[bool]
    n_restored: int


def exceptions(words: Sequence[Word]) -> list[bool]:
    """Mark words of exception (*except, excluding, other than, but not* …) and the three words that they except."""
    marks = [False] * len(words)
    bare = [strip_edges(word.text, _EDGE, _EDGE).lower() for word in words]
    for i, word in enumerate(words):
        two = i > 0 and (bare[i - 1], bare[i]) in _TWO_WORD_EXCEPTIONS
        if two or _EXCEPTS.fullmatch(word.text):
            for j in range(i - two, min(i + 1 + _AFTER_EXCEPTION, len(words))):
                marks[j] = True
    return marks


def denials_before(words: Sequence[Word], at: int) -> Iterator[int]:
    """Yield the places of denying words (*not, never* …) that stand shortly before a word, in its clause."""
    for j in range(at - 1, max(-1, at - 1 - _CLAUSE_REACH), -1):
        text = words[j].text
        if _CLAUSE_END.search(text) or strip_edges(text, _EDGE, _EDGE).lower() in _CLAUSE_WORDS:
            return
        if _DENIES.fullmatch(text):
            yield j


def keep_with_plan(
    words: Sequence[Word],
    keep: Sequence[bool],
    scores: Sequence[float],
    needed: Iterable[str],
    told: Iterable[str] = (),
    lists: Iterable[Sequence[Sequence[str]]] = (),
) -> Kept:
    """Put back what the classifier dropped and the plan needs.

    Args:
        words: of the prose.
        keep: what the classifier keeps, one mark a word.
        scores: how much it wanted each word, any scale up to 1; decides between places of one identifier.
        needed: the plan's identifiers.
        told: strings that the customer must be told.
        lists: the lists of identifiers that a call takes, for every call that takes some.

    Returns:
        Marks under which every needed identifier that the words hold is kept once at least, those of a call's lists in
        the sentences that give them together and as often as the list has them, every string to tell with the words
        that order to tell it, and before kept identifiers and operation words those that deny (*not, never* …), between
        kept identifiers those that pair them (*for, to, ->* …).
    """
    text = _Text(words)
    marks = list(keep)
    held = [find_readable_identifiers(word.text) for word in words]
    present = {identifier for kept, identifiers in zip(marks, held, strict=True) if kept for identifier in identifiers}
    n_restored = 0
    for value in told:
        places = text.find(value)
        if places:
            place = max(places, key=lambda at: (text.orders_to_tell(at) is not None, scores[at[0]]))
            n_restored += not all(marks[i] for i in place)
            for i in (*place, *(text.orders_to_tell(place) or ())):
                marks[i] = True
                present.update(held[i])
    for group in _together(words, held, scores, lists):
        n_restored += not all(marks[i] for i in group)
        for i in group:
            marks[i] = True
            present.update(held[i])
    for identifier in needed:
        if identifier not in present:
            holding = [i for i, identifiers in enumerate(held) if identifier in identifiers]
            if holding:
                best = max(holding, key=lambda i: scores[i])
                marks[best] = True
                present.update(held[best])
                n_restored += 1
    _keep_between(words, marks, [bool(identifiers) for identifiers in held])
    return Kept(marks, n_restored)


def _together(
    words: Sequence[Word], held: Sequence[set[str]], scores: Sequence[float], lists: Iterable[Sequence[Sequence[str]]]
) -> Iterator[list[int]]:
    """Yield the places of a call's listed identifiers, sentence by sentence, until each is there as often as listed.

    An item told in passing does not part a pair: the sentences that hold most of the lists go first.
    """
    sentences: dict[int, list[int]] = {}
    number = 0
    holding: dict[str, set[int]] = {}
    for i, word in enumerate(words):
        if held[i]:
            sentences.setdefault(number, []).append(i)
            for identifier in held[i]:
                holding.setdefault(identifier, set()).add(number)
        number += _SENTENCE_END.search(word.text) is not None
    for columns in lists:
        due = Counter(identifier for column in columns for identifier in column)
        if due.total() < 2:
            continue
        places = {
            k: [i for i in sentences[k] if not due.keys().isdisjoint(held[i])]
            for k in sorted({k for identifier in due for k in holding.get(identifier, ())})
        }
        found = {k: Counter(name for i in at for name in held[i] if name in due) for k, at in places.items()}
        sides = {k: sum(any(name in counted for name in column) for column in columns) for k, counted in found.items()}
        liked = {k: max(scores[i] for i in at) for k, at in places.items()}
        for k in sorted(places, key=lambda k: (-(found[k] & due).total(), -sides[k], -liked[k], k)):
            if found[k] & due:
                yield places[k]
                due -= found[k]


def _keep_between(words: Sequence[Word], marks: list[bool], holds: Sequence[bool]) -> None:
    """Keep denying words before kept identifiers and operations, and joining words between two identifiers."""
    last: int | None = None
    for i, word in enumerate(words):
        if marks[i] and (holds[i] or is_operation(word.text)):
            for j in denials_before(words, i):
                marks[j] = True
        if marks[i] and holds[i]:
            for j in range(i - 1, max(-1, i - 1 - _DENIAL_REACH), -1):
                if _SENTENCE_END.search(words[j].text):
                    break
                if _DENIES.fullmatch(words[j].text):
                    marks[j] = True
            if last is not None and i - last <= _JOIN_REACH:
                for j in range(last + 1, i):
                    if _JOINS.fullmatch(words[j].text):
                        marks[j] = True
            last = i
        if _SENTENCE_END.search(word.text):
            last = None


class _Text:
    """The words as one text, to find strings and orders to tell in."""

    def __init__(self, words: Sequence[Word]) -> None:
        self._starts: list[int] = []
        at = 0
        for word in words:
            self._starts.append(at)
            at += len(word.text) + 1
        self.text = " ".join(word.text for word in words)
        self._tells = [self._words(*found.span()) for found in TELLS.finditer(self.text)]
        self._tell_starts = [told[0] for told in self._tells]
        self._ends = [i for i, word in enumerate(words) if _SENTENCE_END.search(word.text)]

    def _words(self, start: int, end: int) -> list[int]:
        return list(range(bisect_right(self._starts, start) - 1, bisect_right(self._starts, end - 1)))

    def find(self, value: str) -> list[list[int]]:
        """Return the words of every place where a string stands whole."""
        if not value:
            return []
        pattern = re.compile(rf"(?<![\w.]){re.escape(value)}(?!\w|\.\d)", re.IGNORECASE)
        found = [self._words(*match.span()) for match in pattern.finditer(self.text)]
        return found or [self._words(*m.span()) for m in re.finditer(re.escape(value), self.text, re.IGNORECASE)]

    def orders_to_tell(self, place: Sequence[int]) -> list[int] | None:
        """Return the words that order to tell what stands at a place: of its sentence, or of one shortly before."""
        k = bisect_left(self._ends, place[0])
        end = self._ends[k] if k < len(self._ends) else len(self._starts)
        k = bisect_left(self._tell_starts, place[0])
        nearest = [words for words in self._tells[max(0, k - 1) : k + 1] if place[0] - _TELL_REACH <= words[0] <= end]
        return min(nearest, key=lambda words: abs(words[0] - place[0])) if nearest else None


def join_sentences(line: Sequence[Word], marks: Sequence[bool]) -> str:
    """Join the kept words of one line; a sentence of which anything is kept keeps its end mark.

    So that what was told apart stays apart: *… #W1. Return it to …* does not become *… #W1 return …*. A colon counts
    at the end of the line only.
    """
    parts: list[str] = []
    start = 0
    for end, word in enumerate(line, start=1):
        closing = _SENTENCE_END.search(word.text)
        last = end == len(line)
        if not last and (closing is None or closing.group(1) == ":"):
            continue
        text = join_words(line[start:end], marks[start:end])
        if text and closing is not None and not marks[end - 1]:
            text = text.rstrip(",;:") + closing.group(1)
        if text:
            parts.append(text)
        start = end
    return " ".join(parts)


def join_lines(lines: Sequence[Sequence[Word]], marks: Sequence[bool]) -> str:
    """Join the kept words of all lines; an empty line stays where a paragraph ended and something is kept around it."""
    parts: list[str] = []
    at = 0
    for line in lines:
        text = join_sentences(line, marks[at : at + len(line)])
        at += len(line)
        if text or (not line and parts and parts[-1]):
            parts.append(text)
    return "\n".join(parts).strip("\n")
