"""Encoders to train from: a tiny BERT built in place, or a pretrained one from the hub or a folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from graphhandoff.compress.checkpoint_card import digest_weights
from graphhandoff.compress.llmlingua_library import FAMILY_OF_MODEL_TYPE, LEAST_POSITIONS
from graphhandoff.compress.word_windows import WordReader
from graphhandoff.train.word_piece import LEAST_VOCABULARY, train_word_piece


class EncoderError(ValueError):
    """The encoder cannot be trained from; says why and which can."""


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class TinyEncoder(_Config):
    """A BERT with random weights and a vocabulary learnt from the training words; sizes as in BERT's own config.

    ``max_position_embeddings`` is 512 at least, since llmlingua pads every text to 512.
    """

    kind: Literal["tiny"]
    vocab_size: int = Field(default=4000, ge=LEAST_VOCABULARY)
    hidden: int = Field(default=128, ge=2)
    layers: int = Field(default=2, ge=1)
    heads: int = Field(default=2, ge=1)
    intermediate: int = Field(default=512, ge=1)
    max_position_embeddings: int = Field(default=512, ge=512)
    dropout: float = Field(default=0.1, ge=0, lt=1)

    @model_validator(mode="after")
    def _heads_divide_hidden(self) -> TinyEncoder:
        if self.hidden % self.heads:
            raise ValueError(f"hidden {self.hidden} is no multiple of heads {self.heads}; change one of them")
        return self


class PretrainedEncoder(_Config):
    """A BERT or XLM-RoBERTa of the hub, with the commit to take, or in a local folder."""

    kind: Literal["pretrained"]
    model: str
    revision: str | None = None


EncoderConfig = Annotated[TinyEncoder | PretrainedEncoder, Field(discriminator="kind")]


class Encoder(NamedTuple):
    """A token classifier to train, its tokenizer and reader, and where it comes from."""

    model: Any
    tokenizer: Any
    reader: WordReader
    origin: dict[str, str | None]


def load_encoder(config: TinyEncoder | PretrainedEncoder, words: Iterable[str]) -> Encoder:
    """Build or load an encoder with a new head of two classes; draws from torch's random state, which the caller seeds.

    Args:
        config: which one.
        words: of the training set, from which a tiny encoder's vocabulary is learnt.

    Raises:
        EncoderError: a hub model without revision, one of a family that llmlingua does not know, one that cannot be
            loaded, or one without safetensors.
        ValueError: the vocabulary is too small for the words.
    """
    if isinstance(config, TinyEncoder):
        return _build_tiny(config, words)
    return _load_pretrained(config)


_CLASSES: dict[str, Any] = {"id2label": {0: "drop", 1: "keep"}, "label2id": {"drop": 0, "keep": 1}}


def _build_tiny(config: TinyEncoder, words: Iterable[str]) -> Encoder:
    from transformers import BertConfig, BertForTokenClassification

    tokenizer = train_word_piece(words, config.vocab_size)
    sizes = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=config.hidden,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=config.intermediate,
        max_position_embeddings=config.max_position_embeddings,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.dropout,
        **_CLASSES,
    )
    return Encoder(BertForTokenClassification(sizes), tokenizer, _build_reader(tokenizer, "bert"), {"kind": "tiny"})


def _load_pretrained(config: PretrainedEncoder) -> Encoder:
    import torch
    from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer

    folder = Path(config.model)
    if not folder.is_dir() and config.revision is None:
        raise EncoderError(
            f"encoder {config.model!r} is no folder, and no revision of the hub is given; allowed: a folder, or a hub "
            "id with the commit to take. Add encoder.revision"
        )
    pinned = {"revision": config.revision} if config.revision else {}
    try:
        sizes = AutoConfig.from_pretrained(config.model, trust_remote_code=False, **pinned, **_CLASSES)
        _check_family(config.model, sizes)
        tokenizer = AutoTokenizer.from_pretrained(config.model, trust_remote_code=False, **pinned)
        model = AutoModelForTokenClassification.from_pretrained(
            config.model, config=sizes, dtype=torch.float32, trust_remote_code=False, use_safetensors=True, **pinned
        )
    except EncoderError:
        raise
    except (OSError, ValueError) as error:
        why = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"
        raise EncoderError(
            f"encoder {config.model!r} cannot be loaded ({why}); allowed: a BERT or XLM-RoBERTa with safetensors, in a "
            "folder or on the hub. Check encoder.model and encoder.revision, and the network"
        ) from error
    tokenizer.padding_side = "right"
    origin = {
        "kind": "pretrained",
        "model": config.model,
        "commit": getattr(sizes, "_commit_hash", None),
        "weights_sha256": digest_weights(folder),
    }
    return Encoder(model, tokenizer, _build_reader(tokenizer, sizes.model_type), origin)


def _check_family(model: str, config: Any) -> None:
    least = LEAST_POSITIONS.get(config.model_type)
    if least is None or config.max_position_embeddings < least:
        raise EncoderError(
            f"encoder {model!r} is {config.model_type} with {getattr(config, 'max_position_embeddings', 'no')} "
            f"positions; allowed: {' or '.join(f'{name} with {n} or more' for name, n in LEAST_POSITIONS.items())}, "
            "which llmlingua loads. Choose another encoder.model"
        )


def _build_reader(tokenizer: Any, model_type: str) -> WordReader:
    special = [token for token in tokenizer.special_tokens_map.values() if isinstance(token, str)]
    return WordReader(tokenizer, FAMILY_OF_MODEL_TYPE[model_type], special)
