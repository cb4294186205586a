"""The command line: a table of verbs, each run by one module that is imported only when its verb is chosen."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple


class Verb(NamedTuple):
    """The module that runs a verb (it has a Typer ``app``) and what the verb does."""

    module: str
    summary: str


VERBS: dict[str, Verb] = {
    "compare": Verb("graphhandoff.eval.compare_command", "Run or resume a comparison and print its table."),
    "data": Verb("graphhandoff.eval.data_command", "Build, describe, check or upload a data set to train on."),
    "encode": Verb("graphhandoff.eval.encode_command", "Write one delegation with one protocol."),
    "schema": Verb("graphhandoff.eval.schema_command", "Print the graph's JSON schema as a tool input schema."),
    "tasks": Verb("graphhandoff.eval.tasks_command", "List the benchmark's tasks, or show one with its delegation."),
    "train": Verb("graphhandoff.train.train_command", "Train a compressor; resumes what was killed."),
}

USER_MISTAKE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code: 0 done, 2 the user's mistake, 130 interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        _print_help()
        return 0
    if arguments[0] in ("-V", "--version"):
        from importlib.metadata import version

        print(f"graphhandoff {version('graphhandoff')}")
        return 0
    verb = VERBS.get(arguments[0])
    if verb is None:
        from difflib import get_close_matches

        near = get_close_matches(arguments[0], VERBS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        print(f"graphhandoff: unknown verb {arguments[0]!r}{hint} (allowed: {', '.join(VERBS)})", file=sys.stderr)
        return USER_MISTAKE
    return _run(verb, arguments)


def _run(verb: Verb, arguments: list[str]) -> int:
    from graphhandoff.compress.protocol import CheckpointMissingError

    try:
        app = import_module(verb.module).app
        app(args=arguments[1:], prog_name=f"graphhandoff {arguments[0]}", standalone_mode=True)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else (0 if stop.code is None else 1)
    except (ValueError, CheckpointMissingError, FileNotFoundError, IsADirectoryError, PermissionError) as error:
        print(f"graphhandoff {arguments[0]}: {type(error).__name__}: {error}", file=sys.stderr)
        return USER_MISTAKE
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        sys.stdout = None
        return 0
    except KeyboardInterrupt:
        print("interrupted; what is recorded stays, run the same command to resume", file=sys.stderr)
        return 130
    return 0


def _print_help() -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("verb", "what it does", "module"):
        table.add_column(column, no_wrap=column == "verb")
    for name, verb in VERBS.items():
        table.add_row(name, verb.summary, verb.module)
    console = Console()
    console.print("graphhandoff VERB [OPTIONS]: handoffs between agents as typed graphs, measured against prose.\n")
    console.print(table)
    console.print("\n`graphhandoff VERB --help` lists a verb's options.")


if __name__ == "__main__":
    sys.exit(main())
