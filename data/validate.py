"""Holds a finished data set against its own rules: the files against the manifest, the rows against the real tools.

Hashes, ids, customers and duplicates are checked of the whole set, in one pass with 32 bytes kept a row; what needs the
plan to be executed again is checked of a sample, or of all.
"""

from __future__ import annotations

import gzip
import json
import random
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from graphhandoff.compress.contract import ContractError, check_graph
from graphhandoff.compress.identifiers import find_identifiers, find_lost_identifiers
from graphhandoff.compress.protocol import iter_strings
from graphhandoff.configs.files import digest_file
from graphhandoff.data.duplicates import digest_content, digest_prose, digest_text, find_repeats
from graphhandoff.data.environment import load_environment
from graphhandoff.data.examples import (
    SPLITS,
    CorruptRowError,
    Example,
    SplitName,
    from_row,
    is_success,
    pinned_customers,
    split_of,
    validation_customers,
)
from graphhandoff.data.manifest import FileRecord, Manifest, read_manifest
from graphhandoff.data.parquet_files import CorruptFileError, iter_rows, read_rows
from graphhandoff.data.retail import Split, load_split, load_tools, read_benchmark_file

DEFAULT_SAMPLE = 500


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Violation(_Record):
    """A rule that is broken, where (a row's id or a file), and how."""

    rule: str
    where: str
    detail: str


class Validation(_Record):
    """What was checked and what was found; ``n_executed`` rows were executed again."""

    n_rows: int
    n_executed: int
    violations: tuple[Violation, ...] = Field(strict=False)


Progress = Callable[[str, int, int], None]
"""Called with what is being checked, how much of it is done, and how much there is."""


class Rules(NamedTuple):
    """What rows are held against: the customers by their split, and what belongs to a pinned customer."""

    pinned: frozenset[str]
    pinned_identifiers: frozenset[str]
    validation: frozenset[str]


def load_rules(split: Split) -> Rules:
    """Load what rows are held against.

    Args:
        split: the pinned tasks.
    """
    pinned = pinned_customers(split)
    users = json.loads(gzip.decompress(read_benchmark_file("db.json.gz")))["users"]
    theirs = {
        identifier
        for user_id in pinned
        for identifier in (
            user_id,
            users[user_id]["email"],
            *users[user_id]["orders"],
            *users[user_id]["payment_methods"],
        )
    }
    return Rules(pinned, frozenset(theirs), validation_customers(split))


def validate(
    folder: Path, seed: int, n_sample: int | None = DEFAULT_SAMPLE, progress: Progress | None = None
) -> Validation:
    """Check a finished data set.

    Args:
        folder: of the set.
        seed: of the sample.
        n_sample: how many rows are executed again; ``None`` for all.
        progress: called from time to time.

    Raises:
        SetNotFoundError: the folder holds no finished set.
        ValueError: the split it names or the benchmark's files are not there or not as expected.
    """
    manifest = read_manifest(folder)
    rules = load_rules(load_split(manifest.config["split"]))
    show = progress or (lambda *_: None)
    violations = list(_check_files(folder, manifest, show))
    broken = {violation.where for violation in violations}
    readable = [file for file in manifest.parquet_files() if file.path not in broken]
    violations += _check_rows(folder, readable, rules, show)
    broken |= {violation.where for violation in violations if violation.rule == "file"}
    readable = [file for file in readable if file.path not in broken]
    n_executed = 0
    planned = sum(file.rows for file in readable) if n_sample is None else min(n_sample, sum(f.rows for f in readable))
    for row in _sample(folder, readable, seed, n_sample):
        violations += check_row(row, rules)
        n_executed += 1
        show("executed again", n_executed, planned)
    return Validation(n_rows=manifest.rows, n_executed=n_executed, violations=tuple(violations))


def _check_files(folder: Path, manifest: Manifest, show: Progress) -> Iterator[Violation]:
    for done, file in enumerate(manifest.files, start=1):
        path = folder / file.path
        if not path.is_file():
            yield Violation(rule="file", where=file.path, detail="is missing; build the set again")
        elif (found := digest_file(path)) != file.sha256:
            detail = f"has SHA-256 {found}, the manifest says {file.sha256}; restore it or build the set again"
            yield Violation(rule="file", where=file.path, detail=detail)
        show("files", done, len(manifest.files))
    listed = {file.path for file in manifest.files}
    for path in sorted(folder.glob("data/*.parquet")):
        if (name := path.relative_to(folder).as_posix()) not in listed:
            yield Violation(rule="file", where=name, detail="is not in the manifest; take it away")


