"""TF-IDF keywords: the heaviest words of the prose, in reading order; document frequencies from training prose."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import ClassVar

from graphhandoff.compress.fields import join_words, must_stay, split_words
from graphhandoff.compress.protocol import Delegation, Draft, Protocol
from graphhandoff.compress.tokens import DEFAULT_TOKENIZER

_TERM = re.compile(r"[^\W_]+(?:['’_-][^\W_]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


class TfIdf(Protocol):
    """Keep the top-weighted share of the words; identifiers and words like *not* and *except* always stay.

    Args:
        training_prose: texts that the inverse document frequencies are fitted on (scikit-learn's smooth variant).
            Nothing of the delegations to be encoded may be among them.
        rate: share of the words to keep, over 0 and up to 1. Protected words count towards it.
        tokenizer: for counting.

    Raises:
        ValueError: no training prose, or a rate outside its range.
    """

    id: ClassVar[str] = "tfidf"
    schema_aware: ClassVar[bool] = False
    trained: ClassVar[bool] = False

    def __init__(self, training_prose: Sequence[str], rate: float = 0.3, tokenizer: str = DEFAULT_TOKENIZER) -> None:
        super().__init__(tokenizer)
        if not 0 < rate <= 1:
            raise ValueError(f"rate must be over 0 and at most 1, got {rate}; 0.3 keeps three words of ten")
        if not training_prose:
            raise ValueError(
                "no training prose to fit document frequencies on, got an empty list; give at least one text"
            )
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

        vectorizer = TfidfVectorizer(tokenizer=_terms, token_pattern=None, lowercase=False)
        vectorizer.fit(training_prose)
        self.rate = rate
        self._idf = dict(zip(vectorizer.get_feature_names_out(), map(float, vectorizer.idf_), strict=True))
        self._idf_of_unseen = math.log(1 + len(training_prose)) + 1
        self._stop_words: frozenset[str] = ENGLISH_STOP_WORDS

    def draft(self, delegations: Sequence[Delegation]) -> list[Draft]:
        """Write the keywords of each delegation, one line a sentence."""
        return [self._draft_one(delegation.prose) for delegation in delegations]

    def _draft_one(self, prose: str) -> Draft:
        sentences = [split_words(sentence) for sentence in _SENTENCE_END.split(prose)]
        words = [word for sentence in sentences for word in sentence]
        terms = [_terms(word.text) for word in words]
        counts = Counter(term for found in terms for term in found)

        def weight(i: int) -> float:
            # Sublinear term frequency: a word said ten times is not ten times as telling. Stop words weigh nothing:
            # said often enough, they would outweigh every telling word of a small corpus.
            telling = [term for term in terms[i] if term not in self._stop_words]
            weights = [(1 + math.log(counts[t])) * self._idf.get(t, self._idf_of_unseen) for t in telling]
            return max(weights, default=0.0)

        keep = must_stay(words)
        n_kept = max(1, round(self.rate * len(words)))
        by_weight = sorted((i for i, kept in enumerate(keep) if not kept), key=lambda i: (-weight(i), i))
        for i in by_weight[: max(0, n_kept - sum(keep))]:
            keep[i] = True
        marks = iter(keep)
        lines = (join_words(sentence, islice(marks, len(sentence))) for sentence in sentences)
        text = "\n".join(line for line in lines if line)
        achieved = sum(keep) / len(words) if words else 1.0
        return Draft(
            text=text, route="compressed", details={"rate_asked": self.rate, "rate_achieved": round(achieved, 4)}
        )


def _terms(text: str) -> list[str]:
    return [term.lower() for term in _TERM.findall(text)]
