"""LLMLingua-2 through the ``llmlingua`` library: a token classifier says which words to keep.

The library only labels words; the message is put together here from the delegation's own words. So what is kept is
kept byte for byte and in order, whatever the model's tokenizer makes of it. Identifiers are never lost: those of the
plan where the sender knows it, else all of the prose, with the words like *not* and *except* that turn a meaning round.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from graphhandoff.compress.checkpoint_card import digest_weights
from graphhandoff.compress.fields import Word, must_stay, split_words
from graphhandoff.compress.keeping import Kept, exceptions, join_lines, keep_with_plan
from graphhandoff.compress.llmlingua_library import PACKAGED, find_packaged_checkpoint, load_compressor
from graphhandoff.compress.protocol import CheckpointMissingError, Delegation, Draft, Protocol
from graphhandoff.compress.randomness import random_state_kept
from graphhandoff.compress.tokens import DEFAULT_TOKENIZER
from graphhandoff.compress.word_scores import score_words
from graphhandoff.compress.word_windows import Reading, WordReader, pack_words

_LEAST_RATE = 0.01  # the library counts in whole percents, and asks numpy for the 101st percentile at a rate of 0
DEFAULT_THRESHOLD = 0.5
"""Chosen on the validation delegations, for the classifier that comes with the package."""
_LIBRARY = threading.Lock()


class LLMLingua2(Protocol):
    """Keep the share of words that a token classifier rates highest.

    Args:
        tokenizer: for counting.
        model: hub id or local folder of an LLMLingua-2 token classifier (BERT or XLM-RoBERTa); ``None`` for the small
            one that comes with the package.
        revision: of the hub repository.
        rate: share of the words to keep, over 0 and up to 1; protected words count towards it and are never dropped.
        threshold: instead of a rate, the probability over which a word is kept, so that a case with more to do gets
            a longer message; give one of the two, or neither for a threshold of 0.5.
        device: ``cpu``, ``cuda`` or ``mps``.
    """

    id: ClassVar[str] = "llmlingua2"
    schema_aware: ClassVar[bool] = True
    trained: ClassVar[bool] = True

    def __init__(
        self,
        tokenizer: str = DEFAULT_TOKENIZER,
        *,
        model: str | None = None,
        revision: str | None = None,
        rate: float | None = None,
        threshold: float | None = None,
        device: str = "cpu",
    ) -> None:
        super().__init__(tokenizer)
        if rate is not None and threshold is not None:
            raise ValueError(f"give a rate or a threshold, got rate {rate} and threshold {threshold}; set one of them")
        if rate is not None and not 0 < rate <= 1:
            raise ValueError(f"rate must be over 0 and at most 1, got {rate}; 0.25 keeps a quarter")
        if threshold is not None and not 0 < threshold < 1:
            raise ValueError(f"threshold must be between 0 and 1, got {threshold}; 0.5 keeps what is likelier needed")
        self.rate = rate
        self.threshold = DEFAULT_THRESHOLD if rate is None and threshold is None else threshold
        self.labeller = WordLabeller(self.id, model, revision, device)

    @property
    def fingerprint(self) -> str | None:
        """What decides the messages besides the settings: see :attr:`WordLabeller.fingerprint`."""
        return self.labeller.fingerprint

    def draft(self, delegations: Sequence[Delegation]) -> list[Draft]:
        """Write the kept words of each delegation, one line a line of the prose.

        Raises:
            CheckpointMissingError: no model is named and none comes with the package, or it cannot be found.
            UnsupportedModelError: the model is of another family.
        """
        return [self._draft_one(delegation) for delegation in delegations]

    def _draft_one(self, delegation: Delegation) -> Draft:
        lines = [split_words(line) for line in delegation.prose.split("\n")]
        words = [word for line in lines for word in line]
        plan = dict.fromkeys(delegation.iter_plan_identifiers()) if delegation.graph is not None else None
        kept = self._choose(words, plan, delegation.iter_told(), delegation.iter_plan_lists())
        return self._finish_draft(delegation.prose, join_lines(lines, kept.keep), kept)

    def _choose(
        self,
        words: Sequence[Word],
        needed: Iterable[str] | None,
        told: Iterable[str],
        lists: Iterable[Sequence[Sequence[str]]],
    ) -> Kept:
        """Choose the words to keep; ``needed`` are the plan's identifiers, ``None`` if there is no plan: all stay."""
        texts = [word.text for word in words]
        if needed is None:
            return Kept(self.labeller.keep(texts, self.rate, must_stay(words), self.threshold), 0)
        scores = self.labeller.score(texts)
        if self.threshold is not None:
            keep = keep_over(self.threshold, scores, exceptions(words))
        else:
            keep = self.labeller.keep(texts, self.rate, exceptions(words))
        return keep_with_plan(words, keep, scores, needed, told, lists)

    def _finish_draft(self, prose: str, text: str, kept: Kept, **details: int) -> Draft:
        """Write the draft with what was asked for and what was achieved; the prose if nothing at all was kept."""
        lost_all = not text
        why = "the classifier kept no word" if prose.strip() else "the prose is empty"
        return Draft(
            text=prose if lost_all else text,
            route="natural_language" if lost_all else "compressed",
            fallback=why if lost_all else None,
            details={
                **self.labeller.describe(),
                "rate_asked": self.rate,
                "threshold": self.threshold,
                "rate_achieved": round(sum(kept.keep) / len(kept.keep), 4) if kept.keep else 1.0,
                "identifiers_restored": kept.n_restored,
                **details,
            },
        )


