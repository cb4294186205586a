"""A run directory loses nothing, repeats nothing, and is never mixed with another run."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from graphhandoff.configs.run_directory import (
    CorruptRecordsError,
    OtherRunError,
    RunBusyError,
    RunDirectory,
    RunDirectoryError,
)

CONFIG = {"seed": 1, "protocols": {"tfidf": {"rate": 0.3}}}
PROVENANCE = {"commit": "abc", "data": {"tasks": "1"}}


class Item(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    n: int


def fill(path: Path, n: int) -> None:
    with RunDirectory(path, CONFIG, PROVENANCE) as run:
        for i in range(n):
            run.append("items", Item(n=i))


def test_records_are_there_when_the_run_is_opened_again(tmp_path: Path) -> None:
    fill(tmp_path / "run", 3)
    with RunDirectory(tmp_path / "run", dict(reversed(CONFIG.items())), PROVENANCE) as run:
        assert run.resumed
        assert [item.n for item in run.read_records("items", Item)] == [0, 1, 2]
        assert run.notices == []


def test_another_configuration_is_refused_and_the_keys_are_named(tmp_path: Path) -> None:
    fill(tmp_path / "run", 1)
    with pytest.raises(OtherRunError, match=r"protocols.tfidf.rate: 0.3 -> 0.5"):
        RunDirectory(tmp_path / "run", {"seed": 1, "protocols": {"tfidf": {"rate": 0.5}}}, PROVENANCE)
    fill(tmp_path / "run", 0)  # and the refusal leaves no lock behind


def test_a_half_written_last_line_is_dropped_with_a_notice(tmp_path: Path) -> None:
    fill(tmp_path / "run", 2)
    path = tmp_path / "run" / "items.jsonl"
    path.write_bytes(path.read_bytes() + b'{"n": 2')
    with RunDirectory(tmp_path / "run", CONFIG, PROVENANCE) as run:
        assert [item.n for item in run.read_records("items", Item)] == [0, 1]
        assert run.notices == ["items.jsonl: dropped a half-written last line of 7 bytes"]
        run.append("items", Item(n=2))
        assert [item.n for item in run.read_records("items", Item)] == [0, 1, 2]


def test_a_corrupt_record_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    fill(tmp_path / "run", 3)
    path = tmp_path / "run" / "items.jsonl"
    path.write_text(path.read_text().replace('{"n":1}', '{"n":"one"}'))
    before = path.read_bytes()
    with (
        RunDirectory(tmp_path / "run", CONFIG, PROVENANCE) as run,
        pytest.raises(CorruptRecordsError, match=r"line 2: n: .*integer"),
    ):
        run.read_records("items", Item)
    assert path.read_bytes() == before


def test_two_processes_cannot_work_in_one_directory(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "run", CONFIG, PROVENANCE), pytest.raises(RunBusyError, match="another process"):
        RunDirectory(tmp_path / "run", CONFIG, PROVENANCE)


def test_a_directory_of_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(RunDirectoryError, match=r"thesis.tex.*no run"):
        RunDirectory(tmp_path, CONFIG, PROVENANCE)
    with pytest.raises(RunDirectoryError, match="is a file"):
        RunDirectory(tmp_path / "thesis.tex", CONFIG, PROVENANCE)


def test_other_code_or_data_is_told(tmp_path: Path) -> None:
    fill(tmp_path / "run", 1)
    with RunDirectory(tmp_path / "run", CONFIG, {"commit": "def", "data": {"tasks": "1"}}) as run:
        assert run.notices == ["records here were begun with commit abc, now def"]
        assert run.provenance["commit"] == "abc"


def test_a_start_that_was_killed_before_its_configuration_starts_anew(tmp_path: Path) -> None:
    fill(tmp_path / "run", 0)
    (tmp_path / "run" / "config.json").unlink()
    fill(tmp_path / "run", 2)
    with RunDirectory(tmp_path / "run", CONFIG, PROVENANCE) as run:
        assert len(run.read_records("items", Item)) == 2


@pytest.mark.parametrize("name", ["config.json", "provenance.json"])
def test_a_directory_whose_origin_is_unreadable_is_refused_by_name(tmp_path: Path, name: str) -> None:
    fill(tmp_path / "run", 1)
    (tmp_path / "run" / name).write_text("{")
    with pytest.raises(CorruptRecordsError, match=name):
        RunDirectory(tmp_path / "run", CONFIG, PROVENANCE)
