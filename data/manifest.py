"""What a data set says about itself: its configuration, its files with their SHA-256, and what was counted.

The manifest is the last file that a build writes: a folder without one is not finished.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphhandoff.data.examples import SplitName

MANIFEST = "manifest.json"


class SetNotFoundError(ValueError):
    """A folder holds no finished data set."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class FileRecord(_Record):
    """A file of the set, its path relative to the folder; only Parquet files have a split and rows."""

    path: str
    sha256: str
    n_bytes: int
    split: SplitName | None = None
    rows: int = 0


class SplitRecord(_Record):
    """What a split holds; the last two count rows that another row of the split equals but for the first."""

    rows: int
    customers: int
    duplicate_prose: int
    duplicate_content: int


class Manifest(_Record):
    """The record of a finished data set."""

    format: Literal[1] = 1
    name: str
    config: dict[str, Any]
    config_digest: str
    splits: dict[SplitName, SplitRecord]
    sources: dict[str, int]
    files: tuple[FileRecord, ...] = Field(strict=False)
    provenance: dict[str, Any]

    @property
    def rows(self) -> int:
        """How many examples there are."""
        return sum(split.rows for split in self.splits.values())

    def parquet_files(self, split: SplitName | None = None) -> tuple[FileRecord, ...]:
        """Return the files with examples, of one split or of all."""
        return tuple(f for f in self.files if f.split is not None and split in (None, f.split))


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a finished data set.

    Raises:
        SetNotFoundError: there is none, or it cannot be read.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise SetNotFoundError(
            f"{folder} holds no finished data set (no {MANIFEST}); "
            "`graphhandoff data build --config configs/data/retail.yaml` makes one, and resumes a build that was killed"
        )
    try:
        return Manifest.model_validate_json(path.read_text(encoding="utf-8"))
    except (ValidationError, UnicodeDecodeError) as error:
        raise SetNotFoundError(f"{path} is no manifest: {error}; build the set again in another folder") from None
