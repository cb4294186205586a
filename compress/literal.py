"""The literal executor's reading half: a message in, tool calls and words for the customer out.

It does exactly what can be read and infers nothing. It sees the message and the tools' published schemas; never the
task, its solution, or which protocol wrote the message. A graph, on either wire, is traversed in topological order;
any other text is read by the fixed rules of :mod:`graphhandoff.compress.literal_text`. A text that sets out as a graph
but is none is not acted on at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from graphhandoff.compress.contract import ContractError, GraphReading, read_call, read_graph
from graphhandoff.compress.literal_text import read_text
from graphhandoff.compress.protocol import ToolCall, ToolSpec
from graphhandoff.compress.wire import CompactSyntaxError, JsonSyntaxError

_GRAPH_LINE = re.compile(r"(?:@\S+ )?(?:goal|constraint|entity|action|pre|post): ?\S")
_TELL = re.compile(r"^(?:tell|say|inform|communicate|mention)(?: (?:the )?(?:customer|user))?:? ", re.IGNORECASE)


class Reading(BaseModel):
    """What was read: calls in order, what to say, calls that could not be made and why, and how the text was read.

    ``problem`` is the error of a graph that is none (``form`` is then ``invalid`` and there are no calls);
    ``repaired`` tells that a code fence or prose around a graph was taken off.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    calls: tuple[ToolCall, ...] = Field(default=(), strict=False)
    said: str = ""
    skipped: tuple[str, ...] = Field(default=(), strict=False)
    form: Literal["json", "compact", "text", "invalid"]
    repaired: bool = False
    problem: str | None = None


def read_message(text: str, tools: Sequence[ToolSpec]) -> Reading:
    """Read a message literally. Never raises on any text.

    Args:
        text: the message as the executor receives it.
        tools: the tools it may call, as published.
    """
    looks_like_graph = _looks_like_graph(text, tools)
    if looks_like_graph:
        try:
            return _read_graph_message(read_graph(text, tools), tools)
        except (ContractError, CompactSyntaxError, JsonSyntaxError, ValueError) as error:
            return Reading(form="invalid", problem=f"{type(error).__name__}: {error}")
    calls, said, skipped = read_text(text, tools)
    return Reading(calls=calls, said=said, skipped=skipped, form="text")


def _looks_like_graph(text: str, tools: Sequence[ToolSpec]) -> bool:
    """Tell whether a text sets out to be a graph: JSON with nodes, or lines of which most are the compact wire's."""
    body = text.strip()
    if '"nodes"' in body and "{" in body:
        return True
    names = {tool.name for tool in tools}
    lines = [line for line in body.split("\n") if not line.startswith("```")]
    typed = sum(bool(_GRAPH_LINE.match(line)) for line in lines)
    calls = sum(line.split(" ", 1)[0] in names for line in lines)
    return bool(lines) and typed > 0 and 2 * (typed + calls) > len(lines)


def _read_graph_message(reading: GraphReading, tools: Sequence[ToolSpec]) -> Reading:
    by_name = {tool.name: tool for tool in tools}
    calls: list[ToolCall] = []
    skipped: list[str] = []
    for call in reading.graph.iter_calls():
        try:
            calls.append(read_call(call, by_name))
        except ContractError as error:
            skipped.append(f"{type(error).__name__}: {error}")
    said = "\n".join(_TELL.sub("", text) for text in reading.graph.iter_texts("postcondition"))
    return Reading(calls=tuple(calls), said=said, skipped=tuple(skipped), form=reading.wire, repaired=reading.repaired)
