"""What a synthetic problem consists of: a customer, what they want step by step, and the plan that does it.

The records hold what a planner knows who has looked everything up: the items by name and options, what was sold out,
which id is a decoy, what the customer asked for first. :mod:`graphhandoff.data.prose` tells it; nothing is looked up
again.
"""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from graphhandoff.compress.protocol import ToolCall

Kind = Literal[
    "cancel",
    "return",
    "exchange",
    "modify_items",
    "modify_address",
    "modify_payment",
    "modify_user_address",
    "transfer",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

Fallback = Literal["sold_out", "one_item_only", "refund_elsewhere", "card_too_small"]
"""Why the first wish gave way to what is done: the variant is sold out; one item cannot be taken out of a pending
order; a refund cannot go to that method; the gift card does not cover it."""

Rule = Literal["options", "cheapest", "dearest"]
"""How the new item of a swap was found."""

FactKind = Literal[
    "refund", "difference", "total", "tracking", "count", "balance", "price", "cheapest", "dearest", "saving"
]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Address(_Record):
    """A postal address as the tools take it."""

    address1: str
    address2: str
    city: str
    state: str
    country: str
    zip: str


class Customer(_Record):
    """Who calls, and by what they can be found."""

    user_id: str
    first_name: str
    last_name: str
    email: str
    address: Address


class Item(_Record):
    """A variant of a product at its price in US dollars."""

    item_id: str
    product_id: str
    name: str
    price: float
    options: dict[str, str]


class Swap(_Record):
    """An item of an order and what it becomes.

    ``rule`` says how the new one was found; ``first_choice`` is the variant that the customer would rather have had
    and that is sold out.
    """

    old: Item
    new: Item
    rule: Rule
    first_choice: Item | None = None

    @property
    def changed(self) -> dict[str, str]:
        """The options in which the new item differs, with their new values."""
        return {name: value for name, value in self.new.options.items() if self.old.options.get(name) != value}


class Step(_Record):
    """One thing that is done for the customer.

    ``amount`` is in US dollars: what comes back (cancel, return), or what the customer pays more (negative: gets
    back) on an exchange or modification. ``kept`` are the items of the order that stay as they are.
    """

    kind: Kind
    call: ToolCall
    order_id: str | None = None
    items: tuple[Item, ...] = Field(default=(), strict=False)
    kept: tuple[Item, ...] = Field(default=(), strict=False)
    swaps: tuple[Swap, ...] = Field(default=(), strict=False)
    payment: str | None = None
    former_payment: str | None = None
    amount: float | None = None
    reason: str | None = None
    address: Address | None = None
    former_address: Address | None = None
    address_source: Literal["profile", "other_order", "new"] | None = None
    fallback: Fallback | None = None
    first_payment: str | None = None


class Fact(_Record):
    """A string that the customer must be told, what it says, and about which item or order."""

    kind: FactKind
    value: str
    about: str


class Decoy(_Record):
    """An identifier near the case that no write may use, and why it is near."""

    kind: Literal["order", "item", "sold_out", "payment"]
    id: str
    about: str


class Problem(_Record):
    """A synthetic problem with its plan; ``misnamed`` is an order id that the customer gave first and took back."""

    id: str
    customer: Customer
    steps: tuple[Step, ...] = Field(strict=False)
    calls: tuple[ToolCall, ...] = Field(strict=False)
    facts: tuple[Fact, ...] = Field(default=(), strict=False)
    decoys: tuple[Decoy, ...] = Field(default=(), strict=False)
    misnamed: str | None = None
