"""Reading calls out of any text that is no graph, by fixed rules. Nothing is inferred; what is unclear is skipped.

1. **Units.** A text falls into blocks (paragraphs and list items) and those into sentences. A paragraph that ends in a
   colon, or without a full stop before one that begins with a small letter, goes on into the next.
2. **Mentions.** A tool is mentioned by its exact name; or, if the text names that tool nowhere, by a sentence that
   gives the order: its verb (the first word of its name, or a listed synonym) in the imperative, also after a phrase
   that ends in an identifier (*from order #W1 return …*), or as a noun after an article, where the other words of its
   name decide between tools of one verb (*profile* and *account* count as *user*, *redirect* as *address*). Look-ups
   are read by exact name only.
3. **Not a call:** a mention in a clause that denies (*not, never, leave, instead of* …), narrates (*was, wanted* …), or
   is a fall-back (*if … refused, fails, sold out* …).
4. **Values** are recognised by the shapes that the tools publish (:mod:`graphhandoff.compress.literal_values`) or by a
   label that is the parameter's name. They are taken from the mention's sentence, then from its block forwards and
   backwards, then from anywhere if the whole text has a single such value. Sentences that warn (*don't, beware, stays,
   out of stock* …) lend no values; a fragment such as *, not the blue one* denies only itself. A value that
   directly follows a word of exception (*except, not, other than, instead of* …) is none, nor are those strung to it.
   A line that begins with a tool's name parts what stands before it from what follows.
5. **Lists** keep reading order and repeats. Old and new items are paired by what stands between them (*->, to, for,
   into, by, with, becomes, new item* …), or as one list for another of the same length. Items beside a single pair
   that stand in a list with one of its sides make the pairing doubtful: nothing is read.
6. A line that begins with a tool's name and holds exactly its arguments (``tool value value``, ``tool name=value``) is
   read as such.
7. **Said to the customer** are the sentences that order to tell something, and the rest of their block.
8. A call lacking a required argument is skipped with the reason; the same call told twice in prose is made once, while
   every line of rule 6 is a call of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from graphhandoff.compress.literal_arguments import ArgumentReader
from graphhandoff.compress.literal_layout import Layout, Mention, Unit
from graphhandoff.compress.protocol import ToolCall, ToolSpec

_CLAUSE_END = re.compile(r"[,;:–—]\s|\s-\s|\b(?:and|but|so|then|because|as|which|who|where|while)\b")

_DENIES = re.compile(
    r"\b(?:not|never|no|nor|neither|cannot|without|leave|leaves|ignore|avoid|beware|instead|rather|nothing|untouched"
    r"|hands off|stay away|keep clear|steer clear|out of bounds|can't|don't|doesn't|didn't|won't|mustn't|isn't|wouldn't"
    r"|shouldn't|couldn't|can’t|don’t|doesn’t|didn’t|won’t|mustn’t|isn’t|wouldn’t|shouldn’t|couldn’t)\b",
    re.IGNORECASE,
)
_NARRATES = re.compile(
    r"\b(?:was|were|wanted|wants|want|wished|wish|asked|asks|would|had|has|said|hoped|first idea|decided|permitted)\b",
    re.IGNORECASE,
)
_FALLS_BACK = re.compile(
    r"\b(?:if|should|in case|in the event|unless|were)\b.*?\b(?:refus\w*|fail\w*|reject\w*|error\w*|objects?|bounc\w*"
    r"|sold out|unavailable|out of stock|gone|not found|no longer (?:pending|delivered|available|in stock)|moved on"
    r"|processed|declin\w*|differ\w*|different|goes wrong|trouble|complain\w*|turns? out|already)\b",
    re.IGNORECASE | re.DOTALL,
)
TELLS = re.compile(
    r"\b(?:tell|let \w+(?: \w+)? know|inform|explain|mention|say to|answers?|report to (?:him|her|them)|write back"
    r"|confirm (?:to|with|that)|recap|summary|closing|hears?|read out|quote|wants? to (?:know|hear)|needs to know"
    r"|owed|send (?:him|her|them|the customer)|relay|pass on|message (?:for|to) the customer|figure|communicate"
    r"|state)\b",
    re.IGNORECASE,
)
_SILENT = re.compile(r"\b(?:must not|don't|don’t|do not|never|need not)\b", re.IGNORECASE)
_ORDERS = re.compile(
    r"(?:^|[,;:.(–—]\s*|\b(?:please|then|and|so|now|finally|next|first|afterwards?|hence|just|only|to|must|you|ahead)\s+)$",
    re.IGNORECASE,
)
# "From order #W1 return …": a phrase that ends in an identifier may open an order to act.
_FROM_PLACE = re.compile(
    r"(?:^|[,;:.(–—]\s*|\b(?:please|then|and|so|now|finally|next|first)\s+)"
    r"(?:in|from|on|for|out of|of)\s+(?:[a-z'’-]+\s+){0,4}[^\s,;:.]*[0-9][^\s,;:.]*,?\s+(?:please\s+)?$",
    re.IGNORECASE,
)
_NOUN = re.compile(r"\b(?:a|an|the|one|single|this|file|submit|request|place)\s+$", re.IGNORECASE)
_READS = frozenset({"get", "find", "list", "search", "lookup", "look", "read", "fetch", "calculate", "think"})
_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "modify": ("change", "update", "edit", "redirect"),
    "exchange": ("swap",),
    "return": ("send back",),
}
_NEAR_WORDS: Mapping[str, tuple[str, ...]] = {"user": ("profile", "account"), "address": ("redirect",)}
_NOUNS: Mapping[str, str] = {"cancel": "cancellation", "modify": "modification"}


def read_text(text: str, tools: Sequence[ToolSpec]) -> tuple[tuple[ToolCall, ...], str, tuple[str, ...]]:
    """Read a text by the rules above.

    Returns:
        The calls in reading order, the words said to the customer, and why a mentioned call could not be read.
    """
    layout = Layout(text, [tool.name for tool in tools])
    reader = _Reader(layout, tools)
    calls: list[ToolCall] = []
    skipped: list[str] = []
    for read in _read_mentions(reader, layout, tools):
        if isinstance(read.call, str):
            if read.call not in skipped:
                skipped.append(read.call)
        elif read.as_line or read.call not in calls:
            calls.append(read.call)
    return tuple(calls), reader.said(), tuple(skipped)


class ReadMention(NamedTuple):
    """What was read at a mention: the call, or why there is none, and whether it stood as a line of its own."""

    unit: Unit
    call: ToolCall | str
    as_line: bool


def read_mentions(text: str, tools: Sequence[ToolSpec]) -> list[ReadMention]:
    """Read what each mention of a tool in a text comes to, with the sentence that it stands in."""
    layout = Layout(text, [tool.name for tool in tools])
    return list(_read_mentions(_Reader(layout, tools), layout, tools))


def _read_mentions(reader: _Reader, layout: Layout, tools: Sequence[ToolSpec]) -> Iterator[ReadMention]:
    arguments = ArgumentReader(layout, tools)
    for mention in reader.mentions():
        line = arguments.read_line_form(mention)
        call = line if line is not None else arguments.read_call(mention)
        yield ReadMention(layout.unit_at(mention.start), call, line is not None)


class _Reader:
    def __init__(self, layout: Layout, tools: Sequence[ToolSpec]) -> None:
        self.layout = layout
        self.text = layout.text
        self.tools = {tool.name: tool for tool in tools}

    def mentions(self) -> list[Mention]:
        found: list[Mention] = []
        if not self.tools:
            return found
        names = re.compile(r"(?<![\w.])(?:" + "|".join(map(re.escape, self.tools)) + r")(?!\w)")
        for match in names.finditer(self.text):
            if not self._is_denied(match.start()):
                found.append(Mention(match.start(), match.end(), self.tools[match.group()], True))
        named = {mention.tool.name for mention in found}
        verbs: dict[str, list[ToolSpec]] = {}
        for tool in self.tools.values():
            verb = tool.name.split("_")[0]
            if verb not in _READS:
                for word in (verb, *_SYNONYMS.get(verb, ()), *([_NOUNS[verb]] if verb in _NOUNS else [])):
                    verbs.setdefault(word, []).append(tool)
        if verbs:
            pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, verbs)) + r")\b", re.IGNORECASE)
            for match in pattern.finditer(self.text):
                tool_or_none = self._described(match, verbs[match.group().lower()])
                if tool_or_none is not None and tool_or_none.name not in named:
                    found.append(Mention(match.start(), match.end(), tool_or_none, False))
        return sorted(found)

    def _described(self, match: re.Match[str], candidates: Sequence[ToolSpec]) -> ToolSpec | None:
        unit = self.layout.unit_at(match.start())
        before = self.text[unit.start : match.start()]
        if not (
            _ORDERS.search(before)
            or _FROM_PLACE.search(before)
            or _NOUN.search(before)
            or not before.strip(" \t-*•–0123456789.()")
        ):
            return None
        if self._is_denied(match.start()) or self._narrates(unit, match.start()):
            return None
        block = self.text[slice(*self.layout.blocks[unit.block])].lower()
        sentence = self.text[unit.start : unit.end].lower()
        scored = sorted(((self._fit(tool, sentence, block), tool.name) for tool in candidates), reverse=True)
        if len(scored) > 1 and scored[0][0] == scored[1][0]:
            return None
        return self.tools[scored[0][1]]

    @staticmethod
    def _fit(tool: ToolSpec, sentence: str, block: str) -> tuple[int, ...]:
        words = [(word.rstrip("s"), *_NEAR_WORDS.get(word, ())) for word in tool.name.split("_")[1:]]
        return tuple(sum(any(word in place for word in near) for near in words) for place in (sentence, block))

    def _clause(self, unit: Unit, at: int) -> str:
        start = unit.start
        for end in _CLAUSE_END.finditer(self.text, unit.start, at):
            start = end.end()
        return self.text[start:at]

    def _is_denied(self, at: int) -> bool:
        unit = self.layout.unit_at(at)
        return bool(_DENIES.search(self._clause(unit, at)) or _FALLS_BACK.search(self.text, unit.start, at))

    def _narrates(self, unit: Unit, at: int) -> bool:
        return bool(_NARRATES.search(self._clause(unit, at)))

    def said(self) -> str:
        """Return the sentences that order to tell something, each with what follows in its block."""
        spoken: list[str] = []
        telling_block = -1
        for unit in self.layout.units:
            sentence = self.text[unit.start : unit.end]
            silent = _SILENT.search(sentence) is not None
            if TELLS.search(sentence) and not silent:
                ends_block = unit.end >= self.layout.blocks[unit.block][1]
                telling_block = unit.block + (ends_block and sentence.rstrip().endswith(":"))
                spoken.append(sentence)
            elif unit.block == telling_block and not silent:
                spoken.append(sentence)
            elif unit.block == telling_block + 1 and spoken and re.match(r"\s*[-*•–]", sentence):
                telling_block = unit.block
                spoken.append(sentence)
        return "\n".join(part.strip() for part in spoken)
