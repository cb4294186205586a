"""Hybrid: the fields of the prose, extracted by rules, then what is left, compressed by LLMLingua-2.

A field line holds, for one sentence, what an executor acts on, in the order it was said: operation words, tool names,
identifiers, quoted strings, and the small words that join or deny (*to, for, not, except* …). Nothing is sorted and
nothing merged, so pairs stay pairs. Below a line ``notes:`` stand the remaining words that the classifier keeps.
"""

from __future__ import annotations

import re
from typing import ClassVar

from graphhandoff.compress.fields import extract_fields
from graphhandoff.compress.llmlingua2 import LLMLingua2, finish_draft
from graphhandoff.compress.protocol import Draft

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")


class Hybrid(LLMLingua2):
    """Extract fields, compress the remainder; set up as LLMLingua-2, with ``rate`` a share of the remaining words."""

    id: ClassVar[str] = "hybrid"

    def _draft_one(self, prose: str) -> Draft:
        lines: list[str] = []
        rest: list[str] = []
        for sentence in _SENTENCE_END.split(prose):
            fields, others = extract_fields(sentence)
            if fields:
                lines.append(" ".join(fields))
            rest.extend(others)
        keep = self.labeller.keep(rest, self.rate, [False] * len(rest))
        notes = " ".join(word for word, kept in zip(rest, keep, strict=True) if kept)
        text = "\n".join([*lines, *([f"notes: {notes}"] if notes else [])])
        return finish_draft(prose, text, self.labeller, self.rate, keep, field_lines=len(lines))
