"""Token classifiers of a few thousand random weights, built in the process in place of downloads."""

from __future__ import annotations

import re
from pathlib import Path

TEXTS = (
    "Exchange 7700112233 in order #W4400917 for 7700445566, refund to credit_card_331883. "
    "Please return everything *except* the tablet from the delivered order of last week. "
    "The customer talks about the weather and the garden hose, then asks what comes back."
)


def save_token_classifier(folder: Path, model_type: str = "bert", seed: int = 0) -> Path:
    """Save a tiny untrained token classifier with a WordPiece vocabulary made here."""
    import torch
    from tokenizers import Tokenizer
    from tokenizers.decoders import WordPiece as WordPieceDecoder
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing
    from transformers import BertConfig, BertForTokenClassification, PreTrainedTokenizerFast

    characters = sorted(
        set(TEXTS) | set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789#$_.,*|<>[]/@'")
    )
    pieces = [c for c in characters if not c.isspace()]
    words = sorted(set(re.findall(r"[A-Za-z]+", TEXTS)))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = [*special, *pieces, *(f"##{c}" for c in pieces), *(w for w in words if len(w) > 1)]
    tokenizer = Tokenizer(WordPiece({token: i for i, token in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    ends = [(name, vocabulary.index(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    tokenizer.decoder = WordPieceDecoder(prefix="##", cleanup=False)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=512,
            num_labels=2,
        )
        model = BertForTokenClassification(config)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder
