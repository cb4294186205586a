"""What a received text must be before an executor may act on it: a valid graph of calls to tools that exist.

Whatever a model wrote comes through here. A code fence or prose around the graph is taken off and counted as a repair;
everything else that is wrong is a named error. Nothing malformed passes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from graphhandoff.compress.compact_parser import CompactSyntaxError
from graphhandoff.compress.graph import Call, HandoffGraph
from graphhandoff.compress.protocol import ToolCall, ToolParameter, ToolSpec
from graphhandoff.compress.wire import JsonSyntaxError, Signatures, Wire, parse


class ContractError(ValueError):
    """A received graph breaks the contract; the subclass names how."""


class TruncatedError(ContractError):
    """The text stops in the middle of a graph: ask the sender for the rest, with more room."""


class UnknownToolError(ContractError):
    """A call names a tool that is not published."""


class UnknownParameterError(ContractError):
    """A call names a parameter that its tool does not publish."""


class MissingArgumentError(ContractError):
    """A required parameter has no argument."""


class ArgumentTypeError(ContractError):
    """An argument's value is not of the published type."""


class GraphReading(NamedTuple):
    """A graph that was read, the wire it came on, and whether something around it had to be taken off."""

    graph: HandoffGraph
    wire: Wire
    repaired: bool


def signatures_of(tools: Sequence[ToolSpec]) -> Signatures:
    """Return each tool's parameter names in published order, as the compact wire uses them."""
    return {tool.name: tool.signature for tool in tools}


def read_graph(text: str, tools: Sequence[ToolSpec]) -> GraphReading:
    """Read a graph from a message on either wire.

    Raises:
        TruncatedError: the text ends inside a string, list or object.
        JsonSyntaxError | CompactSyntaxError: neither wire can read it; says line and reason.
        GraphError: well formed but not a valid graph.
    """
    body, repaired = _unwrap(text)
    wire: Wire = "json" if body.startswith("{") else "compact"
    try:
        return GraphReading(parse(body, wire, signatures_of(tools)), wire, repaired)
    except CompactSyntaxError as error:
        if error.line == body.count("\n") + 1 and "unfinished" in error.reason:
            raise TruncatedError(f"the message stops inside a quoted string on line {error.line}") from error
        raise
    except JsonSyntaxError as error:
        if _ends_early(body):
            raise TruncatedError(f"the message stops inside its JSON ({error})") from error
        raise


def check_graph(graph: HandoffGraph, tools: Sequence[ToolSpec]) -> tuple[ToolCall, ...]:
    """Check every call against the tools' published parameters and return the calls in topological order.

    Raises:
        ContractError: the first call that breaks the contract; the message names the node.
    """
    by_name = {tool.name: tool for tool in tools}
    return tuple(read_call(call, by_name) for call in graph.iter_calls())


def read_call(call: Call, tools: Mapping[str, ToolSpec]) -> ToolCall:
    """Turn one call of a graph into a tool call.

    Raises:
        UnknownToolError | UnknownParameterError | MissingArgumentError | ArgumentTypeError: names the node.
    """
    name = call.node.tool
    tool = tools.get(name)
    if tool is None:
        raise UnknownToolError(f"node {call.node.id} calls unknown tool {name!r}; allowed: {', '.join(sorted(tools))}")
    arguments = {argument.name: argument.value for argument in call.arguments}
    parameters = {parameter.name: parameter for parameter in tool.parameters}
    for argument in call.arguments:
        if argument.name not in parameters:
            raise UnknownParameterError(
                f"node {argument.id}: {name} has no parameter {argument.name!r}; allowed: {', '.join(parameters)}"
            )
        if not fits(argument.value, parameters[argument.name]):
            raise ArgumentTypeError(
                f"node {argument.id}: {name}.{argument.name} must be {_describe(parameters[argument.name])}, "
                f"got {json.dumps(argument.value)[:80]}"
            )
    missing = [p.name for p in tool.parameters if p.required and p.name not in arguments]
    if missing:
        raise MissingArgumentError(f"node {call.node.id}: {name} lacks {', '.join(missing)}")
    return ToolCall(name=name, arguments=arguments)


_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def fits(value: Any, parameter: ToolParameter) -> bool:
    """Tell whether a value has a parameter's published type (a boolean is no number)."""

    def has_type(item: Any, name: str) -> bool:
        return isinstance(item, _PYTHON_TYPES[name]) and (name == "boolean" or not isinstance(item, bool))

    if not has_type(value, parameter.type):
        return False
    if parameter.type == "array" and parameter.items is not None:
        return all(has_type(item, parameter.items) for item in value)
    return True


def _describe(parameter: ToolParameter) -> str:
    if parameter.type == "array" and parameter.items:
        return f"an array of {parameter.items}s"
    return f"{'an' if parameter.type[0] in 'aeiou' else 'a'} {parameter.type}"


_FENCE = re.compile(r"```[A-Za-z]*\n(.*?)\n?```", re.DOTALL)
_JSON_START = re.compile(r'\{\s*"(?:nodes|edges)"')


def _unwrap(text: str) -> tuple[str, bool]:
    """Take a graph out of a code fence, out of the prose around JSON, or out of stray white space around lines."""
    body = text.strip()
    fenced = _FENCE.search(body)
    if fenced:
        return fenced.group(1).strip(), True
    start = _JSON_START.search(body)
    if start is None:
        lines = [line.rstrip() for line in body.split("\n")]
        whole = "\n".join(line for line in lines if line)
        return whole, whole != body
    try:
        _, end = json.JSONDecoder().raw_decode(body, start.start())
    except (ValueError, RecursionError):
        end = len(body)
    return body[start.start() : end], start.start() > 0 or end < len(body)


def _ends_early(body: str) -> bool:
    """Tell whether JSON is open at its end: inside a string, or with more brackets opened than closed."""
    depth, in_string, escaped = 0, False, False
    for character in body:
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
    return in_string or depth > 0
