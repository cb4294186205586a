"""Makes one shard of a data set: the same bytes wherever it is made, so that any number of machines may share a build.

A shard is a range of the stream of problems. Its examples are streamed to disk through ``datasets``, one Parquet file
a split; what the whole set must know about it (counts, hashes, 16 bytes a row to find duplicates by) stands beside the
files in ``.build/`` until the set is finished. That record is written last: a shard without one is made again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphhandoff.configs.files import digest_file, write_atomically
from graphhandoff.data.duplicates import digest_content, digest_prose
from graphhandoff.data.examples import (
    SPLITS,
    Example,
    SplitName,
    build_example,
    build_hand_written_examples,
    features,
    to_row,
)
from graphhandoff.data.manifest import FileRecord
from graphhandoff.data.parquet_files import ROWS_A_GROUP
from graphhandoff.data.prose import write_prose
from graphhandoff.data.retail import load_split
from graphhandoff.data.rewrite import ProseConfig, rewrite
from graphhandoff.data.synthesize import SynthesisConfig, iter_problems

if TYPE_CHECKING:
    import numpy as np
    from datasets import Dataset
    from numpy.typing import NDArray

BUILD_FOLDER = ".build"
HAND_WRITTEN = "hand_written"


class Shard(NamedTuple):
    """Problems ``start`` to ``stop`` - 1 of the stream; the shard named ``hand_written`` is the written records."""

    name: str
    start: int
    stop: int


class ShardRecord(BaseModel):
    """A finished shard: its files, and who and what is in it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    files: tuple[FileRecord, ...] = Field(strict=False)
    customers: dict[SplitName, list[str]]
    sources: dict[str, int]


class RowKeys(NamedTuple):
    """Of every row of a shard: its hashes, which of the shard's files it is in, and its place there."""

    prose: NDArray[np.uint64]
    content: NDArray[np.uint64]
    file: NDArray[np.uint32]
    row: NDArray[np.uint32]


class Recipe(NamedTuple):
    """What the examples are made by: the stream of problems, and who tells them."""

    synthesis: SynthesisConfig
    prose: ProseConfig


def iter_examples(recipe: Recipe, shard: Shard) -> Iterator[Example]:
    """Yield the examples of a shard in order.

    Raises:
        SynthesisError: the weights ask for what the shop does not have.
        ModelUnavailableError: the model that should tell them cannot be used.
    """
    config = recipe.synthesis
    pinned = load_split(config.split)
    if shard.name == HAND_WRITTEN:
        yield from build_hand_written_examples(pinned)
        return
    told = ((p, write_prose(p, config.seed, config.split)) for p in iter_problems(config, shard.start, shard.stop))
    if recipe.prose.model is None:
        yield from (build_example(problem, prose, pinned) for problem, prose in told)
        return
    while group := list(islice(told, recipe.prose.n_at_once)):
        for (problem, prose), (text, writer) in zip(group, rewrite(group, recipe.prose), strict=True):
            yield build_example(problem, prose.model_copy(update={"text": text}), pinned, writer)


def write_shard(recipe: Recipe, shard: Shard, folder: Path) -> ShardRecord:
    """Make a shard and write its files, each whole or not at all; memory does not grow with its size.

    Args:
        recipe: what the examples are made by.
        shard: which part of the stream.
        folder: of the data set; ``data/`` and ``.build/`` are in it.

    Returns:
        The record, which is also left in ``.build/``.

    Raises:
        SynthesisError: the weights ask for what the shop does not have.
        ModelUnavailableError: the model that should tell them cannot be used.
    """
    import numpy as np
    from datasets.arrow_writer import ArrowWriter

    build = folder / BUILD_FOLDER
    splits: list[SplitName] = []
    keys: list[tuple[int, int, int, int]] = []
    customers: dict[SplitName, set[str]] = {}
    n_rows: Counter[SplitName] = Counter()
    sources: Counter[str] = Counter()
    with TemporaryDirectory(prefix=f"tmp-{shard.name}-", dir=build) as temporary, _quiet_datasets():
        writers: dict[SplitName, ArrowWriter] = {}
        for example in iter_examples(recipe, shard):
            split = example.split
            if split not in writers:
                path = str(Path(temporary, f"{split}.arrow"))
                writers[split] = ArrowWriter(features=features(), path=path, writer_batch_size=ROWS_A_GROUP)
                splits.append(split)
            row = to_row(example)
            writers[split].write(row)
            keys.append((digest_prose(row), digest_content(row), splits.index(split), n_rows[split]))
            n_rows[split] += 1
            customers.setdefault(split, set()).add(example.customer)
            sources[example.source] += 1
        files = []
        for split, writer in writers.items():
            writer.finalize()
            table = Path(temporary, f"{split}.parquet")
            _load_arrow(Path(temporary, f"{split}.arrow")).to_parquet(table, batch_size=ROWS_A_GROUP)
            files.append(_put(table, folder, split, shard.name, n_rows[split]))
        kept = Path(temporary, "keys.npy")
        np.save(kept, np.array(keys, dtype=np.uint64).reshape(-1, 4))
        os.replace(kept, build / f"{shard.name}.npy")
    record = ShardRecord(
        name=shard.name,
        files=tuple(sorted(files, key=lambda file: splits.index(file.split or "train"))),
        customers={split: sorted(customers[split]) for split in SPLITS if split in customers},
        sources=dict(sorted(sources.items())),
    )
    write_atomically(build / f"{shard.name}.json", record.model_dump_json(indent=1) + "\n")
    return record


def _put(path: Path, folder: Path, split: SplitName, shard: str, rows: int) -> FileRecord:
    name = f"data/{split}-{shard}.parquet"
    record = FileRecord(path=name, sha256=digest_file(path), n_bytes=path.stat().st_size, split=split, rows=rows)
    os.replace(path, folder / name)
    return record


def read_finished_shard(shard: Shard, folder: Path) -> ShardRecord | None:
    """Return the record of a shard that was made before, or ``None`` if it or one of its files is not whole."""
    path = folder / BUILD_FOLDER / f"{shard.name}.json"
    try:
        record = ShardRecord.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None
    whole = all((folder / f.path).is_file() and digest_file(folder / f.path) == f.sha256 for f in record.files)
    return record if whole and path.with_suffix(".npy").is_file() else None


def read_row_keys(record: ShardRecord, folder: Path) -> RowKeys:
    """Read what a finished shard keeps of its rows."""
    import numpy as np

    keys = np.load(folder / BUILD_FOLDER / f"{record.name}.npy", allow_pickle=False)
    return RowKeys(keys[:, 0], keys[:, 1], keys[:, 2].astype(np.uint32), keys[:, 3].astype(np.uint32))


def _load_arrow(path: Path) -> Dataset:
    from datasets import Dataset

    return Dataset.from_file(str(path))


@contextmanager
def _quiet_datasets() -> Iterator[None]:
    """Keep the library's own progress bars away, and leave the caller's setting as it was."""
    from datasets import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    shown = not are_progress_bars_disabled()
    disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            enable_progress_bars()
