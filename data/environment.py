"""The shop as a place to try plans in: runs calls on the benchmark's own tools and judges what they changed.

The tools are the official functions of Inspect Evals. What is ours is the database below them: one database is loaded
once and shared, and an episode sees it through an overlay that copies a row when a tool that may write asks for it.
Two episodes ended alike exactly if they changed the same rows to the same content, so nothing is reloaded or hashed
as a whole per trial; the verdict is the official one all the same.
"""

from __future__ import annotations

import gzip
import inspect
import json
from collections.abc import Coroutine, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data.argument_faults import find_argument_fault
from graphhandoff.data.retail import Task, load_tools, read_benchmark_file

READING_TOOLS = frozenset(
    {
        "calculate",
        "find_user_id_by_email",
        "find_user_id_by_name_zip",
        "get_order_details",
        "get_product_details",
        "get_user_details",
        "list_all_product_types",
        "transfer_to_human_agents",
    }
)
"""Tools that change nothing and so may see the shared rows; any other tool is given copies."""

STATELESS_TOOLS = frozenset({"calculate", "transfer_to_human_agents"})
"""Tools that the official scorer leaves out when it replays the gold calls."""

N_KEPT_GOLD_REPLAYS = 2048
"""Gold replays kept, those used last; a task whose replay was dropped costs one more replay, never another verdict."""

_TABLES = ("users", "orders", "products")


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Outcome(_Record):
    """What came of one call: ``text`` is the tool's answer, or, if not ``ok``, why the call was refused."""

    call: ToolCall
    ok: bool
    text: str


class RowChange(_Record):
    """A row that differs from the shared database: its table, its key, and its whole content as canonical JSON."""

    table: str
    key: str
    content: str


class Episode(_Record):
    """What a sequence of calls came to: one outcome per call, and the rows it changed, sorted by table and key.

    Two episodes left the database in the same state exactly if their ``changes`` are equal.
    """

    outcomes: tuple[Outcome, ...] = Field(strict=False)
    changes: tuple[RowChange, ...] = Field(strict=False)


class Verdict(_Record):
    """The benchmark's judgement: is the database as the gold calls leave it, and was the customer told every fact."""

    database: bool
    communicated: bool
    episode: Episode

    @property
    def success(self) -> bool:
        """Both the database and what was communicated are right: the official score."""
        return self.database and self.communicated


@dataclass(frozen=True)
class _GoldCalls:
    """What a gold replay is remembered by: found by its task's id, but only equal if the calls are equal too.

    The id alone would serve another task's gold to a task of the same name; hashing the calls would cost more than it
    saves.
    """

    task_id: str
    calls: tuple[ToolCall, ...] = field(hash=False)


class RetailEnvironment:
    """The shop with its one database. Build it once; every episode starts from the same untouched state.

    Safe to use from several threads and after a fork: what is shared is only read, each episode has its own overlay,
    and no lock is held that a forked child could wait for. Memory stays bounded however many tasks are judged.

    Raises:
        BenchmarkDataChangedError: the installed benchmark is not the expected one.
    """

    def __init__(self) -> None:
        from inspect_ai.tool import ToolError
        from inspect_evals.tau2.retail.data_model import RetailDB
        from inspect_evals.tau2.retail.tools import all_retail_tools

        self._database = RetailDB.model_validate_json(gzip.decompress(read_benchmark_file("db.json.gz")))
        self._tables = {name: _SharedTable(getattr(self._database, name)) for name in _TABLES}
        self._specs = {spec.name: spec for spec in load_tools()}
        self._toolbox_class = _build_toolbox_class()
        self._published = {name: build() for name, build in zip(self._specs, all_retail_tools, strict=True)}
        self._tool_error: type[Exception] = ToolError
        # Tasks may be made without end, each with a new id: unbounded, this would be the one thing here that grows.
        self._replay_gold = lru_cache(maxsize=N_KEPT_GOLD_REPLAYS)(self._find_gold_changes)

    def run(self, calls: Sequence[ToolCall]) -> Episode:
        """Carry out calls in order, from the untouched database; a bad call is an outcome, never an exception.

        Args:
            calls: any calls, also of tools that do not exist or with arguments of the wrong shape.

        Returns:
            One outcome per call, and the rows that differ from the shared database afterwards.
        """
        tables = {name: _Table(shared) for name, shared in self._tables.items()}
        toolbox = self._toolbox_class()
        toolbox.db = SimpleNamespace(**tables)
        outcomes = tuple(self._carry_out(call, toolbox, tables.values()) for call in calls)
        return Episode(
            outcomes=outcomes,
            changes=tuple(
                RowChange(table=name, key=key, content=content)
                for name, table in sorted(tables.items())
                for key, content in table.iter_changes()
            ),
        )

    def verdict(self, task: Task, calls: Sequence[ToolCall], said: str) -> Verdict:
        """Carry out calls for a task and judge the result as the benchmark does.

        Args:
            task: the task, whose gold calls say what the database must look like.
            calls: what was done.
            said: everything the customer was told, in any layout.

        Returns:
            The verdict, with the episode it is about.
        """
        episode = self.run(calls)
        # The official rule: a substring test, with the commas of numbers taken from what was said only.
        heard = said.lower().replace(",", "")
        return Verdict(
            database=episode.changes == self._replay_gold(_GoldCalls(task.id, task.actions)),
            communicated=all(fact.lower() in heard for fact in task.facts),
            episode=episode,
        )

    def _find_gold_changes(self, gold: _GoldCalls) -> tuple[RowChange, ...]:
        return self.run([call for call in gold.calls if call.name not in STATELESS_TOOLS]).changes

    def _carry_out(self, call: ToolCall, toolbox: Any, tables: Iterable[_Table]) -> Outcome:
        spec = self._specs.get(call.name)
        if spec is None:
            return Outcome(call=call, ok=False, text=f"no tool {call.name!r}; tools: {', '.join(self._specs)}")
        fault = find_argument_fault(spec, call.arguments)
        if fault is not None:
            return Outcome(call=call, ok=False, text=fault)
        for table in tables:
            table.copying = call.name not in READING_TOOLS
        # Lists are handed over as copies: a record's arguments must not end up inside the database.
        arguments = {key: list(value) if isinstance(value, list) else value for key, value in call.arguments.items()}
        try:
            if hasattr(toolbox, call.name):
                result = getattr(toolbox, call.name)(**arguments)
            else:
                result = _finish(self._published[call.name](**arguments))
        except self._tool_error as refusal:
            return Outcome(call=call, ok=False, text=str(refusal))
        except Exception as error:
            return Outcome(call=call, ok=False, text=f"{type(error).__name__}: {error}")
        # The one tool that answers with a mapping publishes it as sorted JSON.
        text = result if isinstance(result, str) else json.dumps(result, sort_keys=True)
        return Outcome(call=call, ok=True, text=text)


