"""The shop as a planner reads it: customers, their orders by status, and products with what is in stock."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from graphhandoff.data.problems import Address, Customer, Item
from graphhandoff.data.retail import load_split, load_tasks, read_benchmark_file


class Order(NamedTuple):
    """An order with its items in the order of the database; ``paid_with`` is the method of its first payment."""

    order_id: str
    status: str
    items: tuple[Item, ...]
    address: Address
    paid_with: str
    paid: float
    tracking: str | None


class Account(NamedTuple):
    """A customer with their payment methods (balance for gift cards, else ``None``) and orders."""

    customer: Customer
    payments: Mapping[str, float | None]
    orders: tuple[Order, ...]

    def having(self, *statuses: str) -> list[Order]:
        """Return the orders of these statuses."""
        return [order for order in self.orders if order.status in statuses]


class Catalogue:
    """The database's content, and the accounts that no pinned task names.

    Args:
        pinned: name or path of the split whose customers are left out.
    """

    def __init__(self, pinned: str) -> None:
        database = json.loads(gzip.decompress(read_benchmark_file("db.json.gz")))
        self.rows: Mapping[str, Mapping[str, Any]] = database
        self.names: dict[str, str] = {key: product["name"] for key, product in database["products"].items()}
        self._variants = {key: product["variants"] for key, product in database["products"].items()}
        measured = set(load_split(pinned).task_ids)
        self.pinned_users = frozenset(u for task in load_tasks() if task.id in measured for u in task.user_ids)
        self.accounts: tuple[Account, ...] = tuple(
            self._account(user) for key, user in database["users"].items() if key not in self.pinned_users
        )
        self._fitting: dict[tuple[int, int], list[Account]] = {}

    def _account(self, user: Mapping[str, Any]) -> Account:
        customer = Customer(
            user_id=user["user_id"],
            first_name=user["name"]["first_name"],
            last_name=user["name"]["last_name"],
            email=user["email"],
            address=Address(**user["address"]),
        )
        payments = {key: method.get("balance") for key, method in user["payment_methods"].items()}
        return Account(customer, payments, tuple(self.order(key) for key in user["orders"]))

    def order(self, order_id: str) -> Order:
        """Return an order as the database has it."""
        order = self.rows["orders"][order_id]
        tracking = [number for parcel in order["fulfillments"] for number in parcel["tracking_id"]]
        payment = order["payment_history"][0]
        return Order(
            order_id=order["order_id"],
            status=order["status"],
            items=tuple(Item(**item) for item in order["items"]),
            address=Address(**order["address"]),
            paid_with=payment["payment_method_id"],
            paid=payment["amount"],
            tracking=tracking[0] if tracking else None,
        )

    def accounts_having(self, n_pending: int, n_delivered: int) -> list[Account]:
        """Return the accounts with at least so many pending and delivered orders, and at least one order at all."""
        key = (n_pending, n_delivered)
        if key not in self._fitting:
            self._fitting[key] = [
                account
                for account in self.accounts
                if account.orders
                and len(account.having("pending")) >= n_pending
                and len(account.having("delivered")) >= n_delivered
            ]
        return self._fitting[key]

    def variants(self, product_id: str, available: bool) -> list[Item]:
        """Return the variants of a product that are in stock, or those that are not, in the shop's order."""
        return [
            Item(
                item_id=variant["item_id"],
                product_id=product_id,
                name=self.names[product_id],
                price=variant["price"],
                options=variant["options"],
            )
            for variant in self._variants[product_id].values()
            if variant["available"] == available
        ]

    def n_variants(self, product_id: str, available: bool) -> int:
        """Count the variants of a product that are in stock, or those that are not."""
        return sum(variant["available"] == available for variant in self._variants[product_id].values())


@lru_cache(maxsize=4)
def load_catalogue(pinned: str) -> Catalogue:
    """Read the catalogue once per process and split."""
    return Catalogue(pinned)
