"""What a plan is meant to change, worked out from what was wanted alone, and whether that came about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any

from graphhandoff.data.catalogue import Catalogue
from graphhandoff.data.problems import Step

Meant = Mapping[tuple[str, str], Mapping[str, Any]]
"""By table and key of every row that may change: its fields with the value meant, ``...`` for a consequence."""


def meant_changes(steps: Sequence[Step], catalogue: Catalogue) -> Meant:
    """Say, from what was wanted alone, which rows may change and what their fields must then be.

    ``...`` marks what only the tools reckon: payments, prices and the balances of gift cards.
    """
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for step in steps:
        if step.kind == "transfer":
            continue
        if step.kind == "modify_user_address":
            assert step.address is not None
            user = str(step.call.arguments["user_id"])
            rows.setdefault(("users", user), {})["address"] = step.address.model_dump()
            continue
        assert step.order_id is not None
        order = rows.setdefault(("orders", step.order_id), {})
        order.update(_meant_of(step, catalogue.rows["orders"][step.order_id]["items"]))
        if step.kind in ("cancel", "modify_items", "modify_payment"):
            user = catalogue.rows["orders"][step.order_id]["user_id"]
            rows.setdefault(("users", user), {})["payment_methods"] = ...
    return rows


def _meant_of(step: Step, items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    unknown: EllipsisType = ...
    if step.kind == "cancel":
        return {"status": "cancelled", "cancel_reason": step.reason, "payment_history": unknown}
    if step.kind == "return":
        returned = sorted(item.item_id for item in step.items)
        return {"status": "return requested", "return_items": returned, "return_payment_method_id": step.payment}
    if step.kind == "exchange":
        return {
            "status": "exchange requested",
            "exchange_items": sorted(swap.old.item_id for swap in step.swaps),
            "exchange_new_items": sorted(swap.new.item_id for swap in step.swaps),
            "exchange_payment_method_id": step.payment,
            "exchange_price_difference": step.amount,
        }
    if step.kind == "modify_address":
        assert step.address is not None
        return {"address": step.address.model_dump()}
    if step.kind == "modify_payment":
        return {"payment_history": unknown}
    becomes = {swap.old.item_id: swap.new.item_id for swap in step.swaps}
    last = step.swaps[-1].new
    # The tool gives every modified item the last pair's price and options: its own doing, and the official state.
    changed = [
        {**item, "item_id": becomes[item["item_id"]], "price": last.price, "options": last.options}
        if item["item_id"] in becomes
        else item
        for item in items
    ]
    return {"status": "pending (item modified)", "items": changed, "payment_history": unknown}


def find_state_fault(
    catalogue: Catalogue, meant: Mapping[tuple[str, str], Mapping[str, Any]], changes: Sequence[Any]
) -> str | None:
    """Compare the rows that an episode changed with what was meant, without the tools' own arithmetic.

    Args:
        catalogue: for the rows as they were.
        meant: for every row that may change, its fields with the value meant; ``...`` stands for a consequence that
            the tools work out (payments, balances). A field that is not named must stay as it was.
        changes: the episode's row changes.

    Returns:
        ``None`` if every change was meant and everything meant has come about, else the first difference.
    """
    seen: dict[tuple[str, str], Mapping[str, Any]] = {(c.table, c.key): json.loads(c.content) for c in changes}
    for place in seen:
        if place not in meant:
            return f"{place[0]} {place[1]} changed and was not meant to"
    for place, fields in meant.items():
        before = catalogue.rows[place[0]][place[1]]
        after = seen.get(place, before)
        for field in sorted({*before, *after, *fields}, reverse=True):  # the status first
            value = fields.get(field, before.get(field))
            if value is not ... and after.get(field) != value:
                return f"{place[0]} {place[1]}: {field} is {after.get(field)!r}, meant {value!r}"
    return None
