"""Hybrid: the fields of the prose, extracted by rules, then what is left, compressed by LLMLingua-2.

With the executor's tools, a field line is a whole call, ``tool value value …``, read from the prose by the rules of
:mod:`graphhandoff.compress.literal_text`; the sentences that were read are spent. Where no plan says which
identifiers are needed, a field line holds what else an executor acts on in a sentence, in the order it was said:
operation words, tool names, identifiers, quoted strings, and the small words that join or deny (*to, for, not, except*
…). Nothing is sorted and nothing merged, so pairs stay pairs. Below stand the remaining words that the classifier
keeps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar, NamedTuple

from graphhandoff.compress.contract import signatures_of
from graphhandoff.compress.fields import Word, extract_fields, split_words
from graphhandoff.compress.graph import HandoffGraph
from graphhandoff.compress.identifiers import find_readable_identifiers
from graphhandoff.compress.keeping import Kept, denials_before, exceptions, join_lines
from graphhandoff.compress.literal_text import read_mentions
from graphhandoff.compress.llmlingua2 import LLMLingua2
from graphhandoff.compress.protocol import Delegation, Draft, ToolCall, ToolSpec
from graphhandoff.compress.tokens import DEFAULT_TOKENIZER
from graphhandoff.compress.wire import write

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")


class Hybrid(LLMLingua2):
    """Extract fields, compress the remainder.

    Args:
        tools: the executor's tools, for extraction; without them no calls are extracted.
        tokenizer, settings: as LLMLingua-2; ``rate`` is a share of the remaining words.
    """

    id: ClassVar[str] = "hybrid"

    def __init__(self, tools: Sequence[ToolSpec] = (), tokenizer: str = DEFAULT_TOKENIZER, **settings: Any) -> None:
        super().__init__(tokenizer, **settings)
        self.tools = tuple(tools)

    def _draft_one(self, delegation: Delegation) -> Draft:
        extract = _extract_calls(delegation, self.tools)
        if delegation.graph is None:
            return self._draft_all_fields(delegation.prose, extract)
        lines = [split_words(line) for line in extract.rest.split("\n")]
        words = [word for line in lines for word in line]
        kept = self._choose_rest(words, delegation, "\n".join(extract.lines))
        notes = join_lines(lines, kept.keep)
        text = "\n".join([*extract.lines, *(["", notes] if extract.lines and notes else [notes] if notes else [])])
        return self._finish_draft(delegation.prose, text, kept, field_lines=len(extract.lines))

    def _choose_rest(self, words: Sequence[Word], delegation: Delegation, told: str) -> Kept:
        """Choose words of the rest; an identifier that a field line holds is neither needed nor kept again.

        Unless it is what the rest denies or excepts: *not #W1* without its number would deny what comes next.
        """
        known = find_readable_identifiers(told)
        needed = [identifier for identifier in delegation.iter_plan_identifiers() if identifier not in known]
        lists = [columns for columns in delegation.iter_plan_lists() if not known.issuperset(chain(*columns))]
        kept = self._choose(words, needed, delegation.iter_told(), lists)
        excepted = exceptions(words)
        keep = list(kept.keep)
        for i, word in enumerate(words):
            identifiers = find_readable_identifiers(word.text) if keep[i] else set()
            if identifiers and known.issuperset(identifiers):
                keep[i] = excepted[i] or any(True for _ in denials_before(words, i))
        return Kept(keep, kept.n_restored)

    def _draft_all_fields(self, prose: str, extract: _Extract) -> Draft:
        lines = list(extract.lines)
        rest: list[str] = []
        for sentence in _SENTENCE_END.split(extract.rest):
            fields, others = extract_fields(sentence)
            if fields:
                lines.append(" ".join(fields))
            rest.extend(others)
        keep = self.labeller.keep(rest, self.rate, [False] * len(rest), self.threshold)
        notes = " ".join(word for word, kept in zip(rest, keep, strict=True) if kept)
        text = "\n".join([*lines, *([f"notes: {notes}"] if notes else [])])
        return self._finish_draft(prose, text, Kept(keep, 0), field_lines=len(lines))


class _Extract(NamedTuple):
    """The calls that could be read, a line each, and the prose without the sentences they were read from."""

    lines: list[str]
    rest: str


def _extract_calls(delegation: Delegation, tools: Sequence[ToolSpec]) -> _Extract:
    """Read calls from the prose; a sentence is spent if its calls were read and nothing else in it is needed."""
    prose = delegation.prose
    if not tools:
        return _Extract([], prose)
    calls: list[ToolCall] = []
    read_from: set[tuple[int, int]] = set()
    for read in read_mentions(prose, tools):
        if isinstance(read.call, str):
            continue
        read_from.add((read.unit.start, read.unit.end))
        if read.as_line or read.call not in calls:
            calls.append(read.call)
    lines = _write_lines(calls, tools)
    needed = set(delegation.iter_plan_identifiers()) - find_readable_identifiers("\n".join(lines))
    told = tuple(delegation.iter_told())
    rest: list[str] = []
    at = 0
    for start, end in sorted(read_from):
        sentence = prose[start:end]
        if needed.isdisjoint(find_readable_identifiers(sentence)) and not any(value in sentence for value in told):
            rest.append(prose[at:start])
            at = end
    rest.append(prose[at:])
    return _Extract(lines, "".join(rest))


def _write_lines(calls: Sequence[ToolCall], tools: Sequence[ToolSpec]) -> list[str]:
    if not calls:
        return []
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, str]] = []
    for i, call in enumerate(calls, start=1):
        nodes.append({"id": str(i), "type": "tool_call", "tool": call.name})
        for j, (name, value) in enumerate(call.arguments.items(), start=1):
            nodes.append({"id": f"{i}.{j}", "type": "tool_arg", "name": name, "value": value})
            edges.append({"src": f"{i}.{j}", "dst": str(i), "relation": "targets"})
        if i > 1:
            edges.append({"src": str(i - 1), "dst": str(i), "relation": "depends_on"})
    return write(HandoffGraph.build(nodes, edges), "compact", signatures_of(tools)).split("\n")
