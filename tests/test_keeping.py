"""What is put back when a classifier drops what a plan needs, and how kept words are joined."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from graphhandoff.compress.fields import extract_fields, must_stay, split_words
from graphhandoff.compress.identifiers import find_identifiers
from graphhandoff.compress.keeping import exceptions, join_lines, join_sentences, keep_with_plan

PROSE = "Do not touch #W1000001 today. Return 7700000009 from #W2000002, yes #W2000002, to paypal_7. Thanks"


def kept_text(keep: list[bool], prose: str = PROSE) -> str:
    return join_sentences(split_words(prose), keep)


def test_every_identifier_of_the_plan_is_put_back_where_the_classifier_liked_it_best() -> None:
    words = split_words(PROSE)
    scores = [0.0] * len(words)
    second = [i for i, word in enumerate(words) if "#W2000002" in word.text][1]
    scores[second] = 0.2
    kept = keep_with_plan(words, [False] * len(words), scores, {"#W2000002": 1, "paypal_7": 1})
    assert [words[i].text for i, keep in enumerate(kept.keep) if keep] == ["#W2000002,", "to", "paypal_7."]
    assert kept.keep[second]
    assert kept.n_restored == 2


def test_what_is_to_be_told_stays_with_the_order_to_tell_it() -> None:
    words = split_words("It costs 54.04 dollars. Once it is done, let her know that the total is 54.04. Bye.")
    kept = keep_with_plan(words, [False] * len(words), [0.0] * len(words), {"54.04": 1}, ["54.04"])
    assert join_sentences(words, kept.keep) == "let her know 54.04."


def test_words_that_pair_kept_items_stay_between_them() -> None:
    words = split_words("Exchange 7700000001 (the blue one) for 7700000002 and give thanks for that")
    kept = keep_with_plan(words, [word.text[:2] == "77" for word in words], [0.0] * len(words), {})
    assert join_sentences(words, kept.keep) == "7700000001 for 7700000002"


def test_an_identifier_that_the_plan_does_not_need_may_go_but_never_loses_its_not() -> None:
    words = split_words(PROSE)
    decoy = [word.text == "#W1000001" for word in words]
    assert kept_text(keep_with_plan(words, decoy, [0.0] * len(words), {}).keep) == "not #W1000001."
    nothing = keep_with_plan(words, [False] * len(words), [0.0] * len(words), {})
    assert not any(nothing.keep)


def test_a_denial_belongs_to_its_own_sentence() -> None:
    words = split_words("Say no more. Cancel #W1000001")
    kept = keep_with_plan(words, [word.text == "#W1000001" for word in words], [0.0] * len(words), {})
    assert join_sentences(words, kept.keep) == "#W1000001"


def test_an_operation_never_loses_its_not() -> None:
    for prose in (
        "Do not under any circumstances cancel #W1000001 for her.",
        "She does not want us to return it.",
        "I never said that you should exchange anything",
    ):
        words = split_words(prose)
        keep = [word.text not in ("not", "never") for word in words]
        assert all(keep_with_plan(words, keep, [0.0] * len(words), []).keep)
    words = split_words("I did not wait, so cancel #W1000001 and do not worry")
    keep = [word.text in ("cancel", "#W1000001") for word in words]
    assert join_sentences(words, keep_with_plan(words, keep, [0.0] * len(words), []).keep) == "cancel #W1000001"


def test_two_equal_items_are_both_kept_in_their_pairs() -> None:
    old, new = ["7700112233", "7700112233"], ["7700445566", "7700445567"]
    for prose in (
        "Exchange 7700112233 for 7700445566 and 7700112233 for 7700445567.",
        "One 7700112233 becomes 7700445566. The other 7700112233 becomes 7700445567.",
    ):
        words = split_words(prose)
        kept = keep_with_plan(words, [False] * len(words), [0.0] * len(words), [*old, *new], lists=[[old, new]])
        assert find_identifiers(join_sentences(words, kept.keep)) == [
            "7700112233",
            "7700445566",
            "7700112233",
            "7700445567",
        ]


def test_items_told_in_passing_do_not_part_the_pairs() -> None:
    told = "She has 7700000002 and the watch 7700000001."
    words = split_words(f"{told} Exchange 7700000001 for 7700000003 and 7700000002 for 7700000004.")
    scores = [1.0 if i < len(split_words(told)) else 0.0 for i in range(len(words))]
    lists = [[["7700000001", "7700000002"], ["7700000003", "7700000004"]]]
    kept = keep_with_plan(words, [False] * len(words), scores, [i for pair in lists[0] for i in pair], lists=lists)
    assert join_sentences(words, kept.keep) == "7700000001 for 7700000003 7700000002 for 7700000004."


def test_what_is_excepted_is_marked_with_the_word_that_excepts_it() -> None:
    words = split_words("Return everything *except* the blue tablet, other than that keep quiet about all of this")
    marked = [word.text for word, mark in zip(words, exceptions(words), strict=True) if mark]
    assert marked == ["*except*", "the", "blue", "tablet,", "other", "than", "that", "keep", "quiet"]


def test_sentences_that_were_apart_stay_apart() -> None:
    words = split_words("It is in #W1000001, as I said. Please return it to paypal_7 now! Done")
    keep = [word.text.strip(",.!") in ("#W1000001", "return", "paypal_7") for word in words]
    assert join_sentences(words, keep) == "#W1000001. return paypal_7!"


def test_a_colon_at_the_end_of_a_line_goes_on_into_the_list_below() -> None:
    lines = [
        split_words(line) for line in ("Return these, in this order:", "7700000009", "", "and be kind", "", "Bye.")
    ]
    keep = [word.text[0] in "R7B" for line in lines for word in line]
    assert join_lines(lines, keep) == "Return:\n7700000009\n\nBye."


def test_a_long_run_of_marks_inside_of_a_word_takes_linear_time() -> None:
    prose = f"Return a{'-' * 50_000}b now, except a{'*' * 50_000}b"
    words = split_words(prose)
    start = time.perf_counter()
    keep_with_plan(words, exceptions(words), [0.0] * len(words), [])
    must_stay(words)
    extract_fields(prose)
    assert time.perf_counter() - start < 2


def test_thousands_of_orders_to_tell_take_linear_time() -> None:
    words = split_words("tell him 5 dollars " * 10_000)
    start = time.perf_counter()
    kept = keep_with_plan(words, [False] * len(words), [0.0] * len(words), [], ["5"])
    assert time.perf_counter() - start < 2
    assert kept_text(kept.keep, "tell him 5 dollars " * 10_000) == "tell 5"


@given(st.text(alphabet="ab #W1234567.,:\n-—not", max_size=200), st.lists(st.booleans(), min_size=200, max_size=200))
def test_nothing_is_invented_but_end_marks(prose: str, marks: list[bool]) -> None:
    lines = [split_words(line) for line in prose.split("\n")]
    words = [word for line in lines for word in line]
    keep = (marks * (1 + len(words) // 200))[: len(words)]
    text = join_lines(lines, keep)
    allowed = [word.text for word in words]
    for piece in split_words(text.replace("\n", " ")):
        assert any(piece.text.rstrip(".!?:") in word for word in allowed)


@given(st.lists(st.sampled_from(["#W1000001", "paypal_7", "not", "keep", "7700000009."]), max_size=12))
def test_needed_identifiers_always_survive(words: list[str]) -> None:
    prose = " ".join(words)
    needed = set(find_identifiers(prose))
    split = split_words(prose)
    kept = keep_with_plan(split, [False] * len(split), [0.0] * len(split), dict.fromkeys(needed, 1))
    assert set(find_identifiers(join_sentences(split, kept.keep))) == needed
