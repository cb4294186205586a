"""What a value looks like, learned from what tools publish: examples and quoted alternatives in descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphhandoff.compress.protocol import ToolParameter, ToolSpec

_QUOTED = re.compile(r"'([^'\n]{1,60})'")
_EXAMPLE = re.compile(r"such as ((?:'[^'\n]{1,60}'(?:,? or |, )?)+)")
_ALTERNATIVES = re.compile(r"either ((?:'[^'\n]{1,60}'(?:,? or |, )?){2,})")
_HANDLE = r"[a-z]+(?:_[a-z]+)*_[0-9]+"
_ARITHMETIC = r"[0-9(][0-9.() ]{0,30}(?:[-+*/] ?[0-9.() ]{0,30}[0-9.)] ?){0,40}[-+*/] ?[0-9.() ]{0,30}[0-9.)]"
_EDGES = r"(?<![\w#$@.]){}(?![\w@]|\.[0-9])"


class Value(NamedTuple):
    """A value found in a text and where it stands."""

    text: str
    start: int
    end: int


class Shape:
    """How values of one parameter are recognised.

    * quoted alternatives (``either 'a' or 'b'``): one of them, anywhere;
    * an example (``such as '#W0000000'``): digits stand for as many digits, a handle such as ``gift_card_0000000`` for
      any handle, an e-mail for any e-mail, ``2 + 2`` for any arithmetic;
    * anything else: only where the text labels it with the parameter's name.
    """

    def __init__(self, parameter: ToolParameter, foreign_prefixes: frozenset[str]) -> None:
        self.parameter = parameter
        self.label = re.compile(
            rf"\b{re.escape(parameter.name)}\b(?: is| as|:|=)?[ \t]+|\b{re.escape(parameter.name)}=", re.IGNORECASE
        )
        self.alternatives = alternatives_of(parameter)
        examples = examples_of(parameter)
        self.pattern: re.Pattern[str] | None = None
        if self.alternatives:
            options = "|".join(map(re.escape, sorted(self.alternatives, key=len, reverse=True)))
            self.pattern = re.compile(rf"(?<!\w)(?:{options})(?!\w)", re.IGNORECASE)
        elif examples:
            self.pattern = _pattern_like(examples[0])
        self.own_prefixes = prefixes_of(examples)
        self.foreign_prefixes = foreign_prefixes - self.own_prefixes
        self.n_words = {len(example.split("_")) for example in examples if re.fullmatch(_HANDLE, example)}

    def find(self, text: str, start: int, end: int) -> Iterator[Value]:
        """Yield the values of this shape between two places, in reading order."""
        if self.pattern is None:
            return
        for found in self.pattern.finditer(text, start, end):
            if self._belongs(found.group()):
                yield Value(self._spell(found.group()), found.start(), found.end())

    def _belongs(self, text: str) -> bool:
        """A handle whose first words are another parameter's example (``gift_card``) is not this parameter's."""
        if not self.n_words:
            return True
        prefix = text.rpartition("_")[0]
        if prefix in self.own_prefixes:
            return True
        if prefix in self.foreign_prefixes:
            return False
        # A person's handle has as many words as the example; a payment's may have any number but those of a person.
        return (len(text.split("_")) in self.n_words) == (not _names_kinds(self.own_prefixes))

    def _spell(self, text: str) -> str:
        for option in self.alternatives:
            if option.lower() == text.lower():
                return option
        return text


def _names_kinds(prefixes: frozenset[str]) -> bool:
    """Several examples with different first words name kinds (gift_card, credit_card), not a person."""
    return len(prefixes) > 1


def alternatives_of(parameter: ToolParameter) -> tuple[str, ...]:
    """Return the quoted alternatives of a parameter's description."""
    found = _ALTERNATIVES.search(parameter.description)
    return tuple(_QUOTED.findall(found.group(1))) if found else ()


def examples_of(parameter: ToolParameter) -> tuple[str, ...]:
    """Return the example values of a parameter's description."""
    found = _EXAMPLE.search(parameter.description)
    return tuple(_QUOTED.findall(found.group(1))) if found else ()


def prefixes_of(examples: Sequence[str]) -> frozenset[str]:
    """Return the words before the digits of handles: ``gift_card`` of ``gift_card_0000000``."""
    return frozenset(example.rpartition("_")[0] for example in examples if re.fullmatch(_HANDLE, example))


def _pattern_like(example: str) -> re.Pattern[str] | None:
    if "@" in example:
        return re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
    if re.fullmatch(_HANDLE, example):
        return re.compile(_EDGES.format(_HANDLE))
    if re.fullmatch(_ARITHMETIC, example):
        return re.compile(_EDGES.format(_ARITHMETIC))
    if any(character.isdigit() for character in example) and " " not in example:
        body = re.sub(r"\d+", lambda digits: rf"[0-9]{{{len(digits.group())}}}", re.escape(example))
        return re.compile(_EDGES.format(body))
    return None


def build_shapes(tools: Sequence[ToolSpec]) -> dict[tuple[str, str], Shape]:
    """Build the shape of every parameter of every tool."""
    kinds = frozenset[str]().union(
        *(
            prefixes
            for tool in tools
            for parameter in tool.parameters
            if _names_kinds(prefixes := prefixes_of(examples_of(parameter)))
        )
    )
    return {(tool.name, parameter.name): Shape(parameter, kinds) for tool in tools for parameter in tool.parameters}
