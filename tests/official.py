"""The official tools to hold the shop against: on a database loaded anew, or, much faster, on one that is mended."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any
from uuid import uuid4

from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data.environment import STATELESS_TOOLS, Episode
from graphhandoff.data.retail import Task, read_benchmark_file

TABLES = ("users", "orders", "products")

ChangedRows = Mapping[tuple[str, str], str]
"""The official hash of every row that differs from the untouched database, by table and key."""


class OfficialShop:
    """Inspect's own tools on a database loaded anew for every sequence, hashed as a whole: the scorer's own way."""

    def __init__(self) -> None:
        from inspect_ai.tool import ToolDef, ToolError
        from inspect_evals.tau2.retail.data_model import RetailDB
        from inspect_evals.tau2.retail.RetailAgentTools import RetailAgentTools
        from inspect_evals.tau2.retail.tools import all_retail_tools
        from inspect_evals.tau2.utils import get_dict_hash
        from jsonschema import Draft7Validator  # type: ignore[import-untyped]

        self.tool_error = ToolError
        self.hash = get_dict_hash
        self.tools_class = RetailAgentTools
        self.database_class = RetailDB
        definitions = [ToolDef(build()) for build in all_retail_tools]
        self.validators = {
            definition.name: Draft7Validator(definition.parameters.model_dump(exclude_none=True))
            for definition in definitions
        }
        self.json = gzip.decompress(read_benchmark_file("db.json.gz"))
        self.base: dict[str, Any] = self.fresh().model_dump()
        self.base_hash: str = self.fresh().get_hash()
        self._gold_hashes: dict[str, tuple[tuple[ToolCall, ...], str]] = {}

    def fresh(self) -> Any:
        """Build the database as the official loader does, without the unpacked file that it leaves behind."""
        return self.database_class.model_validate(json.loads(self.json))

    def accepts(self, call: ToolCall) -> bool:
        """Whether Inspect would hand the call to its tool at all."""
        return call.name in self.validators and self.validators[call.name].is_valid(call.arguments)

    def carry_out(self, tools: Any, calls: Sequence[ToolCall]) -> list[str | None]:
        """Texts that the tools answered or refused with; None where Inspect refuses the call itself."""
        texts: list[str | None] = []
        for call in calls:
            if not self.accepts(call):
                texts.append(None)
            elif call.name in STATELESS_TOOLS:
                texts.append("")
            else:
                try:
                    answer = getattr(tools, call.name)(**call.arguments)
                except self.tool_error as refusal:
                    answer = str(refusal)
                except Exception as error:
                    answer = f"{type(error).__name__}: {error}"
                texts.append(answer if isinstance(answer, str) else json.dumps(answer, sort_keys=True))
        return texts

    def run(self, calls: Sequence[ToolCall]) -> tuple[list[str | None], str]:
        """What the tools said, and the hash of the whole database afterwards."""
        tools = self.tools_class(instance=str(uuid4()))
        tools.db = self.fresh()
        texts = self.carry_out(tools, calls)
        digest: str = tools.db.get_hash()
        tools.db = self.database_class()  # the Store would keep every database until the process ends
        return texts, digest

    def gold_hash(self, task: Task) -> str:
        """The hash that the task's gold calls end with, made once as long as they are the same calls."""
        if task.id not in self._gold_hashes or self._gold_hashes[task.id][0] != task.actions:
            self._gold_hashes[task.id] = task.actions, self.run(task.actions)[1]
        return self._gold_hashes[task.id][1]

    def hash_of(self, episode: Episode) -> str:
        """The official hash of the untouched database with an episode's changed rows put in."""
        changed: dict[str, Any] = {table: dict(rows) for table, rows in self.base.items()}
        for change in episode.changes:
            changed[change.table][change.key] = json.loads(change.content)
        found: str = self.hash(changed)
        return found


class _WatchedTable(dict[str, Any]):
    """An official table that remembers which rows were asked for; the rows are the official objects themselves.

    Walking through the table asks for none: the three tools that walk only look, and MendedShop's check at the end
    would show it if one did not.
    """

    def __init__(self, rows: Mapping[str, Any], base_hashes: Mapping[str, str]) -> None:
        super().__init__(rows)
        self._base_hashes = base_hashes
        self.given_out: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        row = super().__getitem__(key)
        if key not in self.given_out:
            assert row_hash(row) == self._base_hashes[key], "an earlier sequence left a mark"
            self.given_out.add(key)
        return row


class MendedShop:
    """Inspect's own tools on one official database, mended after every sequence instead of loaded anew.

    The tools work on the official rows in place: no copies, nothing of the environment's. Afterwards every row that was
    asked for is hashed by the official function, and those that changed are validated anew from the benchmark's file.
    That is sound as long as no row changes without having been asked for. Such a row would be met with a wrong hash by
    the next sequence that asks for it, which fails on the spot; and if none ever asks, ``whole_hash`` at the end is not
    the untouched database's. So a caller that checks ``whole_hash`` at the end has checked every sequence.
    """

    def __init__(self, shop: OfficialShop) -> None:
        self._shop = shop
        self._raw: dict[str, dict[str, Any]] = json.loads(shop.json)
        self._database = shop.fresh()
        self._base_hashes = {
            table: {key: row_hash(row) for key, row in getattr(self._database, table).items()} for table in TABLES
        }
        self._tables = {
            table: _WatchedTable(getattr(self._database, table), self._base_hashes[table]) for table in TABLES
        }
        for name, table in self._tables.items():
            setattr(self._database, name, table)
        self._tools = shop.tools_class(instance=str(uuid4()))
        self._tools.db = self._database
        self._gold_rows: dict[str, tuple[tuple[ToolCall, ...], ChangedRows]] = {}
        assert self._tools.db.users is self._tables["users"], "the tools must work on the watched tables"

    def run(self, calls: Sequence[ToolCall]) -> tuple[list[str | None], ChangedRows]:
        """What the tools said, and the rows they changed, which are mended before this returns."""
        texts = self._shop.carry_out(self._tools, calls)
        changed: dict[tuple[str, str], str] = {}
        for name, table in self._tables.items():
            for key in sorted(table.given_out):
                row = dict.__getitem__(table, key)
                found = row_hash(row)
                if found != self._base_hashes[name][key]:
                    changed[name, key] = found
                    dict.__setitem__(table, key, type(row).model_validate(self._raw[name][key]))
            table.given_out.clear()
        return texts, changed

    def gold_rows(self, task: Task) -> ChangedRows:
        """The rows that the task's gold calls change, found once as long as they are the same calls."""
        if task.id not in self._gold_rows or self._gold_rows[task.id][0] != task.actions:
            self._gold_rows[task.id] = task.actions, self.run(task.actions)[1]
        return self._gold_rows[task.id][1]

    def whole_hash(self) -> str:
        """The official hash of the whole database, which is the untouched one's between sequences."""
        digest: str = self._database.get_hash()
        return digest


def row_hash(row: Any) -> str:
    """Hash one row as the official scorer hashes a database."""
    from inspect_evals.tau2.utils import get_pydantic_hash

    digest: str = get_pydantic_hash(row)
    return digest


def changed_rows(episode: Episode) -> ChangedRows:
    """An episode's changes in the form in which the mended shop tells its own."""
    return {(change.table, change.key): sha256(change.content.encode()).hexdigest() for change in episode.changes}


@lru_cache(maxsize=1)
def load_official_shop() -> OfficialShop:
    """Build the official side once for all test files."""
    return OfficialShop()
