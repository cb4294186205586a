"""``graphhandoff encode``: one delegation through one protocol, from a file or from the reference set."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from graphhandoff.compress.protocol import PROTOCOL_IDS, Delegation, Message, UnknownProtocolError
from graphhandoff.compress.tokens import DEFAULT_TOKENIZER
from graphhandoff.compress.wire import parse
from graphhandoff.configs.loader import parse_overrides, validate_config
from graphhandoff.data.retail import load_split
from graphhandoff.eval.protocols import ProtocolsConfig, build_protocol

app = typer.Typer(add_completion=False)
PINNED = "retail_pinned_50"


class InputError(ValueError):
    """The text to encode cannot be read."""


@app.command()
def encode(
    protocol: Annotated[str, typer.Option(help=f"One of {', '.join(PROTOCOL_IDS)}.")],
    file: Annotated[str | None, typer.Option(help="A UTF-8 text file with the prose; - reads standard input.")] = None,
    graph: Annotated[Path | None, typer.Option(help="The delegation's graph, JSON or compact, beside --file.")] = None,
    task: Annotated[str | None, typer.Option(help="A pinned task's reference delegation, in place of --file.")] = None,
    tokenizer: Annotated[str, typer.Option(help="Counts the tokens.")] = DEFAULT_TOKENIZER,
    set_: Annotated[list[str] | None, typer.Option("--set", help="A protocol setting, e.g. rate=0.3.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole message record.")] = False,
) -> None:
    """Print the message on standard output and what it cost on standard error."""
    if protocol not in PROTOCOL_IDS:
        near = get_close_matches(protocol, PROTOCOL_IDS, n=1)
        hint = f". Did you mean {near[0]}?" if near else ""
        raise UnknownProtocolError(f"unknown protocol {protocol!r}; allowed: {', '.join(PROTOCOL_IDS)}{hint}")
    settings = validate_config(ProtocolsConfig, {protocol: parse_overrides(set_ or [])}, "--set").iter_rows()[protocol]
    delegation = _load(file, graph, task)
    message = build_protocol(protocol, settings, tokenizer, load_split(PINNED)).encode([delegation])[0]
    if as_json:
        print(message.model_dump_json(indent=2))
        return
    sys.stdout.write(message.text + ("\n" if message.text and not message.text.endswith("\n") else ""))
    _explain(message)


def _load(file: str | None, graph: Path | None, task: str | None) -> Delegation:
    if (file is None) == (task is None):
        raise InputError("give either --file or --task, got both or neither")
    if task is not None:
        from graphhandoff.data.delegations import load_delegations

        return load_delegations([task])[0]
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(str(file)).read_bytes()
        prose = content.decode("utf-8-sig")  # a byte order mark is no text
    except FileNotFoundError:
        raise InputError(f"--file {file} does not exist; name a UTF-8 text file, or - for standard input") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 text (byte {error.start}); convert it first") from None
    body = graph.read_text(encoding="utf-8").strip() if graph is not None else None
    parsed = parse(body, "json" if body.startswith("{") else "compact") if body is not None else None
    return Delegation(task_id=str(file), prose=prose, graph=parsed, task_text=prose)


def _explain(message: Message) -> None:
    kept = message.n_identifiers - len(message.identifiers_lost)
    parts = [
        f"{message.protocol} as {message.route}",
        f"{message.n_tokens} {message.tokenizer} tokens for {message.n_prose_tokens} ({message.compression:.1f}x)",
        f"identifiers {kept} of {message.n_identifiers}",
        *(f"flagged {flag}" for flag in message.flags),
    ]
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(" · ".join(parts), style="dim", markup=False)
    if message.fallback:
        console.print(f"prose sent instead: {message.fallback}", style="yellow", markup=False)
