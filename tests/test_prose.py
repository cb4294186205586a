"""Synthetic delegations in words: complete, varied, the same for a seed; and the grammar that speaks them."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest

from graphhandoff.compress.identifiers import find_identifiers
from graphhandoff.compress.tokens import count_tokens
from graphhandoff.data.catalogue import load_catalogue
from graphhandoff.data.grammar import GRAMMAR, Grammar, GrammarError, Speaker, load_grammar
from graphhandoff.data.layout import LAYOUTS, Part, arrange
from graphhandoff.data.problems import Problem
from graphhandoff.data.prose import Prose, find_missing_values, write_prose
from graphhandoff.data.synthesize import SynthesisConfig, iter_problems
from graphhandoff.data.telling import Telling
from graphhandoff.data.wording import Wording

N = 300


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    return list(iter_problems(SynthesisConfig(seed=5), 0, N))


@pytest.fixture(scope="module")
def texts(problems: list[Problem]) -> list[Prose]:
    return [write_prose(problem, 1) for problem in problems]


def test_every_value_and_fact_of_the_plan_stands_in_the_prose(problems: list[Problem], texts: list[Prose]) -> None:
    for problem, prose in zip(problems, texts, strict=True):
        assert find_missing_values(problem.calls, [fact.value for fact in problem.facts], prose.text) == []


def test_a_missing_value_is_named(problems: list[Problem]) -> None:
    problem = next(p for p in problems if p.steps and p.steps[0].order_id and p.facts)
    missing = find_missing_values(problem.calls, [problem.facts[0].value], "nothing is said")
    assert problem.steps[0].order_id in missing
    assert problem.facts[0].value in missing


def test_texts_are_as_long_as_hand_written_ones(texts: list[Prose]) -> None:
    words = sorted(len(prose.text.split()) for prose in texts)
    assert 200 <= words[N // 2] <= 420
    assert words[0] >= 60
    assert 400 <= sum(count_tokens(prose.text) for prose in texts) / N <= 600


def test_hardly_a_sentence_of_ten_recurs(texts: list[Prose]) -> None:
    sentences = Counter(
        sentence.strip().lower()
        for prose in texts
        for sentence in set(re.split(r"(?<=[.!?:;])\s+|\n+", prose.text))
        if len(sentence.split()) >= 3
    )
    recurring = sum(count > 1 for count in sentences.values()) / len(sentences)
    assert recurring < 0.1


def test_no_text_opens_like_another(texts: list[Prose]) -> None:
    openings = Counter(" ".join(prose.text.split()[:5]) for prose in texts)
    assert openings.most_common(1)[0][1] <= N // 50


def test_a_seed_gives_the_same_text_and_another_seed_another(problems: list[Problem], texts: list[Prose]) -> None:
    assert write_prose(problems[7], 1) == texts[7]
    again = [write_prose(problem, 2).text for problem in problems[:20]]
    assert all(one != two.text for one, two in zip(again, texts[:20], strict=True))


def test_the_customers_own_text_names_no_item_and_has_the_benchmarks_layout(texts: list[Prose]) -> None:
    for prose in texts:
        assert prose.task_text.startswith("Reason for call: ")
        assert "\nKnown info: " in prose.task_text
        assert not [i for i in find_identifiers(prose.task_text) if re.fullmatch(r"[0-9]{10}", i)]


def test_decoys_and_slips_are_told(problems: list[Problem], texts: list[Prose]) -> None:
    told = [decoy.id in prose.text for problem, prose in zip(problems, texts, strict=True) for decoy in problem.decoys]
    assert sum(told) / len(told) > 0.95
    slips = [(p.misnamed, t.text) for p, t in zip(problems, texts, strict=True) if p.misnamed and p.steps]
    assert sum(misnamed in text for misnamed, text in slips) / len(slips) > 0.9


@pytest.fixture(scope="module")
def tellings() -> list[Telling]:
    catalogue = load_catalogue("retail_pinned_50")
    rng = random.Random(1)
    return [Telling(p, catalogue, Wording(rng), rng) for p in iter_problems(SynthesisConfig(seed=5), 0, 1500)]


def test_no_item_of_a_swap_is_told_as_declined_or_sold_out(tellings: list[Telling]) -> None:
    for telling in tellings:
        swaps = [swap for step in telling.problem.steps for swap in step.swaps]
        for step in telling.problem.steps:
            values = telling.of_alternatives(step)
            beside = " ".join(values.get(name, "") for name in ("alternatives", "alternative", "gone"))
            assert not [item.item_id for s in swaps for item in (s.old, s.new) if item.item_id in beside]


def test_what_stays_is_not_named_like_what_goes(tellings: list[Telling]) -> None:
    seen = 0
    for telling in tellings:
        for step in telling.problem.steps:
            going = {f"the {item.name.lower()}" for item in (*step.items, *(swap.old for swap in step.swaps))}
            kept = telling.of_step(step).get("kept", "") if going else ""
            seen += bool(going & {f"the {item.name.lower()}" for item in step.kept})
            assert not going & set(re.split(r", | and | plus | & ", kept))
    assert seen


def test_an_address_that_is_to_be_replaced_is_not_called_home(tellings: list[Telling]) -> None:
    for telling in tellings:
        address = telling.problem.customer.address
        left = any(step.former_address == address for step in telling.problem.steps)
        assert left or all(step.kind != "modify_user_address" for step in telling.problem.steps)
        assert bool(telling.of_account()["home"]) is not left


def test_an_article_goes_by_the_product() -> None:
    item = load_catalogue("retail_pinned_50").accounts[0].orders[0].items[0]
    bottle = item.model_copy(update={"name": "Water Bottle", "options": {"material": "glass"}})
    boots = item.model_copy(update={"name": "Hiking Boots", "options": {"size": "8"}})
    for seed in range(30):
        wording = Wording(random.Random(seed))
        said = wording.contents([bottle])
        assert bottle.item_id in said or re.match(r"an? ", said)
        assert not re.match(r"an? ", wording.contents([boots]))


def test_every_phrase_of_the_grammar_can_be_said() -> None:
    grammar = load_grammar(GRAMMAR)
    values = {need: f"<{need}>" for phrases in grammar.rules.values() for phrase in phrases for need in phrase.needs}
    values |= dict.fromkeys(re.findall(r"\{(\w+)\}", str(grammar.rules)), "x")
    everything = dict.fromkeys(values, "word") | {"mood": "calm"}
    for rule in grammar.rules:
        speaker = Speaker(grammar, random.Random(0))
        for _ in grammar.rules[rule]:
            said = speaker.say(rule, _Anything(everything))
            assert said.strip()
            assert not re.search(r"[{}\[\]|]|<\w+>", said), f"{rule}: {said}"


class _Anything(dict[str, str]):
    def get(self, key: str, default: object = None) -> str:  # type: ignore[override]
        return "word"

    def __missing__(self, key: str) -> str:
        return "word"


def test_a_phrase_is_used_once_while_others_are_left() -> None:
    speaker = Speaker(Grammar({"a": ["one", "two", "three"]}), random.Random(1))
    assert {speaker.say("a", {}) for _ in range(3)} == {"one", "two", "three"}


def test_a_phrase_without_its_value_is_not_used() -> None:
    grammar = Grammar({"a": ["with {x}", "without[ {x}|, that is]"]})
    assert {Speaker(grammar, random.Random(i)).say("a", {"x": ""}) for i in range(20)} == {"without, that is"}


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ({"a": ["one [two"]}, "rule 'a': a choice is never closed"),
        ({"a": ["one ] two"]}, "stands outside of a choice"),
        ({"a": ["<b>"]}, "rule 'a' names the rule 'b', which does not exist"),
    ],
)
def test_a_malformed_grammar_is_named(rules: dict[str, list[str]], problem: str) -> None:
    with pytest.raises(GrammarError, match=problem):
        Grammar(rules)
    with pytest.raises(GrammarError, match="no phrase of 'a' fits"):
        Speaker(Grammar({"a": ["{x}"]}), random.Random(0)).say("a", {})


@pytest.mark.parametrize("layout", [name for name, _ in LAYOUTS])
def test_no_layout_loses_a_sentence(layout: str) -> None:
    parts = [Part("who", ["A one."]), Part("look", ["B two.", "C three."]), Part("step", ["D four."])] * 3
    parts += [Part("care", ["E five."]), Part("tell", ["F six."]), Part("end", ["G seven."])]
    text = arrange(parts, layout, random.Random(3))  # type: ignore[arg-type]
    for part in parts:
        for sentence in part.sentences:
            assert text.count(sentence) == sum(part.sentences.count(sentence) for part in parts)
