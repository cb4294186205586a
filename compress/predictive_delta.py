"""Predictive delta: the executor's side predicts the plan, and only the difference crosses.

Both sides hold the same library of training plans. The prediction is the plan of the training task whose text is
nearest to this one's; the message names it and edits its lines::

    base 69
    1-3
    4 #W4400917 "no longer needed"
    + post: tell 54.04

``1-3`` keeps lines 1 to 3 of the predicted plan, ``4 …`` keeps the first word of line 4 and replaces the rest, ``+ …``
is a new line; predicted lines that are not named are dropped. Lines are those of the compact wire. The receiver's half
is :meth:`PredictiveDelta.decode`, which needs the message and the library and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, ClassVar

from graphhandoff.compress.contract import signatures_of
from graphhandoff.compress.protocol import Delegation, Draft, Protocol, ToolSpec
from graphhandoff.compress.tokens import DEFAULT_TOKENIZER
from graphhandoff.compress.wire import write

if TYPE_CHECKING:
    from numpy.typing import NDArray


class DeltaError(ValueError):
    """A delta cannot be applied: no such base, or a line that is no edit; says which line."""


class PredictiveDelta(Protocol):
    """Send the difference to the nearest training plan.

    Args:
        library: training delegations with graphs, the same on both sides.
        tools: the executor's tools, for the compact wire's signatures.
        tokenizer: for counting.

    Raises:
        ValueError: the library is empty or a delegation in it has no graph.
    """

    id: ClassVar[str] = "predictive_delta"
    schema_aware: ClassVar[bool] = True
    trained: ClassVar[bool] = False

    def __init__(
        self, library: Sequence[Delegation], tools: Sequence[ToolSpec] = (), tokenizer: str = DEFAULT_TOKENIZER
    ) -> None:
        super().__init__(tokenizer)
        self._signatures = signatures_of(tools)
        self._plans: dict[str, list[str]] = {}
        for delegation in library:
            if delegation.graph is None:
                raise ValueError(f"library task {delegation.task_id!r} has no graph; leave it out or label it first")
            self._plans[delegation.task_id] = write(delegation.graph, "compact", self._signatures).split("\n")
        if not self._plans:
            raise ValueError("the library of plans is empty; give at least one training delegation with a graph")
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._ids = list(self._plans)
        self._vectorizer: Any = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2))
        self._vectors: Any = self._vectorizer.fit_transform([d.task_text or d.prose for d in library])

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Return, for each task text, the id of the training task nearest by cosine of TF-IDF weights."""
        similarity: NDArray[Any] = (self._vectorizer.transform(texts) @ self._vectors.T).toarray()
        return [self._ids[int(row.argmax())] for row in similarity]

    def draft(self, delegations: Sequence[Delegation]) -> list[Draft]:
        """Write one delta per delegation; without a graph there is no plan to differ from, and the prose is sent."""
        bases = self.predict([delegation.task_text or delegation.prose for delegation in delegations])
        return [self._draft_one(delegation, base) for delegation, base in zip(delegations, bases, strict=True)]

    def _draft_one(self, delegation: Delegation, base: str) -> Draft:
        if delegation.graph is None:
            return Draft(text=delegation.prose, route="natural_language", fallback="the delegation has no graph")
        plan = write(delegation.graph, "compact", self._signatures)
        edits = write_delta(self._plans[base], plan.split("\n"))
        text = "\n".join([f"base {base}", *edits])
        kept = sum(not edit.startswith("+") for edit in edits)
        return Draft(text=text, route="graph", details={"base": base, "edits": len(edits), "from_base": kept})

    def decode(self, text: str) -> str:
        """Apply a delta to the library and return the plan on the compact wire.

        Raises:
            DeltaError: the base is not in the library, or a line is no edit of it.
        """
        head, *edits = text.split("\n")
        base = head.removeprefix("base ")
        if base == head or base not in self._plans:
            raise DeltaError(f"line 1: {head!r} names no plan of the library; both sides need the same library")
        return "\n".join(apply_delta(self._plans[base], edits))


_KEEP = re.compile(r"([1-9][0-9]*)(?:-([1-9][0-9]*))?$")
_CHANGE = re.compile(r"([1-9][0-9]*) (.+)$")


def write_delta(base: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Write the edits that turn ``base`` into ``lines``; ``apply_delta(base, write_delta(base, lines)) == lines``."""
    edits: list[str] = []
    kept: list[int] = []  # the run of base lines (from 1) that is being kept
    for line, place in zip(lines, _align(base, lines), strict=True):
        keep = place is not None and base[place] == line
        if kept and not (keep and place == kept[-1]):
            edits.append(_write_run(kept))
            kept = []
        _, _, rest = line.partition(" ")
        if keep and place is not None:
            kept.append(place + 1)
        elif place is not None and rest:
            edits.append(f"{place + 1} {rest}")
        else:
            edits.append(f"+ {line}")
    return [*edits, _write_run(kept)] if kept else edits


def _write_run(kept: Sequence[int]) -> str:
    return f"{kept[0]}-{kept[-1]}" if len(kept) > 1 else str(kept[0])


def _align(base: Sequence[str], lines: Sequence[str]) -> list[int | None]:
    """Pair each line with the base line of the same first word, in order; ``None`` where there is none."""
    heads = [line.partition(" ")[0] for line in base]
    wanted = [line.partition(" ")[0] for line in lines]
    places: list[int | None] = [None] * len(lines)
    for block in SequenceMatcher(None, heads, wanted, autojunk=False).get_matching_blocks():
        for k in range(block.size):
            places[block.b + k] = block.a + k
    return places


def apply_delta(base: Sequence[str], edits: Sequence[str]) -> list[str]:
    """Apply edits to a plan's lines.

    Raises:
        DeltaError: an edit of another form, or of a line that the base does not have.
    """
    lines: list[str] = []
    for number, edit in enumerate(edits, start=2):
        keep, change = _KEEP.match(edit), _CHANGE.match(edit)
        if edit.startswith("+ "):
            lines.append(edit[2:])
        elif keep:
            first, last = int(keep.group(1)), int(keep.group(2) or keep.group(1))
            if not first <= last <= len(base):
                raise DeltaError(
                    f"line {number}: {edit!r} keeps lines that the base of {len(base)} lines does not have"
                )
            lines.extend(base[first - 1 : last])
        elif change:
            place = int(change.group(1))
            if place > len(base):
                raise DeltaError(f"line {number}: {edit!r} changes line {place} of a base of {len(base)} lines")
            lines.append(f"{base[place - 1].partition(' ')[0]} {change.group(2)}")
        else:
            raise DeltaError(f"line {number}: {edit!r} is no edit; allowed: '2-4', '3 new rest', '+ new line'")
    return lines
