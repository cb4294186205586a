"""Training pairs by a rule that a tiny classifier learns in seconds: keep words with digits, and the verb."""

from __future__ import annotations

import random

from graphhandoff.train.keep_pairs import Pair

FILLER = "the customer talks about weather and a garden hose then asks what comes back so please be very nice".split()
VERBS = ("exchange", "return", "cancel", "modify")


def label(words: tuple[str, ...]) -> tuple[bool, ...]:
    return tuple(word in VERBS or any(character.isdigit() for character in word) for word in words)


def make_pairs(n: int, seed: int, n_words: int = 16) -> list[Pair]:
    draw = random.Random(seed)
    pairs = []
    for _ in range(n):
        words = tuple(_draw_word(draw) for _ in range(n_words))
        pairs.append(Pair(words, label(words)))
    return pairs


def _draw_word(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.1:
        return f"#W{draw.randint(1_000_000, 9_999_999)}" + draw.choice(("", ",", "."))
    if kind < 0.2:
        return str(draw.randint(7_700_000_000, 7_799_999_999)) + draw.choice(("", ",", "."))
    return draw.choice(VERBS) if kind < 0.35 else draw.choice(FILLER) + draw.choice(("", "", ","))
