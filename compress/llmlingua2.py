"""LLMLingua-2 through the ``llmlingua`` library: a token classifier says which words to keep.

The library only labels words; the message is put together here from the delegation's own words. So what is kept is
kept byte for byte and in order, whatever the model's tokenizer makes of it, and identifiers and words like *not* and
*except* stay whatever the classifier says.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from graphhandoff.compress.identifiers import protected_words
from graphhandoff.compress.protocol import CheckpointMissingError, Delegation, Draft, Protocol
from graphhandoff.compress.tokens import DEFAULT_TOKENIZER, load_encoding

# llmlingua 0.2.2 tells families apart by a substring of the model's path; we look at the model's own config instead.
_FAMILY_OF_MODEL_TYPE = {"bert": "bert-base-multilingual-cased", "xlm-roberta": "xlm-roberta-large"}
_CHUNK_TOKENS = 400  # below the 510 at which the library cuts by itself, at full stops that may not exist
_CONSTRUCTION = threading.Lock()


class UnsupportedModelError(ValueError):
    """The model is no token classifier of a family that llmlingua supports."""


class LLMLingua2(Protocol):
    """Keep the share of words that a token classifier rates highest.

    Args:
        tokenizer: for counting.
        model: hub id or local folder of an LLMLingua-2 token classifier (BERT or XLM-RoBERTa).
        revision: of the hub repository.
        rate: share of the words to keep, over 0 and up to 1; protected words count towards it and are never dropped.
        device: ``cpu``, ``cuda`` or ``mps``.
    """

    id: ClassVar[str] = "llmlingua2"
    schema_aware: ClassVar[bool] = False
    trained: ClassVar[bool] = True

    def __init__(
        self,
        tokenizer: str = DEFAULT_TOKENIZER,
        *,
        model: str | None = None,
        revision: str | None = None,
        rate: float = 0.25,
        device: str = "cpu",
    ) -> None:
        super().__init__(tokenizer)
        if not 0 < rate <= 1:
            raise ValueError(f"rate must be over 0 and at most 1, got {rate}; 0.25 keeps a quarter")
        self.rate = rate
        self.labeller = WordLabeller(self.id, model, revision, device)

    def draft(self, delegations: Sequence[Delegation]) -> list[Draft]:
        """Write the kept words of each delegation, one line a line of the prose.

        Raises:
            CheckpointMissingError: no model is named, or it cannot be found.
            UnsupportedModelError: the model is of another family.
        """
        return [self._draft_one(delegation.prose) for delegation in delegations]

    def _draft_one(self, prose: str) -> Draft:
        lines = [line.split() for line in prose.split("\n")]
        words = [word for line in lines for word in line]
        keep = self.labeller.keep(words, self.rate, protected_words(words))
        marks = iter(keep)
        kept = (" ".join(word for word in line if next(marks)) for line in lines)
        achieved = sum(keep) / len(words)
        return Draft(
            text="\n".join(line for line in kept if line),
            route="compressed",
            details={"model": self.labeller.model, "rate_asked": self.rate, "rate_achieved": round(achieved, 4)},
        )


class WordLabeller:
    """Asks llmlingua which words to keep; loads the model at first use.

    Args:
        protocol_id: whose configuration key the error for a missing model names.
        model, revision, device: see :class:`LLMLingua2`.
    """

    def __init__(self, protocol_id: str, model: str | None, revision: str | None, device: str) -> None:
        self.protocol_id = protocol_id
        self.model = model
        self.revision = revision
        self.device = device
        self._compressor: Any = None

    def keep(self, words: Sequence[str], rate: float, protected: Sequence[bool]) -> list[bool]:
        """Tell which words to keep so that about ``rate`` of all remain, protected words among them.

        Args:
            words: without white space inside.
            rate: share of all words to keep, 0 to 1.
            protected: words that are kept whatever the classifier says; aligned with ``words``.
        """
        compressor = self._load()
        n_free = len(words) - sum(protected)
        rate_of_free = (rate * len(words) - sum(protected)) / n_free if n_free else 0.0
        if rate_of_free <= 0:
            return list(protected)
        keep: list[bool] = []
        for chunk in self._chunks(words):
            keep.extend(self._label(compressor, chunk, min(1.0, rate_of_free)))
        return [kept or safe for kept, safe in zip(keep, protected, strict=True)]

    def _chunks(self, words: Sequence[str]) -> Iterator[list[str]]:
        chunk: list[str] = []
        n_tokens = 0
        for word in words:
            n = len(self._compressor.tokenizer.tokenize(word))
            if chunk and n_tokens + n > _CHUNK_TOKENS:
                yield chunk
                chunk, n_tokens = [], 0
            chunk.append(word)
            n_tokens += n
        if chunk:
            yield chunk

    def _label(self, compressor: Any, words: Sequence[str], rate: float) -> list[bool]:
        if rate >= 1:
            return [True] * len(words)
        # A word of ours is one or more of the library's (punctuation stands alone there): count how many.
        counts = [self._n_library_words(word) for word in words]
        if not sum(counts) or max(counts) > _CHUNK_TOKENS:
            return [False] * len(words)
        result = compressor.compress_prompt_llmlingua2(
            [" ".join(words)], rate=rate, return_word_label=True, word_sep="\n", label_sep=" ", chunk_end_tokens=[]
        )
        labels = [line.endswith(" 1") for line in result["fn_labeled_original_prompt"].split("\n")]
        if len(labels) != sum(counts):
            return [True] * len(words)  # the tokenizer does not split at our spaces: dropping anything would be a guess
        keep: list[bool] = []
        at = 0
        for count in counts:
            keep.append(any(labels[at : at + count]))
            at += count
        return keep

    def _n_library_words(self, word: str) -> int:
        from llmlingua.utils import is_begin_of_new_word

        compressor = self._compressor
        tokens = (t for t in compressor.tokenizer.tokenize(word) if t not in compressor.special_tokens)
        return sum(is_begin_of_new_word(token, compressor.model_name, [], {}) for token in tokens)

    def _load(self) -> Any:
        if self._compressor is None:
            if self.model is None:
                raise CheckpointMissingError(self._how_to_get_one("no checkpoint is named"))
            self._compressor = load_compressor(self.model, self.revision, self.device, self._how_to_get_one)
        return self._compressor

    def _how_to_get_one(self, problem: str) -> str:
        return (
            f"no checkpoint: {problem}; `--set protocols.{self.protocol_id}.model=` takes a local folder or "
            "microsoft/llmlingua-2-xlm-roberta-large-meetingbank (downloads 2.2 GB); a small one of ours comes with "
            "`graphhandoff train token-classifier`, not in this version yet"
        )


def load_compressor(model: str, revision: str | None, device: str, explain: Any) -> Any:
    """Load llmlingua's ``PromptCompressor`` without network for local folders and without side effects.

    Raises:
        CheckpointMissingError: the model cannot be found or fetched.
        UnsupportedModelError: its family is none that llmlingua supports, or it is no token classifier.
    """
    from transformers import AutoConfig

    pinned = {"revision": revision} if revision else {}
    try:
        config = AutoConfig.from_pretrained(model, trust_remote_code=False, **pinned)
    except (OSError, ValueError) as error:
        raise CheckpointMissingError(explain(f"{model!r} cannot be loaded ({type(error).__name__})")) from error
    family = _FAMILY_OF_MODEL_TYPE.get(config.model_type)
    if family is None or not any("ForTokenClassification" in name for name in config.architectures or ()):
        raise UnsupportedModelError(
            f"{model!r} is {config.model_type} {config.architectures}; allowed: a token classifier of "
            f"{' or '.join(_FAMILY_OF_MODEL_TYPE)}. Choose an LLMLingua-2 model"
        )
    with _CONSTRUCTION, _without_side_effects():
        from llmlingua import PromptCompressor

        try:
            compressor = PromptCompressor(
                model_name=model,
                device_map=device,
                model_config={"trust_remote_code": False, **pinned},  # a fresh dict: the library keeps and changes it
                use_llmlingua2=True,
            )
        except OSError as error:
            raise CheckpointMissingError(explain(f"{model!r} cannot be loaded ({type(error).__name__})")) from error
    compressor.model_name = family
    compressor.model.eval()
    return compressor


class _PlainEncoding:
    """What llmlingua counts with: its own ``encode`` raises on text such as ``<|endoftext|>``."""

    def encode(self, text: str) -> list[int]:
        return load_encoding(DEFAULT_TOKENIZER).encode_ordinary(text)


@contextmanager
def _without_side_effects() -> Iterator[None]:
    """Undo what llmlingua 0.2.2's constructor does to the process, and spare it its download.

    It seeds random, numpy and torch with 42, sets PYTHONHASHSEED and cuDNN's flags, and fetches a tiktoken file.
    """
    import numpy
    import tiktoken
    import torch

    states = random.getstate(), numpy.random.get_state(), torch.get_rng_state()
    cuda_states = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else None
    flags = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    hash_seed = os.environ.get("PYTHONHASHSEED")
    encoding_for_model = tiktoken.encoding_for_model
    tiktoken.encoding_for_model = lambda _name: _PlainEncoding()  # type: ignore[assignment,return-value]
    try:
        yield
    finally:
        tiktoken.encoding_for_model = encoding_for_model
        random.setstate(states[0])
        numpy.random.set_state(states[1])
        torch.set_rng_state(states[2])
        if cuda_states is not None:
            torch.cuda.set_rng_state_all(cuda_states)
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = flags
        if hash_seed is None:
            os.environ.pop("PYTHONHASHSEED", None)
        else:
            os.environ["PYTHONHASHSEED"] = hash_seed
