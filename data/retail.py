"""The τ²-bench retail benchmark as Inspect Evals ships it: its tasks, policy, tools and the splits of its tasks.

Everything is read from the files inside the installed ``inspect_evals`` package, and only if they are byte for byte
the files this project was written against: a score means nothing without the data it was measured on. Running calls
on the tools, and judging what they did, is :mod:`graphhandoff.data.environment`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphhandoff.compress.contract import signatures_of
from graphhandoff.compress.protocol import ToolCall, ToolParameter, ToolSpec, iter_strings
from graphhandoff.compress.wire import Signatures

EXPECTED_HASHES: Mapping[str, str] = {
    "tasks.json": "b8bfb7a5bf636d263b34bde94283a09e4380c816770bd29e21f067f98f21358c",
    "db.json.gz": "d2d99f30a74c1f8cb1cba432f9d63328318cbc7ad7611c5dba9cb974a90604be",
    "policy.txt": "2c9652afbce57d6e087768d37cda64d31c53d50b3e3225cfdb791bac66466467",
    "split_tasks.json": "5786a7b81edf271360255b4368bc15fbe7461bb4928f094dc8dfab97aeeb1696",
}
"""SHA-256 of each benchmark file; the same in inspect-evals 0.26 and 0.28."""

_USER_ID = re.compile(r"[a-z]+_[a-z]+_[0-9]+")
_ORDER_ID = re.compile(r"\bW[0-9]{7}\b")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_WORD = re.compile(r"\w+")


class BenchmarkDataChangedError(ValueError):
    """The installed benchmark is not the one this project measures: a file is missing or has other content."""


class SplitNotFoundError(ValueError):
    """No split has that name or path."""


class InvalidSplitError(ValueError):
    """A split file does not say what a split must say, or names tasks that do not exist or come twice."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Task(_Record):
    """One benchmark problem: what the customer wants, the gold calls, and the facts the customer must be told.

    ``text`` is the customer's side as one readable text. ``user_ids`` holds every customer the task names or touches,
    sorted: two tasks that share one are about the same account.
    """

    id: str
    split: Literal["train", "test"]
    text: str
    actions: tuple[ToolCall, ...] = Field(default=(), strict=False)
    facts: tuple[str, ...] = Field(default=(), strict=False)
    user_ids: tuple[str, ...] = Field(default=(), strict=False)


class Split(_Record):
    """A named set of tasks, in the order in which they are reported."""

    name: str
    description: str = ""
    task_ids: tuple[str, ...] = Field(strict=False, min_length=1)


def data_hashes() -> dict[str, str]:
    """Hash the benchmark's files as they are installed, for provenance: nothing is compared here.

    Returns:
        SHA-256 in hexadecimal by file name.

    Raises:
        BenchmarkDataChangedError: the package or one of the files is not there.
    """
    return {name: hashlib.sha256(_read_unchecked(name)).hexdigest() for name in EXPECTED_HASHES}


def read_benchmark_file(name: str) -> bytes:
    """Read one of the benchmark's files, refusing it unless it is the expected one.

    Args:
        name: a key of ``EXPECTED_HASHES``.

    Returns:
        The file's content as it is on disk.

    Raises:
        BenchmarkDataChangedError: the file is missing, or its SHA-256 is another.
    """
    content = _read_unchecked(name)
    found = hashlib.sha256(content).hexdigest()
    if found != EXPECTED_HASHES[name]:
        raise BenchmarkDataChangedError(
            f"the installed retail benchmark differs: {name} has SHA-256 {found}, expected {EXPECTED_HASHES[name]}. "
            + _REMEDY
        )
    return content


@lru_cache(maxsize=1)
def load_tasks() -> tuple[Task, ...]:
    """Load all tasks of the benchmark in the order of its file; cached.

    Returns:
        114 tasks, 74 of them ``train`` and 40 ``test``.

    Raises:
        BenchmarkDataChangedError: the installed benchmark is not the expected one.
    """
    splits: dict[str, list[str]] = json.loads(read_benchmark_file("split_tasks.json"))
    split_of: dict[str, Literal["train", "test"]] = dict.fromkeys(splits["train"], "train")
    split_of.update(dict.fromkeys(splits["test"], "test"))
    customers = _Customers(json.loads(gzip.decompress(read_benchmark_file("db.json.gz"))))
    tasks = []
    for record in json.loads(read_benchmark_file("tasks.json")):
        criteria = record["evaluation_criteria"]
        actions = tuple(ToolCall(name=action["name"], arguments=action["arguments"]) for action in criteria["actions"])
        tasks.append(
            Task(
                id=record["id"],
                split=split_of[record["id"]],
                text=write_customer_text(record["user_scenario"]),
                actions=actions,
                facts=tuple(criteria["communicate_info"] or ()),
                user_ids=customers.find("\n".join(iter_strings(record)), actions),
            )
        )
    return tuple(tasks)


def load_policy() -> str:
    """Load the policy that the shop's agents must follow, as Markdown.

    Raises:
        BenchmarkDataChangedError: the installed policy is not the expected one.
    """
    return read_benchmark_file("policy.txt").decode("utf-8")


@lru_cache(maxsize=1)
def load_tools() -> tuple[ToolSpec, ...]:
    """Load the shop's tools as Inspect publishes them to a model; cached, the first call takes about two seconds.

    Returns:
        15 tools in published order, with parameters in the order of their signatures.
    """
    from inspect_ai.tool import ToolDef
    from inspect_evals.tau2.retail.tools import all_retail_tools

    return tuple(_tool_spec(ToolDef(build_tool())) for build_tool in all_retail_tools)


@lru_cache(maxsize=1)
def load_signatures() -> Signatures:
    """Return the parameter names of every tool in published order, as the compact wire wants them; cached."""
    return signatures_of(load_tools())


