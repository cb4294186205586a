"""A training example: one delegation told as prose and as graph, its calls as they were executed, and the outcome.

Splits are by customer. Customers of the hand-written delegations make up ``validation``, so that it holds real prose;
of all others a fixed twentieth, chosen by a hash of the user id and so the same for every seed and size, is ``test``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphhandoff.compress.graph import HandoffGraph
from graphhandoff.compress.protocol import Delegation, ToolCall
from graphhandoff.compress.wire import parse, write
from graphhandoff.data.delegations import load_training_delegations
from graphhandoff.data.environment import READING_TOOLS, Outcome, load_environment
from graphhandoff.data.label import build_plan_graph
from graphhandoff.data.problems import Kind, Problem
from graphhandoff.data.retail import Split, Task, load_signatures, load_tasks, training_task_ids

if TYPE_CHECKING:
    from datasets import Features

    from graphhandoff.data.prose import Prose

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")
Source = Literal["synthetic", "hand_written"]

TEST_PERCENT = 5
"""Share of the customers without a hand-written delegation whose examples are for testing."""

KIND_OF_TOOL: Mapping[str, Kind] = {
    "cancel_pending_order": "cancel",
    "return_delivered_order_items": "return",
    "exchange_delivered_order_items": "exchange",
    "modify_pending_order_items": "modify_items",
    "modify_pending_order_address": "modify_address",
    "modify_pending_order_payment": "modify_payment",
    "modify_user_address": "modify_user_address",
    "transfer_to_human_agents": "transfer",
}


class CorruptRowError(ValueError):
    """A row of a data set is no example; the message names the row and the column."""


class PinnedCustomerError(ValueError):
    """An example would be about a customer whom a pinned task names."""


class Example(BaseModel):
    """One example; ``outcomes`` are the plan's calls as executed, ``success`` says that every write was carried out."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: str
    split: SplitName
    source: Source
    customer: str
    kinds: tuple[Kind, ...] = Field(strict=False)
    task_text: str
    prose: str
    prose_by: str
    graph: HandoffGraph
    facts: tuple[str, ...] = Field(strict=False)
    outcomes: tuple[Outcome, ...] = Field(strict=False)
    success: bool

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The plan: what was executed, in order."""
        return tuple(outcome.call for outcome in self.outcomes)

    def to_delegation(self) -> Delegation:
        """Return the example as what a protocol encodes."""
        return Delegation(task_id=self.id, prose=self.prose, graph=self.graph, task_text=self.task_text)


@lru_cache(maxsize=4)
def pinned_customers(pinned: Split) -> frozenset[str]:
    """Return the customers of the pinned tasks; nothing about them may reach a data set."""
    measured = set(pinned.task_ids)
    return frozenset(user for task in load_tasks() if task.id in measured for user in task.user_ids)


@lru_cache(maxsize=4)
def validation_customers(pinned: Split) -> frozenset[str]:
    """Return the customers of the tasks that may be trained on: those of the hand-written delegations."""
    allowed = set(training_task_ids(pinned))
    return frozenset(user for task in load_tasks() if task.id in allowed for user in task.user_ids)


def split_of(user_id: str, validation: frozenset[str]) -> SplitName:
    """Say which split all examples of a customer belong to; the same in every data set.

    Args:
        user_id: the customer.
        validation: the customers of hand-written delegations.
    """
    if user_id in validation:
        return "validation"
    return "test" if hashlib.sha256(user_id.encode()).digest()[0] * 100 < TEST_PERCENT * 256 else "train"


def build_example(problem: Problem, prose: Prose, pinned: Split, prose_by: str = "grammar") -> Example:
    """Execute a problem's plan, label it, and put its prose beside it.

    Args:
        problem: a synthetic problem.
        prose: how an orchestrator tells it and how the customer does.
        pinned: the tasks that are measured.
        prose_by: who wrote the prose.

    Raises:
        PinnedCustomerError: the problem is about a customer of theirs.
    """
    facts = tuple(fact.value for fact in problem.facts)
    customer = problem.customer.user_id
    if customer in pinned_customers(pinned):
        raise PinnedCustomerError(
            f"{problem.id} is about {customer}, whom a task of {pinned.name} names; "
            "synthesize for the same split that the set is built for"
        )
    outcomes = load_environment().run(problem.calls).outcomes
    return Example(
        id=problem.id,
        split=split_of(customer, validation_customers(pinned)),
        source="synthetic",
        customer=customer,
        kinds=tuple(step.kind for step in problem.steps),
        task_text=prose.task_text,
        prose=prose.text,
        prose_by=prose_by,
        graph=build_plan_graph(problem.calls, facts, customer, load_signatures()),
        facts=facts,
        outcomes=outcomes,
        success=is_success(outcomes),
    )


def build_hand_written_examples(pinned: Split) -> tuple[Example, ...]:
    """Make an example of every hand-written delegation that may be trained on; all are for validation."""
    tasks = {task.id: task for task in load_tasks()}
    return tuple(_build_hand_written(d, tasks[d.task_id], pinned) for d in load_training_delegations(pinned))


def _build_hand_written(delegation: Delegation, task: Task, pinned: Split) -> Example:
    assert delegation.graph is not None, "reference delegations have one"
    outcomes = load_environment().run(task.actions).outcomes
    return Example(
        id=f"hand_written-{task.id}",
        split=split_of(task.user_ids[0], validation_customers(pinned)),
        source="hand_written",
        customer=task.user_ids[0],
        kinds=tuple(KIND_OF_TOOL[call.name] for call in task.actions if call.name in KIND_OF_TOOL),
        task_text=delegation.task_text,
        prose=delegation.prose,
        prose_by="hand_written",
        graph=delegation.graph,
        facts=task.facts,
        outcomes=outcomes,
        success=is_success(outcomes),
    )


def is_success(outcomes: tuple[Outcome, ...]) -> bool:
    """Tell whether every call that changes something was carried out.

    A look-up may fail by design: some customers give an e-mail address that nobody has.
    """
    return all(outcome.ok for outcome in outcomes if outcome.call.name not in READING_TOOLS)


class Column(NamedTuple):
    """A column of the data set: its type, as ``datasets`` spells it, and one sentence for the data card."""

    feature: Any
    meaning: str


_CALL = {"tool": "string", "arguments": "string", "ok": "bool", "observation": "string"}

COLUMNS: Mapping[str, Column] = {
    "id": Column("string", "Names the example; the same seed and settings give the same id the same content."),
    "split": Column("string", "train, validation or test; decided by the customer alone."),
    "source": Column("string", "synthetic (sampled problem, generated prose) or hand_written (a real training task)."),
    "customer": Column("string", "The user id of the only customer the example is about."),
    "kinds": Column(["string"], "What is done, one word a step, in order; empty if only something is asked."),
    "task_text": Column("string", "What the customer says: all that a router may look at."),
    "prose": Column("string", "The delegation in natural language: what a compressor reads."),
    "prose_by": Column("string", "Who told it so: grammar, hand_written, or the name of a language model."),
    "graph": Column("string", "The delegation as a graph, on the JSON wire, in normal form: what a compressor writes."),
    "graph_compact": Column("string", "The same graph on the compact wire, with the retail tools' signatures."),
    "facts": Column(["string"], "Strings that the customer must be told."),
    "calls": Column(
        [_CALL],
        "The plan as executed on the untouched database, in order: the tool, its arguments as JSON, whether it was "
        "carried out, and the tool's answer or its refusal.",
    ),
    "success": Column("bool", "Whether every call that changes something was carried out."),
}
"""The columns in order; the data card and :func:`features` are made of this table."""


def features() -> Features:
    """Return the columns' types for ``datasets``."""
    from datasets import Features

    return Features({name: _feature(column.feature) for name, column in COLUMNS.items()})


