"""The rooms keep to the table of who may import whom, and the light ones stay light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from graphhandoff.eval.cli import VERBS

ROOT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {
    "compress": set(),
    "data": {"compress", "configs"},
    "train": {"compress", "data", "configs"},
    "eval": {"compress", "data", "configs"},
    "configs": set(),
}
LIGHT_IN_COMPRESS = {"pydantic"}


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).glob("*.py"))


def imports_of(path: Path, top_level_only: bool = False) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively; use the full name"
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("folder", sorted(MAY_IMPORT))
def test_rooms_import_only_what_they_may(folder: str) -> None:
    for path in modules(folder):
        for name in imports_of(path):
            parts = name.split(".")
            assert parts[0] not in MAY_IMPORT, f"{path} imports {name}; the import name is graphhandoff.{name}"
            if parts[0] == "graphhandoff":
                assert parts[1] in MAY_IMPORT[folder] | {folder}, f"{path} must not import {name}"


def test_compress_imports_heavy_libraries_only_inside_functions() -> None:
    for path in modules("compress"):
        for name in imports_of(path, top_level_only=True):
            top = name.split(".")[0]
            assert top in sys.stdlib_module_names | LIGHT_IN_COMPRESS | {"graphhandoff"}, f"{path.name} imports {name}"


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_graph_loads_neither_torch_nor_transformers() -> None:
    heavy = "{'torch', 'transformers', 'numpy', 'sklearn', 'inspect_ai', 'llmlingua', 'wandb'}"
    code = f"import sys, graphhandoff.compress.graph; print(sorted({heavy} & set(sys.modules)))"
    assert run_python(code).strip() == "[]"


def test_help_costs_little_and_imports_no_verb() -> None:
    code = (
        "import sys, time, graphhandoff.eval.cli as cli; cli.main(['--help']); "
        "print(time.process_time(), [m for m in sys.modules if m.endswith('_command')])"
    )
    seconds, _, verbs = run_python(code).strip().splitlines()[-1].partition(" ")
    assert float(seconds) < 0.7
    assert verbs == "[]"


def test_every_verb_names_a_module_that_exists() -> None:
    for verb in VERBS.values():
        package, room, name = verb.module.split(".")
        assert package == "graphhandoff"
        assert room in ("eval", "train")  # named, not imported: the two never import each other
        assert (ROOT / room / f"{name}.py").is_file()


def test_modules_are_flat_and_of_a_size_one_can_read() -> None:
    for folder in MAY_IMPORT:
        assert not [path for path in (ROOT / folder).rglob("*.py") if path.parent != ROOT / folder]
        for path in modules(folder):
            assert path.stem != "utils"
            assert len(path.read_text(encoding="utf-8").splitlines()) <= 330, f"{path} asks to be two"
