"""Token classifiers of a few thousand random weights, built in the process in place of downloads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

TEXTS = (
    "Exchange 7700112233 in order #W4400917 for 7700445566, refund to credit_card_331883. "
    "Please return everything *except* the tablet from the delivered order of last week. "
    "The customer talks about the weather and the garden hose, then asks what comes back."
)
_CHARACTERS = sorted(
    (set(TEXTS) | set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789#$_.,*|<>[]/@'")) - {" "}
)
_WORDS = sorted({word for word in re.findall(r"[A-Za-z]+", TEXTS) if len(word) > 1})


def save_token_classifier(folder: Path, model_type: Literal["bert", "xlm-roberta"] = "bert", seed: int = 0) -> Path:
    """Save a tiny untrained token classifier with a vocabulary made here; equal seeds give equal weights.

    Args:
        folder: made if it is not there; its name does not matter.
        model_type: ``bert`` has a WordPiece vocabulary, ``xlm-roberta`` a SentencePiece (unigram) one.
        seed: of the weights. The caller's random state is left alone.
    """
    import torch
    from transformers import BertConfig, BertForTokenClassification, XLMRobertaConfig, XLMRobertaForTokenClassification

    tokenizer = _word_piece() if model_type == "bert" else _sentence_piece()
    sizes: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "num_labels": 2,
    }
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        model: Any
        if model_type == "bert":
            model = BertForTokenClassification(BertConfig(max_position_embeddings=512, **sizes))
        else:
            ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
            model = XLMRobertaForTokenClassification(XLMRobertaConfig(max_position_embeddings=514, **ids, **sizes))
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _word_piece() -> Any:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = [*special, *_CHARACTERS, *(f"##{c}" for c in _CHARACTERS), *_WORDS]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(name, vocabulary.index(name)) for name in ("[CLS]", "[SEP]")]
    )
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def _sentence_piece() -> Any:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = ["▁", *_CHARACTERS, *(f"▁{word}" for word in _WORDS)]
    scored = [*((name, 0.0) for name in special), *((piece, -8.0 / len(piece)) for piece in pieces), ("<mask>", 0.0)]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=3))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        cls_token="<s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
    )
