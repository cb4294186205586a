"""Seeded plans to try the shop with: gold plans gone wrong, and sequences that customers might have asked for."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from random import Random
from typing import Any

from pydantic import JsonValue

from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data.environment import READING_TOOLS
from graphhandoff.data.retail import Task, load_tasks, read_benchmark_file

JUNK: list[JsonValue] = ["", "#W0000000", "nobody_here_1", 7, 1.5, None, True, ["x", 1], [], {"a": "b"}]
LISTS = ("item_ids", "new_item_ids")


def call(name: str, **arguments: JsonValue) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


def told(task: Task) -> str:
    return "\n".join(task.facts)


def with_arguments(changed: ToolCall, **arguments: JsonValue) -> ToolCall:
    return ToolCall(name=changed.name, arguments={**changed.arguments, **arguments})


def turned_round(plan: ToolCall) -> ToolCall:
    return with_arguments(plan, **{k: v[::-1] for k, v in plan.arguments.items() if isinstance(v, list)})


def iter_disturbed_plans(seed: int, n_plans: int) -> Iterator[tuple[Task, list[ToolCall]]]:
    """Yield gold plans with calls dropped, doubled, swapped, borrowed or spoilt, and some left as they are."""
    random = Random(seed)
    tasks = [task for task in load_tasks() if task.actions]
    every_call = [action for task in tasks for action in task.actions]
    for _ in range(n_plans):
        task = random.choice(tasks)
        plan = list(task.actions)
        for _ in range(random.randrange(4)):
            at = random.randrange(len(plan) + 1)
            victim = plan[at] if at < len(plan) else random.choice(every_call)
            arguments = dict(victim.arguments)
            name = random.choice(list(arguments)) if arguments else "extra"
            donor = random.choice(every_call).arguments
            match random.randrange(8):
                case 0:
                    plan = [*plan[:at], *plan[at + 1 :]]
                case 1:
                    plan.insert(random.randrange(len(plan) + 1), victim)
                case 2:
                    random.shuffle(plan)
                case 3:
                    plan.insert(at, random.choice(every_call))
                case 4:
                    arguments[name] = donor.get(name, random.choice(JUNK))
                    plan.insert(at, ToolCall(name=victim.name, arguments=arguments))
                case 5:
                    arguments[name] = random.choice(JUNK)
                    plan[at : at + 1] = [ToolCall(name=victim.name, arguments=arguments)]
                case 6:
                    plan[at : at + 1] = [turned_round(victim)]
                case _:
                    broken = random.choice([{}, {**arguments, "note": "x"}])
                    plan.insert(at, ToolCall(name=random.choice([victim.name, "refund"]), arguments=broken))
        yield task, plan


def iter_drawn_plans(seed: int, n_plans: int) -> Iterator[tuple[Task, list[ToolCall]]]:
    """Yield sequences drawn from the whole database, each with a task whose gold is the sequence, a bit different.

    Most calls are what a real customer could ask for; about a third are spoilt. Some gold plans only leave out
    what changes nothing, so that both verdicts are frequent.
    """
    shoppers = _Shoppers(seed)
    for number in range(n_plans):
        plan = shoppers.draw_plan()
        yield Task(id=f"drawn_{seed}_{number}", split="train", text="", actions=shoppers.draw_gold(plan)), plan


class _Shoppers:
    """Draws what customers ask for, knowing the database; a sequence keeps to one or two orders of one customer."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        database: dict[str, dict[str, Any]] = json.loads(gzip.decompress(read_benchmark_file("db.json.gz")))
        self._users, self._orders, self._products = (database[table] for table in ("users", "orders", "products"))
        self._shoppers = [user_id for user_id, user in self._users.items() if user["orders"]]

    def draw_plan(self) -> list[ToolCall]:
        random = self._random
        user_id = random.choice(self._shoppers)
        orders = self._users[user_id]["orders"]
        alive = [order_id for order_id in orders if self._orders[order_id]["status"] in ("pending", "delivered")]
        order_ids = random.sample(alive, k=min(2, len(alive)))
        if not order_ids or random.random() < 0.1:
            order_ids.append(random.choice(orders))
        plan: list[ToolCall] = []
        for _ in range(random.randint(1, 7)):
            kind = random.random()
            if plan and kind < 0.1:
                plan.append(random.choice(plan))  # once more
            elif kind < 0.3:
                plan.append(self._draw_reading(user_id, random.choice(order_ids)))
            else:
                plan.append(self._draw_writing(user_id, random.choice(order_ids)))
            if random.random() < 0.25:
                plan[-1] = self._spoil(plan[-1])
        return plan

    def draw_gold(self, plan: list[ToolCall]) -> tuple[ToolCall, ...]:
        random = self._random
        gold = [step for step in plan if step.name not in READING_TOOLS]
        if gold and random.random() < 0.9:
            at = random.randrange(len(gold))
            match random.randrange(4):
                case 0:
                    del gold[at]
                case 1:
                    gold[at] = turned_round(gold[at])
                case 2:
                    random.shuffle(gold)
                case _:
                    gold[at] = self._spoil(gold[at])
        return tuple(gold)

    def _draw_reading(self, user_id: str, order_id: str) -> ToolCall:
        user, order = self._users[user_id], self._orders[order_id]
        name, home = user["name"], user["address"]
        choices = [
            call("get_user_details", user_id=user_id),
            call("get_order_details", order_id=order_id),
            call("get_product_details", product_id=order["items"][0]["product_id"]),
            call("find_user_id_by_email", email=user["email"].upper()),
            call("find_user_id_by_name_zip", **name, zip=home["zip"]),
            call("list_all_product_types"),
            call("calculate", expression="2 * (3.5 - 1)"),
            call("transfer_to_human_agents", summary="cannot help"),
        ]
        return self._random.choice(choices)

    def _draw_writing(self, user_id: str, order_id: str) -> ToolCall:
        random, order = self._random, self._orders[order_id]
        payments = list(self._users[user_id]["payment_methods"])
        payment, paid_by = random.choice(payments), order["payment_history"][0]["payment_method_id"]
        others = [method for method in payments if method != paid_by]
        items = random.sample(order["items"], k=random.randint(1, len(order["items"])))
        pairs: dict[str, JsonValue] = {
            "item_ids": [item["item_id"] for item in items],
            "new_item_ids": [self._draw_variant(item) for item in items],
        }
        move = call("modify_user_address", user_id=user_id, **self._draw_address())
        if random.random() < 0.1:
            return move
        if order["status"] == "delivered":
            returned = call("return_delivered_order_items", order_id=order_id, item_ids=pairs["item_ids"])
            return random.choice(
                [
                    call("exchange_delivered_order_items", order_id=order_id, **pairs, payment_method_id=payment),
                    with_arguments(returned, payment_method_id=random.choice([paid_by, payment])),
                ]
            )
        reason = random.choice(["no longer needed", "ordered by mistake"])
        other = random.choice(others or payments)
        choices = [
            call("cancel_pending_order", order_id=order_id, reason=reason),
            call("modify_pending_order_items", order_id=order_id, **pairs, payment_method_id=payment),
            call("modify_pending_order_address", order_id=order_id, **self._draw_address()),
            call("modify_pending_order_payment", order_id=order_id, payment_method_id=other),
        ]
        return random.choices(choices, weights=(1, 3, 2, 4 if others else 0.2))[0]

    def _draw_variant(self, item: dict[str, Any]) -> str:
        variants = self._products[item["product_id"]]["variants"]
        others = [key for key, variant in variants.items() if variant["available"] and key != item["item_id"]]
        chosen: str = self._random.choice(others or list(variants))
        return chosen

    def _draw_address(self) -> dict[str, str]:
        address: dict[str, str] = self._users[self._random.choice(self._shoppers)]["address"]
        return {**address, "address2": self._random.choice(["", "Suite 7", "Straße 1\n🙂", address["address2"]])}

    def _spoil(self, good: ToolCall) -> ToolCall:
        random, arguments = self._random, dict(good.arguments)
        if not arguments or random.random() < 0.05:
            return call(random.choice(["refund", "initialize", "db", ""]), **arguments)
        name = random.choice(list(arguments))
        match random.randrange(6):
            case 0:
                del arguments[name]
            case 1:
                arguments["note"] = "please"
            case 2:
                arguments[name] = random.choice(JUNK)
            case 3:  # of another customer
                stranger = self._users[random.choice(self._shoppers)]
                strange: dict[str, JsonValue] = {
                    "user_id": random.choice(self._shoppers),
                    "order_id": random.choice(stranger["orders"]),
                    "payment_method_id": random.choice(list(stranger["payment_methods"])),
                }
                arguments.update({key: strange[key] for key in strange.keys() & arguments.keys()})
            case 4:  # an item more on one side or on both: a pair twice, or lists of unlike length
                for key in random.choice([LISTS, LISTS[:1], LISTS[1:]]):
                    value = arguments.get(key)
                    if isinstance(value, list):
                        arguments[key] = [*value, *value[:1]]
            case _:  # any variant in the place of a good one: sold out, of another product, or the old one itself
                variant = random.choice(list(random.choice(list(self._products.values()))["variants"]))
                old, new = arguments.get("item_ids"), arguments.get("new_item_ids")
                if isinstance(old, list) and isinstance(new, list) and old and new:
                    arguments["new_item_ids"] = [random.choice([variant, old[0]]), *new[1:]]
                else:
                    arguments[name] = random.choice([[], "\u0000", "x" * 500, "\ud800"])
        return ToolCall(name=good.name, arguments=arguments)
