"""LLMLingua-2 through the ``llmlingua`` library: a token classifier says which words to keep.

The library only labels words; the message is put together here from the delegation's own words. So what is kept is
kept byte for byte and in order, whatever the model's tokenizer makes of it, and identifiers and words like *not* and
*except* stay whatever the classifier says.
"""

from __future__ import annotations

import os.path
import random
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, ClassVar, NamedTuple

from graphhandoff.compress.fields import join_words, must_stay, split_words
from graphhandoff.compress.protocol import CheckpointMissingError, Delegation, Draft, Protocol
from graphhandoff.compress.tokens import DEFAULT_TOKENIZER, load_encoding

# llmlingua 0.2.2 tells families apart by a substring of the model's path; we look at the model's own config instead.
_FAMILY_OF_MODEL_TYPE = {"bert": "bert-base-multilingual-cased", "xlm-roberta": "xlm-roberta-large"}
_LEAST_POSITIONS = {"bert": 512, "xlm-roberta": 514}  # every input is padded to 512; XLM-R counts from 2
_CHUNK_TOKENS = 400  # below the 510 at which the library cuts by itself, at full stops that may not exist
_BATCH = 8  # of 512 tokens, to which the library pads every chunk: bounds memory for long texts
_LEAST_RATE = 0.01  # the library counts in whole percents, and asks numpy for the 101st percentile at a rate of 0
_LIBRARY = threading.Lock()
_MARKUP = re.compile(r"[\[\]<>|]")


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
        lines = [split_words(line) for line in prose.split("\n")]
        words = [word for line in lines for word in line]
        keep = self.labeller.keep([word.text for word in words], self.rate, must_stay(words))
        marks = iter(keep)
        kept = [join_words(line, islice(marks, len(line))) for line in lines]
        text = "\n".join(line for line in kept if line)
        return finish_draft(prose, text, self.labeller, self.rate, keep)


def finish_draft(
    prose: str, text: str, labeller: WordLabeller, rate: float, keep: Sequence[bool], **details: int
) -> Draft:
    """Write the draft with the rate asked for and the one achieved; the prose itself if nothing at all was kept."""
    lost_all = not text and bool(prose.strip())
    achieved = round(sum(keep) / len(keep), 4) if keep else 1.0
    return Draft(
        text=prose if lost_all else text,
        route="natural_language" if lost_all else "compressed",
        fallback="the classifier kept no word" if lost_all else None,
        details={"model": labeller.model, "rate_asked": rate, "rate_achieved": achieved, **details},
    )


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
        self._special: tuple[str, ...] = ()

    def keep(self, words: Sequence[str], rate: float, protected: Sequence[bool]) -> list[bool]:
        """Tell which words to keep so that about ``rate`` of all remain, protected words among them.

        Args:
            words: without white space inside.
            rate: share of all words to keep, 0 to 1.
            protected: words that are kept whatever the classifier says; aligned with ``words``.
        """
        if self.model is None:
            raise CheckpointMissingError(self._how_to_get_one("none is named"))
        with _LIBRARY, _random_state_kept(self.device):
            if self._compressor is None:
                self._compressor = load_compressor(self.model, self.revision, self.device, self._how_to_get_one)
                self._special = tuple(self._compressor.tokenizer.get_added_vocab())
            n_free = len(words) - sum(protected)
            rate_of_free = (rate * len(words) - sum(protected)) / n_free if n_free else 0.0
            if rate_of_free < _LEAST_RATE:
                return list(protected)
            keep = [True] * len(words) if rate_of_free >= 1 else self._label(words, rate_of_free)
        return [kept or safe for kept, safe in zip(keep, protected, strict=True)]

    def _label(self, words: Sequence[str], rate: float) -> list[bool]:
        """Cut the words into chunks that fit the model and label them; what cannot be labelled is kept."""
        measures = {word: self._measure(word) for word in set(words)}
        keep = [True] * len(words)
        chunks: list[_Chunk] = []
        n_tokens = _CHUNK_TOKENS
        for at, word in enumerate(words):
            measure = measures[word]
            # The library would cut inside a longer word, and knows nothing of one that its vocabulary lacks.
            if not measure.n_words or measure.n_tokens > _CHUNK_TOKENS:
                continue
            if n_tokens + measure.n_tokens > _CHUNK_TOKENS:
                chunks.append(_Chunk([], [], []))
                n_tokens = 0
            chunks[-1].add(at, measure)
            n_tokens += measure.n_tokens
            keep[at] = False
        for at in self._ask(chunks, rate):
            keep[at] = True
        return keep

    def _ask(self, chunks: Sequence[_Chunk], rate: float) -> Iterator[int]:
        """Yield the places of the words to keep; all chunks go to the library at once, which batches them."""
        if not chunks:
            return
        result = self._compressor.compress_prompt_llmlingua2(
            [" ".join(chunk.texts) for chunk in chunks],
            rate=rate,
            return_word_label=True,
            word_sep="\n",
            label_sep=" ",
            chunk_end_tokens=[],
        )
        labels = [line.endswith(" 1") for line in result["fn_labeled_original_prompt"].split("\n")]
        if len(labels) != sum(sum(chunk.counts) for chunk in chunks):
            if len(chunks) > 1:
                for chunk in chunks:
                    yield from self._ask([chunk], rate)
            else:  # the tokenizer does not split at our spaces: dropping anything would be a guess
                yield from chunks[0].places
            return
        at = 0
        for chunk in chunks:
            for place, count in zip(chunk.places, chunk.counts, strict=True):
                if any(labels[at : at + count]):
                    yield place
                at += count

    def _measure(self, word: str) -> _Measure:
        """Say what the library sees of a word: tokens, and words of its own (punctuation stands alone there)."""
        from llmlingua.utils import is_begin_of_new_word

        compressor = self._compressor
        # [SEP], </s> or [NEW3] in the text would be taken for special tokens: shown to the classifier without brackets.
        seen = _MARKUP.sub("", word) if any(name in word for name in self._special) else word
        tokens = [t for t in compressor.tokenizer.tokenize(seen) if t not in compressor.special_tokens]
        n_words = sum(is_begin_of_new_word(token, compressor.model_name, [], {}) for token in tokens)
        return _Measure(seen, len(tokens), n_words)

    def _how_to_get_one(self, problem: str) -> str:
        return (
            f"no checkpoint: {problem}; `--set protocols.{self.protocol_id}.model=` takes a local folder or "
            "microsoft/llmlingua-2-xlm-roberta-large-meetingbank (downloads 2.2 GB); a small one of ours comes with "
            "`graphhandoff train token-classifier`, not in this version yet"
        )


