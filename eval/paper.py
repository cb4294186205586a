"""The paper's Table 2 (Banerjee and Chadha, arXiv 2608.25277): printed beside our figures, never mixed with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class PaperRow(NamedTuple):
    """Task success rate in percent, difference to natural language with 95% interval in points, compression."""

    tsr: float
    delta: float | None
    ci_low: float | None
    ci_high: float | None
    compression: float


# The printed order of the Hybrid and LLMLingua-2 figures is our reading of the table.
PAPER_TABLE_2: Mapping[str, PaperRow] = {
    "natural_language": PaperRow(12.0, None, None, None, 1.0),
    "routed_ngh": PaperRow(24.7, 12.7, 6.0, 19.3, 3.2),
    "qwen_emitter": PaperRow(20.7, 8.7, 2.0, 15.3, 10.7),
    "t5_autoencoder": PaperRow(20.0, 8.0, 1.3, 14.7, 7.7),
    "hybrid": PaperRow(19.3, 7.3, 0.7, 14.0, 6.2),
    "llmlingua2": PaperRow(18.7, 6.7, 0.7, 13.3, 5.2),
    "predictive_delta": PaperRow(17.3, 5.3, -0.7, 11.3, 0.7),
    "tfidf": PaperRow(16.7, 4.7, -2.0, 11.3, 0.9),
}