def keep_over(threshold: float, scores: Sequence[float], protected: Sequence[bool]) -> list[bool]:
    """Keep the words rated over a threshold, and those that are protected."""
    return [score > threshold or safe for score, safe in zip(scores, protected, strict=True)]


class WordLabeller:
    """Asks llmlingua which words to keep; loads the model at first use.

    Args:
        protocol_id: whose configuration key the error for a missing model names.
        model, revision, device: see :class:`LLMLingua2`.
    """

    def __init__(self, protocol_id: str, model: str | None, revision: str | None, device: str) -> None:
        if not re.fullmatch(r"cpu|mps|cuda(?::\d+)?", device):
            raise ValueError(f"unknown device {device!r}; allowed: cpu, mps, cuda, cuda:N. Set device to one of these")
        self.protocol_id = protocol_id
        self.model = model
        self.revision = revision
        self.device = device
        self._compressor: Any = None
        self._reader: WordReader | None = None
        self._weights_sha256: str | None = None

    @property
    def fingerprint(self) -> str | None:
        """The weights: ``sha256:…`` of a folder's, ``commit:…`` of a hub model once loaded; ``None`` if not there.

        Messages written with another fingerprint are of another model, though its path may be the same. A folder is
        read anew until the model is loaded.
        """
        if self._compressor is None:
            where = self._where()
            weights = digest_weights(Path(where)) if where else None
        else:
            weights = self._weights_sha256
        return f"sha256:{weights}" if weights else f"commit:{self._commit}" if self._commit else None

    def describe(self) -> dict[str, str | None]:
        """Say for a message's details which model labelled it; a path names the place of no installation."""
        name = self.model if self.model is not None else f"packaged:{PACKAGED}"
        which = {"weights_sha256": self._weights_sha256} if self._weights_sha256 else {"commit": self._commit}
        return {"model": name, **which}

    @property
    def _commit(self) -> str | None:
        commit: str | None = getattr(self._compressor.model.config, "_commit_hash", None) if self._compressor else None
        return commit

    def _where(self) -> str | None:
        return self.model if self.model is not None else find_packaged_checkpoint()

    def keep(
        self, words: Sequence[str], rate: float | None, protected: Sequence[bool], threshold: float | None = None
    ) -> list[bool]:
        """Tell which words to keep: about ``rate`` of all, protected words among them, or all over ``threshold``.

        Args:
            words: without white space inside.
            rate: share of all words to keep, 0 to 1; the library's own labelling decides. ``None`` for a threshold.
            protected: words that are kept whatever the classifier says; aligned with ``words``.
            threshold: probability over which a word is kept, 0 to 1, where there is no rate.
        """
        if rate is None:
            assert threshold is not None
            return keep_over(threshold, self.score(words), protected)
        with self._ready():
            n_free = len(words) - sum(protected)
            rate_of_free = (rate * len(words) - sum(protected)) / n_free if n_free else 0.0
            if rate_of_free < _LEAST_RATE:
                return list(protected)
            keep = [True] * len(words) if rate_of_free >= 1 else self._label(words, rate_of_free)
        return [kept or safe for kept, safe in zip(keep, protected, strict=True)]

    def score(self, words: Sequence[str]) -> list[float]:
        """Return the probability to keep of each word, 0 to 1; 1 for what the model cannot be shown.

        As the library reckons it: the mean over the pieces of each word of its own, of which the best counts for ours.
        """
        with self._ready():
            assert self._reader is not None
            readings = self._reader.read_all(words)
            return score_words(self._compressor, [readings[word] for word in words])

    @contextmanager
    def _ready(self) -> Iterator[None]:
        """Load the model if need be; one at a time, with the caller's random state given back."""
        where = self._where()
        if where is None:
            raise CheckpointMissingError(self._how_to_get_one("none is named, and none comes with this version"))
        with _LIBRARY, random_state_kept(self.device):
            if self._compressor is None:
                self._load(where)
            yield

    def _load(self, where: str) -> None:
        weights_sha256 = digest_weights(Path(where))
        revision = self.revision if self.model is not None else None
        compressor = load_compressor(where, revision, self.device, self._how_to_get_one)
        self._reader = WordReader(compressor.tokenizer, compressor.model_name, compressor.special_tokens)
        self._weights_sha256, self._compressor = weights_sha256, compressor

    def _label(self, words: Sequence[str], rate: float) -> list[bool]:
        """Pack the words into windows that fit the model and label them; what cannot be labelled is kept."""
        assert self._reader is not None
        readings = self._reader.read_all(words)
        in_order = [readings[word] for word in words]
        windows = pack_words(in_order)
        keep = [True] * len(words)
        for window in windows:
            for at in window:
                keep[at] = False
        for at in self._ask(windows, in_order, rate):
            keep[at] = True
        return keep

    def _ask(self, windows: Sequence[list[int]], readings: Sequence[Reading], rate: float) -> Iterator[int]:
        """Yield the places of the words to keep; all windows go to the library at once, which batches them."""
        if not windows:
            return
        result = self._compressor.compress_prompt_llmlingua2(
            [" ".join(readings[at].seen for at in window) for window in windows],
            rate=rate,
            return_word_label=True,
            word_sep="\n",
            label_sep=" ",
            chunk_end_tokens=[],
        )
        labels = [line.endswith(" 1") for line in result["fn_labeled_original_prompt"].split("\n")]
        if len(labels) != sum(readings[at].n_words for window in windows for at in window):
            if len(windows) > 1:
                for window in windows:
                    yield from self._ask([window], readings, rate)
            else:  # the tokenizer does not split at our spaces: dropping anything would be a guess
                yield from windows[0]
            return
        start = 0
        for place in (at for window in windows for at in window):
            end = start + readings[place].n_words
            if any(labels[start:end]):
                yield place
            start = end

    def _how_to_get_one(self, problem: str) -> str:
        return (
            f"no checkpoint: {problem}; model (compare: `--set protocols.{self.protocol_id}.model=`, encode: `--set "
            "model=`) is a local folder or microsoft/llmlingua-2-xlm-roberta-large-meetingbank (downloads 2.2 GB); "
            "`graphhandoff train token-classifier --config configs/token_classifier/cpu_tiny.yaml` makes a small one"
        )