def _feature(feature: Any) -> Any:
    from datasets import Value

    if isinstance(feature, list):
        return [_feature(feature[0])]
    if isinstance(feature, dict):
        return {name: _feature(inner) for name, inner in feature.items()}
    return Value(feature)


def to_row(example: Example) -> dict[str, Any]:
    """Return an example as a row of :data:`COLUMNS`; ``from_row(to_row(example)) == example``."""
    return {
        "id": example.id,
        "split": example.split,
        "source": example.source,
        "customer": example.customer,
        "kinds": list(example.kinds),
        "task_text": example.task_text,
        "prose": example.prose,
        "prose_by": example.prose_by,
        "graph": write(example.graph, "json"),
        "graph_compact": write(example.graph, "compact", load_signatures()),
        "facts": list(example.facts),
        "calls": [
            {
                "tool": outcome.call.name,
                "arguments": json.dumps(outcome.call.arguments, ensure_ascii=False, allow_nan=False),
                "ok": outcome.ok,
                "observation": outcome.text,
            }
            for outcome in example.outcomes
        ],
        "success": example.success,
    }


def from_row(row: Mapping[str, Any]) -> Example:
    """Return the example that a row holds.

    Raises:
        CorruptRowError: a column is missing or holds what it may not, or the two graphs differ.
    """
    name, column = row.get("id"), "graph"
    try:
        graph = parse(row["graph"], "json")
        column = "graph_compact"
        compact = parse(row["graph_compact"], "compact", load_signatures())
        column = "calls"
        outcomes = tuple(
            Outcome(
                call=ToolCall(name=call["tool"], arguments=json.loads(call["arguments"])),
                ok=call["ok"],
                text=call["observation"],
            )
            for call in row["calls"]
        )
        column = "the row"
        plain = {key: row[key] for key in COLUMNS if key not in ("graph", "graph_compact", "calls")}
        example = Example.model_validate({**plain, "graph": graph, "outcomes": outcomes})
    except KeyError as error:
        raise CorruptRowError(f"row {name!r}: no {error} in {column}; columns: {', '.join(COLUMNS)}") from None
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in problem["loc"]) or column
        raise CorruptRowError(f"row {name!r}: {where}: {problem['msg']}; build the set again") from None
    except (ValueError, TypeError) as error:
        raise CorruptRowError(f"row {name!r}: {column}: {error}; build the set again") from None
    if compact != graph:
        raise CorruptRowError(f"row {name!r}: graph and graph_compact are not the same graph; build the set again")
    return example