@lru_cache(maxsize=1)
def load_environment() -> RetailEnvironment:
    """Build the shop once per process and return the same one ever after."""
    return RetailEnvironment()


def _canonical(row: BaseModel) -> str:
    # The text that the official whole-database hash would hash for this row: 1.0, 1 and -0.0 all differ.
    return json.dumps(row.model_dump(), sort_keys=True, default=str)


class _SharedTable:
    """One table of the shared database, and its rows as JSON once somebody has asked for them."""

    def __init__(self, rows: Mapping[str, BaseModel]) -> None:
        self.rows = rows
        self._json: dict[str, str] = {}
        self._canonical: dict[str, str] = {}

    def copy_row(self, key: str) -> BaseModel:
        """Build a row's copy; several times faster from JSON than by a deep copy."""
        row = self.rows[key]
        text = self._json.get(key)
        if text is None:
            text = self._json[key] = row.model_dump_json()
        return type(row).model_validate_json(text)

    def canonical_row(self, key: str) -> str:
        text = self._canonical.get(key)
        if text is None:
            text = self._canonical[key] = _canonical(self.rows[key])
        return text


class _Table(Mapping[str, BaseModel]):
    """One table as one episode sees it: its own copies first, then the shared rows.

    While ``copying``, every row that is asked for is copied, so that a writing tool never holds a shared one.
    """

    def __init__(self, shared: _SharedTable) -> None:
        self._shared = shared
        self._copies: dict[str, BaseModel] = {}
        self.copying = False

    def __getitem__(self, key: str) -> BaseModel:
        row = self._copies.get(key)
        if row is None:
            row = self._shared.rows[key]
            if self.copying:
                row = self._copies[key] = self._shared.copy_row(key)
        return row

    def __contains__(self, key: object) -> bool:
        return key in self._shared.rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._shared.rows)

    def __len__(self) -> int:
        return len(self._shared.rows)

    def items(self) -> ItemsView[str, BaseModel]:
        # Looking a customer up walks the whole table; without copies the plain dictionary does that fastest.
        return super().items() if self._copies or self.copying else self._shared.rows.items()

    def values(self) -> ValuesView[BaseModel]:
        return super().values() if self._copies or self.copying else self._shared.rows.values()

    def iter_changes(self) -> Iterator[tuple[str, str]]:
        """Yield key and canonical content of every row whose content is not the shared one's, in order of keys."""
        for key, row in sorted(self._copies.items()):
            content = _canonical(row)
            if content != self._shared.canonical_row(key):
                yield key, content


def _build_toolbox_class() -> type[Any]:
    """Build a plain class of the official tool functions, without the Store that the official class lives in."""
    from inspect_evals.tau2.retail.RetailAgentTools import RetailAgentTools

    functions = {name: function for name, function in vars(RetailAgentTools).items() if inspect.isfunction(function)}
    return type("RetailToolbox", (), functions)


def _finish(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never waits, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError("the tool waits for something; only tools that answer at once can be run here")
