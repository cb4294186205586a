"""Puts the look-ups around what is done, and finds what else belongs to the case: facts to tell, decoys, slips."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data.catalogue import Account, Catalogue, Order
from graphhandoff.data.problems import Decoy, Fact, Problem, Step

# How often a plan that looks things up holds each kind of look-up; read off the tasks that are not pinned.
_BY_EMAIL = 0.18
_PROFILE = 0.82
_ORDER_TOUCHED = 0.95
_SEARCHES = 0.75
_OTHER_ORDER = 0.75
_PRODUCT_OF_SWAP = 0.9
_OTHER_PRODUCT = 0.25
_RECKONS = 0.2
_GROUPED = 0.7
_CHARGED_AT_ONCE = frozenset({"cancel", "modify_items", "modify_payment"})
"""What changes the balance of a gift card while it is done; returns and exchanges do when the goods are back."""


def finish_plan(
    problem_id: str,
    account: Account,
    steps: Sequence[Step],
    catalogue: Catalogue,
    rng: random.Random,
    *,
    writes_only: bool,
    n_facts: int,
    mean_decoys: float,
    misnamed: bool,
) -> Problem:
    """Make the problem around its steps; the plan's calls are the look-ups and the steps' calls, in order.

    Args:
        problem_id: becomes the example's id.
        account, catalogue: whose steps these are, and the shop.
        steps: in the order in which they are done; none for a problem that only asks something.
        rng: all that is drawn is drawn from it.
        writes_only: the plan lists no look-ups, as if they were done before.
        n_facts: how many facts to tell; fewer if the case does not hold so many.
        mean_decoys: of the number of identifiers to warn of.
        misnamed: the customer gave another order id first.
    """
    facts, expression, asked_orders, asked_products = _facts(account, steps, catalogue, rng, n_facts)
    touched = list(dict.fromkeys(step.order_id for step in steps if step.order_id is not None))
    writes = [step.call for step in steps]
    calls: list[ToolCall] = writes
    if not writes_only:
        calls = _with_look_ups(account, steps, [*touched, *asked_orders], asked_products, expression, rng)
    return Problem(
        id=problem_id,
        customer=account.customer,
        steps=tuple(steps),
        calls=tuple(calls),
        facts=tuple(facts),
        decoys=tuple(_decoys(account, steps, {fact.about for fact in facts}, rng, mean_decoys)),
        misnamed=_slip(touched[0], account, rng) if misnamed and touched else None,
    )


def _with_look_ups(
    account: Account,
    steps: Sequence[Step],
    orders: Sequence[str],
    asked_products: Sequence[str],
    expression: str | None,
    rng: random.Random,
) -> list[ToolCall]:
    customer = account.customer
    if rng.random() < _BY_EMAIL:
        calls = [ToolCall(name="find_user_id_by_email", arguments={"email": customer.email})]
    else:
        name = {"first_name": customer.first_name, "last_name": customer.last_name, "zip": customer.address.zip}
        calls = [ToolCall(name="find_user_id_by_name_zip", arguments=dict(name))]
    if rng.random() < _PROFILE:
        calls.append(ToolCall(name="get_user_details", arguments={"user_id": customer.user_id}))
    looked_at = [order for order in dict.fromkeys(orders) if rng.random() < _ORDER_TOUCHED]
    searched = rng.random() < _SEARCHES  # the customer gave no number, so the planner went through the account
    if searched:
        others = [order.order_id for order in account.orders if order.order_id not in orders]
        looked_at.extend(order for order in others if rng.random() < _OTHER_ORDER)
        rng.shuffle(looked_at)
    products = list(asked_products)
    for step in steps:
        for swap in step.swaps:
            if rng.random() < _PRODUCT_OF_SWAP:
                products.append(swap.old.product_id)
        if step.kind in ("return", "cancel") and rng.random() < _OTHER_PRODUCT and step.items:
            products.append(step.items[0].product_id)
    products = list(dict.fromkeys(products))
    reckoning = [ToolCall(name="calculate", arguments={"expression": expression})] if expression else []
    if rng.random() < _GROUPED:
        look_ups = [_order_look_up(o) for o in looked_at] + [_product_look_up(p) for p in products]
        return [*calls, *look_ups, *reckoning, *(step.call for step in steps)]
    for step in steps:
        if step.order_id in looked_at:
            looked_at.remove(step.order_id)
            calls.append(_order_look_up(step.order_id))
        for product in dict.fromkeys(swap.old.product_id for swap in step.swaps):
            if product in products:
                products.remove(product)
                calls.append(_product_look_up(product))
        calls.append(step.call)
    at = len(calls) if rng.random() < 0.3 else min(2, len(calls))
    rest = [_order_look_up(o) for o in looked_at] + [_product_look_up(p) for p in products]
    return [*calls[:at], *rest, *calls[at:], *reckoning]


def _order_look_up(order_id: str) -> ToolCall:
    return ToolCall(name="get_order_details", arguments={"order_id": order_id})


def _product_look_up(product_id: str) -> ToolCall:
    return ToolCall(name="get_product_details", arguments={"product_id": product_id})


def _facts(
    account: Account, steps: Sequence[Step], catalogue: Catalogue, rng: random.Random, n_facts: int
) -> tuple[list[Fact], str | None, list[str], list[str]]:
    """Return facts, the sum that one of them comes from (or none), and the orders and products they are read from."""
    found = [*_facts_of_steps(steps), *_facts_to_ask(account, steps, catalogue, rng)]
    rng.shuffle(found)
    facts: list[Fact] = []
    expression = None
    orders: list[str] = []
    products: list[str] = []
    for fact, order, product, terms in found:
        if len(facts) >= n_facts:
            break
        if any(fact.value == other.value or fact.kind == other.kind for other in facts):
            continue
        facts.append(fact)
        orders.extend([order] if order else [])
        products.extend([product] if product else [])
        if terms and expression is None:
            expression = terms
    if expression is None and steps and rng.random() < _RECKONS:
        expression = next((terms for _, _, _, terms in found if terms), None)
    return facts, expression, orders, products


_Found = tuple[Fact, str | None, str | None, str | None]


def _facts_of_steps(steps: Sequence[Step]) -> Iterator[_Found]:
    for step in steps:
        if step.amount is None or step.amount == 0:
            continue
        if step.kind == "return":
            terms = " + ".join(_plain(item.price) for item in step.items) if len(step.items) > 1 else None
            yield Fact(kind="refund", value=_plain(step.amount), about=str(step.order_id)), step.order_id, None, terms
        elif step.kind == "cancel":
            yield Fact(kind="refund", value=_plain(step.amount), about=str(step.order_id)), step.order_id, None, None
        elif step.swaps:
            terms = " + ".join(_plain(s.new.price) for s in step.swaps) + " - "
            terms += " - ".join(_plain(s.old.price) for s in step.swaps)
            kind = "difference" if step.amount > 0 else "saving"
            value = _plain(abs(step.amount))
            yield Fact(kind=kind, value=value, about=str(step.order_id)), step.order_id, None, terms  # type: ignore[arg-type]
    refunds = [step.amount for step in steps if step.kind in ("return", "cancel") and step.amount]
    comes_back = any(step.swaps and (step.amount or 0) < 0 for step in steps)
    if len(refunds) > 1 and not comes_back:  # else they were not all that comes back
        terms = " + ".join(map(_plain, refunds))
        yield Fact(kind="total", value=_plain(sum(refunds)), about="all refunds together"), None, None, terms


def _facts_to_ask(
    account: Account, steps: Sequence[Step], catalogue: Catalogue, rng: random.Random
) -> Iterator[_Found]:
    """Yield facts that the records hold and that are still true when the steps are done."""
    order = rng.choice(account.orders)
    charged = {m for s in steps if s.kind in _CHARGED_AT_ONCE for m in (s.payment, s.former_payment)}
    repriced = {step.order_id for step in steps if step.kind == "modify_items"}
    if order.tracking:
        yield Fact(kind="tracking", value=order.tracking, about=order.order_id), order.order_id, None, None
    if order.order_id not in repriced:
        yield Fact(kind="price", value=_plain(order.paid), about=order.order_id), order.order_id, None, None
    for method, balance in account.payments.items():
        if balance and method not in charged:
            yield Fact(kind="balance", value=_plain(balance), about=method), None, None, None
    item = rng.choice(order.items)
    n_available = catalogue.n_variants(item.product_id, True)
    if n_available >= 3:  # of one or two nobody asks how many there are
        yield Fact(kind="count", value=str(n_available), about=item.name), None, item.product_id, None
        stock = catalogue.variants(item.product_id, True)
        yield (
            Fact(kind="cheapest", value=_plain(min(v.price for v in stock)), about=item.name),
            None,
            item.product_id,
            None,
        )
        yield (
            Fact(kind="dearest", value=_plain(max(v.price for v in stock)), about=item.name),
            None,
            item.product_id,
            None,
        )


def _decoys(account: Account, steps: Sequence[Step], told_of: set[str], rng: random.Random, mean: float) -> list[Decoy]:
    """Find identifiers near the case that no write and no fact uses; an order may be among those looked up."""
    touched = {step.order_id for step in steps}
    used = {payment for step in steps for payment in (step.payment, step.first_payment) if payment}
    found: list[Decoy] = []
    for order in account.orders:
        if order.order_id not in touched | told_of and not _tells_of(order, steps):
            found.append(Decoy(kind="order", id=order.order_id, about=f"{order.status}, {order.items[0].name.lower()}"))
    changed = {i.item_id for s in steps for i in (*s.items, *(w.old for w in s.swaps), *(w.new for w in s.swaps))}
    for step in steps:
        if step.kind in ("return", "exchange", "modify_items"):
            for item in step.kept:
                if item.item_id not in changed:
                    about = f"the {item.name.lower()} of {step.order_id}"
                    found.append(Decoy(kind="item", id=item.item_id, about=about))
        for swap in step.swaps:
            if swap.first_choice is not None and swap.first_choice.item_id not in changed:
                found.append(Decoy(kind="sold_out", id=swap.first_choice.item_id, about=swap.first_choice.name.lower()))
    for method in account.payments:
        if used and method not in used | told_of:
            found.append(Decoy(kind="payment", id=method, about=method.rpartition("_")[0].replace("_", " ")))
    rng.shuffle(found)
    wanted = sum(rng.random() < mean / 4 for _ in range(4))
    return found[:wanted]


def _tells_of(order: Order, steps: Sequence[Step]) -> bool:
    return any(order.order_id in str(step.reason) for step in steps)


def _slip(order_id: str, account: Account, rng: random.Random) -> str | None:
    """Invent the order id that the customer gave first: two neighbouring digits the wrong way round."""
    digits = order_id[2:]
    places = [i for i in range(len(digits) - 1) if digits[i] != digits[i + 1]]
    if not places:
        return None
    i = rng.choice(places)
    slip = f"{order_id[:2]}{digits[:i]}{digits[i + 1]}{digits[i]}{digits[i + 2 :]}"
    return None if any(order.order_id == slip for order in account.orders) else slip


def _plain(amount: float) -> str:
    """Write an amount as the benchmark writes its facts: 481.5, 918.43, 60.0 as 60."""
    return f"{round(amount, 2):.2f}".rstrip("0").rstrip(".")
