"""Building a data set: the same bytes however it is made, resumable, nothing twice across splits, readable offline."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from graphhandoff.configs.files import digest_file
from graphhandoff.configs.loader import ConfigError, load_config, validate_config
from graphhandoff.data import rewrite, shards, workers
from graphhandoff.data.build import OtherSetError, SetBusyError, build
from graphhandoff.data.build_ray import RayMissingError, run_on_ray
from graphhandoff.data.data_config import DataConfig
from graphhandoff.data.duplicates import DuplicateAcrossSplitsError
from graphhandoff.data.examples import COLUMNS, Example, from_row
from graphhandoff.data.hub import PushError, push_to_hub
from graphhandoff.data.manifest import MANIFEST, SetNotFoundError, read_manifest
from graphhandoff.data.parquet_files import iter_rows
from graphhandoff.data.rewrite import ModelUnavailableError
from graphhandoff.data.shards import BUILD_FOLDER, Shard, iter_examples
from graphhandoff.data.workers import BuildError

MADE_BY = {"commit": "abc", "data": {"tasks.json": "1"}}
N_EXAMPLES = 48


def configure(where: Path, **changes: Any) -> DataConfig:
    values = {"name": "small", "seed": 11, "n_examples": N_EXAMPLES, "shard_size": 16, "output_directory": str(where)}
    return validate_config(DataConfig, {**values, **changes}, "test")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(configure(tmp_path_factory.mktemp("built")), MADE_BY).folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_manifest_has_the_hash_of_every_file_and_the_build_leaves_nothing_else(built: Path) -> None:
    manifest = read_manifest(built)
    assert {file.path for file in manifest.files} | {MANIFEST, ".lock"} == set(contents(built))
    for file in manifest.files:
        assert digest_file(built / file.path) == file.sha256
        assert (built / file.path).stat().st_size == file.n_bytes
    assert manifest.rows == N_EXAMPLES + 34
    assert manifest.sources == {"hand_written": 34, "synthetic": N_EXAMPLES}
    assert manifest.config["synthesis"]["seed"] == 11
    assert manifest.provenance == MADE_BY


def test_datasets_finds_the_splits_offline_and_streams_them(built: Path, tmp_path: Path) -> None:
    from datasets import load_dataset

    loaded = load_dataset(str(built), cache_dir=str(tmp_path))
    manifest = read_manifest(built)
    assert {split: len(loaded[split]) for split in loaded} == {k: v.rows for k, v in manifest.splits.items()}
    ids: list[str] = []
    for split in manifest.splits:
        for row in load_dataset(str(built), split=split, streaming=True):
            assert from_row(row).split == split
            ids.append(row["id"])
    assert len(set(ids)) == manifest.rows


def test_the_card_explains_every_column_and_counts_every_split(built: Path) -> None:
    card = (built / "README.md").read_text()
    for name, column in COLUMNS.items():
        assert f"| `{name}` |" in card
        assert column.meaning in card
    for name, split in read_manifest(built).splits.items():
        assert f"| {name} | {split.rows:,} | {split.customers} |" in card


@pytest.mark.parametrize("start_method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_two_workers_write_what_one_writes_byte_for_byte(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start_method: str
) -> None:
    monkeypatch.setattr(workers, "START_METHOD", start_method)  # forked ones begin at once
    assert contents(build(configure(tmp_path, n_workers=2), MADE_BY).folder) == contents(built)


def test_a_build_that_is_killed_resumes_to_the_same_set(built: Path, tmp_path: Path) -> None:
    config = configure(tmp_path)
    # Forked, so that it starts at once; it is killed when the first shard of problems is finished.
    process = multiprocessing.get_context("fork").Process(target=build, args=(config, MADE_BY))
    process.start()
    assert process.pid is not None
    first = config.folder / BUILD_FOLDER / "00000.json"
    deadline = time.monotonic() + 30
    while not first.exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert not (config.folder / MANIFEST).exists()
    with pytest.raises(SetNotFoundError, match="resumes a build that was killed"):
        read_manifest(config.folder)
    half = config.folder / "data" / "train-00000.parquet"
    half.write_bytes(half.read_bytes()[:-7])  # as a full disk would leave it
    seen: list[tuple[int, int]] = []
    again = build(config, MADE_BY, lambda done, planned: seen.append((done, planned)))
    assert seen[0][0] == again.n_resumed >= 1
    assert seen[-1] == (4, 4)
    assert contents(again.folder) == contents(built)


def test_a_finished_set_is_left_as_it_is(built: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in built.rglob("*.parquet")}
    again = build(configure(built.parent), {"commit": "other"})
    assert again.notices == ("the set is finished; nothing was built",)
    assert {path: path.stat().st_mtime_ns for path in built.rglob("*.parquet")} == before
    assert again.manifest.provenance == MADE_BY


def stop_after(n_shards: int) -> Any:
    def run(config: DataConfig, missing: Any) -> Iterator[Any]:
        for shard in missing[:n_shards]:
            yield shards.write_shard(config.recipe, shard, config.folder)
        raise KeyboardInterrupt

    return run


def test_shards_of_other_code_are_made_again_with_a_notice(built: Path, tmp_path: Path) -> None:
    config = configure(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        build(config, {"commit": "older"}, run_shards=stop_after(2))
    (config.folder / "data" / "test-00007.parquet").write_text("what the older code made")
    again = build(config, MADE_BY)
    assert again.n_resumed == 0
    assert "commit: 'older' -> 'abc'" in again.notices[0]
    assert contents(again.folder) == contents(built)


def test_another_configuration_in_the_folder_is_refused_with_the_keys(built: Path, tmp_path: Path) -> None:
    with pytest.raises(OtherSetError, match=r"synthesis\.decoys: 1\.0 -> 0\.5"):
        build(configure(built.parent, synthesis={"decoys": 0.5}), MADE_BY)
    config = configure(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        build(config, MADE_BY, run_shards=stop_after(1))
    with pytest.raises(OtherSetError, match="n_examples: 48 -> 49"):
        build(configure(tmp_path, n_examples=49), MADE_BY)


def test_a_folder_that_is_busy_or_not_ours_is_refused(tmp_path: Path) -> None:
    config = configure(tmp_path)

    def build_again(*_: Any) -> Iterator[Any]:
        with pytest.raises(SetBusyError, match="another process builds"):
            build(config, MADE_BY)
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        build(config, MADE_BY, run_shards=build_again)
    other = configure(tmp_path, name="letters")
    other.folder.mkdir()
    (other.folder / "dear.txt").write_text("x")
    with pytest.raises(BuildError, match=r"holds 'dear\.txt' but no data set"):
        build(other, MADE_BY)


def test_the_same_content_in_two_splits_is_refused_with_both_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leak(stream: Any, shard: Shard) -> Iterator[Example]:
        for example in iter_examples(stream, shard):
            yield example
            if example.id == "synthetic-11-20":
                moved = "test" if example.split != "test" else "train"
                prose = example.prose.upper().replace(" ", "\n ")
                yield example.model_copy(update={"id": "copy", "split": moved, "prose": prose})

    monkeypatch.setattr(shards, "iter_examples", leak)
    with pytest.raises(DuplicateAcrossSplitsError, match="hold the same prose") as raised:
        build(configure(tmp_path, hand_written=False), MADE_BY)
    assert "synthetic-11-20 (" in str(raised.value)
    assert "copy (" in str(raised.value)
    assert not (tmp_path / "small" / MANIFEST).exists()


def test_repeats_inside_a_split_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stutter(stream: Any, shard: Shard) -> Iterator[Example]:
        for example in iter_examples(stream, shard):
            yield example
            if example.id == "synthetic-11-3":
                yield example.model_copy(update={"id": "copy", "prose": f"{example.prose} Thanks!"})

    monkeypatch.setattr(shards, "iter_examples", stutter)
    manifest = build(configure(tmp_path, hand_written=False, n_examples=16), MADE_BY).manifest
    assert sum(split.duplicate_content for split in manifest.splits.values()) == 1
    assert sum(split.duplicate_prose for split in manifest.splits.values()) == 0


class Parrot:
    """A model that answers with the message it was given, once changed."""

    def __init__(self, change: Callable[[str], str]) -> None:
        self.change = change
        self.asked: list[str] = []

    async def generate(self, prompt: str) -> Any:
        self.asked.append(prompt)
        message = prompt.split("Answer with the message alone.\n\n")[1].split("\n\nAn earlier attempt")[0]
        return SimpleNamespace(completion=self.change(message))


def test_a_model_may_tell_them_if_it_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tell(name: str, change: Callable[[str], str]) -> tuple[list[dict[str, Any]], Parrot]:
        parrot = Parrot(change)
        monkeypatch.setattr(rewrite, "_load_model", lambda config: parrot)
        config = configure(
            tmp_path, name=name, hand_written=False, n_examples=8, prose={"model": "some/model", "n_at_once": 3}
        )
        folder = build(config, MADE_BY).folder
        return [row for path in sorted(folder.glob("data/*")) for row in iter_rows(path)], parrot

    rows, parrot = tell("good", lambda text: f"Dear colleague! {text}")
    assert {row["prose_by"] for row in rows} == {"some/model"}
    assert all(row["prose"].startswith("Dear colleague! ") for row in rows)
    assert len(parrot.asked) == 8
    for change, fault in (
        (lambda text: text.replace("_", "-"), "it lacks"),
        (lambda text: f"{text} See #W0000001.", "it holds #W0000001"),
    ):
        rows, parrot = tell(fault.replace(" ", "_").replace("#", ""), change)
        assert {row["prose_by"] for row in rows} == {"grammar"}
        assert len(parrot.asked) == 16, "each is asked for twice"
        assert any(fault in asked for asked in parrot.asked)


def test_a_model_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(config: rewrite.ProseConfig) -> None:
        raise RuntimeError("no key")

    monkeypatch.setattr(rewrite, "_load_model", refuse)
    config = configure(tmp_path, hand_written=False, prose={"model": "some/model"})
    with pytest.raises(ModelUnavailableError, match=r"some/model cannot tell delegations \(RuntimeError\): no key"):
        build(config, MADE_BY)


def test_nothing_is_left_in_the_cache_of_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.enable_progress_bars()
    build(configure(tmp_path, hand_written=False, n_examples=4), MADE_BY)
    assert not (tmp_path / "cache").exists()
    assert not datasets.are_progress_bars_disabled(), "the caller's setting is kept"


def test_a_lost_worker_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    def lose(*_: Any) -> Any:
        raise BrokenProcessPool

    monkeypatch.setattr(ProcessPoolExecutor, "submit", lose)
    with pytest.raises(BuildError, match="run the same command again, with fewer n_workers"):
        build(configure(tmp_path, n_workers=2), MADE_BY)


def test_the_shipped_configuration_is_read_and_mistakes_are_named() -> None:
    config = load_config(DataConfig, "configs/data/retail.yaml")
    assert config.n_examples == 20_000
    assert config.synthesis.seed == config.seed
    with pytest.raises(ConfigError, match="did you mean decoys"):
        load_config(DataConfig, "configs/data/retail.yaml", ["synthesis.decoy=2"])
    with pytest.raises(ConfigError, match="set seed at the top only"):
        load_config(DataConfig, "configs/data/retail.yaml", ["synthesis.seed=2"])


def test_where_it_is_made_does_not_decide_what_it_is(tmp_path: Path) -> None:
    ours = configure(tmp_path)
    theirs = configure(tmp_path / "x", name="other", n_workers=7, push_to_hub="a/b", private=False)
    assert ours.resolved() == theirs.resolved()
    assert DataConfig.model_validate({"name": "again", **ours.resolved()}).synthesis == ours.synthesis


def test_without_ray_the_install_line_is_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RayMissingError, match=r'pip install "graphhandoff\[ray\]"'):
        build(configure(tmp_path), MADE_BY, run_shards=run_on_ray)


@pytest.mark.slow
def test_workers_end_with_the_process_that_is_killed(tmp_path: Path) -> None:
    code = (
        "from graphhandoff.data.build import build\nfrom graphhandoff.data.data_config import DataConfig\n"
        "if __name__ == '__main__':\n"
        f"    values = dict(name='s', seed=1, n_examples=100_000, n_workers=2, output_directory={str(tmp_path)!r})\n"
        "    build(DataConfig.model_validate(values), {})\n"
    )
    (tmp_path / "job.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, str(tmp_path / "job.py")], env=environment)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        wait_for(lambda: bool(list(tmp_path.glob(f"s/{BUILD_FOLDER}/tmp-*"))))
        workers_of_it = children.read_text().split()
    finally:
        process.kill()
        process.wait()
    assert len(workers_of_it) >= 2
    wait_for(lambda: not any(is_alive(pid) for pid in workers_of_it))


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.enable_socket
def test_a_ray_data_job_writes_what_a_local_build_writes(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray", reason='Ray is not installed; `pip install "graphhandoff[ray]"` brings it')
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    try:
        made = build(configure(tmp_path), MADE_BY, run_shards=run_on_ray)
    finally:
        ray.shutdown()
    assert contents(made.folder) == contents(built)


def test_pushing_needs_a_name_a_key_and_a_whole_set(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    with pytest.raises(PushError, match="no repository name"):
        push_to_hub(built, "retail")
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    with pytest.raises(PushError, match="hf auth login"):
        push_to_hub(built, "somebody/retail")
    with pytest.raises(SetNotFoundError):
        push_to_hub(tmp_path, "somebody/retail")


def test_pushing_uploads_the_files_as_they_are(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    calls: dict[str, dict[str, Any]] = {}

    class FakeApi:
        def create_repo(self, repository: str, **options: Any) -> str:
            calls["create"] = {"repository": repository, **options}
            return f"https://huggingface.co/datasets/{repository}"

        def upload_folder(self, **options: Any) -> None:
            calls["upload"] = options

    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "hf_key")
    monkeypatch.setattr(huggingface_hub, "HfApi", FakeApi)
    assert push_to_hub(built, "somebody/retail", private=False) == "https://huggingface.co/datasets/somebody/retail"
    assert calls["create"] == {
        "repository": "somebody/retail",
        "repo_type": "dataset",
        "private": False,
        "exist_ok": True,
    }
    assert {MANIFEST, "README.md", "data/train-00000.parquet"} <= set(calls["upload"]["allow_patterns"])

    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionError("no network")

    monkeypatch.setattr(FakeApi, "upload_folder", refuse)
    with pytest.raises(PushError, match=r"did not take somebody/retail \(ConnectionError\): no network"):
        push_to_hub(built, "somebody/retail")
