"""The words of a prose, and which of them are fields: what the two protocols built on a token classifier share.

Words are told apart a little finer than by white space, so that *not* and *except* are seen where punctuation joins
them to a neighbour; they are joined again as they stood, so that what is kept is kept byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from graphhandoff.compress.identifiers import protected_words, strip_edges

# "everything—except the tablet", "if/unless": a word may end after such marks. They never stand inside an identifier
# with a letter behind them.
_BREAK = re.compile(r"(?<=\w)[—–―…/|,;:!?()\[\]\"“”*]+(?=[^\W\d_])")
_NEGATED = re.compile(r"n['’]t(?!\w)", re.IGNORECASE)
# Thai, Lao, Burmese, Khmer, Japanese and Chinese put no spaces around a *not*: such runs are kept whole.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")

_OPERATION = re.compile(
    r"(?:cancel|exchange|return|modif|change|swap|replac|refund|update|redirect|tell|inform|explain)\w*", re.IGNORECASE
)
_TOOL_NAME = re.compile(r"[a-z]+(?:_[a-z0-9]+){1,}")
_JOINS = frozenset(
    "to for into with by from becomes -> → => old new reason address1 address2 city state zip country".split()
)
_LEFT_EDGE = re.compile(r"[^\w#$→=-]+")
_RIGHT_EDGE = re.compile(r"[^\w>→]+")
_QUOTED = re.compile(r"[\"“][^\"”\n]{1,80}[\"”]")


class Word(NamedTuple):
    """A piece of the text without white space; ``glued`` if none stands before it either."""

    text: str
    glued: bool = False


def split_words(text: str) -> list[Word]:
    """Split at white space, and behind punctuation that joins two words; identifiers and URLs stay whole."""
    return [Word(piece, glued=i > 0) for spaced in text.split() for i, piece in enumerate(_pieces(spaced))]


def _pieces(spaced: str) -> Iterator[str]:
    ends = [] if "://" in spaced else [found.end() for found in _BREAK.finditer(spaced)]
    for start, end in pairwise([0, *ends, len(spaced)]):
        yield spaced[start:end]


def join_words(words: Iterable[Word], marks: Iterable[bool]) -> str:
    """Put the marked words together as they stood, with one space for white space and for a gap."""
    parts: list[str] = []
    marked_before = False
    for word, marked in zip(words, marks, strict=True):
        if marked:
            parts.append(word.text if word.glued and marked_before else f" {word.text}")
        marked_before = marked
    return "".join(parts).removeprefix(" ")


def must_stay(words: Sequence[Word]) -> list[bool]:
    """Tell which words are kept whatever a classifier says: identifiers, polarity, and unspaced scripts."""
    protected = protected_words([word.text for word in words])
    return [
        safe or any(pattern.search(word.text) for pattern in (_NEGATED, _UNSPACED))
        for word, safe in zip(words, protected, strict=True)
    ]


def extract_fields(sentence: str) -> tuple[list[str], list[str]]:
    """Part the words of a sentence into fields and others, each in order.

    Words inside quotes are fields. A joining word is one only next to another field, so that prose without
    operations or identifiers gives no fields at all.
    """
    words = split_words(sentence)
    quoted = _inside_quotes(sentence, words)
    solid = [
        safe or inside or is_operation(word.text)
        for word, safe, inside in zip(words, must_stay(words), quoted, strict=True)
    ]
    bare = [strip_edges(word.text, _LEFT_EDGE, _RIGHT_EDGE).lower() for word in words]
    fields = [solid[i] or (bare[i] in _JOINS and any(solid[max(0, i - 2) : i + 3])) for i in range(len(words))]
    return join_words(words, fields).split(), join_words(words, [not field for field in fields]).split()


def is_operation(word: str) -> bool:
    """Tell whether a word is one that orders to act (*cancel, returned, update* …) or a tool's name."""
    bare = strip_edges(word, _LEFT_EDGE, _RIGHT_EDGE)
    return bool(_OPERATION.fullmatch(bare) or _TOOL_NAME.fullmatch(bare))


def _inside_quotes(sentence: str, words: Sequence[Word]) -> list[bool]:
    spans = (found.span() for found in _QUOTED.finditer(sentence))
    start, end = next(spans, (len(sentence), len(sentence)))
    marks: list[bool] = []
    at = 0
    for word in words:
        at = sentence.index(word.text, at)
        while at >= end and end < len(sentence):
            start, end = next(spans, (len(sentence), len(sentence)))
        marks.append(start <= at < end)
        at += len(word.text)
    return marks
