"""Builds a data set, in the order in which it happens: shards, duplicates, data card, manifest.

Memory does not grow with the number of examples (24 bytes a row, to find duplicates by), and a build that was killed
resumes with the shards that are finished. Where the shards are made is left to a function: in this process, in worker
processes, or on a cluster (:mod:`graphhandoff.data.build_ray`); the files are the same to the byte.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from graphhandoff.configs.files import digest_config, digest_file, write_atomically
from graphhandoff.configs.loader import differing_keys
from graphhandoff.data.card import write_card
from graphhandoff.data.data_config import DataConfig
from graphhandoff.data.duplicates import DuplicateAcrossSplitsError, find_repeats, normalise
from graphhandoff.data.examples import SPLITS, SplitName
from graphhandoff.data.manifest import MANIFEST, FileRecord, Manifest, SplitRecord, read_manifest
from graphhandoff.data.parquet_files import read_rows
from graphhandoff.data.retail import load_split
from graphhandoff.data.shards import BUILD_FOLDER, ShardRecord, read_finished_shard, read_row_keys
from graphhandoff.data.workers import BuildError, ShardRunner, run_here

CARD = "README.md"
"""The data card's file name, where ``datasets`` and the hub look for it."""


class OtherSetError(BuildError):
    """The folder holds a set of another configuration; the message names the keys that differ."""


class SetBusyError(BuildError):
    """Another process builds in the folder."""


Progress = Callable[[int, int], None]
"""Called after every shard with how many shards are done and how many there are."""


class Built(NamedTuple):
    """A finished set; ``n_resumed`` shards were there already."""

    folder: Path
    manifest: Manifest
    n_resumed: int
    notices: tuple[str, ...]


def build(
    config: DataConfig,
    provenance: Mapping[str, Any],
    progress: Progress | None = None,
    run_shards: ShardRunner | None = None,
) -> Built:
    """Build a data set, or resume a build that was killed; a finished set of this configuration is left as it is.

    Args:
        config: checked configuration.
        provenance: what made it (commit, versions, hashes of the benchmark's files), for the manifest. Shards that
            another provenance made are made again.
        progress: called after every shard.
        run_shards: where shards are made; by default here or in ``n_workers`` processes.

    Raises:
        OtherSetError | SetBusyError: the folder is another set's, or another process is at work in it.
        BuildError: the folder holds something else, or a worker was lost.
        DuplicateAcrossSplitsError: two splits hold the same content.
        SynthesisError: the weights ask for what the shop does not have.
        ValueError: the split or the benchmark's files are not there or not as expected.
    """
    load_split(config.split)
    folder, shards = config.folder, config.shards()
    with _open(folder):
        if (folder / MANIFEST).is_file():
            _check_same(read_manifest(folder).config, config, folder)
            shutil.rmtree(folder / BUILD_FOLDER, ignore_errors=True)  # if the kill came after the manifest
            return Built(folder, read_manifest(folder), len(shards), ("the set is finished; nothing was built",))
        notices = _begin(folder, config, provenance)
        records = {shard.name: record for shard in shards if (record := read_finished_shard(shard, folder))}
        n_resumed = len(records)
        missing = [shard for shard in shards if shard.name not in records]
        if progress is not None:
            progress(n_resumed, len(shards))
        for record in (run_shards or run_here)(config, missing):
            records[record.name] = record
            if progress is not None:
                progress(len(records), len(shards))
        manifest = _finish(folder, config, [records[shard.name] for shard in shards], provenance)
    return Built(folder, manifest, n_resumed, notices)


@contextmanager
def _open(folder: Path) -> Iterator[None]:
    if folder.exists() and not folder.is_dir():
        raise BuildError(f"{folder} is a file; choose another name with --set name=…")
    folder.mkdir(parents=True, exist_ok=True)
    foreign = sorted(item.name for item in folder.iterdir() if item.name != ".lock")
    if foreign and not (folder / MANIFEST).is_file() and not (folder / BUILD_FOLDER).is_dir():
        raise BuildError(f"{folder} holds {foreign[0]!r} but no data set; choose another name with --set name=…")
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SetBusyError(f"another process builds in {folder}; wait for it or choose another name") from None
        yield


