"""What the README shows runs."""

from __future__ import annotations

import re
from pathlib import Path

from graphhandoff.eval.cli import VERBS, main

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    assert names["text"] == "cancel_pending_order order_id=#W4400917"


def test_every_command_named_exists() -> None:
    verbs = set(re.findall(r"graphhandoff ([a-z]+)(?= |`)", README))
    assert verbs == set(VERBS)


def test_the_encoded_example_is_what_the_command_prints(capsys) -> None:  # type: ignore[no-untyped-def]
    assert main(["encode", "--protocol", "routed_ngh", "--task", "9"]) == 0
    assert f"```\n{capsys.readouterr().out.strip()}\n```" in README
