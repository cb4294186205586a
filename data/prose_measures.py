"""How generated prose compares with hand-written: length, variety, repeats, and can a classifier tell them apart?"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from graphhandoff.compress.identifiers import find_identifiers
from graphhandoff.compress.tokens import count_tokens
from graphhandoff.data.delegations import load_reference_delegations

if TYPE_CHECKING:
    from graphhandoff.data.manifest import Manifest

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n+")
_WINDOW = 5_000
_SHORTEST_SENTENCE = 3


class ProseMeasures(NamedTuple):
    """What a collection of texts is like.

    ``distinct_words`` and ``distinct_pairs`` are the numbers of different words and of different pairs of neighbours
    in the first 5,000 words (lower-cased, identifiers and numbers left out); ``repeated_sentences`` is the share of
    different sentences of three words or more that stand in more than one text.
    """

    n_texts: int
    mean_words: float
    mean_tokens: float
    distinct_words: int
    distinct_pairs: int
    repeated_sentences: float


def measure_prose(texts: Sequence[str]) -> ProseMeasures:
    """Measure texts; only collections of about the same number can be compared.

    Raises:
        ValueError: there are none.
    """
    if not texts:
        raise ValueError("no texts to measure; give one at least")
    words = [word.lower() for text in texts for word in _WORD.findall(_without_identifiers(text))][:_WINDOW]
    sentences: Counter[str] = Counter()
    for text in texts:
        sentences.update(
            {
                " ".join(sentence.lower().split())
                for sentence in _SENTENCE_END.split(text)
                if len(sentence.split()) >= _SHORTEST_SENTENCE
            }
        )
    return ProseMeasures(
        n_texts=len(texts),
        mean_words=sum(len(text.split()) for text in texts) / len(texts),
        mean_tokens=sum(map(count_tokens, texts)) / len(texts),
        distinct_words=len(set(words)),
        distinct_pairs=len(set(pairwise(words))),
        repeated_sentences=sum(count > 1 for count in sentences.values()) / max(1, len(sentences)),
    )


def tell_apart(one: Sequence[str], other: Sequence[str], seed: int) -> float:
    """Return how well a small classifier tells two collections apart: area under the ROC curve, 0.5 (not at all) to 1.

    A logistic regression on TF-IDF weights of words and pairs of words, five-fold cross-validated; identifiers and
    numbers are masked, so that only the wording can give a text away.

    Args:
        one, other: five texts or more each.
        seed: of the folds.
    """
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    texts = [re.sub(r"\d+", "0", _without_identifiers(text)) for text in (*one, *other)]
    labels = np.array([0] * len(one) + [1] * len(other))
    model: Any = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2), LogisticRegression(C=10.0, max_iter=1000)
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    rated = cross_val_predict(model, texts, labels, cv=folds, method="predict_proba")[:, 1]
    return float(roc_auc_score(labels, rated))


def load_hand_written_prose() -> list[str]:
    """Return the hand-written prose of the tasks that are not pinned."""
    return [record.prose for name in ("training", "validation") for record in load_reference_delegations(name)]


def sample_generated_prose(folder: Path, manifest: Manifest, n_texts: int, seed: int) -> list[str]:
    """Draw the prose of some synthetic examples of a data set; reads one batch of rows at a time.

    Raises:
        CorruptFileError: a file is no Parquet file, or lacks a column.
    """
    from graphhandoff.data.parquet_files import iter_rows

    rng = random.Random(seed)
    drawn: list[str] = []
    seen = 0
    for file in manifest.parquet_files():
        for row in iter_rows(folder / file.path, ("source", "prose")):
            if row["source"] != "synthetic":
                continue
            seen += 1
            if len(drawn) < n_texts:
                drawn.append(row["prose"])
            elif (place := rng.randrange(seen)) < n_texts:
                drawn[place] = row["prose"]
    return drawn


def _without_identifiers(text: str) -> str:
    for identifier in sorted(set(find_identifiers(text)), key=len, reverse=True):
        text = text.replace(identifier, "ID")
    return text
