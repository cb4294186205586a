"""Training pairs made from delegations: the same for any number of workers, nearer to real prose, nothing unsaid."""

from __future__ import annotations

import random

import pytest

from graphhandoff.data.delegations import load_reference_delegations
from graphhandoff.data.retail import load_split, load_tasks
from graphhandoff.train.keep_pairs import Pair, PairSets
from graphhandoff.train.pair_sources import add_noise, iter_asides, load_pairs, make_synthetic_pairs
from graphhandoff.train.token_classifier_config import PairDataConfig

DATA = PairDataConfig(seed=5, n_examples=60, hand_written_repeats=2, n_workers=1)


@pytest.fixture(scope="module")
def pairs() -> PairSets:
    return load_pairs(DATA)


def test_hand_written_and_synthetic_pairs_are_learnt_from_and_the_validation_ones_never(pairs: PairSets) -> None:
    assert len(pairs.validation) == len(load_reference_delegations("validation")) == 30
    assert not set(pairs.validation) & set(pairs.train)
    n_synthetic = len(pairs.train) - 2 * len(load_reference_delegations("training"))
    assert 20 < n_synthetic < 60
    assert pairs.notices == (
        f"{60 - n_synthetic} of 60 synthetic delegations are left out: the literal reader does not get the plan from "
        "their words to keep",
    )


def test_no_customer_of_a_pinned_task_is_learnt_from(pairs: PairSets) -> None:
    pinned = set(load_split(DATA.split).task_ids)
    measured = {user for task in load_tasks() if task.id in pinned for user in task.user_ids}
    words = {word.strip(".,;:()") for pair in pairs.train for word in pair.words}
    assert not measured & words


def test_two_workers_make_what_one_makes() -> None:
    data = DATA.model_copy(update={"n_examples": 210})
    assert list(make_synthetic_pairs(data.model_copy(update={"n_workers": 2}))) == list(make_synthetic_pairs(data))


def test_a_few_words_are_kept_and_all_have_a_label(pairs: PairSets) -> None:
    for pair in (*pairs.train, *pairs.validation):
        assert len(pair.words) == len(pair.keep)
    share = sum(sum(pair.keep) for pair in pairs.train) / sum(len(pair.keep) for pair in pairs.train)
    assert 0.02 < share < 0.2


def test_asides_are_sentences_that_no_graph_needs(pairs: PairSets) -> None:
    pair = Pair(("Cancel", "#W1.", "She", "likes", "old", "lamps.", "Well."), (True, True, *[False] * 5))
    assert list(iter_asides([pair])) == [("She", "likes", "old", "lamps.")]


def test_noise_changes_no_word_that_is_kept_nor_its_order() -> None:
    pair = Pair(("Please", "cancel", "#W1", "today.", "Thanks", "a", "lot."), (False, True, True, *[False] * 4))
    asides = [("She", "likes", "old", "lamps.")]
    noisy = [add_noise(pair, asides, 2.0, 0.5, random.Random(seed)) for seed in range(50)]
    for other in noisy:
        assert [word for word, keep in zip(other.words, other.keep, strict=True) if keep] == ["cancel", "#W1"]
    assert any(len(other.words) > len(pair.words) for other in noisy)
    assert any("Please" not in other.words for other in noisy)
    assert add_noise(pair, asides, 0.0, 0.0, random.Random(0)) == pair
    assert add_noise(pair, [], 2.0, 0.5, random.Random(0)) == pair
