"""Makes the single things that are done in a synthetic problem, each legal by the policy and by what is in stock."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import JsonValue

from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data.catalogue import Account, Catalogue, Order
from graphhandoff.data.problems import Address, Fallback, Item, Kind, Rule, Step, Swap

if TYPE_CHECKING:
    from graphhandoff.data.synthesize import SynthesisConfig

REASONS = ("no longer needed", "ordered by mistake")
_N_RETURNED = (0.45, 0.17, 0.2, 0.18)
_N_EXCHANGED = (0.82, 0.12, 0.04, 0.02)
_RULES: tuple[tuple[Rule, float], ...] = (("options", 0.8), ("cheapest", 0.12), ("dearest", 0.08))
_TRANSFERS = (  # with the statuses that an order must have for it to be true; none if it is about no order
    (
        "The customer insists on a refund of order {order} to a payment method that the policy does not allow.",
        "delivered",
    ),
    ("The customer wants to undo a cancellation, which the agent cannot do.", "cancelled"),
    ("The customer asks to split the payment of order {order} over two methods; the agent cannot do that.", "pending"),
    (
        "The customer wants order {order} changed although it is already {status}, and asks for an exception.",
        "processed delivered cancelled",
    ),
    (
        "The customer demands compensation for order {order}, which is outside of what the agent may grant.",
        "delivered processed",
    ),
    (
        "The customer wants to remove one item from order {order} and does not accept that this is impossible.",
        "pending",
    ),
    ("The customer asks for a product type that order {order} cannot be exchanged for.", "delivered"),
    (
        "The customer reports a parcel of order {order} that never arrived and wants it investigated.",
        "processed delivered",
    ),
    ("The customer wants a price match for order {order}, but the agent cannot help.", "pending processed delivered"),
    ("The customer wants to combine two orders into one shipment, which no tool can do.", ""),
    ("The customer wants two accounts merged into one, which no tool can do.", ""),
    ("The customer wants to complain about the return policy to someone who can change it.", ""),
)


class StepMaker:
    """Makes steps for one account; ``None`` wherever the shop offers nothing legal.

    ``moves`` says that the profile's address is changed too, so that no order can be sent to it "as it is on file".
    """

    def __init__(
        self, catalogue: Catalogue, account: Account, rng: random.Random, odds: SynthesisConfig, moves: bool = False
    ) -> None:
        self.catalogue = catalogue
        self.account = account
        self.rng = rng
        self.odds = odds
        self.moves = moves

    def make(self, kind: Kind, order: Order | None) -> Step | None:
        """Make one step on an order, or on the account where the kind needs no order.

        A transfer may be about ``order``, with which nothing else must be done.
        """
        if kind == "transfer":
            return self._transfer(order)
        if kind == "modify_user_address":
            return self._user_address()
        assert order is not None
        if kind == "cancel":
            return self._cancel(order)
        if kind == "return":
            return self._return(order)
        if kind == "modify_address":
            return self._order_address(order)
        if kind == "modify_payment":
            return self._payment(order)
        return self._swap(kind, order)

    def _cancel(self, order: Order) -> Step:
        one_item = len(order.items) > 1 and self.rng.random() < self.odds.one_item_only
        reason = self.rng.choices(REASONS, (0.65, 0.35))[0]
        return Step(
            kind="cancel",
            call=_call("cancel_pending_order", order_id=order.order_id, reason=reason),
            order_id=order.order_id,
            items=(self.rng.choice(order.items),) if one_item else (),
            kept=order.items,
            payment=order.paid_with,
            amount=order.paid,
            reason=reason,
            fallback="one_item_only" if one_item else None,
        )

    def _return(self, order: Order) -> Step | None:
        items = self._pick(order.items, _N_RETURNED)
        gift_cards = [m for m, balance in self.account.payments.items() if balance is not None]
        allowed = list(dict.fromkeys([m for m in (order.paid_with,) if m in self.account.payments] + gift_cards))
        if not allowed:
            return None
        as_paid = order.paid_with in allowed and self.rng.random() < 0.75
        payment = order.paid_with if as_paid else self.rng.choice(allowed)
        others = [m for m in self.account.payments if m not in allowed]
        elsewhere = bool(others) and self.rng.random() < self.odds.refund_elsewhere
        return Step(
            kind="return",
            call=_call(
                "return_delivered_order_items",
                order_id=order.order_id,
                item_ids=[item.item_id for item in items],
                payment_method_id=payment,
            ),
            order_id=order.order_id,
            items=tuple(items),
            kept=_without(order.items, items),
            payment=payment,
            former_payment=order.paid_with,
            amount=_money(sum(item.price for item in items)),
            fallback="refund_elsewhere" if elsewhere else None,
            first_payment=self.rng.choice(others) if elsewhere else None,
        )

    def _swap(self, kind: Kind, order: Order) -> Step | None:
        # One id twice in an order could not be told apart by the tool that modifies it.
        items = [item for item in order.items if [other.item_id for other in order.items].count(item.item_id) == 1]
        swaps = [swap for item in self._pick(items, _N_EXCHANGED) if (swap := self._new_variant(item)) is not None]
        if not swaps:
            return None
        difference = _money(sum(swap.new.price - swap.old.price for swap in swaps))
        able = [m for m, balance in self.account.payments.items() if balance is None or balance >= difference]
        short = [m for m in self.account.payments if m not in able]
        if not able:
            return None
        too_small = bool(short) and self.rng.random() < self.odds.card_too_small
        sold_out = any(swap.first_choice for swap in swaps)
        fallback: Fallback | None = "card_too_small" if too_small else "sold_out" if sold_out else None
        payment = (
            order.paid_with if order.paid_with in able and self.rng.random() < 0.6 else self._prefer_no_gift_card(able)
        )
        old = [swap.old for swap in swaps]
        return Step(
            kind=kind,
            call=_call(
                "modify_pending_order_items" if kind == "modify_items" else "exchange_delivered_order_items",
                order_id=order.order_id,
                item_ids=[swap.old.item_id for swap in swaps],
                new_item_ids=[swap.new.item_id for swap in swaps],
                payment_method_id=payment,
            ),
            order_id=order.order_id,
            kept=_without(order.items, old),
            swaps=tuple(swaps),
            payment=payment,
            former_payment=order.paid_with,
            amount=difference,
            fallback=fallback,
            first_payment=self.rng.choice(short) if too_small else None,
        )

    def _new_variant(self, item: Item) -> Swap | None:
        available = self.catalogue.variants(item.product_id, True)
        stock = [v for v in available if v.item_id != item.item_id]
        if not stock:
            return None
        rule = self.rng.choices([name for name, _ in _RULES], [weight for _, weight in _RULES])[0]
        best = min(available, key=lambda v: v.price) if rule == "cheapest" else max(available, key=lambda v: v.price)
        if rule != "options" and best.item_id != item.item_id:  # who has the cheapest cannot ask for it
            return Swap(old=item, new=best, rule=rule)
        # Customers change one or two options, so near variants are likelier.
        weights = [3.0 ** -(_n_differing(item, variant) - 1) for variant in stock]
        new = self.rng.choices(stock, weights)[0]
        first_choice = None
        if self.rng.random() < self.odds.sold_out:
            gone = [v for v in self.catalogue.variants(item.product_id, False) if v.item_id != item.item_id]
            first_choice = min(gone, key=lambda v: _n_differing(new, v), default=None)
        return Swap(old=item, new=new, rule="options", first_choice=first_choice)

    def _order_address(self, order: Order) -> Step | None:
        drawn = self.rng.random()
        profile = self.account.customer.address
        others = [other.address for other in self.account.orders if other.address not in (order.address, profile)]
        address, source = self._new_address(), "new"
        if drawn < 0.4 and profile != order.address and not self.moves:
            address, source = profile, "profile"
        elif drawn < 0.6 and others:
            address, source = self.rng.choice(others), "other_order"
        return Step(
            kind="modify_address",
            call=_call("modify_pending_order_address", order_id=order.order_id, **address.model_dump()),
            order_id=order.order_id,
            kept=order.items,
            address=address,
            former_address=order.address,
            address_source=source,  # type: ignore[arg-type]
        )

    def _user_address(self) -> Step:
        former = self.account.customer.address
        others = [order.address for order in self.account.orders if order.address != former]
        from_order = bool(others) and self.rng.random() < 0.5
        address = self.rng.choice(others) if from_order else self._new_address()
        user_id = self.account.customer.user_id
        return Step(
            kind="modify_user_address",
            call=_call("modify_user_address", user_id=user_id, **address.model_dump()),
            address=address,
            former_address=former,
            address_source="other_order" if from_order else "new",
        )

    def _new_address(self) -> Address:
        """Compose an address: the street of one account, the city of another, a number of its own."""
        street = self.rng.choice(self.catalogue.accounts).customer.address
        city = self.rng.choice(self.catalogue.accounts).customer.address
        number = str(self.rng.randrange(100, 1000))
        return city.model_copy(
            update={
                "address1": " ".join([number, *street.address1.split(" ")[1:]]),
                "address2": self.rng.choice([f"Suite {self.rng.randrange(100, 1000)}", street.address2, ""]),
            }
        )

    def _payment(self, order: Order) -> Step | None:
        others = {m: balance for m, balance in self.account.payments.items() if m != order.paid_with}
        able = [method for method, balance in others.items() if balance is None or balance >= order.paid]
        short = [method for method in others if method not in able]
        if not able:
            return None
        too_small = bool(short) and self.rng.random() < self.odds.card_too_small
        payment = self.rng.choice(able)
        return Step(
            kind="modify_payment",
            call=_call("modify_pending_order_payment", order_id=order.order_id, payment_method_id=payment),
            order_id=order.order_id,
            kept=order.items,
            payment=payment,
            former_payment=order.paid_with,
            amount=order.paid,
            fallback="card_too_small" if too_small else None,
            first_payment=self.rng.choice(short) if too_small else None,
        )

    def _transfer(self, order: Order | None) -> Step:
        status = order.status if order is not None else ""
        fitting = [text for text, statuses in _TRANSFERS if not statuses or status in statuses.split()]
        order_id = order.order_id if order is not None else ""
        summary = self.rng.choice(fitting).format(order=order_id, status=status)
        named = order if order_id and order_id in summary else None
        return Step(
            kind="transfer",
            call=_call("transfer_to_human_agents", summary=summary),
            order_id=named.order_id if named else None,
            kept=named.items if named else (),
            reason=summary,
        )

    def _prefer_no_gift_card(self, methods: Sequence[str]) -> str:
        return self.rng.choices(methods, [1.0 if self.account.payments[m] is None else 0.5 for m in methods])[0]

    def _pick(self, items: Sequence[Item], weights: Sequence[float]) -> list[Item]:
        if not items:
            return []
        most = min(len(items), len(weights))
        return self.rng.sample(list(items), self.rng.choices(range(1, most + 1), weights[:most])[0])


def _call(name: str, **arguments: JsonValue) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


def _money(amount: float) -> float:
    return round(amount, 2)


def _n_differing(one: Item, other: Item) -> int:
    return sum(other.options.get(name) != value for name, value in one.options.items())


def _without(items: Sequence[Item], taken: Sequence[Item]) -> tuple[Item, ...]:
    rest = list(items)
    for item in taken:
        rest.remove(item)
    return tuple(rest)
