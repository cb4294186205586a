"""Finds equal examples in a set of any size: 8 bytes a row are kept, sorted and compared, and hits are looked up."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class DuplicateAcrossSplitsError(ValueError):
    """The same content stands in two splits; the message names both examples."""


class Repeats(NamedTuple):
    """What :func:`find_repeats` found: repeats by split, and pairs of places whose splits differ."""

    within: dict[int, int]
    across: list[tuple[int, int]]


def normalise(text: str) -> str:
    """Return a text without what does not make it another one: letter case and white space."""
    return " ".join(text.casefold().split())


def digest_prose(row: Mapping[str, Any]) -> int:
    """Return 64 bits of a hash of a row's normalised prose."""
    return digest_text(normalise(row["prose"]))


def digest_content(row: Mapping[str, Any]) -> int:
    """Return 64 bits of a hash of a row's graph (stored in normal form) and of what the customer says."""
    return digest_text(f"{normalise(row['graph'])}\n{normalise(row['task_text'])}")


def digest_text(text: str) -> int:
    """Return 64 bits of a hash of a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def find_repeats(digests: NDArray[np.uint64], splits: NDArray[Any]) -> Repeats:
    """Find equal digests.

    Args:
        digests: one a row.
        splits: the split of each row, as a number; another number for every row finds all repeats.

    Returns:
        By split, how many rows another row of the same split stands before with the same digest; and one pair of
        places for every digest that two splits share.
    """
    import numpy as np

    order = np.lexsort((splits, digests))
    digest, split = digests[order], splits[order]
    same = digest[1:] == digest[:-1]
    repeated = same & (split[1:] == split[:-1])
    numbers, counts = np.unique(split[1:][repeated], return_counts=True)
    crossing = np.flatnonzero(same & (split[1:] != split[:-1]))
    return Repeats(
        within=dict(zip(numbers.tolist(), counts.tolist(), strict=True)),
        across=[(int(order[i]), int(order[i + 1])) for i in crossing],
    )