def load_split(path_or_name: str | Path) -> Split:
    """Load a split of the tasks from YAML.

    Args:
        path_or_name: the name of a packaged split (``retail_pinned_50``), or the path of a YAML file; text that
            ends in ``.yaml`` or ``.yml`` or holds a ``/`` is a path.

    Returns:
        The split, its ids in the order of the file.

    Raises:
        SplitNotFoundError: there is no such split; the message lists the names that exist.
        InvalidSplitError: the file is no split, or it names unknown tasks or a task twice.
    """
    packaged = resources.files("graphhandoff.configs") / "splits"
    text = str(path_or_name)
    is_path = isinstance(path_or_name, Path) or "/" in text or text.endswith((".yaml", ".yml"))
    source = Path(path_or_name) if is_path else packaged / f"{text}.yaml"
    if not source.is_file():
        names = sorted(entry.name.removesuffix(".yaml") for entry in packaged.iterdir() if entry.name.endswith(".yaml"))
        raise SplitNotFoundError(
            f"no split at {text!r}; available: {', '.join(names)}. Use one of these names or the path of a YAML file."
        )
    try:
        split = Split.model_validate(yaml.safe_load(source.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValidationError, UnicodeDecodeError) as error:
        raise InvalidSplitError(
            f"{source} is not a split: {error}. Allowed: name, description and task_ids, a list of quoted ids."
        ) from error
    _check_task_ids(split, str(source))
    return split


def training_task_ids(pinned: Split) -> tuple[str, ...]:
    """List the tasks one may train on: those neither pinned nor about a customer of a pinned task.

    Args:
        pinned: the tasks that are measured.

    Returns:
        Task ids in the order of the benchmark's file.
    """
    measured_users = {user for task in load_tasks() if task.id in pinned.task_ids for user in task.user_ids}
    return tuple(
        task.id for task in load_tasks() if task.id not in pinned.task_ids and measured_users.isdisjoint(task.user_ids)
    )


def write_customer_text(scenario: Mapping[str, Any]) -> str:
    """Write a task's scenario as one text, a titled line per part; any part may be missing, null or a lone text."""
    instructions = scenario.get("instructions")
    fields = instructions if isinstance(instructions, Mapping) else {}
    parts = (
        ("Reason for call", fields.get("reason_for_call")),
        ("Known info", fields.get("known_info")),
        ("Unknown info", fields.get("unknown_info")),
        ("Task instructions", instructions if isinstance(instructions, str) else fields.get("task_instructions")),
        ("Persona", scenario.get("persona")),
    )
    # Many tasks fill a field they do not need with null or with a lone full stop.
    return "\n".join(f"{title}: {t.strip()}" for title, t in parts if isinstance(t, str) and t.strip(" .\n"))


_REMEDY = (
    "Results would not be comparable: install the version that was used (pip install 'inspect-evals>=0.26,<0.29'), "
    "or update EXPECTED_HASHES and measure everything again."
)


def _read_unchecked(name: str) -> bytes:
    # find_spec of a top-level package does not import it, and importing this one takes seconds.
    package = find_spec("inspect_evals")
    for root in (package.submodule_search_locations or ()) if package else ():
        path = Path(root, "tau2", "data", "domains", "retail", name)
        if path.is_file():
            return path.read_bytes()
    raise BenchmarkDataChangedError(
        f"the retail benchmark is not installed: no {name} in the package inspect_evals, "
        f"expected {', '.join(EXPECTED_HASHES)}. {_REMEDY}"
    )


class _Customers:
    """Finds the customers that a task names or touches."""

    def __init__(self, database: Mapping[str, Any]) -> None:
        self._users: Mapping[str, Any] = database["users"]
        self._owners = {order_id[1:]: order["user_id"] for order_id, order in database["orders"].items()}

    def find(self, text: str, actions: tuple[ToolCall, ...]) -> tuple[str, ...]:
        found = {user_id for user_id in _USER_ID.findall(text) if user_id in self._users}
        found.update(self._owners[order] for order in _ORDER_ID.findall(text) if order in self._owners)
        lowered = text.lower()
        emails, words = set(_EMAIL.findall(lowered)), set(_WORD.findall(lowered))
        looked_up = {
            tuple(str(call.arguments.get(key)).lower() for key in ("first_name", "last_name", "zip"))
            for call in actions
        }
        for user_id, user in self._users.items():
            first, last = user["name"]["first_name"].lower(), user["name"]["last_name"].lower()
            zip_code = user["address"]["zip"]
            # A name alone is no customer: many share one. The ZIP code need not stand beside it.
            named = zip_code in words and re.search(rf"\b{re.escape(f'{first} {last}')}\b", lowered)
            if named or user["email"].lower() in emails or (first, last, zip_code) in looked_up:
                found.add(user_id)
        return tuple(sorted(found))


def _tool_spec(definition: Any) -> ToolSpec:
    schema = definition.parameters
    return ToolSpec(
        name=definition.name,
        description=definition.description,
        parameters=tuple(
            ToolParameter(
                name=name,
                type=parameter.type,
                description=parameter.description or "",
                required=name in schema.required,
                items=parameter.items.type if parameter.items else None,
            )
            for name, parameter in schema.properties.items()
        ),
    )


def _check_task_ids(split: Split, source: str) -> None:
    known = {task.id for task in load_tasks()}
    unknown = [task_id for task_id in split.task_ids if task_id not in known]
    repeated = [task_id for task_id, count in Counter(split.task_ids).items() if count > 1]
    if unknown or repeated:
        raise InvalidSplitError(
            f"{source}: unknown task ids {unknown}, repeated task ids {repeated}; "
            f"allowed: each of '0' to '{len(known) - 1}' at most once. Remove or correct these."
        )