class _Measure(NamedTuple):
    seen: str
    n_tokens: int
    n_words: int


class _Chunk(NamedTuple):
    places: list[int]
    texts: list[str]
    counts: list[int]

    def add(self, place: int, measure: _Measure) -> None:
        self.places.append(place)
        self.texts.append(measure.seen)
        self.counts.append(measure.n_words)


def load_compressor(model: str, revision: str | None, device: str, explain: Callable[[str], str]) -> Any:
    """Load llmlingua's ``PromptCompressor`` without network for local folders; call it with the random state fenced.

    Raises:
        CheckpointMissingError: the model cannot be found or fetched, or its folder is not whole.
        UnsupportedModelError: its family is none that llmlingua supports, or it is no classifier of two classes.
    """
    from safetensors import SafetensorError
    from transformers import AutoConfig

    pinned = {"revision": revision} if revision else {}
    try:
        config = AutoConfig.from_pretrained(model, trust_remote_code=False, **pinned)
        _check_family(model, config)
        with _library_tamed() as prompt_compressor:
            compressor = prompt_compressor(
                model_name=model,
                device_map=device,
                # A fresh dict: the library changes it. No pickles, and no code from the hub.
                model_config={"trust_remote_code": False, "use_safetensors": True, **pinned},
                use_llmlingua2=True,
                llmlingua2_config={"max_batch_size": _BATCH},
            )
    except UnsupportedModelError:
        raise
    except (OSError, ValueError, SafetensorError) as error:
        where = "is not a whole model" if os.path.isdir(model) else "cannot be found or fetched"
        why = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"
        raise CheckpointMissingError(explain(f"{model!r} {where} ({why})")) from error
    compressor.model_name = _FAMILY_OF_MODEL_TYPE[config.model_type]
    compressor.model.eval()
    return compressor


def _check_family(model: str, config: Any) -> None:
    architectures = ", ".join(config.architectures or ("no architecture",))
    if config.model_type not in _FAMILY_OF_MODEL_TYPE or "ForTokenClassification" not in architectures:
        raise UnsupportedModelError(
            f"{model!r} is {config.model_type} {architectures}; allowed: a token classifier of "
            f"{' or '.join(_FAMILY_OF_MODEL_TYPE)}. Choose an LLMLingua-2 model"
        )
    # The library would put random weights in place of a head that does not fit, without a word.
    least = _LEAST_POSITIONS[config.model_type]
    if config.num_labels != 2 or config.max_position_embeddings < least:
        raise UnsupportedModelError(
            f"{model!r} has {config.num_labels} classes and {config.max_position_embeddings} positions; allowed: "
            f"2 classes (drop, keep) and {least} positions or more. Choose an LLMLingua-2 model"
        )


class _PlainEncoding:
    """What llmlingua counts with: its own ``encode`` raises on text such as ``<|endoftext|>``."""

    def encode(self, text: str) -> list[int]:
        return load_encoding(DEFAULT_TOKENIZER).encode_ordinary(text)


@contextmanager
def _library_tamed() -> Iterator[Any]:
    """Lend llmlingua 0.2.2's ``PromptCompressor`` so that constructing it neither downloads nor seeds.

    Its constructor fetches a tiktoken file; and ``seed_everything(42)`` seeds random, numpy, torch and (even before
    CUDA is up) every GPU, sets PYTHONHASHSEED and turns cuDNN's benchmarking off.
    """
    import tiktoken
    from llmlingua import prompt_compressor as library

    encoding_for_model, seed_everything = tiktoken.encoding_for_model, library.seed_everything
    tiktoken.encoding_for_model = lambda _name: _PlainEncoding()  # type: ignore[assignment,return-value]
    library.seed_everything = lambda _seed: None
    try:
        yield library.PromptCompressor
    finally:
        tiktoken.encoding_for_model = encoding_for_model
        library.seed_everything = seed_everything


@contextmanager
def _random_state_kept(device: str) -> Iterator[None]:
    """Give the caller's random state back: new embeddings are drawn at construction, and every DataLoader draws a seed.

    GPUs are only looked at where they are used anyway.
    """
    import numpy
    import torch

    states = random.getstate(), numpy.random.get_state()
    uses_cuda = device.startswith("cuda") or torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    gpus = list(range(torch.cuda.device_count())) if uses_cuda else []
    with torch.random.fork_rng(devices=gpus):
        try:
            yield
        finally:
            random.setstate(states[0])
            numpy.random.set_state(states[1])
