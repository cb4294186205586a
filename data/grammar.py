"""A small phrase grammar: rules of alternative phrases with slots for values, expanded with a random generator.

``{slot}`` is a value, ``<rule>`` another rule, ``[a|b|]`` a choice. A phrase is used only where every slot that it
needs has a value, and no phrase is used twice in one text while another is left.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

import yaml

_TOKEN = re.compile(r"\{(?P<slot>\w+)\}|<(?P<rule>\w+)>|(?P<mark>[\[\]|])|(?P<text>[^{}<>\[\]|]+|[{}<>])")


GRAMMAR = "prose_grammar.yaml"
"""The phrases of delegations and task texts."""


class GrammarError(ValueError):
    """A grammar is malformed, or no phrase of a rule fits the values at hand."""


class _Text(NamedTuple):
    text: str


class _Slot(NamedTuple):
    name: str


class _Rule(NamedTuple):
    name: str


class _Choice(NamedTuple):
    options: tuple[_Phrase, ...]


class _Phrase(NamedTuple):
    parts: tuple[_Text | _Slot | _Rule | _Choice, ...]
    needs: frozenset[str]


class Grammar:
    """Phrases by rule.

    Args:
        rules: alternatives of each rule, as written.

    Raises:
        GrammarError: unbalanced brackets, or a rule that does not exist.
    """

    def __init__(self, rules: Mapping[str, Sequence[str]]) -> None:
        self.rules = {name: tuple(_parse(name, phrase) for phrase in phrases) for name, phrases in rules.items()}
        for name, phrases in self.rules.items():
            for unknown in {rule for phrase in phrases for rule in _rules_of(phrase)} - set(self.rules):
                raise GrammarError(f"rule {name!r} names the rule {unknown!r}, which does not exist; add or correct it")

    def has(self, rule: str) -> bool:
        """Tell whether there is such a rule."""
        return rule in self.rules


class Speaker:
    """Speaks one text: remembers which phrases were used.

    Args:
        grammar: the phrases.
        rng: every choice is drawn from it.
        terse: prefer a rule's ``_terse`` phrases where it has some.
    """

    def __init__(self, grammar: Grammar, rng: random.Random, terse: bool = False) -> None:
        self.grammar = grammar
        self.rng = rng
        self.terse = terse
        self._used: set[tuple[str, int]] = set()

    def say(self, rule: str, values: Mapping[str, str]) -> str:
        """Expand a rule.

        Args:
            rule: its name.
            values: text for slots; a slot that is absent or empty has no value.

        Raises:
            GrammarError: no phrase of the rule can do with these values.
        """
        if self.terse and self.grammar.has(f"{rule}_terse"):
            rule = f"{rule}_terse"
        fitting = [
            i for i, phrase in enumerate(self.grammar.rules[rule]) if all(values.get(need) for need in phrase.needs)
        ]
        if not fitting:
            raise GrammarError(f"no phrase of {rule!r} fits; it was given {', '.join(sorted(values)) or 'no values'}")
        fresh = [i for i in fitting if (rule, i) not in self._used] or fitting
        chosen = self.rng.choice(fresh)
        self._used.add((rule, chosen))
        return self._expand(self.grammar.rules[rule][chosen], values)

    def _expand(self, phrase: _Phrase, values: Mapping[str, str]) -> str:
        said: list[str] = []
        for part in phrase.parts:
            if isinstance(part, _Text):
                said.append(part.text)
            elif isinstance(part, _Slot):
                said.append(values[part.name])
            elif isinstance(part, _Rule):
                said.append(self.say(part.name, values))
            else:
                options = [option for option in part.options if all(values.get(need) for need in option.needs)]
                if options:
                    said.append(self._expand(self.rng.choice(options), values))
        return "".join(said)


@lru_cache(maxsize=2)
def load_grammar(name: str) -> Grammar:
    """Load a grammar that ships with the package, by file name."""
    return Grammar(yaml.safe_load(files("graphhandoff.data").joinpath(name).read_text(encoding="utf-8")))


def _parse(rule: str, phrase: str) -> _Phrase:
    stack: list[list[list[_Text | _Slot | _Rule | _Choice]]] = [[[]]]
    for token in _TOKEN.finditer(phrase):
        mark = token["mark"]
        if mark == "[":
            stack.append([[]])
        elif mark == "|" and len(stack) > 1:
            stack[-1].append([])
        elif mark == "]" and len(stack) > 1:
            options = stack.pop()
            stack[-1][-1].append(_Choice(tuple(_phrase(parts) for parts in options)))
        elif mark:
            raise GrammarError(
                f"rule {rule!r}: {mark!r} stands outside of a choice in {phrase!r}; balance the brackets"
            )
        elif token["slot"]:
            stack[-1][-1].append(_Slot(token["slot"]))
        elif token["rule"]:
            stack[-1][-1].append(_Rule(token["rule"]))
        else:
            stack[-1][-1].append(_Text(token["text"]))
    if len(stack) > 1:
        raise GrammarError(f"rule {rule!r}: a choice is never closed in {phrase!r}; balance the brackets")
    return _phrase(stack[0][0])


def _phrase(parts: Sequence[_Text | _Slot | _Rule | _Choice]) -> _Phrase:
    return _Phrase(tuple(parts), frozenset(part.name for part in parts if isinstance(part, _Slot)))


def _rules_of(phrase: _Phrase) -> set[str]:
    names: set[str] = set()
    for part in phrase.parts:
        if isinstance(part, _Rule):
            names.add(part.name)
        elif isinstance(part, _Choice):
            for option in part.options:
                names |= _rules_of(option)
    return names