def _begin(folder: Path, config: DataConfig, provenance: Mapping[str, Any]) -> tuple[str, ...]:
    """Make the folders, or check those of a killed build and take away what is half or was made by other code."""
    build = folder / BUILD_FOLDER
    for path in (build, folder / "data"):
        path.mkdir(exist_ok=True)
    for leftover in build.glob("tmp-*"):
        shutil.rmtree(leftover)
    begun, now = build / "begun.json", {"config": config.resolved(), "provenance": dict(provenance)}
    notices: list[str] = []
    if begun.is_file():
        before = json.loads(begun.read_text(encoding="utf-8"))
        _check_same(before["config"], config, folder)
        if before["provenance"] != now["provenance"]:
            for path in (*build.glob("*.json"), *build.glob("*.npy")):
                path.unlink()
            differing = "; ".join(differing_keys(before["provenance"], now["provenance"]))
            notices.append(f"all shards are made again, since what makes them changed: {differing}")
    write_atomically(begun, json.dumps(now, indent=2) + "\n")
    return tuple(notices)


def _check_same(theirs: Mapping[str, Any], config: DataConfig, folder: Path) -> None:
    ours = config.resolved()
    if digest_config(theirs) != digest_config(ours):
        keys = "\n  ".join(differing_keys(theirs, ours))
        raise OtherSetError(
            f"{folder} holds a set of another configuration. Differing keys (there -> now):\n  {keys}\n"
            "Build with the same configuration, or choose another name with --set name=…"
        )


def _finish(
    folder: Path, config: DataConfig, records: Sequence[ShardRecord], provenance: Mapping[str, Any]
) -> Manifest:
    files = [file for record in records for file in record.files]
    for stale in {*folder.glob("data/*")} - {folder / file.path for file in files}:
        stale.unlink()  # of a start by other code; the card's patterns would find it
    repeats = _count_repeats(folder, records, files)
    rows: Counter[SplitName | None] = Counter()
    sources: Counter[str] = Counter()
    for file in files:
        rows[file.split] += file.rows
    for record in records:
        sources.update(record.sources)
    splits = {
        split: SplitRecord(
            rows=rows[split],
            customers=len({user for record in records for user in record.customers.get(split, ())}),
            duplicate_prose=repeats["prose"].get(split, 0),
            duplicate_content=repeats["content"].get(split, 0),
        )
        for split in SPLITS
        if rows[split]
    }
    write_atomically(folder / CARD, write_card(config.name, config.resolved(), splits, dict(sorted(sources.items()))))
    card = FileRecord(path=CARD, sha256=digest_file(folder / CARD), n_bytes=(folder / CARD).stat().st_size)
    manifest = Manifest(
        name=config.name,
        config=config.resolved(),
        config_digest=digest_config(config.resolved()),
        splits=splits,
        sources=dict(sorted(sources.items())),
        files=(card, *sorted(files, key=lambda file: file.path)),
        provenance=dict(provenance),
    )
    write_atomically(folder / MANIFEST, manifest.model_dump_json(indent=2) + "\n")
    shutil.rmtree(folder / BUILD_FOLDER)
    return manifest


def _count_repeats(
    folder: Path, records: Sequence[ShardRecord], files: Sequence[FileRecord]
) -> dict[str, dict[SplitName, int]]:
    """Count repeats within each split by what they repeat; refuse those across splits."""
    import numpy as np

    keys = [read_row_keys(record, folder) for record in records]
    offsets = np.cumsum([0, *(len(record.files) for record in records)])
    file = np.concatenate([part.file + np.uint32(offset) for part, offset in zip(keys, offsets, strict=False)])
    row = np.concatenate([part.row for part in keys])
    split = np.array([SPLITS.index(f.split or "train") for f in files], dtype=np.uint8)[file]
    counted: dict[str, dict[SplitName, int]] = {}
    for what in ("prose", "content"):
        repeats = find_repeats(np.concatenate([getattr(part, what) for part in keys]), split)
        for first, second in repeats.across:
            pair = [read_rows(folder / files[file[i]].path, [int(row[i])])[0] for i in (first, second)]
            _refuse_equal(what, pair[0], pair[1])
        counted[what] = {SPLITS[number]: count for number, count in repeats.within.items()}
    return counted


def _refuse_equal(what: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
    columns = ("prose",) if what == "prose" else ("graph", "task_text")
    if all(normalise(first[column]) == normalise(second[column]) for column in columns):
        raise DuplicateAcrossSplitsError(
            f"{first['id']} ({first['split']}) and {second['id']} ({second['split']}) hold the same "
            f"{' and '.join(columns)}; a split must not hold what another is trained or tested on. Build with another "
            "seed, or leave one of the two customers out"
        )
