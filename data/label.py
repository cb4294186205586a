"""Builds the graph of a plan: its calls as they are, and around them what the retail policy implies.

A label holds one goal; for every write the precondition that the policy sets on the order's status and, where a tool
may be called once per order only, a constraint; the calls with their arguments in order, each depending on the one
before; the customer as an entity when no argument names them; and every fact to tell as a postcondition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import JsonValue

from graphhandoff.compress.graph import HandoffGraph
from graphhandoff.compress.protocol import ToolCall


class _Write(NamedTuple):
    verb: str
    counted: str  # the argument whose entries are counted, or the word for the thing itself
    status: str | None
    once_per_order: bool


# From the policy that ships with the benchmark: status rules and "can only be called once per order".
_WRITES: Mapping[str, _Write] = {
    "cancel_pending_order": _Write("cancel", "order", "pending", False),
    "modify_pending_order_address": _Write("readdress", "order", "pending", False),
    "modify_pending_order_payment": _Write("change payment of", "order", "pending", False),
    "modify_pending_order_items": _Write("modify", "item_ids", "pending", True),
    "exchange_delivered_order_items": _Write("exchange", "item_ids", "delivered", True),
    "return_delivered_order_items": _Write("return", "item_ids", "delivered", False),
    "modify_user_address": _Write("update", "profile", None, False),
    "transfer_to_human_agents": _Write("transfer", "customer", None, False),
}
ONCE_PER_ORDER = "one call"
TELL = "tell"


def build_plan_graph(
    calls: Sequence[ToolCall],
    facts: Sequence[str] = (),
    customer: str | None = None,
    signatures: Mapping[str, Sequence[str]] | None = None,
) -> HandoffGraph:
    """Build the graph of a plan.

    Args:
        calls: the tool calls in order; values, and so argument lists, are kept as they are.
        facts: strings to tell the customer, each becomes a postcondition ``tell <fact>``.
        customer: user id; written as an entity if no argument of the plan names the customer.
        signatures: parameter names in published order; a call's arguments are put into that order.

    Returns:
        A graph whose ids are the compact wire's implicit ones (line numbers).
    """
    builder = _Builder()
    builder.add_text("goal", _goal(calls, facts))
    if customer is not None and not any(customer in call.arguments.values() for call in calls):
        builder.add_text("entity", customer)
    for call in calls:
        write = _WRITES.get(call.name)
        if write is not None and write.status is not None:
            builder.add_text("precondition", write.status)
        if write is not None and write.once_per_order:
            builder.add_text("constraint", ONCE_PER_ORDER)
        builder.add_call(call, (signatures or {}).get(call.name, ()))
    for fact in facts:
        builder.add_text("postcondition", f"{TELL} {fact}")
    return HandoffGraph.build(builder.nodes, builder.edges)


def _goal(calls: Sequence[ToolCall], facts: Sequence[str]) -> str:
    counts: dict[tuple[str, str], int] = {}
    for call in calls:
        write = _WRITES.get(call.name)
        if write is None:
            continue
        counted = call.arguments.get(write.counted)
        noun, n = ("item", len(counted)) if isinstance(counted, list) else (write.counted, 1)
        counts[write.verb, noun] = counts.get((write.verb, noun), 0) + n
    parts = [
        f"{verb} {n} {noun}{'s' if n > 1 else ''}" if n > 1 else f"{verb} {noun}" for (verb, noun), n in counts.items()
    ]
    return ", ".join(parts) or ("answer" if facts else "check")


def _in_order(arguments: Mapping[str, JsonValue], signature: Sequence[str]) -> list[tuple[str, JsonValue]]:
    place = {name: i for i, name in enumerate(signature)}
    return sorted(arguments.items(), key=lambda item: place.get(item[0], len(place)))


class _Builder:
    """Appends lines with the edges that the compact wire takes for granted."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.edges: list[dict[str, str]] = []
        self._line = 0
        self._last_call: str | None = None
        self._since_call: list[tuple[str, str]] = []

    def add_text(self, node_type: str, text: str) -> None:
        self._line += 1
        node_id = str(self._line)
        self.nodes.append({"id": node_id, "type": node_type, "text": text})
        if node_type == "postcondition":
            if self._last_call is not None:
                self._add_edge(self._last_call, node_id, "depends_on")
        else:
            self._since_call.append((node_id, node_type))

    def add_call(self, call: ToolCall, signature: Sequence[str] = ()) -> None:
        self._line += 1
        call_id = str(self._line)
        self.nodes.append({"id": call_id, "type": "tool_call", "tool": call.name})
        for j, (name, value) in enumerate(_in_order(call.arguments, signature), start=1):
            argument_id = f"{call_id}.{j}"
            self.nodes.append({"id": argument_id, "type": "tool_arg", "name": name, "value": value})
            self._add_edge(argument_id, call_id, "targets")
        if self._last_call is not None:
            self._add_edge(self._last_call, call_id, "depends_on")
        for node_id, node_type in self._since_call:
            if node_type == "precondition":
                self._add_edge(call_id, node_id, "requires")
            elif node_type == "constraint":
                self._add_edge(node_id, call_id, "blocks")
            else:
                self._add_edge(call_id, node_id, "targets")
        self._last_call, self._since_call = call_id, []

    def _add_edge(self, src: str, dst: str, relation: str) -> None:
        self.edges.append({"src": src, "dst": dst, "relation": relation})
