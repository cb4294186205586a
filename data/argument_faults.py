"""What is wrong with a call's arguments, by what its tool publishes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from pydantic import JsonValue

from graphhandoff.compress.protocol import ToolSpec


def find_argument_fault(spec: ToolSpec, arguments: Mapping[str, JsonValue]) -> str | None:
    """Check arguments against what a tool publishes, accepting what Inspect accepts.

    Args:
        spec: the tool.
        arguments: the arguments of a call.

    Returns:
        None if the tool can be called, else what is wrong with the arguments, in one line.
    """
    faults: list[str | None] = [f"unexpected argument {name!r}" for name in arguments if name not in spec.signature]
    for parameter in spec.parameters:
        name, where = parameter.name, f"argument {parameter.name!r}"
        if name not in arguments:
            faults.append(f"missing {where}" if parameter.required else None)
            continue
        value = arguments[name]
        faults.append(_find_type_fault(value, parameter.type, where))
        if isinstance(value, list) and parameter.items is not None:
            wrong = (_find_type_fault(item, parameter.items, f"each item of {where}") for item in value)
            faults.append(next((fault for fault in wrong if fault is not None), None))
    told = "; ".join(fault for fault in faults if fault is not None)
    return f"{spec.name}: {told}. Parameters: {', '.join(spec.signature) or 'none'}" if told else None


# JSON Schema counts 2.0 as an integer, and no Boolean as a number.
_TYPE_CHECKS: Mapping[str, Callable[[JsonValue], bool]] = {
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
}


def _find_type_fault(value: JsonValue, json_type: str, where: str) -> str | None:
    if _TYPE_CHECKS[json_type](value):
        return None
    return f"{where} must be of type {json_type}, got {json.dumps(value)[:80]}"
