"""The yardsticks for generated prose: they see repeats, poverty of words, and wording that gives a text away."""

from __future__ import annotations

import random

import pytest

from graphhandoff.data.prose_measures import load_hand_written_prose, measure_prose, tell_apart

WORDS = [f"{a}{b}{c}" for a in "bdfglm" for b in "aeiou" for c in "nrst"]


def texts_of(words: list[str], seed: int, n: int = 30) -> list[str]:
    rng = random.Random(seed)
    return [". ".join(" ".join(rng.choices(words, k=8)) for _ in range(5)) + "." for _ in range(n)]


def test_a_richer_vocabulary_and_fewer_repeats_show() -> None:
    rich, poor = measure_prose(texts_of(WORDS, 1)), measure_prose(["one two three four. five six."] * 30)
    assert rich.distinct_words > 10 * poor.distinct_words
    assert rich.distinct_pairs > 10 * poor.distinct_pairs
    assert rich.repeated_sentences == 0.0
    assert poor.repeated_sentences == 1.0
    assert poor.mean_words == 6.0


def test_identifiers_do_not_count_as_words() -> None:
    one, other = (measure_prose([f"cancel the order {i} now please"]) for i in ("#W4400917", "#W7700112 #W1234567"))
    assert one.distinct_words == other.distinct_words


def test_texts_of_one_hand_are_not_told_apart_and_those_of_two_are() -> None:
    assert 0.2 < tell_apart(texts_of(WORDS, 1), texts_of(WORDS, 2), 0) < 0.8
    assert tell_apart(texts_of(WORDS[:60], 1), texts_of(WORDS[60:], 2), 0) > 0.99


def test_the_yardstick_is_real_prose() -> None:
    measures = measure_prose(load_hand_written_prose())
    assert measures.n_texts == 64
    assert measures.repeated_sentences < 0.05


def test_no_texts_are_no_measure() -> None:
    with pytest.raises(ValueError, match="no texts to measure"):
        measure_prose([])
