"""Reading the arguments of a mentioned call from the text around it (rules 4 to 6 of ``literal_text``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from pydantic import JsonValue

from graphhandoff.compress.compact_parser import CompactSyntaxError, parse_compact
from graphhandoff.compress.contract import ContractError, fits, read_call, signatures_of
from graphhandoff.compress.graph_vocabulary import GraphError
from graphhandoff.compress.literal_layout import Layout, Mention
from graphhandoff.compress.literal_values import Shape, Value, build_shapes
from graphhandoff.compress.protocol import ToolCall, ToolParameter, ToolSpec

_PAIRS = re.compile(
    r"^\s*[\"']?\s*(?:->|→|=>|⇒|becomes?\b|for\b|to\b|into\b|by\b|with\b|against\b|in exchange for\b|replaced by\b)"
    r"|(?:->|→|=>|⇒|\b(?:becomes?|to|into|for|by|with|in|new|new item|replacement)\b\W{0,3}"
    r"(?:[\w'’-]+\W{1,2}){0,4})\W*$",
    re.IGNORECASE,
)
# What directly follows such words, and what is strung to it by commas, is what the text excepts.
_EXCEPTS = re.compile(
    r"\b(?:except(?:ing)?|excluding|other than|apart from|not|instead of|rather than|in place of|without)\b"
    r"(?: (?:for|to|on|from|in|of|with))?\W{0,3}(?:[a-z'’-]+\W{1,3}){0,4}$",
    re.IGNORECASE,
)
_STRUNG = re.compile(r"[\s,&/+]*(?:(?:and|or|nor)\s+)?[\s\"']*", re.IGNORECASE)
_EXCEPTION_REACH = 120
_PROSE_MARKS = ",.;:!?()\"'“”"
_LINE_MARKS = " \t-*•–0123456789.()"
MAX_PAIR_GAP = 300
_COMMA_OUTSIDE_QUOTES = re.compile(r', (?=(?:[^"\n]*"[^"\n]*")*[^"\n]*$)')
_PARENTHESIS = re.compile(r"\([^()]*\)")


class ArgumentReader:
    """Reads calls at their mentions."""

    def __init__(self, layout: Layout, tools: Sequence[ToolSpec]) -> None:
        self.layout = layout
        self.text = layout.text
        self.tools = {tool.name: tool for tool in tools}
        self.signatures = signatures_of(tools)
        self.shapes = build_shapes(tools)
        self._values_of: dict[Shape, frozenset[str]] = {}
        self._excepted: dict[int, bool] = {}
        self._lowered = self.text.lower()

    def read_line_form(self, mention: Mention) -> ToolCall | None:
        """Read ``tool value …`` or ``tool name=value …`` when the line holds that and nothing else."""
        start = self.text.rfind("\n", 0, mention.start) + 1
        end = self.text.find("\n", mention.end)
        if not mention.exact or self.text[start : mention.start].strip(_LINE_MARKS):
            return None
        line = self.text[mention.start : end if end >= 0 else len(self.text)].rstrip(" \t.;,")
        # As it stands first, so that no comma inside quotes is lost; then with commas between values taken as spaces.
        for spelling in (line, _COMMA_OUTSIDE_QUOTES.sub(" ", line)):
            try:
                (call,) = parse_compact(spelling, self.signatures).iter_calls()
                read = read_call(call, self.tools)
            except (CompactSyntaxError, GraphError, ContractError, ValueError):
                continue
            if not self._holds_marks_of_prose(read):
                return read
        words = line[len(mention.tool.name) :].split()
        arrays = [parameter for parameter in mention.tool.parameters if parameter.type == "array"]
        if arrays or len(words) != len(mention.tool.parameters):
            return None
        values = dict(zip(mention.tool.signature, words, strict=True))
        for parameter in mention.tool.parameters:
            shape = self.shapes[mention.tool.name, parameter.name]
            if shape.pattern is not None and not shape.pattern.fullmatch(values[parameter.name]):
                return None
        return ToolCall(name=mention.tool.name, arguments=dict(values))

    def _holds_marks_of_prose(self, call: ToolCall) -> bool:
        """Tell whether a value is one with a mark of the prose around it: ``#W0000000,`` for ``#W0000000``."""
        for name, value in call.arguments.items():
            pattern = self.shapes[call.name, name].pattern
            for item in value if isinstance(value, list) else [value]:
                if pattern is None or not isinstance(item, str) or pattern.fullmatch(item):
                    continue
                if pattern.fullmatch(item.strip(_PROSE_MARKS)):
                    return True
        return False

    def read_call(self, mention: Mention) -> ToolCall | str:
        """Read a call's arguments from around its mention; a text says what is missing."""
        arguments: dict[str, JsonValue] = {}
        run = self._address_run(mention)
        arrays = [parameter.name for parameter in mention.tool.parameters if parameter.type == "array"]
        lists: dict[str, list[str]] | None = None  # read when a list is due: the dearest part comes last
        for parameter in mention.tool.parameters:
            value: JsonValue = None
            if parameter.type == "array":
                lists = self._lists(mention, arrays) if lists is None else lists
                value = [*lists.get(parameter.name, [])]
            else:
                value = self._scalar(mention, parameter, run)
            if value is not None and value != [] and fits(value, parameter):
                arguments[parameter.name] = value
            elif parameter.required:
                return f"{mention.tool.name}: no {parameter.name} can be read"
        return ToolCall(name=mention.tool.name, arguments=arguments)

    def _windows(self, mention: Mention) -> Iterator[tuple[int, int]]:
        """Yield the places to look in, nearest first: sentence after and before, block after and before."""
        unit = self.layout.unit_at(mention.start)
        block = self.layout.blocks[unit.block]
        yield mention.end, unit.end
        yield unit.start, mention.start
        yield from self.layout.iter_calm(unit.end, block[1])
        yield from reversed(list(self.layout.iter_calm(block[0], unit.start)))

    def _scalar(self, mention: Mention, parameter: ToolParameter, run: Mapping[str, str]) -> str | None:
        if parameter.name in run:
            return run[parameter.name]
        shape = self.shapes[mention.tool.name, parameter.name]
        if shape.pattern is None:
            return self._labelled(mention, shape)
        for i, window in enumerate(self._windows(mention)):
            values = list(self._find(shape, *window))
            if values:
                return values[-1].text if i == 1 else values[0].text
        if not shape.alternatives and parameter.name.lower() in self._lowered:
            labelled = self._labelled(mention, shape)
            if labelled and re.fullmatch(r"\S*[0-9]\S*", labelled):
                return labelled
        everywhere = self._everywhere(shape)
        return next(iter(everywhere)) if len(everywhere) == 1 else None

    def _everywhere(self, shape: Shape) -> frozenset[str]:
        if shape not in self._values_of:
            calm = self.layout.iter_calm(0, len(self.text))
            self._values_of[shape] = frozenset(value.text for place in calm for value in self._find(shape, *place))
        return self._values_of[shape]

    def _find(self, shape: Shape, start: int, end: int) -> Iterator[Value]:
        """Yield the values between two places that the text does not except (``not A``, ``except A, B and C``)."""
        excepted_to = -1
        for value in shape.find(self.text, start, end):
            strung = excepted_to >= 0 and _STRUNG.fullmatch(self.text, excepted_to, value.start) is not None
            sentence = max(self.layout.unit_at(value.start).start, value.start - _EXCEPTION_REACH)
            before = self.text[sentence : value.start]
            if value.start not in self._excepted:  # the same place is looked at from many mentions
                self._excepted[value.start] = self._excepts(before)
            if strung or self._excepted[value.start]:
                excepted_to = value.end
            else:
                excepted_to = -1
                yield value

    @staticmethod
    def _excepts(before: str) -> bool:
        found = _EXCEPTS.search(before)
        if found is None:
            return False
        # "not the card but paypal_1": the word nearest to the value decides.
        turned = re.search(r"\b(?:but|from|in)\b", found.group(), re.IGNORECASE)
        return turned is None

    def _labelled(self, mention: Mention, shape: Shape) -> str | None:
        unit = self.layout.unit_at(mention.start)
        start, end = self.layout.blocks[unit.block]
        following = self.layout.blocks[unit.block + 1 : unit.block + 8]
        stop = max([end, *(block[1] for block in following)])
        label = shape.label.search(self.text, mention.end, stop) or shape.label.search(self.text, start, mention.start)
        if label is None:
            return None
        rest = self.text[label.end() : label.end() + 400]
        if rest and rest[0] in "\"'“":
            closing = {"“": "”"}.get(rest[0], rest[0])
            return rest[1:].split(closing, 1)[0]
        if re.match(r"(?:left |is )?(?:blank|empty|none)\b", rest, re.IGNORECASE):
            return ""
        return re.split(r"[,;\n]|\.\s|\.$", rest, maxsplit=1)[0].strip() or None

    def _address_run(self, mention: Mention) -> Mapping[str, str]:
        """Read ``a, b, c, …``: one value for each neighbouring parameter without a shape, the last one shaped."""
        names: list[ToolParameter] = []
        for parameter in mention.tool.parameters:
            if parameter.type == "string" and (self.shapes[mention.tool.name, parameter.name].pattern is None or names):
                names.append(parameter)
        if len(names) < 3 or self.shapes[mention.tool.name, names[-1].name].pattern is None:
            return {}
        shape = self.shapes[mention.tool.name, names[-1].name]
        unit = self.layout.unit_at(mention.start)
        for value in shape.find(self.text, mention.end, self.layout.blocks[unit.block][1]):
            start = max(mention.end, self.text.rfind("\n", 0, value.start) + 1)
            lead = re.split(r"(?:: |\bto |\bas |\bwith |\bat |\bnamely )", self.text[start : value.start])[-1]
            parts = [
                part.strip() for part in lead.strip(" ,;:").split(";" if lead.count(";") > lead.count(",") else ",")
            ]
            while len(parts) >= len(names) and self._is_another(mention.tool, parts[0]):
                parts.pop(0)
            if len(parts) == len(names) - 1:
                parts = ["" if re.search(r"\b(?:blank|empty)\b", part) else part for part in parts]
                return dict(zip((p.name for p in names), [*parts, value.text], strict=True))
        return {}

    def _is_another(self, tool: ToolSpec, text: str) -> bool:
        """Tell whether a text is a value of one of the tool's shaped parameters: ``jo_lee_12, 4 Elm Street, …``."""
        patterns = (self.shapes[tool.name, parameter.name].pattern for parameter in tool.parameters)
        return any(pattern is not None and pattern.fullmatch(text) for pattern in patterns)

    def _lists(self, mention: Mention, arrays: Sequence[str]) -> dict[str, list[str]]:
        labelled = self._labelled_lists(mention, arrays)
        if len(labelled) == len(arrays):
            return labelled
        if positional := self._positional_lists(mention, arrays):
            return positional
        shape = self.shapes[mention.tool.name, arrays[0]]
        unit = self.layout.unit_at(mention.start)
        block = self.layout.blocks[unit.block]
        windows = [
            [(mention.end, unit.end)],
            [(unit.start, unit.end)],
            [(mention.end, unit.end), *self.layout.iter_calm(unit.end, block[1])],
            list(self.layout.iter_calm(*block)),
        ]
        for window in windows:
            values = [value for place in window for value in self._items(shape, *place)]
            if len(arrays) == 1 and values:
                return {arrays[0]: [value.text for value in values]}
            if len(arrays) == 2:
                pairs = self._pair(values)
                if pairs:
                    return {arrays[0]: [a for a, _ in pairs], arrays[1]: [b for _, b in pairs]}
        return {}

    def _items(self, shape: Shape, start: int, end: int) -> Iterator[Value]:
        for value in self._find(shape, start, end):
            if not re.search(
                r"\bproduct(?: id)?s?\W{1,3}$", self.text[max(start, value.start - 14) : value.start], re.IGNORECASE
            ):
                yield value

    def _pair(self, values: Sequence[Value]) -> list[tuple[str, str]]:
        """Pair old and new: ``a -> b, c -> d``, or one list for another of the same length, ``a, c -> b, d``."""
        gaps = [_PARENTHESIS.sub(" ", self.text[one.end : other.start]) for one, other in pairwise(values)]
        joins = [len(gap) < MAX_PAIR_GAP and _PAIRS.search(gap) is not None for gap in gaps]
        strung = [_STRUNG.fullmatch(gap) is not None for gap in gaps]
        half = len(values) // 2
        if half > 1 and joins[half - 1] and 2 * half == len(values) and all(strung[: half - 1] + strung[half:]):
            return [(old.text, new.text) for old, new in zip(values[:half], values[half:], strict=True)]
        pairs: list[tuple[str, str]] = []
        i = at = 0
        while i < len(gaps):
            if joins[i]:
                pairs.append((values[i].text, values[i + 1].text))
                at = i
            i += 2 if joins[i] else 1
        if 2 * len(pairs) == len(values):
            return pairs
        # Other items may be talked about near a single pair, but not stand in one list with either side of it.
        lone = len(pairs) == 1 and not any(strung[max(0, at - 1) : at] + strung[at + 1 : at + 2])
        return pairs if lone else []

    def _positional_lists(self, mention: Mention, arrays: Sequence[str]) -> dict[str, list[str]]:
        """Read ``tool … a, b c, d …``: commas string a list together, a space or bracket parts it from the next."""
        start = self.text.rfind("\n", 0, mention.start) + 1
        if len(arrays) != 2 or not mention.exact or self.text[start : mention.start].strip(_LINE_MARKS):
            return {}
        end = self.text.find("\n", mention.end)
        found = list(
            self._items(self.shapes[mention.tool.name, arrays[0]], mention.end, end if end >= 0 else len(self.text))
        )
        runs: list[list[str]] = []
        last = None
        for value in found:
            gap = self.text[last.end : value.start] if last else ""
            closed = "]" in gap  # ["a", "b"], ["c", "d"]
            if runs and gap.strip(" \t\"'") == "," and not closed:
                runs[-1].append(value.text)
            elif not gap.strip(" \t\"'[]," if closed else " \t\"'["):
                runs.append([value.text])
            else:
                return {}
            last = value
        return dict(zip(arrays, runs, strict=True)) if len(runs) == 2 and len(runs[0]) == len(runs[1]) else {}

    def _labelled_lists(self, mention: Mention, arrays: Sequence[str]) -> dict[str, list[str]]:
        unit = self.layout.unit_at(mention.start)
        end = self.layout.blocks[unit.block][1]
        labels = sorted(
            (found.start(), found.end(), name)
            for name in arrays
            for found in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)\W{{0,3}}", self.text[mention.end : end])
        )
        lists: dict[str, list[str]] = {}
        for i, (_, after, name) in enumerate(labels):
            stop = labels[i + 1][0] if i + 1 < len(labels) else end - mention.end
            shape = self.shapes[mention.tool.name, name]
            chunk_end = mention.end + stop
            for found in re.finditer(r"[\].;\n]", self.text[mention.end + after : chunk_end]):
                chunk_end = mention.end + after + found.start()
                break
            values = [value.text for value in shape.find(self.text, mention.end + after, chunk_end)]
            if values and name not in lists:
                lists[name] = values
        return lists
