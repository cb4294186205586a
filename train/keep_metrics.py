"""How well a token classifier tells the words to keep: word by word, and through llmlingua at a rate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphhandoff.compress.identifiers import find_identifiers
from graphhandoff.compress.llmlingua2 import WordLabeller
from graphhandoff.train.keep_pairs import Pair, Windows

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


def score_words(model: Any, tokenizer: Any, pairs: Sequence[Pair], windows: Windows, batch_size: int) -> list[Any]:
    """Rate every word of the pairs as llmlingua does: the mean over the pieces of each of its words, the best counts.

    Args:
        model: a token classifier of two classes; used as it is, on its device.
        tokenizer: that the windows were made with.
        pairs: whose windows these are.
        windows: made by ``build_windows``.
        batch_size: windows at a time.

    Returns:
        One array per pair, of the probability to keep each word, 0 to 1; 1 for words that are in no window.
    """
    import numpy
    import torch

    scores = [numpy.ones(len(pair.words)) for pair in pairs]
    shown = [numpy.zeros(len(pair.words), numpy.bool_) for pair in pairs]
    model.eval()
    for start in range(0, len(windows.windows), batch_size):
        batch = windows.windows[start : start + batch_size]
        longest = max(len(window.ids) for window in batch)
        ids = torch.full((len(batch), longest), tokenizer.pad_token_id or 0)
        mask = torch.zeros((len(batch), longest), dtype=torch.long)
        for row, window in enumerate(batch):
            ids[row, : len(window.ids)] = torch.from_numpy(window.ids)
            mask[row, : len(window.ids)] = 1
        with torch.no_grad():
            logits = model(input_ids=ids.to(model.device), attention_mask=mask.to(model.device)).logits
        probabilities = logits.float().softmax(-1)[..., 1].cpu().numpy()  # (batch, longest)
        for row, window in enumerate(batch):
            counted = window.labels >= 0
            rated, places = probabilities[row, : len(window.ids)][counted], window.places[counted]
            firsts = numpy.flatnonzero(window.starts[counted])
            ends = numpy.append(firsts[1:], len(rated))
            for first, end in zip(firsts, ends, strict=True):
                place, mean = places[first], rated[first:end].mean()
                best = scores[window.pair][place] if shown[window.pair][place] else 0.0
                scores[window.pair][place] = max(best, mean)
                shown[window.pair][place] = True
    return scores


def score_labels(pairs: Sequence[Pair], scores: Sequence[NDArray[numpy.float64]]) -> dict[str, float | int | None]:
    """Compare the words rated over one half with the labels.

    Returns:
        ``precision``, ``recall`` and ``f1`` of keeping (0 to 1; 0 where nothing is kept), ``auc`` (``None`` where all
        labels are equal), and the shares of words kept by the labels and by the classifier.
    """
    import numpy
    from sklearn.metrics import roc_auc_score

    truth = numpy.concatenate([numpy.array(pair.keep, numpy.bool_) for pair in pairs])
    rated = numpy.concatenate(list(scores))
    kept = rated > 0.5
    hits = int((kept & truth).sum())
    precision = hits / int(kept.sum()) if kept.any() else 0.0
    recall = hits / int(truth.sum()) if truth.any() else 0.0
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if hits else 0.0,
        "auc": float(roc_auc_score(truth, rated)) if truth.any() and not truth.all() else None,
        "keep_share_labels": float(truth.mean()),
        "keep_share_classifier": float(kept.mean()),
        "n_words": len(truth),
    }


def score_at_rate(folder: Path, pairs: Sequence[Pair], rate: float, device: str) -> dict[str, float | int | None]:
    """Compress the pairs with the saved classifier through llmlingua, no word protected, and see what is kept.

    Args:
        folder: of a saved classifier.
        pairs: with labels.
        rate: share of the words to keep.
        device: cpu, cuda or mps.

    Returns:
        ``identifier_recall_at_rate``: of the words that hold an identifier and are labelled keep, the share that is
        kept (``None`` if there are none); ``recall_at_rate`` and ``precision_at_rate`` of all words labelled keep;
        and ``rate_achieved``.
    """
    labeller = WordLabeller("llmlingua2", str(folder), None, device)
    n_words = n_kept = n_needed = n_hits = n_identifiers = n_identifier_hits = 0
    for pair in pairs:
        kept = labeller.keep(pair.words, rate, [False] * len(pair.words))
        n_words += len(kept)
        n_kept += sum(kept)
        for word, needed, is_kept in zip(pair.words, pair.keep, kept, strict=True):
            if needed:
                n_needed += 1
                n_hits += is_kept
                if find_identifiers(word):
                    n_identifiers += 1
                    n_identifier_hits += is_kept
    return {
        "rate": rate,
        "rate_achieved": n_kept / n_words,
        "recall_at_rate": n_hits / n_needed if n_needed else None,
        "precision_at_rate": n_hits / n_kept if n_kept else None,
        "identifier_recall_at_rate": n_identifier_hits / n_identifiers if n_identifiers else None,
        "n_identifier_words": n_identifiers,
    }
