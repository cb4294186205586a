"""Checking a data set: whole sets pass, and whatever is wrong is named by the row or the file."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from graphhandoff.configs.loader import validate_config
from graphhandoff.data.build import build
from graphhandoff.data.data_config import DataConfig
from graphhandoff.data.distributions import DIMENSIONS, count_set, count_tasks, total_variation
from graphhandoff.data.examples import Example, from_row, pinned_customers, to_row
from graphhandoff.data.manifest import read_manifest
from graphhandoff.data.parquet_files import CorruptFileError, iter_rows, read_rows
from graphhandoff.data.retail import load_split
from graphhandoff.data.validate import check_row, load_rules, validate
from graphhandoff.eval.cli import main

PINNED = load_split("retail_pinned_50")
RULES = load_rules(PINNED)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = str(tmp_path_factory.mktemp("built"))
    values = {"name": "small", "seed": 5, "n_examples": 40, "shard_size": 20, "output_directory": where}
    return build(validate_config(DataConfig, values, "test"), {"commit": None}).folder


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "copy"))


@pytest.fixture(scope="module")
def example(built: Path) -> Example:
    """An example with a call that acts, a look-up before it, and a fact to tell."""
    for row in iter_rows(built / "data" / "train-00000.parquet"):
        found = from_row(row)
        if found.facts and found.kinds and len(found.outcomes) > len(found.kinds):
            return found
    raise AssertionError("choose another seed")


def rewrite(path: Path, change: dict[str, Any], number: int = 0) -> str:
    """Change one row of a file in place; the manifest keeps the old hash."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    rows = table.to_pylist()
    rows[number].update(change)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    name: str = rows[number]["id"]
    return name


def forge(folder: Path) -> None:
    """Let the manifest agree with the files, as somebody would who changes both."""
    from graphhandoff.configs.files import digest_file

    path = folder / "manifest.json"
    record = json.loads(path.read_text())
    for file in record["files"]:
        file["sha256"] = digest_file(folder / file["path"])
    path.write_text(json.dumps(record))


def test_a_whole_set_breaks_no_rule(built: Path) -> None:
    seen: set[str] = set()
    result = validate(built, seed=0, n_sample=None, progress=lambda what, *_: seen.add(what))
    assert result.violations == ()
    assert result.n_rows == result.n_executed == 74
    assert seen == {"files", "rows", "executed again"}


def test_a_sample_is_of_its_size_and_decided_by_its_seed(built: Path) -> None:
    assert validate(built, seed=1, n_sample=7).n_executed == 7
    assert validate(built, seed=1, n_sample=700).n_executed == 74


def test_a_tampered_file_is_named(copy: Path) -> None:
    path = copy / "data" / "train-00001.parquet"
    rewrite(path, {"success": False})
    (copy / "data" / "test-00009.parquet").write_bytes(path.read_bytes())
    (copy / "data" / "validation-hand_written.parquet").unlink()
    found = {violation.where: violation for violation in validate(copy, seed=0, n_sample=5).violations}
    assert set(found) == {
        "data/train-00001.parquet",
        "data/test-00009.parquet",
        "data/validation-hand_written.parquet",
    }
    assert "has SHA-256" in found["data/train-00001.parquet"].detail
    assert "missing" in found["data/validation-hand_written.parquet"].detail
    assert "not in the manifest" in found["data/test-00009.parquet"].detail


def test_a_file_that_is_no_parquet_is_named(copy: Path) -> None:
    (copy / "data" / "train-00000.parquet").write_bytes(b"PAR1 no")
    forge(copy)
    (violation,) = validate(copy, seed=0, n_sample=5).violations
    assert violation.where == "data/train-00000.parquet"
    assert "no readable Parquet file" in violation.detail


def test_a_customer_in_two_splits_and_a_pinned_one_are_named(copy: Path) -> None:
    train = read_rows(copy / "data" / "train-00000.parquet", [0])[0]
    moved = rewrite(copy / "data" / "validation-hand_written.parquet", {"customer": train["customer"]}, 3)
    theirs = rewrite(copy / "data" / "train-00001.parquet", {"customer": min(pinned_customers(PINNED))})
    forge(copy)
    found = {(v.where, v.rule) for v in validate(copy, seed=0, n_sample=1).violations}
    assert (moved, "split") in found
    assert ("splits disjoint by customer") in {rule for _, rule in found}
    assert (theirs, "no pinned customer") in found


def test_a_duplicate_across_splits_and_a_repeated_id_are_named(copy: Path) -> None:
    train = read_rows(copy / "data" / "train-00000.parquet", [0])[0]
    same = {"prose": train["prose"].upper(), "id": train["id"]}
    rewrite(copy / "data" / "validation-hand_written.parquet", same)
    forge(copy)
    rules = Counter(violation.rule for violation in validate(copy, seed=0, n_sample=1).violations)
    assert rules["no duplicate across splits"] == 1
    assert rules["unique ids"] == 1


def changed(example: Example, **changes: Any) -> list[tuple[str, str]]:
    violations = check_row({**to_row(example), **changes}, RULES)
    assert all(violation.where == example.id for violation in violations)
    return [(violation.rule, violation.detail) for violation in violations]


