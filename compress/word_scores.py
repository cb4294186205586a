"""Rating words with a loaded compressor's own model: how likely each is to be kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphhandoff.compress.word_windows import Reading, pack_words

_BATCH = 8  # windows at a time: bounds memory for long texts


def score_words(compressor: Any, readings: Sequence[Reading]) -> list[float]:
    """Rate words by the mean over the pieces of each of llmlingua's words, the best of which counts for ours.

    Args:
        compressor: llmlingua's ``PromptCompressor``; its model is used as it is, on its device.
        readings: of the words, in order.

    Returns:
        Probabilities to keep, 0 to 1; 1 for a word that is in no window.
    """
    scores = [1.0] * len(readings)
    windows = pack_words(readings)
    for start in range(0, len(windows), _BATCH):
        batch = windows[start : start + _BATCH]
        for window, probabilities in zip(batch, _run(compressor, batch, readings), strict=True):
            rated = iter(probabilities)
            for place in window:
                scores[place] = max(_means(readings[place], rated))
    return scores


def _means(reading: Reading, rated: Iterator[float]) -> list[float]:
    """Take the ratings of a word's pieces and return the mean of each of llmlingua's words in it."""
    groups: list[list[float]] = []
    for counted, starts in zip(reading.counted, reading.starts, strict=True):
        probability = next(rated)
        if starts or not groups:
            groups.append([])
        if counted:
            groups[-1].append(probability)
    return [sum(group) / len(group) for group in groups if group] or [1.0]


def _run(compressor: Any, windows: Sequence[Sequence[int]], readings: Sequence[Reading]) -> list[list[float]]:
    """Return the probability of every piece of each window, special tokens left out."""
    import torch

    tokenizer, model = compressor.tokenizer, compressor.model
    texts = [[piece for place in window for piece in readings[place].pieces] for window in windows]
    longest = max(map(len, texts)) + 2
    ids = torch.full((len(texts), longest), tokenizer.pad_token_id or 0)  # (B, T)
    mask = torch.zeros((len(texts), longest), dtype=torch.long)  # (B, T)
    for row, pieces in enumerate(texts):
        whole = [tokenizer.cls_token_id, *tokenizer.convert_tokens_to_ids(pieces), tokenizer.sep_token_id]
        ids[row, : len(whole)] = torch.tensor(whole)
        mask[row, : len(whole)] = 1
    with torch.no_grad():
        logits = model(input_ids=ids.to(model.device), attention_mask=mask.to(model.device)).logits  # (B, T, 2)
    probabilities = logits.float().softmax(-1)[..., 1].cpu()  # (B, T)
    return [probabilities[row, 1 : 1 + len(pieces)].tolist() for row, pieces in enumerate(texts)]
