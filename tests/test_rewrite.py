"""A text that a model told anew is only taken if it says the same: values, pairs, equal items, and nothing made up."""

from __future__ import annotations

from itertools import count

import pytest

from graphhandoff.data.problems import Problem
from graphhandoff.data.prose import write_prose
from graphhandoff.data.rewrite import find_fault
from graphhandoff.data.synthesize import SynthesisConfig, synthesize


def find_problem() -> tuple[Problem, str]:
    for index in count():
        problem = synthesize(SynthesisConfig(seed=8), index)
        if [len(step.swaps) for step in problem.steps] == [2]:
            return problem, write_prose(problem, 8).text
    raise AssertionError


@pytest.fixture(scope="module")
def told() -> tuple[Problem, str]:
    return find_problem()


def test_the_same_in_other_words_is_taken(told: tuple[Problem, str]) -> None:
    problem, text = told
    assert find_fault(problem, text, f"Kindly note what follows. {text}") is None


def test_a_lost_value_and_one_made_up_are_named(told: tuple[Problem, str]) -> None:
    problem, text = told
    order = str(problem.steps[0].order_id)
    assert order in str(find_fault(problem, text, text.replace(order, "the order")))
    assert "#W0000001, which the original does not" in str(find_fault(problem, text, f"{text} Not #W0000001."))


def test_new_items_that_changed_places_are_noticed(told: tuple[Problem, str]) -> None:
    problem, text = told
    one, other = (swap.new.item_id for swap in problem.steps[0].swaps)
    swapped = text.replace(one, "ONE").replace(other, one).replace("ONE", other)
    assert "it tells the items of" in str(find_fault(problem, text, swapped))
