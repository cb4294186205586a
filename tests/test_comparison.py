"""The main job on the real tasks: every record is made once, survives a kill, and the table is made of records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphhandoff.configs.loader import load_config
from graphhandoff.configs.run_directory import OtherRunError
from graphhandoff.data.delegations import load_delegations
from graphhandoff.data.environment import load_environment
from graphhandoff.data.retail import SplitNotFoundError, load_tasks, load_tools
from graphhandoff.eval import comparison
from graphhandoff.eval.comparison import CompareConfig, OtherWeightsError, compare, run_trial
from graphhandoff.eval.report import ComparisonTable
from graphhandoff.eval.score import Row, Trial

QUICK = [
    "protocols.qwen_emitter=",
    "protocols.t5_autoencoder=",
    "n_resamples=1000",
]


def configure(directory: Path, *overrides: str) -> CompareConfig:
    return load_config(
        CompareConfig, "configs/compare/plan_track.yaml", [*QUICK, f"runs_directory={directory}", *overrides]
    )


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Row]]:
    directory = tmp_path_factory.mktemp("runs")
    table, run = compare(configure(directory))
    return run.path, {row.id: row for row in table.rows}


def test_a_graph_carries_the_whole_plan(finished: tuple[Path, dict[str, Row]]) -> None:
    rows = finished[1]
    assert rows["predictive_delta"].success_rate == 1.0
    assert rows["routed_ngh"].success_rate is not None
    assert rows["routed_ngh"].success_rate >= 0.9
    for row in ("routed_ngh", "predictive_delta"):
        assert (rows[row].n_invalid, rows[row].errored, rows[row].identifier_recall) == (0, 0, 1.0)
        assert (rows[row].compression or 0) > 3.2  # the paper's figure for routed graphs


def test_every_row_has_every_trial(finished: tuple[Path, dict[str, Row]]) -> None:
    path, rows = finished
    trials = [Trial.model_validate_json(line) for line in lines_of(path / "trials.jsonl")]
    assert len({(t.protocol, t.task_id, t.seed) for t in trials}) == len(trials) == 50 * len(rows)
    assert all((row.planned, row.errored) == (50, 0) for row in rows.values())


def test_the_llmlingua_rows_lose_no_identifier_at_four_times_fewer_tokens(
    finished: tuple[Path, dict[str, Row]],
) -> None:
    for name in ("hybrid", "llmlingua2"):
        row = finished[1][name]
        assert row.identifier_recall == 1.0
        assert row.compression is not None
        assert row.compression >= 4.0
        assert row.n_fallback == 0
    caption = ComparisonTable.model_validate_json((finished[0] / "table.json").read_text()).caption()
    assert "llmlingua2 packaged:llmlingua2_retail_tiny (" in caption
    assert "were put back by rule" in caption


def test_doing_nothing_is_a_row(finished: tuple[Path, dict[str, Row]]) -> None:
    floor = finished[1]["do_nothing"]
    assert floor.success_rate == pytest.approx(2 / 50)  # tasks 12 and 65: nothing to write that the tools accept
    assert floor.mean_tokens is None


def test_the_directory_says_what_made_it(finished: tuple[Path, dict[str, Row]]) -> None:
    path = finished[0]
    provenance = json.loads((path / "provenance.json").read_text())
    assert provenance["packages"]["inspect-evals"]
    assert set(provenance["data"]) == {"tasks.json", "db.json.gz", "policy.txt", "split_tasks.json"}
    assert json.loads((path / "config.json").read_text())["config"]["protocols"]["tfidf"]["rate"] > 0
    assert ComparisonTable.model_validate_json((path / "table.json").read_text()).split == "retail_pinned_50"


def test_the_readme_shows_what_the_command_prints(finished: tuple[Path, dict[str, Row]]) -> None:
    readme = (Path(__file__).resolve().parent.parent / "README.md").read_text()
    table = ComparisonTable.model_validate_json((finished[0] / "table.json").read_text())
    headers = table.headers()
    columns = [i for i, header in enumerate(headers) if "Δ" not in header and not header.startswith("p")]
    for row in table.rows:
        (line,) = [line for line in readme.splitlines() if line.startswith(f"| {row.id} |")]
        shown = [cell.strip() for cell in line.strip("|").split("|")]
        cells = table.cells(row)
        assert [shown[i] for i in columns] == [cells[i] for i in columns], row.id


def test_a_killed_run_resumes_without_repeating_or_losing_a_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: tuple[Path, dict[str, Row]]
) -> None:
    config = configure(
        tmp_path,
        "seeds=[0, 1, 2]",
        "protocols.predictive_delta=",
        "protocols.tfidf=",
        "protocols.hybrid=",
        "protocols.llmlingua2=",
    )

    def stop(row: str, done: int, planned: int) -> None:
        if (row, done) == ("routed_ngh", 37):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(config, stop)
    path = tmp_path / config.name
    done = lines_of(path / "trials.jsonl")
    assert len(done) == 150 + 37
    with (path / "trials.jsonl").open("a") as file:
        file.write('{"protocol":"routed_ngh","task_')  # the kill came in the middle of a line
    called: list[tuple[str, str, int]] = []

    def counted(row, task, seed, *rest):  # type: ignore[no-untyped-def]
        called.append((row, task.id, seed))
        return run_trial(row, task, seed, *rest)

    monkeypatch.setattr(comparison, "run_trial", counted)
    table, run = compare(config)
    assert lines_of(path / "trials.jsonl")[: len(done)] == done
    assert len(called) == len(set(called)) == 3 * 150 - len(done)
    assert any("half-written" in notice for notice in run.notices)
    rows = {row.id: row for row in table.rows}
    assert (rows["routed_ngh"].planned, rows["routed_ngh"].scored) == (150, 150)
    assert rows["routed_ngh"].success_rate == finished[1]["routed_ngh"].success_rate
    called.clear()
    compare(config)
    assert called == []


def test_another_configuration_cannot_use_the_directory(finished: tuple[Path, dict[str, Row]]) -> None:
    with pytest.raises(OtherRunError, match=r"protocols.tfidf.rate: 0.3 -> 0.6"):
        compare(configure(finished[0].parent, "protocols.tfidf.rate=0.6"))


def test_a_trial_that_breaks_is_recorded_and_the_run_goes_on() -> None:
    class Broken:
        def verdict(self, *_: object) -> None:
            raise TimeoutError("too slow")

    task = load_tasks()[0]
    trial = run_trial("natural_language", task, 0, None, None, load_tools(), Broken(), 50)  # type: ignore[arg-type]
    assert (trial.status, trial.error, trial.success) == ("errored", "TimeoutError: too slow", False)


def test_a_missing_split_names_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(SplitNotFoundError, match="retail_pinned_50"):
        compare(configure(tmp_path, "split=retail_pinned_500"))
    assert not list(tmp_path.iterdir())


def test_every_gold_plan_as_graph_on_either_wire_succeeds() -> None:
    environment, tools = load_environment(), load_tools()
    tasks = {task.id: task for task in load_tasks()}
    from graphhandoff.compress.routed_ngh import RoutedNGH
    from graphhandoff.compress.router import AlwaysGraph

    pinned = load_delegations([task_id for task_id in tasks if task_id in _pinned()])
    for wire in ("json", "compact"):
        protocol = RoutedNGH(tools, AlwaysGraph(), wire)  # type: ignore[arg-type]
        for message in protocol.encode(pinned):
            trial = run_trial("routed_ngh", tasks[message.task_id], 0, message, protocol, tools, environment, 1)
            assert trial.success, (wire, message.task_id)


def _pinned() -> set[str]:
    from graphhandoff.data.retail import load_split

    return set(load_split("retail_pinned_50").task_ids)


def test_messages_of_other_weights_under_the_same_path_are_not_gone_on_with(tmp_path: Path) -> None:
    from tests.tiny_models import save_token_classifier

    model = save_token_classifier(tmp_path / "model", seed=0)
    config = configure(
        tmp_path / "runs", "name=weights", "protocols.tfidf=", "protocols.predictive_delta=", "protocols.routed_ngh=",
        "protocols.hybrid=",
        f"protocols.llmlingua2={{model: '{model}'}}", "split=" + str(_one_task(tmp_path)),
    )  # fmt: skip
    compare(config)
    save_token_classifier(model, seed=1)
    with pytest.raises(
        OtherWeightsError, match=r"messages of llmlingua2 written with the weights sha256:.* choose anoth"
    ):
        compare(config)
    save_token_classifier(model, seed=0)
    compare(config)


def _one_task(folder: Path) -> Path:
    path = folder / "one.yaml"
    path.write_text("name: one\ntask_ids: ['9']\n")
    return path
