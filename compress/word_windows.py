"""What a token classifier sees of a text: its words, made into pieces and packed into windows at word borders.

Training and inference both come through here, so that a classifier is asked what it was taught.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

WINDOW_TOKENS = 400
"""Pieces in a window: below the 510 at which llmlingua cuts by itself, at full stops that may not exist."""

_MARKUP = re.compile(r"[\[\]<>|]")


class Reading(NamedTuple):
    """A word as a classifier sees it.

    ``seen`` is the text it is shown; ``pieces`` are the tokens of that, and ``counted`` says of each whether it is a
    piece of the vocabulary rather than a special token such as the one for the unknown; ``starts`` says of each
    whether a word of llmlingua's own begins there (punctuation stands alone, for one).
    """

    seen: str
    pieces: tuple[str, ...]
    counted: tuple[bool, ...]
    starts: tuple[bool, ...]

    @property
    def n_tokens(self) -> int:
        """Pieces that count towards a window."""
        return sum(self.counted)

    @property
    def n_words(self) -> int:
        """Words of llmlingua's own."""
        return sum(self.starts)


class WordReader:
    """Reads words with a tokenizer as llmlingua 0.2.2 does.

    Args:
        tokenizer: a transformers tokenizer.
        family: ``bert-base-multilingual-cased`` or ``xlm-roberta-large``, by which llmlingua tells word borders.
        special_tokens: those that the library ignores.
    """

    def __init__(self, tokenizer: Any, family: str, special_tokens: Collection[str]) -> None:
        self._tokenizer = tokenizer
        self._family = family
        self._special_tokens = frozenset(special_tokens)
        self._added = tuple(tokenizer.get_added_vocab())

    def read(self, word: str) -> Reading:
        """Read one word, which holds no white space."""
        from llmlingua.utils import is_begin_of_new_word

        # [SEP], </s> or [NEW3] in the text would be taken for special tokens: shown to the classifier without brackets.
        seen = _MARKUP.sub("", word) if any(name in word for name in self._added) else word
        pieces = tuple(self._tokenizer.tokenize(seen))
        counted = tuple(piece not in self._special_tokens for piece in pieces)
        starts = tuple(
            known and is_begin_of_new_word(piece, self._family, [], {})
            for piece, known in zip(pieces, counted, strict=True)
        )
        return Reading(seen, pieces, counted, starts)

    def read_all(self, words: Iterable[str]) -> dict[str, Reading]:
        """Read each distinct word once."""
        return {word: self.read(word) for word in set(words)}


def pack_words(readings: Sequence[Reading], limit: int = WINDOW_TOKENS) -> list[list[int]]:
    """Pack words into windows of at most ``limit`` pieces, in order; returns the places of the words of each.

    Words longer than a window, inside which the library would cut, and words of which the vocabulary knows nothing
    are in none.
    """
    windows: list[list[int]] = []
    n_tokens = limit
    for at, reading in enumerate(readings):
        if not reading.n_words or reading.n_tokens > limit:
            continue
        if n_tokens + reading.n_tokens > limit:
            windows.append([])
            n_tokens = 0
        windows[-1].append(at)
        n_tokens += reading.n_tokens
    return windows
