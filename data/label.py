"""Builds the graph of a plan: its calls as they are, and around them what the retail policy implies.

A label holds one goal; for every write the precondition that the policy sets on the order's status and, where a tool
may be called once per order only, a constraint; the calls with their arguments in order, each depending on the one
before; the customer as an entity when no argument names them; and every fact to tell as a postcondition.

A plan is taken as it is. A trajectory is not: what was refused or served nothing is dropped, and what cannot be judged
is left out of the graph and told, for a graph that silently lacks a change is worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from graphhandoff.compress.contract import signatures_of
from graphhandoff.compress.graph import HandoffGraph
from graphhandoff.compress.graph_vocabulary import GraphError
from graphhandoff.compress.protocol import ToolCall, ToolSpec
from graphhandoff.data.argument_faults import find_argument_fault
from graphhandoff.data.context import FIND_CUSTOMER, Context
from graphhandoff.data.environment import READING_TOOLS
from graphhandoff.data.message_log import Step
from graphhandoff.data.trajectories import Trajectory
from graphhandoff.data.untrusted import shorten


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

# tau-bench offers a tool to think aloud with; it has no effect and is offered nowhere else.
_THINKING = "think"

Fate = Literal["kept", "dropped", "unlabelled"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class StepLabel(_Record):
    """What became of one step of a trajectory, counted from 1, and why."""

    step: int
    tool: str
    fate: Fate
    why: str

    def __str__(self) -> str:
        return f"step {self.step} ({self.tool}): {self.why}"


class Label(_Record):
    """The graph of what a trajectory did right, and what became of each of its steps.

    ``graph`` is None when there is nothing to hand over. ``remarks`` tells what the trajectory lacks as a whole.
    """

    graph: HandoffGraph | None
    steps: tuple[StepLabel, ...] = Field(strict=False)
    remarks: tuple[str, ...] = Field(default=(), strict=False)

    @property
    def kept(self) -> tuple[int, ...]:
        """Numbers of the steps that are calls of the graph, in order."""
        return tuple(step.step for step in self.steps if step.fate == "kept")

    @property
    def dropped(self) -> tuple[str, ...]:
        """The steps that are no part of the plan: which, and why."""
        return tuple(str(step) for step in self.steps if step.fate == "dropped")

    @property
    def unlabelled(self) -> tuple[str, ...]:
        """The steps that could not be labelled: which, and why. The graph may lack a change for each."""
        return tuple(str(step) for step in self.steps if step.fate == "unlabelled")

    @property
    def complete(self) -> bool:
        """Is there a graph, and is it known to lack nothing that was done."""
        return self.graph is not None and not self.unlabelled


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


def label_trajectory(trajectory: Trajectory, tools: Sequence[ToolSpec], facts: Sequence[str] = ()) -> Label:
    """Build the graph of what a trajectory did right, and say what became of each step.

    Kept are the changes that were carried out and the look-ups that the policy needs for them. Dropped are refused
    calls and all other look-ups. Unlabelled are calls of unknown tools, calls whose arguments the tool cannot take,
    and changes whose result was not seen.

    Args:
        trajectory: of any source; :func:`graphhandoff.data.trajectories.reexecute` fills in missing results first.
        tools: the tools as they are published.
        facts: strings the task wants told; nothing else of what was said becomes a fact.

    Returns:
        The label. It does not ask whether the trajectory succeeded: choose by ``Trajectory.success``.

    Raises:
        GraphError: a fact holds half a surrogate pair.
    """
    specs = {tool.name: tool for tool in tools}
    found = [_judge(step, specs) for step in trajectory.steps]
    writes = [i for i, (fate, _) in enumerate(found) if fate == "kept"]
    lookups = [i for i, (fate, _) in enumerate(found) if fate is None]
    context = Context(trajectory.steps, writes, lookups, trajectory.said)
    labels = []
    for i, (fate, why) in enumerate(found):
        if fate is None:
            needed, why = context.judge(i)
            fate = "kept" if needed else "dropped"
        labels.append(StepLabel(step=i + 1, tool=trajectory.steps[i].call.name, fate=fate, why=why))
    calls = [trajectory.steps[label.step - 1].call for label in labels if label.fate == "kept"]
    heard = " ".join(trajectory.said).lower().replace(",", "")
    remarks = [f"the fact {fact!r} was not told" for fact in facts if fact.lower() not in heard]
    if calls and not any(call.name in FIND_CUSTOMER for call in calls):
        remarks.append("no look-up identified the customer, which the policy asks for before anything else")
    graph = build_plan_graph(calls, facts, context.customer, signatures_of(tools)) if calls or facts else None
    return Label(graph=graph, steps=tuple(labels), remarks=tuple(remarks))


def _judge(step: Step, specs: Mapping[str, ToolSpec]) -> tuple[Fate | None, str]:
    """Judge a step by itself: its fate and why, or no fate for a look-up that succeeded."""
    name, spec = step.call.name, specs.get(step.call.name)
    # Refusal comes first: whatever else was wrong with the call, it is known to have done nothing.
    if step.refused:
        return "dropped", f"refused: {shorten(step.observation) if step.observation else 'no reason given'}"
    if spec is None and name == _THINKING:
        return "dropped", "thinks aloud and does nothing"
    if step.fault is not None:
        return "unlabelled", step.fault
    if spec is None:
        return "unlabelled", f"no such tool; allowed: {', '.join(specs)}"
    fault = find_argument_fault(spec, step.call.arguments)
    if fault is not None:
        return "unlabelled", f"malformed arguments: {fault}"
    try:
        build_plan_graph([step.call])
    except GraphError as error:
        return "unlabelled", f"malformed arguments: {error}"
    if name in READING_TOOLS and name not in _WRITES:
        return (None, "") if step.refused is not None else ("dropped", "look-up whose result was not seen")
    if name not in _WRITES:
        return "unlabelled", "no rule says what this tool requires or changes"
    if step.refused is None:
        return "unlabelled", "its result was not seen, so it may have changed something or not; carry it out again"
    return "kept", "changes the database" if name not in READING_TOOLS else "ends the conversation"


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
