"""Reads the Parquet files of a data set a batch at a time, so that a set of any size fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROWS_A_GROUP = 500
"""Rows that are written, and so are read, at once; about 10 MB."""


class CorruptFileError(ValueError):
    """A file of a data set is no Parquet file; says which."""


def iter_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file in order.

    Args:
        path: a Parquet file.
        columns: which columns to read (``a.list.element.b`` is field b of the records in list a); all by default.

    Raises:
        CorruptFileError: the file is not Parquet, or lacks one of the columns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            missing = sorted({column.split(".")[0] for column in columns or ()} - set(file.schema_arrow.names))
            if missing:
                raise CorruptFileError(f"{path} has no column {', '.join(missing)}; build the set again")
            for group in range(file.num_row_groups):
                yield from file.read_row_group(group, columns=None if columns is None else list(columns)).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise CorruptFileError(f"{path} is no readable Parquet file: {error}; build the set again") from None


def read_rows(path: Path, numbers: Sequence[int], columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return some rows of a file, read without the groups that hold none of them.

    Args:
        path: a Parquet file.
        numbers: places of the rows in the file, from 0, in ascending order.
        columns: which columns to read; all by default.

    Raises:
        CorruptFileError: the file is not Parquet, or has fewer rows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = []
    try:
        with pq.ParquetFile(path) as file:
            start = 0
            for group in range(file.num_row_groups):
                stop = start + file.metadata.row_group(group).num_rows
                wanted = [number - start for number in numbers if start <= number < stop]
                if wanted:
                    table = file.read_row_group(group, columns=None if columns is None else list(columns))
                    rows.extend(table.take(wanted).to_pylist())
                start = stop
    except (pa.ArrowException, OSError) as error:
        raise CorruptFileError(f"{path} is no readable Parquet file: {error}; build the set again") from None
    if len(rows) < len(numbers):
        raise CorruptFileError(f"{path} has {start} rows, row {numbers[-1]} is asked for; build the set again")
    return rows