def _check_rows(folder: Path, files: Iterable[FileRecord], rules: Rules, show: Progress) -> list[Violation]:
    """Check of every row what needs no execution."""
    import numpy as np

    files = list(files)
    found: list[Violation] = []
    homes: dict[str, tuple[str, str]] = {}
    keys = {"id": array("Q"), "prose": array("Q"), "graph and task_text": array("Q")}
    splits, places = array("B"), array("Q")
    for number, file in enumerate(files):
        n_rows = 0
        try:
            for row in iter_rows(folder / file.path, ("id", "split", "customer", "prose", "graph", "task_text")):
                digests = (digest_text(row["id"]), digest_prose(row), digest_content(row))
                for kept, digest in zip(keys.values(), digests, strict=True):
                    kept.append(digest)
                splits.append(SPLITS.index(file.split or "train"))
                places.append(number << 32 | n_rows)
                found += _check_customer(row, file.split, rules, homes)
                n_rows += 1
        except CorruptFileError as error:
            found.append(Violation(rule="file", where=file.path, detail=str(error)))
            continue
        if n_rows != file.rows:
            detail = f"has {n_rows} rows, the manifest says {file.rows}"
            found.append(Violation(rule="file", where=file.path, detail=detail))
        show("rows", len(splits), sum(file.rows for file in files))
    for what, kept in keys.items():
        # An id may stand once in the whole set; equal content may recur, and is counted, within a split.
        homes_of = np.arange(len(splits)) if what == "id" else np.array(splits)
        repeats = find_repeats(np.array(kept, dtype=np.uint64), homes_of)
        for pair in repeats.across:
            first, second = (
                read_rows(folder / files[places[i] >> 32].path, [places[i] & 0xFFFFFFFF], ["id", "split"])[0]
                for i in pair
            )
            detail = f"holds the same {what} as {second['id']} ({second['split']})"
            rule = "unique ids" if what == "id" else "no duplicate across splits"
            found.append(Violation(rule=rule, where=first["id"], detail=detail))
    return found


def _check_customer(
    row: Mapping[str, Any], file_split: SplitName | None, rules: Rules, homes: dict[str, tuple[str, str]]
) -> Iterator[Violation]:
    customer, split, name = row["customer"], row["split"], row["id"]
    if customer in rules.pinned:
        yield Violation(rule="no pinned customer", where=name, detail=f"is about {customer}, whom a pinned task names")
    if split != file_split:
        detail = f"says split {split} in a file of {file_split}"
        yield Violation(rule="split", where=name, detail=detail)
    elif split != (due := split_of(customer, rules.validation)):
        yield Violation(rule="split", where=name, detail=f"is in {split}; {customer} belongs to {due}")
    home, witness = homes.setdefault(customer, (split, name))
    if home != split:
        detail = f"{customer} is in {split} here and in {home} in {witness}"
        yield Violation(rule="splits disjoint by customer", where=name, detail=detail)


def _sample(folder: Path, files: list[FileRecord], seed: int, n_sample: int | None) -> Iterator[dict[str, Any]]:
    if n_sample is None:
        for file in files:
            yield from iter_rows(folder / file.path)
        return
    n_rows = sum(file.rows for file in files)
    chosen = sorted(random.Random(seed).sample(range(n_rows), min(n_sample, n_rows)))
    start = 0
    for file in files:
        here = [place - start for place in chosen if start <= place < start + file.rows]
        yield from read_rows(folder / file.path, here) if here else ()
        start += file.rows


def check_row(row: Mapping[str, Any], rules: Rules) -> list[Violation]:
    """Check one row, its plan executed again.

    Returns:
        Every broken rule.
    """
    try:
        example = from_row(row)
    except CorruptRowError as error:
        return [Violation(rule="readable", where=str(row.get("id")), detail=str(error))]
    problems = (*_check_execution(example), *_check_prose(example), *_check_pinned(example, rules))
    return [Violation(rule=rule, where=example.id, detail=detail) for rule, detail in problems]


def _check_execution(example: Example) -> Iterator[tuple[str, str]]:
    outcomes = load_environment().run(example.calls).outcomes
    for place, (then, now) in enumerate(zip(example.outcomes, outcomes, strict=True), start=1):
        if then != now:
            told = "was carried out" if then.ok else "was refused"
            yield "outcomes", f"call {place}, {then.call.name}, {told} with another answer than now: {now.text[:80]!r}"
    if example.success != is_success(outcomes):
        yield "success", f"says {example.success}, the tools say {is_success(outcomes)}"
    elif not example.success and example.source == "synthetic":
        yield "success", "a synthetic plan must work"
    try:
        calls = check_graph(example.graph, load_tools())
    except ContractError as error:
        yield "graph is the plan", str(error)
        return
    if calls != example.calls:
        yield "graph is the plan", f"its {len(calls)} calls are not the {len(example.calls)} that were executed"
    told_facts = tuple(text.removeprefix("tell ") for text in example.graph.iter_texts("postcondition"))
    if told_facts != example.facts:
        yield "graph is the plan", f"it tells {list(told_facts)}, the facts are {list(example.facts)}"


def _check_prose(example: Example) -> Iterator[tuple[str, str]]:
    for call in example.calls:
        for value in iter_strings(list(call.arguments.values())):
            lost = find_lost_identifiers(find_identifiers(value), example.prose)
            if lost:
                yield "prose is complete", f"{call.name} needs {', '.join(lost)}, not in the prose byte for byte"
            elif value not in example.prose:
                yield "prose is complete", f"{call.name} needs {value!r}, not in the prose"
    # The benchmark's own rule: a substring, commas taken from what is said.
    said = example.prose.lower().replace(",", "")
    for fact in example.facts:
        if fact.lower() not in said:
            yield "prose is complete", f"the fact {fact!r} is not in it"


def _check_pinned(example: Example, rules: Rules) -> Iterator[tuple[str, str]]:
    answers = (outcome.text for outcome in example.outcomes)
    arguments = (value for call in example.calls for value in iter_strings(list(call.arguments.values())))
    seen: set[str] = set()
    for text in (example.task_text, example.prose, *example.facts, *arguments, *answers):
        seen.update(find_identifiers(text))
    for identifier in sorted(seen & rules.pinned_identifiers):
        yield "no pinned customer", f"holds {identifier}, which belongs to a customer of a pinned task"
