"""A WordPiece tokenizer for small encoders that keeps identifiers whole, in a form that llmlingua takes for BERT's.

llmlingua 0.2.2 drops and joins *words*, which for BERT are what the pre-tokenizer splits. BERT's own puts ``#``, ``_``
and ``@`` by themselves, so that the library gives ``# W4400917`` back and may drop half of an e-mail address. Here an
identifier is one word of several pieces, digits come in pieces of at most two, and other punctuation stands alone.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from graphhandoff.compress.identifiers import IDENTIFIER_PATTERN

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LONGEST_WORD = 1000
"""Characters; a longer word is unknown to the tokenizer, and llmlingua leaves unknown words to us."""

_PREFIX = "##"
_PRINTABLE = string.digits + string.ascii_letters + string.punctuation
_PAIRS = [f"{a}{b}" for a in string.digits for b in string.digits]
LEAST_VOCABULARY = len(SPECIAL_TOKENS) + 2 * (len(_PRINTABLE) + len(_PAIRS))
"""Pieces of every vocabulary: special tokens, printable ASCII and pairs of digits, at the start and inside of words."""

_LETTERS = re.compile(r"[^\W\d_]+")
_CONTINUED_SHARE = 0.05  # of the vocabulary, for letters behind a mark or digit: ##card, ##com


def train_word_piece(words: Iterable[str], vocab_size: int) -> Any:
    """Learn a vocabulary from words and return a ``PreTrainedTokenizerFast``; equal words give equal vocabularies.

    Args:
        words: without white space inside, repeats included.
        vocab_size: pieces at most, special tokens included; fewer where the words do not give as many.

    Raises:
        ValueError: ``vocab_size`` is below :data:`LEAST_VOCABULARY` plus a piece for each further letter in the words.
    """
    counts = Counter(words)
    vocabulary = dict.fromkeys([*SPECIAL_TOKENS, *_twice([*_PRINTABLE, *_PAIRS])])
    others = sorted({character for word in counts for character in word} - set(_PRINTABLE))
    vocabulary.update(dict.fromkeys(_twice(others)))
    if len(vocabulary) > vocab_size:
        raise ValueError(
            f"vocab_size {vocab_size} is too small for these words; allowed: {len(vocabulary)} or more "
            f"({LEAST_VOCABULARY} for ASCII, the rest for other characters). Raise encoder.vocab_size"
        )
    starting, continued = _count_letters(counts)
    room = int(vocab_size * _CONTINUED_SHARE)
    frequent = sorted((run for run in continued if continued[run] > 1), key=lambda run: (-continued[run], run))
    for run in frequent[:room]:
        if len(vocabulary) < vocab_size:
            vocabulary.setdefault(_PREFIX + run)
    vocabulary.update(dict.fromkeys(_learn(starting, list(vocabulary), vocab_size)))
    return build_word_piece(list(vocabulary)[:vocab_size])


def build_word_piece(vocabulary: list[str]) -> Any:
    """Build the tokenizer of a vocabulary that begins with the special tokens."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    ids = {piece: i for i, piece in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD))
    whole_or_mark = Regex(rf"{IDENTIFIER_PATTERN}|[^\w\s]")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(whole_or_mark, "isolated")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(name, ids[name]) for name in ("[CLS]", "[SEP]")]
    )
    tokenizer.decoder = decoders.WordPiece(prefix=_PREFIX, cleanup=False)
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL_TOKENS, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False, **names)


def _twice(pieces: Iterable[str]) -> list[str]:
    listed = list(pieces)
    return [*listed, *(_PREFIX + piece for piece in listed)]


def _count_letters(counts: Counter[str]) -> tuple[Counter[str], Counter[str]]:
    """Count runs of letters: those at the start of a word of the tokenizer's, and those behind a mark or digit."""
    starting: Counter[str] = Counter()
    continued: Counter[str] = Counter()
    for word, count in counts.items():
        for token in _split(word):
            for run in _LETTERS.finditer(token):
                (continued if run.start() else starting)[run.group()] += count
    return starting, continued


_SPLIT = re.compile(rf"{IDENTIFIER_PATTERN}|[^\w\s]|(?:(?!{IDENTIFIER_PATTERN})\w)+")


def _split(word: str) -> Iterator[str]:
    for found in _SPLIT.finditer(word):
        yield found.group()


def _learn(starting: Counter[str], known: list[str], vocab_size: int) -> list[str]:
    """Learn pieces of letters only; digits and marks are left out, so no piece runs across them."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        show_progress=False,
        continuing_subword_prefix=_PREFIX,
        # Named first, every character has its id before the trainer's hash maps can have a say: the result is the same
        # in every process.
        special_tokens=known,
    )
    lines = (" ".join([run] * count) for run, count in sorted(starting.items()))
    tokenizer.train_from_iterator(lines, trainer)
    learnt: dict[str, int] = tokenizer.get_vocab()
    return sorted(learnt, key=lambda piece: learnt[piece])