def test_every_rule_of_a_row_is_checked(example: Example) -> None:
    assert changed(example) == []
    calls = to_row(example)["calls"]
    (rule, detail), *_ = changed(example, calls=[{**calls[0], "observation": "no"}, *calls[1:]])
    assert (rule, "with another answer than now" in detail) == ("outcomes", True)
    assert tuple(
        rule for rule, _ in changed(example, success=False, calls=[{**calls[0], "ok": False}, *calls[1:]])
    ) == ("outcomes", "success")
    assert ("graph is the plan") in {rule for rule, _ in changed(example, calls=calls[:-1])}
    assert [rule for rule, _ in changed(example, facts=[])] == ["graph is the plan"]
    assert [rule for rule, _ in changed(example, graph_compact="goal: x")] == ["readable"]


def test_identifiers_must_stand_in_the_prose_byte_for_byte(example: Example) -> None:
    order = next(str(call.arguments["order_id"]) for call in example.calls if "order_id" in call.arguments)
    found = changed(example, prose=example.prose.replace(order, f"{order}0"))
    assert {rule for rule, _ in found} == {"prose is complete"}
    assert f"needs {order}, not in the prose byte for byte" in found[0][1]
    told = changed(example, prose=example.prose.replace(example.facts[0], "…"))
    assert ("prose is complete", f"the fact {example.facts[0]!r} is not in it") in told


def test_nothing_of_a_pinned_customer_may_stand_anywhere(example: Example) -> None:
    order = min(identifier for identifier in RULES.pinned_identifiers if identifier.startswith("#W"))
    for column in ("prose", "task_text"):
        (found,) = changed(example, **{column: f"{to_row(example)[column]} See {order}."})
        assert found == ("no pinned customer", f"holds {order}, which belongs to a customer of a pinned task")


def test_rows_are_read_by_place(built: Path) -> None:
    path = built / "data" / "validation-hand_written.parquet"
    rows = list(iter_rows(path, ("id",)))
    assert len(rows) == 34
    assert read_rows(path, [0, 9, 33], ("id",)) == [rows[0], rows[9], rows[33]]
    with pytest.raises(CorruptFileError, match="has 34 rows, row 34 is asked for"):
        read_rows(path, [3, 34])
    with pytest.raises(CorruptFileError, match="no column mood"):
        next(iter_rows(path, ("mood",)))


def test_real_tasks_and_generated_plans_are_counted_by_the_same_rules(built: Path) -> None:
    real, generated = count_tasks(), count_set(built, read_manifest(built))
    assert set(real) == set(generated) == set(DIMENSIONS)
    assert real["tool"].total() == 553
    assert real["n_calls"].total() == 114
    assert real["n_calls"]["0"] == 2
    assert count_tasks(PINNED)["n_calls"].total() == 64
    assert set(real["payment"]) == {"credit_card", "gift_card", "paypal"}
    assert generated["n_calls"].total() == 40, "the hand-written ones are left out"


def test_total_variation_is_the_share_that_would_have_to_move() -> None:
    assert total_variation(Counter(a=3, b=1), Counter(a=6, b=2)) == 0
    assert total_variation(Counter(a=3, b=1), Counter(a=1, b=1)) == 0.25
    assert total_variation(Counter(a=3), Counter(b=1)) == 1
    assert total_variation(Counter(), Counter()) == 0
    assert total_variation(Counter(), Counter(a=1)) == 1


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["data", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_builds_describes_and_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["build", "--config", "configs/data/retail.yaml", "--set", "n_examples=12", "--set", "name=few"]
    code, out, err = run(*command, capsys=capsys)
    assert code == 0
    assert "few: 46 examples (34 hand_written, 12 synthetic)" in out
    assert "runs/data/few" in err
    code, out, err = run(*command, capsys=capsys)
    assert (code, "nothing was built" in err) == (0, True)
    code, out, _ = run("stats", "runs/data/few", capsys=capsys)
    assert code == 0
    assert "get_order_details" in out
    assert out.count("total variation distance") == len(DIMENSIONS)
    assert (tmp_path / "runs/data/few/stats.png").read_bytes().startswith(b"\x89PNG")
    assert "total_variation" in json.loads((tmp_path / "runs/data/few/stats.json").read_text())
    code, out, _ = run("validate", "runs/data/few", "--sample", "9", capsys=capsys)
    assert (code, out) == (0, "46 rows checked, 9 plans executed again: no violations\n")
    name = "data/validation-hand_written.parquet"
    rewrite(tmp_path / "runs/data/few" / name, {"prose": "x"})
    code, out, _ = run("validate", "runs/data/few", "--all", capsys=capsys)
    assert code == 1
    assert out.startswith(f"{name}: file: has SHA-256")
    assert out.endswith(" 1 violation\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["stats", "nowhere"], "nowhere holds no finished data set"),
        (["validate", "nowhere"], "graphhandoff data build"),
        (["push", "nowhere", "a/b"], "no finished data set"),
        (["build", "--config", "configs/data/retail.yaml", "--set", "push_to_hub=retail"], "no repository name"),
        (["build", "--config", "configs/data/retail.yaml", "--set", "split=nowhere"], "retail_pinned_50"),
        (["build", "--config", "configs/data/retial.yaml"], "retail.yaml"),
    ],
)
def test_mistakes_are_answered_with_what_to_do(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run(*arguments, capsys=capsys)
    assert code == 2
    assert says in " ".join(err.split())
