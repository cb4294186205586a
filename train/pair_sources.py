"""Where training pairs come from."""

from __future__ import annotations

from graphhandoff.train.keep_pairs import PairError, PairSets, read_pairs
from graphhandoff.train.token_classifier_config import PairDataConfig


def load_pairs(data: PairDataConfig) -> PairSets:
    """Load the pairs that a configuration asks for.

    Raises:
        PairError: the file cannot be used, or none is named.
    """
    if data.path is None:
        raise PairError(
            "data.path names no file of pairs, and this version cannot make them from delegations yet; allowed: a "
            ".jsonl or .parquet file with words, keep and split. Set data.path"
        )
    return read_pairs(data.path)
