"""The values that phrases about a problem need: of the customer, an order, a step, a swap, a fact."""

from __future__ import annotations

import random
from collections.abc import Iterator

from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data.catalogue import Catalogue
from graphhandoff.data.grammar import GRAMMAR, Speaker, load_grammar
from graphhandoff.data.problems import Decoy, Fact, Problem, Step, Swap
from graphhandoff.data.wording import Wording, pronouns, spoken_option

_SHORT_NAMES = {
    "cancel": "the cancellation",
    "return": "the return",
    "exchange": "the exchange",
    "modify_items": "the items",
    "modify_address": "the address",
    "modify_payment": "the payment",
    "modify_user_address": "the profile",
    "transfer": "the transfer",
}


class Telling:
    """Fills the slots of phrases about one problem.

    Args:
        problem: what is told.
        catalogue: for the records of orders.
        wording: the author's habits.
        rng: draws what varies.
    """

    def __init__(self, problem: Problem, catalogue: Catalogue, wording: Wording, rng: random.Random) -> None:
        self.problem = problem
        self.catalogue = catalogue
        self.wording = wording
        self.rng = rng
        customer = problem.customer
        self.general: dict[str, str] = {
            "name": f"{customer.first_name} {customer.last_name}",
            "first": customer.first_name,
            "last": customer.last_name,
            "zip": customer.address.zip,
            "email": customer.email,
            "user": customer.user_id,
            "city": customer.address.city,
            "state": customer.address.state,
            **pronouns(customer),
        }
        self.writes = _StepByCall(problem)
        touched = [step.order_id for step in problem.steps if step.order_id]
        self.first_order = touched[0] if touched else None

    def of_order(self, order_id: str) -> dict[str, str]:
        """Return what a record of an order says."""
        order = self.catalogue.order(order_id)
        return {
            "order": order_id,
            "status": order.status,
            "contents": self.wording.contents(order.items),
            "n_items": str(len(order.items)),
            "contents_are": "is" if len(order.items) < 2 else "are",
            "paid": f"{order.paid:.2f}",
            "paid_with": order.paid_with,
        }

    def of_look_up(self, call: ToolCall) -> dict[str, str]:
        """Return the values of a look-up."""
        if call.name == "get_order_details":
            return self.of_order(str(call.arguments["order_id"]))
        if call.name == "get_product_details":
            product_id = str(call.arguments["product_id"])
            return {"product_id": product_id, "product": self.catalogue.names[product_id]}
        return {name: str(value) for name, value in call.arguments.items() if name == "expression"}

    def of_account(self) -> dict[str, str]:
        """Return what else the account shows: orders that nothing is done with, payment methods, the address."""
        row = self.catalogue.rows["users"][self.problem.customer.user_id]
        told = {step.order_id for step in self.problem.steps} | {decoy.id for decoy in self.problem.decoys}
        told |= {fact.about for fact in self.problem.facts}
        others = [order for order in row["orders"] if order not in told]
        status = {order: self.catalogue.rows["orders"][order]["status"] for order in others}
        methods = list(row["payment_methods"])
        profile = self.problem.customer.address
        left = any(step.former_address == profile for step in self.problem.steps)  # then it is not called home
        address = "" if left else self.wording.short(profile)
        return {
            "other": self.rng.choice(others) if others else "",
            "others": self.wording.series([f"{order} ({status[order]})" for order in others])
            if len(others) > 1
            else "",
            "methods": self.wording.series(methods) if len(methods) > 1 else "",
            "only_method": methods[0] if len(methods) == 1 else "",
            "home": address,
        }

    def of_alternatives(self, step: Step) -> dict[str, str]:
        """Return variants of a swapped product that were not chosen, in stock and sold out."""
        if not step.swaps:
            return {}
        swap = self.rng.choice(step.swaps)
        swaps = [swap for step in self.problem.steps for swap in step.swaps]
        taken = {item.item_id for swap in swaps for item in (swap.old, swap.new)}
        taken |= {decoy.id for decoy in self.problem.decoys}
        stock = [v for v in self.catalogue.variants(swap.old.product_id, True) if v.item_id not in taken]
        gone = [v for v in self.catalogue.variants(swap.old.product_id, False) if v.item_id not in taken]
        return {
            "alternatives": self.wording.ids(self.rng.sample(stock, 2)) if len(stock) > 1 else "",
            "alternative": self.wording.item(self.rng.choice(stock)) if stock else "",
            "gone": self.wording.item(self.rng.choice(gone)) if gone else "",
            "n_stock": str(self.catalogue.n_variants(swap.old.product_id, True)),
            "product": swap.old.name.lower(),
            "chosen": swap.new.item_id,
            "why": self.wording.series([spoken_option(o, v) for o, v in swap.changed.items()])
            if swap.rule == "options"
            else "",
        }

    def of_step(self, step: Step) -> dict[str, str]:
        """Return the values of a step."""
        items = step.items or tuple(swap.old for swap in step.swaps)
        values: dict[str, str] = {
            "names": self.wording.names(items),
            "is": "is" if len(items) < 2 and not (items and items[0].name.endswith("s")) else "are",
            "payment": step.payment or "",
            "former_payment": step.former_payment or "",
            "first_payment": step.first_payment or "",
            "reason": step.reason or "",
            "amount": f"{abs(step.amount):.2f}" if step.amount is not None else "",
        }
        if step.order_id:
            values.update(self.of_order(step.order_id))
        if step.items:
            values["item"] = self.wording.item(step.items[0])
            values["ids"] = self.wording.ids(step.items)
            values["things"] = self.wording.series([self.wording.item(i, with_id=False) for i in step.items])
        named = {item.name for item in items}
        kept = [item for item in step.kept if item.name not in named]  # "leave the lamp" must not mean both lamps
        if kept:
            values["kept"] = self.wording.names(kept)
            values["kept_is"] = "is" if len(kept) < 2 else "are"
        if step.swaps:
            values["pairs"] = self.wording.pairs(step.swaps)
            values["lists"] = self.wording.lists(step.swaps)
            values["new_id"] = step.swaps[0].new.item_id
        if step.address and step.former_address:
            values["fields"] = self.wording.fields(step.address)
            values["short"] = self.wording.short(step.address)
            values["full"] = ", ".join(filter(None, step.address.model_dump().values()))
            values["city_to"] = step.address.city
            values["former_short"] = self.wording.short(step.former_address)
            values["former_city"] = step.former_address.city
            source = self._source(step)
            values["source"], values["Source"] = source, source[0].upper() + source[1:]
        return values

    def _source(self, step: Step) -> str:
        speaker = Speaker(load_grammar(GRAMMAR), self.rng)
        return speaker.say(f"source_{step.address_source or 'new'}", self.general)

    def of_swaps(self, step: Step) -> list[dict[str, str]]:
        """Return the values of each swap of a step; none for a step without."""
        return [self.of_swap(swap) for swap in step.swaps]

    def of_swap(self, swap: Swap) -> dict[str, str]:
        """Return the values of one swap."""
        changed = [spoken_option(option, value) for option, value in swap.changed.items()]
        name = swap.old.name.lower()
        wish = self._wish(swap, changed)
        values = {
            "old_thing": self.wording.item(swap.old, with_id=self.rng.random() < 0.4),
            "new_thing": self.wording.item(swap.new),
            "new_id": swap.new.item_id,
            "new_price": f"{swap.new.price:.2f}",
            "product": name,
            "old": name,
            "wish": wish,
        }
        if swap.first_choice is not None:
            values["first_choice"] = self.wording.item(swap.first_choice, with_id=self.rng.random() < 0.7)
            values["first_wish"] = f"the {self.wording.description(swap.first_choice, least=2)}"
        return values

    def _wish(self, swap: Swap, changed: list[str]) -> str:
        if swap.rule != "options":
            return f"the {'cheapest' if swap.rule == 'cheapest' else 'most expensive'} one in stock"
        if not changed:
            return f"another {swap.old.name.lower()}"
        return self.rng.choice(
            (
                f"the {', '.join(changed)} one",
                f"the version with {self.wording.series(changed)}",
                f"another one ({self.wording.series(changed)})",
                f"the same in {self.wording.series(changed)}",
            )
        )

    def sequence(self) -> str:
        """Name the steps in the order in which they are done."""
        names = [
            _SHORT_NAMES[step.kind] + (f" of {step.order_id}" if step.order_id and self.rng.random() < 0.5 else "")
            for step in self.problem.steps
        ]
        return ", then ".join(names)

    def about(self, fact: Fact) -> str:
        """Say what a fact is about."""
        return fact.about if fact.about.startswith("#") or "_" in fact.about else fact.about.lower()

    def decoy_step(self, decoy: Decoy) -> Step | None:
        """Return the step beside which a decoy is named; ``None`` for other orders, which stand at the end."""
        for step in self.problem.steps:
            near = {item.item_id for item in step.kept}
            near |= {swap.first_choice.item_id for swap in step.swaps if swap.first_choice}
            if decoy.id in near or (decoy.kind == "payment" and step.payment):
                return step
        return None

    def asks(self, step: Step) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the rules, with values, by which the customer asks for a step."""
        values = self.of_step(step)
        for name, method in (("payment_kind", step.payment), ("first_kind", step.first_payment)):
            values[name] = method.rpartition("_")[0].replace("_", " ") if method else ""
        if values["first_kind"] and values["first_kind"] == values["payment_kind"]:
            values["first_kind"] = f"other {values['first_kind']}"
        if not step.items and not step.swaps:
            values["names"] = self.wording.names(step.kept[:1])
        if step.kind == "cancel" and step.fallback == "one_item_only":
            yield "ask_cancel_one", values
        elif step.kind == "return" and step.fallback == "refund_elsewhere":
            yield "ask_return_elsewhere", values
        elif step.swaps:
            for swap in step.swaps:
                told = {**values, **self.of_swap(swap)}
                yield f"ask_{step.kind}", told
                if swap.first_choice is not None:
                    yield "ask_first_choice", told
                elif swap.rule != "options":
                    yield f"ask_{swap.rule}", told
            if step.first_payment:
                yield "ask_card", values
        else:
            yield f"ask_{step.kind}", values


class _StepByCall:
    """Finds the step that a call of the plan carries out."""

    def __init__(self, problem: Problem) -> None:
        self._steps = {step.call.model_dump_json(): step for step in problem.steps}

    def get(self, call: ToolCall) -> Step | None:
        return self._steps.get(call.model_dump_json())

    def __contains__(self, call: ToolCall) -> bool:
        return self.get(call) is not None
