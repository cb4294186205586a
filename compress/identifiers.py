"""Strings that must cross a handoff byte for byte: order, item, user and payment ids, e-mails, ZIPs, amounts.

The patterns are about shape, not about one shop: a reader of another domain gets the same protection for
anything that looks like a reference (``#W4400917``, ``credit_card_331883``, ``7700112233``, ``$1,041.50``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# ASCII boundaries on purpose: `\b` would glue an id to a Chinese or accented letter that touches it.
_LEFT = r"(?<![A-Za-z0-9_#$])"
_RIGHT = r"(?![A-Za-z0-9_])"

# Every repeat is bounded, so that a hostile run of letters costs linear time.
IDENTIFIER_PATTERN = "|".join(
    (
        rf"{_LEFT}[A-Za-z0-9_][A-Za-z0-9_.+-]{{0,63}}@[A-Za-z0-9-]{{1,63}}(?:\.[A-Za-z0-9-]{{1,63}}){{1,4}}",
        rf"(?<![A-Za-z0-9_$])#[A-Za-z]{{0,8}}-?[0-9][A-Za-z0-9_]{{0,63}}{_RIGHT}",  # #W4400917
        rf"{_LEFT}[A-Za-z][A-Za-z0-9]{{0,31}}(?:_[A-Za-z0-9]{{1,31}}){{0,5}}_[0-9]{{1,31}}{_RIGHT}",  # jo_lee_12
        r"(?<![A-Za-z0-9_$])\$?[0-9]{1,3}(?:,[0-9]{3}){1,6}(?:\.[0-9]{1,9})?(?![0-9])",  # $1,041.50
        r"(?<![A-Za-z0-9_$])\$[0-9]{1,15}(?:\.[0-9]{1,9})?(?![0-9])",  # $54.04
        rf"{_LEFT}(?<![0-9][.,])[0-9]{{1,15}}\.[0-9]{{2}}(?![.,]?[0-9]){_RIGHT}",  # 918.43
        rf"{_LEFT}(?=(?:[A-Za-z-]{{0,8}}[0-9]){{5}})[A-Za-z0-9]{{1,64}}(?:-[A-Za-z0-9]{{1,64}}){{0,6}}{_RIGHT}",
    )
)
"""What an identifier looks like, as a regular expression without groups that capture."""

_PATTERN = re.compile(IDENTIFIER_PATTERN)


def find_identifiers(text: str) -> list[str]:
    """List the identifiers of ``text`` in reading order, repeats included."""
    return _PATTERN.findall(text)


def find_readable_identifiers(text: str) -> set[str]:
    """Return the identifiers that can be read from ``text``: an amount also without its ``$`` and its commas."""
    found = set(find_identifiers(text))
    amounts = {identifier.removeprefix("$") for identifier in found if identifier[0] in "$0123456789"}
    return found | amounts | {amount.replace(",", "") for amount in amounts}


def find_lost_identifiers(needed: Iterable[str], text: str) -> tuple[str, ...]:
    """Return those of ``needed`` that do not stand whole in ``text``, each once, in the order needed."""
    present = find_readable_identifiers(text)
    return tuple(dict.fromkeys(item for item in needed if item not in present))


_POLARITY = frozenset(
    "not no never none nothing neither nor without except excluding exception but unless only instead before after"
    " first last if otherwise then both either don't doesn't didn't won't can't cannot isn't aren't mustn't"
    " shouldn't wouldn't couldn't wasn't weren't".split()
)
_EXCEPTION = frozenset("except excluding without but not unless only instead never don't".split())
_AFTER_EXCEPTION = 3

_LEFT_EDGE = re.compile(r"[^\w#$]+")
_RIGHT_EDGE = re.compile(r"\W+")


def strip_edges(word: str, left: re.Pattern[str], right: re.Pattern[str]) -> str:
    """Take off a word what one pattern matches at its start and another, of single characters, at its end.

    In linear time, which a pattern that ends in ``$`` does not take on a long run of marks inside of a word.
    """
    start = left.match(word)
    word = word[start.end() :] if start else word
    end = right.match(word[::-1])
    return word[: -end.end()] if end else word


def protected_words(words: Sequence[str]) -> list[bool]:
    """Tell which words may never be dropped: those that hold an identifier, and those that turn a meaning round.

    A word of exception (*except*, *not*, *only* …) also protects the three words after it: what it excepts.
    """
    keep = [False] * len(words)
    for i, word in enumerate(words):
        bare = strip_edges(word, _LEFT_EDGE, _RIGHT_EDGE).lower().replace("’", "'")
        if bare in _POLARITY or _PATTERN.search(word):
            keep[i] = True
        if bare in _EXCEPTION:
            for j in range(i + 1, min(i + 1 + _AFTER_EXCEPTION, len(words))):
                keep[j] = True
    return keep
