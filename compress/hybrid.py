"""Hybrid: the fields of the prose, extracted by rules, then what is left, compressed by LLMLingua-2.

A field line holds, for one sentence, what an executor acts on, in the order it was said: operation words, tool names,
identifiers, quoted strings, and the small words that join or deny (*to, for, not, except* …). Nothing is sorted and
nothing merged, so pairs stay pairs. Below a line ``notes:`` stand the remaining words that the classifier keeps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from graphhandoff.compress.identifiers import protected_words
from graphhandoff.compress.llmlingua2 import WordLabeller
from graphhandoff.compress.protocol import Delegation, Draft, Protocol
from graphhandoff.compress.tokens import DEFAULT_TOKENIZER

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_OPERATION = re.compile(
    r"(?:cancel|exchange|return|modif|change|swap|replac|refund|update|redirect|tell|inform|explain)\w*", re.IGNORECASE
)
_TOOL_NAME = re.compile(r"[a-z]+(?:_[a-z0-9]+){1,}")
_JOINS = frozenset(
    "to for into with by from becomes -> → => old new reason address1 address2 city state zip country".split()
)
_EDGE = re.compile(r"^[^\w#$→=-]+|[^\w>→]+$")
_QUOTED = re.compile(r"[\"“][^\"”\n]{1,80}[\"”]")


class Hybrid(Protocol):
    """Extract fields, compress the remainder.

    Args:
        tokenizer: for counting.
        model, revision, device: the token classifier, as for LLMLingua-2.
        rate: share of the remaining words to keep, over 0 and up to 1.
    """

    id: ClassVar[str] = "hybrid"
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
            raise ValueError(f"rate must be over 0 and at most 1, got {rate}; 0.25 keeps a quarter of the remainder")
        self.rate = rate
        self.labeller = WordLabeller(self.id, model, revision, device)

    def draft(self, delegations: Sequence[Delegation]) -> list[Draft]:
        """Write the field lines and the compressed remainder of each delegation.

        Raises:
            CheckpointMissingError: no model is named, or it cannot be found.
            UnsupportedModelError: the model is of another family.
        """
        return [self._draft_one(delegation.prose) for delegation in delegations]

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
        return Draft(
            text=text,
            route="compressed",
            details={
                "model": self.labeller.model,
                "rate_asked": self.rate,
                "rate_achieved": round(sum(keep) / len(rest), 4) if rest else 1.0,
                "field_lines": len(lines),
            },
        )


def extract_fields(sentence: str) -> tuple[list[str], list[str]]:
    """Part the words of a sentence into fields and others, each in order.

    Words inside quotes are fields. A joining word is one only next to another field, so that prose without
    operations or identifiers gives no fields at all.
    """
    words = sentence.split()
    quoted = _inside_quotes(sentence, words)
    solid = [
        safe or inside or _is_operation(word)
        for word, safe, inside in zip(words, protected_words(words), quoted, strict=True)
    ]
    fields: list[str] = []
    others: list[str] = []
    for i, word in enumerate(words):
        joins = _EDGE.sub("", word).lower() in _JOINS and any(solid[max(0, i - 2) : i + 3])
        (fields if solid[i] or joins else others).append(word)
    return fields, others


def _is_operation(word: str) -> bool:
    bare = _EDGE.sub("", word)
    return bool(_OPERATION.fullmatch(bare) or _TOOL_NAME.fullmatch(bare))


def _inside_quotes(sentence: str, words: Sequence[str]) -> list[bool]:
    spans = [found.span() for found in _QUOTED.finditer(sentence)]
    marks: list[bool] = []
    at = 0
    for word in words:
        at = sentence.index(word, at)
        marks.append(any(start <= at < end for start, end in spans))
        at += len(word)
    return marks
