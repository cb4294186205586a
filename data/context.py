"""Says which look-ups of a trajectory the retail policy needs, and why each of the others can be left out.

The policy asks for the customer to be identified first, and for an order's status to be checked before it is changed;
a new item must be one of the same product, and a payment method or an address one of the customer's. A look-up that
serves none of this for a later change, or serves it a second time, is no part of the plan.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from pydantic import JsonValue

from graphhandoff.data.message_log import Step

FIND_CUSTOMER = frozenset({"find_user_id_by_email", "find_user_id_by_name_zip"})
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Look(NamedTuple):
    """What is to become of one look-up, and why."""

    needed: bool
    why: str


class Context:
    """What the changes of one trajectory need to have been looked up.

    Args:
        steps: all steps of the trajectory.
        writes: places in ``steps`` of the changes that are kept.
        lookups: places of the look-ups that succeeded; their results are what is judged by.
        said: what the customer was told.

    Attributes:
        customer: the customer whom the conversation is about, if a look-up found one.
    """

    def __init__(
        self, steps: Sequence[Step], writes: Sequence[int], lookups: Sequence[int], said: Sequence[str]
    ) -> None:
        self._steps = steps
        self._writes = writes
        self._told = [*map(_as_number, _NUMBER.findall(" ".join(said).replace(",", "")))]
        self._finder = self._find_finder([i for i in lookups if steps[i].call.name in FIND_CUSTOMER])
        self.customer = None if self._finder is None else _found_customer(steps[self._finder])
        self._seen: set[tuple[str, str]] = set()

    def judge(self, place: int) -> Look:
        """Judge a look-up that succeeded; ask in the order of the steps, for the first of several serves."""
        call = self._steps[place].call
        if call.name in FIND_CUSTOMER:
            if place == self._finder:
                return Look(True, "the policy asks for the customer to be identified")
            return Look(False, "another look-up identifies the customer")
        if call.name == "calculate":
            result = _as_number((self._steps[place].observation or "").strip())
            told = result is not None and result in self._told
            return Look(told, "its result was told" if told else "its result was not told to the customer")
        later = [i for i in self._writes if i > place]
        served = [i for i in later if self._serves(place, self._steps[i].call.arguments)]
        if not served:
            return Look(False, "look-up that no later change needs")
        key = (call.name, str(next(iter(call.arguments.values()), "")))
        if key in self._seen:
            return Look(False, "looked up before")
        self._seen.add(key)
        return Look(True, f"step {served[0] + 1} needs it")

    def _serves(self, place: int, change: Mapping[str, JsonValue]) -> bool:
        call, observation = self._steps[place].call, self._steps[place].observation or ""
        if call.name == "get_order_details":
            return "order_id" in change and change["order_id"] == call.arguments.get("order_id")
        if call.name == "get_product_details":
            new_items = change.get("new_item_ids")
            return isinstance(new_items, list) and any(f'"{item}"' in observation for item in new_items)
        if call.name == "get_user_details":
            is_customers = self.customer in (None, call.arguments.get("user_id"))
            return is_customers and ("payment_method_id" in change or "address1" in change)
        return False

    def _find_finder(self, found: Sequence[int]) -> int | None:
        """Choose the look-up of the customer whom the changes are about; the first if they do not say."""
        for i in found:
            customer = _found_customer(self._steps[i])
            for write in (self._steps[j] for j in self._writes):
                if customer == write.call.arguments.get("user_id") or f'"{customer}"' in (write.observation or ""):
                    return i
        return found[0] if found else None


def _found_customer(step: Step) -> str | None:
    return (step.observation or "").strip().strip('"') or None


def _as_number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    # A result of -54.04 is told as a refund of 54.04.
    return abs(number) if number.is_finite() else None
