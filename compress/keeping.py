"""What may not get lost when words are dropped: a plan's identifiers, and the words that turn a meaning round.

A classifier proposes which words to keep; these rules put back what it must not drop, at the place where the text is
likeliest to need it. Where no plan is known, every identifier of the text stays (:func:`fields.must_stay`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from graphhandoff.compress.fields import Word, join_words
from graphhandoff.compress.identifiers import find_readable_identifiers

_EXCEPTS = re.compile(r"\W*(?:except(?:ing|ion)?|excluding|without)\W*", re.IGNORECASE)
_TWO_WORD_EXCEPTIONS = frozenset({("other", "than"), ("apart", "from"), ("but", "not"), ("instead", "of")})
_AFTER_EXCEPTION = 3
_DENIES = re.compile(r"\W*(?:not|never|no|nor|neither|cannot|without|except|excluding|\w+n['’]t)\W*", re.IGNORECASE)
_DENIAL_REACH = 3
_SENTENCE_END = re.compile(r"([.!?]|:)[\"'”’)\]]*$")
_EDGE = re.compile(r"^\W+|\W+$")


class Kept(NamedTuple):
    """Which words are kept, and how many were put back because a plan's identifier would have been lost."""

    keep: list[bool]
    n_restored: int


def exceptions(words: Sequence[Word]) -> list[bool]:
    """Mark words of exception (*except, excluding, other than, but not* …) and the three words that they except."""
    marks = [False] * len(words)
    bare = [_EDGE.sub("", word.text).lower() for word in words]
    for i, word in enumerate(words):
        two = i > 0 and (bare[i - 1], bare[i]) in _TWO_WORD_EXCEPTIONS
        if two or _EXCEPTS.fullmatch(word.text):
            for j in range(i - two, min(i + 1 + _AFTER_EXCEPTION, len(words))):
                marks[j] = True
    return marks


def keep_with_plan(words: Sequence[Word], keep: Sequence[bool], scores: Sequence[float], needed: Iterable[str]) -> Kept:
    """Put back what the classifier dropped and the plan needs.

    Args:
        words: of the prose.
        keep: what the classifier keeps, one mark a word.
        scores: how much it wanted each word, any scale; decides between places of one identifier.
        needed: the plan's identifiers.

    Returns:
        Marks under which every needed identifier that the words hold is kept once at least, as is a denying word
        (*not, never* …) up to three words before a kept identifier in its sentence.
    """
    marks = list(keep)
    held = [find_readable_identifiers(word.text) for word in words]
    present = {identifier for kept, identifiers in zip(marks, held, strict=True) if kept for identifier in identifiers}
    n_restored = 0
    for identifier in needed:
        if identifier not in present:
            places = [i for i, identifiers in enumerate(held) if identifier in identifiers]
            if places:
                best = max(places, key=lambda i: scores[i])
                marks[best] = True
                present.update(held[best])
                n_restored += 1
    for i, identifiers in enumerate(held):
        if marks[i] and identifiers:
            for j in range(i - 1, max(-1, i - 1 - _DENIAL_REACH), -1):
                if _SENTENCE_END.search(words[j].text):
                    break
                if _DENIES.fullmatch(words[j].text):
                    marks[j] = True
    return Kept(marks, n_restored)


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
