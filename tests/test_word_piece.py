"""The tokenizer of small encoders: identifiers stay whole words in pieces, and nothing is lost or joined."""

from __future__ import annotations

import json
import re
import string
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphhandoff.compress.identifiers import find_identifiers
from graphhandoff.train.word_piece import LEAST_VOCABULARY, SPECIAL_TOKENS, train_word_piece

WORDS = (
    "Exchange 7700112233 in order #W4400917 for 7700445566, and refund to credit_card_331883 or gift_card_12345. "
    "Write to mei.kovacs8232@example.com about the garden hose, the exchange and the refund of $1,041.50 by 2024-05-17."
).split() * 3


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_word_piece(WORDS, 600)


def test_digits_come_in_pieces_of_at_most_two(tokenizer: Any) -> None:
    assert tokenizer.tokenize("7700112233") == ["77", "##00", "##11", "##22", "##33"]
    assert tokenizer.tokenize("#W4400917") == ["#", "##W", "##44", "##00", "##91", "##7"]


def test_no_piece_runs_across_letters_digits_and_marks(tokenizer: Any) -> None:
    for piece in set(tokenizer.get_vocab()) - set(SPECIAL_TOKENS):
        bare = piece.removeprefix("##") or "#"
        assert re.fullmatch(r"[^\W\d_]+|\d{1,2}|[\W_]", bare), piece


def test_letters_are_learnt_at_the_start_and_behind_a_mark(tokenizer: Any) -> None:
    assert {"refund", "garden", "##card", "##com"} <= set(tokenizer.get_vocab())


def test_every_printable_character_is_known_at_the_start_and_inside_of_words(tokenizer: Any) -> None:
    vocabulary = tokenizer.get_vocab()
    for character in string.digits + string.ascii_letters + string.punctuation:
        assert character in vocabulary
        assert f"##{character}" in vocabulary
    assert tokenizer.unk_token not in tokenizer.tokenize(f"{string.printable} x{string.ascii_letters}9_")


def test_identifiers_come_back_byte_for_byte_from_their_pieces(tokenizer: Any) -> None:
    text = " ".join(WORDS)
    assert find_identifiers(tokenizer.convert_tokens_to_string(tokenizer.tokenize(text))) == find_identifiers(text)


@given(st.text(alphabet=" #$_@.,-+'aBz91é", max_size=40))
def test_pieces_put_together_and_taken_apart_again_are_the_same(text: str) -> None:
    tokenizer = _cached()
    pieces = tokenizer.tokenize(text)
    again = tokenizer.convert_tokens_to_string(pieces)
    assert again.replace(" ", "") == text.replace(" ", "")
    assert tokenizer.tokenize(again) == pieces  # llmlingua does this to every text


def _cached(made: dict[str, Any] = {}) -> Any:  # noqa: B006
    if not made:
        made["é"] = train_word_piece([*WORDS, "é"], 600)
    return made["é"]


def test_case_and_accents_are_kept_and_unknown_characters_are_unknown() -> None:
    tokenizer = _cached()
    assert tokenizer.convert_tokens_to_string(tokenizer.tokenize("Réfund THE refund")) == "Réfund THE refund"
    assert tokenizer.tokenize("日本") == [tokenizer.unk_token]


def test_long_words_are_no_unknown(tokenizer: Any) -> None:
    assert tokenizer.unk_token not in tokenizer.tokenize("a" * 1000)


def test_the_vocabulary_is_the_same_in_every_process(tokenizer: Any) -> None:
    code = (
        "import json; from graphhandoff.train.word_piece import train_word_piece; "
        "from tests.test_word_piece import WORDS; "
        "print(json.dumps(train_word_piece(WORDS[::-1], 600).get_vocab(), sort_keys=True))"
    )
    root = Path(__file__).parents[1]
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root,
        env={"PYTHONPATH": f"{root}:{root / '.typing'}", "PYTHONHASHSEED": "7"},
    ).stdout  # fmt: skip
    assert json.loads(shown) == tokenizer.get_vocab()


def test_a_vocabulary_that_is_too_small_says_how_many_pieces_are_needed() -> None:
    with pytest.raises(ValueError, match=rf"vocab_size 390 is too small .* {LEAST_VOCABULARY} or more"):
        train_word_piece(WORDS, 390)
    assert len(train_word_piece(WORDS, LEAST_VOCABULARY)) == LEAST_VOCABULARY
