"""``graphhandoff schema``: the graph as a tool input schema."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from graphhandoff.compress.schema import TOOL_DESCRIPTION, TOOL_NAME, build_tool_input_schema

app = typer.Typer(add_completion=False)


class Form(StrEnum):
    """What to print around the schema."""

    schema = "schema"
    openai = "openai"
    anthropic = "anthropic"


class Tools(StrEnum):
    """Which tools a call may name."""

    any = "any"
    retail = "retail"


@app.command()
def schema(
    form: Annotated[Form, typer.Option(help="The bare schema, or wrapped as that provider's tool.")] = Form.schema,
    tools: Annotated[Tools, typer.Option(help="Which tools a call may name.")] = Tools.any,
) -> None:
    """Print the JSON schema of a handoff graph, ready for constrained decoding."""
    names: tuple[str, ...] = ()
    if tools is Tools.retail:
        from graphhandoff.data.retail import load_tools

        names = tuple(tool.name for tool in load_tools())
    body: dict[str, Any] = build_tool_input_schema(names)
    if form is Form.openai:
        function = {"name": TOOL_NAME, "description": TOOL_DESCRIPTION, "strict": True, "parameters": body}
        body = {"type": "function", "function": function}
    elif form is Form.anthropic:
        body = {"name": TOOL_NAME, "description": TOOL_DESCRIPTION, "input_schema": body}
    print(json.dumps(body, indent=2))
