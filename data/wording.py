"""How single things are put into words: items, pairs, lists of ids, addresses, amounts, and who is spoken of."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from graphhandoff.data.problems import Address, Customer, Item, Swap

_PAIR_FORMS = (
    "{old} -> {new}",
    "{old} for {new}",
    "{old} to {new}",
    "{old} becomes {new}",
    "{old} by {new}",
    "{old} into {new}",
)


class Wording:
    """One author's habits: which forms they like is drawn once, so that a text is of one hand.

    Args:
        rng: draws the habits, and what varies within them.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.prices = rng.random() < 0.7
        self.item_form = rng.choice(("id_first", "name_first", "apposition"))
        self.pair_form = rng.choice(_PAIR_FORMS)
        self.pair_descriptions = rng.random() < 0.55
        self.address_form = rng.choice(("labels", "commas", "commas", "semicolons"))
        self.joint = rng.choice((" and ", " and ", " plus ", " & "))

    def item(self, item: Item, *, with_id: bool = True) -> str:
        """Describe an item; with its id in this author's place for it."""
        description = self.description(item)
        if not with_id:
            return f"the {description}"
        if self.item_form == "id_first":
            return f"{item.item_id} ({description})"
        if self.item_form == "name_first":
            return f"the {description} ({item.item_id})"
        return f"the {description}, {item.item_id}"

    def description(self, item: Item, least: int = 0) -> str:
        """Describe an item without its id: ``least`` or more of its options, its name, perhaps its price."""
        options = list(item.options.items())
        chosen = self.rng.sample(options, min(len(options), max(least, self.rng.choice((0, 1, 2, 2, 3)))))
        name = item.name if self.rng.random() < 0.5 else item.name.lower()
        spoken = [spoken_option(key, value) for key, value in chosen]
        price = f"${item.price:.2f}" if self.prices and self.rng.random() < 0.5 else ""
        shape = self.rng.random()
        if spoken and shape < 0.5:
            text = f"{', '.join(spoken)} {name}"
            return f"{text} at {price}" if price else text
        if spoken:
            return f"{name}, {', '.join([*spoken, *([price] if price else [])])}"
        return f"{name} at {price}" if price else name

    def contents(self, items: Sequence[Item]) -> str:
        """List what is in an order: all of it, or the first few and how many more."""
        shown = list(items)[: self.rng.choice((2, 3, 5, 5))]
        with_ids = self.rng.random() < 0.35
        more = len(items) - len(shown)
        said = [self.item(item) if with_ids else _with_article(self.description(item), item.name) for item in shown]
        return self.series([*said, *([f"{more} more"] if more else [])])

    def names(self, items: Sequence[Item]) -> str:
        """Name the products, as one would in passing: *the laptop and the mouse*."""
        return self.series([f"the {item.name.lower()}" for item in items])

    def ids(self, items: Sequence[Item]) -> str:
        """List item ids in order, here and there with what they are."""
        if len(items) > 1 and self.rng.random() < 0.25:
            return ", ".join(item.item_id for item in items)
        described = self.rng.random() < 0.6
        return self.series([f"{i.item_id} ({self.description(i)})" if described else i.item_id for i in items])

    def pairs(self, swaps: Sequence[Swap]) -> str:
        """Tell which item becomes which, in order."""
        said = []
        for swap in swaps:
            old, new = swap.old.item_id, swap.new.item_id
            if self.pair_descriptions:
                old = f"{old} ({self.description(swap.old)})" if self.rng.random() < 0.7 else old
                new = f"{new} ({self.description(swap.new)})" if self.rng.random() < 0.8 else new
            said.append(self.pair_form.format(old=old, new=new))
        return self.rng.choice(("; ", ", ", f"{self.joint}")).join(said) if len(said) < 3 else "; ".join(said)

    def lists(self, swaps: Sequence[Swap]) -> str:
        """Give old and new ids as the tool takes them: two lists of one length."""
        old, new = [swap.old.item_id for swap in swaps], [swap.new.item_id for swap in swaps]
        if self.rng.random() < 0.5:
            return f"item_ids {self.series(old)}, new_item_ids {self.series(new)}"
        return f"item_ids [{', '.join(old)}], new_item_ids [{', '.join(new)}]"

    def fields(self, address: Address) -> str:
        """Write an address with all its fields, as spelt in the call."""
        line2 = address.address2 or self.rng.choice(("(address2 left blank)", "address2 empty"))
        parts = [address.address1, line2, address.city, address.state, address.country, address.zip]
        if self.address_form == "labels":
            labels = ("address1", "address2", "city", "state", "country", "zip")
            values = [address.address1, address.address2 or "left blank", *parts[2:]]
            return ", ".join(f"{label} {value}" for label, value in zip(labels, values, strict=True))
        return ("; " if self.address_form == "semicolons" else ", ").join(parts)

    def short(self, address: Address) -> str:
        """Write an address as one mentions it."""
        return self.rng.choice(
            (
                f"{address.address1} in {address.city}",
                f"{address.address1}, {address.city}",
                f"{address.city}, {address.state}",
            )
        )

    def series(self, parts: Sequence[str], joint: str | None = None) -> str:
        """Join parts as a sentence does: a, b and c."""
        if len(parts) < 2:
            return "".join(parts)
        return f"{', '.join(parts[:-1])}{joint or self.joint}{parts[-1]}"


_SOUNDS_LIKE_A_VOWEL = re.compile(r"[aeioAEIO](?![A-Z]{2})|u(?!n)|8|11\b|18\b|[AEFHILMNORSX](?:[A-Z0-9]|\b)")
_WOMEN = frozenset("Amelia Anya Ava Emma Evelyn Fatima Harper Isabella Mei Mia Olivia Sofia Sophia Yara".split())


def pronouns(customer: Customer) -> dict[str, str]:
    """Give a customer one set of pronouns, the same in every text about them."""
    words = ("she", "her", "her") if customer.first_name in _WOMEN else ("he", "him", "his")
    return {"he": words[0], "him": words[1], "his": words[2], "He": words[0].title(), "His": words[2].title()}


def spoken_option(name: str, value: str) -> str:
    """Say an option's value so that it makes sense without its name: *size 12*, *no backlight*, *waterproof*."""
    if value in ("yes", "no", "none"):
        return name if value == "yes" else f"no {name}"
    bare = value in ("high", "low", "medium", "large", "small", "fixed", "standard") or not any(
        c.isalpha() for c in value
    )
    return f"{name} {value}" if bare else value


def _with_article(description: str, name: str) -> str:
    if name.endswith("s"):
        return description  # headphones, boots: no article
    return f"{'an' if _SOUNDS_LIKE_A_VOWEL.match(description) else 'a'} {description}"
