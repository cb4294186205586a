"""Rows keep their denominators, and a table shows what was measured and nothing else."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from pydantic import ValidationError
from rich.console import Console

from graphhandoff.compress.protocol import Message, ToolCall
from graphhandoff.eval.report import NOTHING, ComparisonTable, write_table
from graphhandoff.eval.score import CallOutcome, RecordsError, Row, Trial, score_rows

TASKS = [str(i) for i in range(50)]
SEEDS = (0, 1, 2)


def trial(row: str, task: str, seed: int, success: bool = True) -> Trial:
    return Trial(
        protocol=row,
        task_id=task,
        seed=seed,
        status="scored",
        success=success,
        database_success=success,
        communicated=success,
        floor_tokens=50,
    )


def errored(row: str, task: str, seed: int) -> Trial:
    return Trial(protocol=row, task_id=task, seed=seed, status="errored", error="TimeoutError: slow", floor_tokens=50)


def message(row: str, task: str, n_tokens: int, lost: tuple[str, ...] = (), fallback: str | None = None) -> Message:
    return Message(
        task_id=task,
        protocol=row,
        text="x",
        route="compressed",
        n_tokens=n_tokens,
        n_prose_tokens=400,
        tokenizer="cl100k_base",
        n_identifiers=4,
        identifiers_lost=lost,
        fallback=fallback,
    )


def planned(row: str, solved: int = 50) -> list[Trial]:
    return [trial(row, task, seed, int(task) < solved) for task in TASKS for seed in SEEDS]


def rows_of(trials: list[Trial], messages: list[Message] | None = None, **unavailable: str) -> dict[str, Row]:
    ids = [*dict.fromkeys(t.protocol for t in trials), *unavailable]
    sent = [*(messages or [])]
    for row in ids:
        if row != "do_nothing" and row not in {m.protocol for m in sent}:
            sent += [message(row, task, 400) for task in TASKS]
    rows = score_rows(sent, trials, TASKS, SEEDS, ids, unavailable, n_resamples=500)
    return {row.id: row for row in rows}


def test_errored_trials_are_failures_and_are_shown() -> None:
    crashed = [errored(t.protocol, t.task_id, t.seed) if i < 10 else t for i, t in enumerate(planned("a"))]
    rows = rows_of([*planned("natural_language"), *crashed])
    assert (rows["a"].planned, rows["a"].scored, rows["a"].errored) == (150, 140, 10)
    assert rows["a"].success_rate == pytest.approx(140 / 150)
    assert (rows["natural_language"].planned, rows["natural_language"].errored) == (150, 0)


def test_an_errored_trial_cannot_claim_success() -> None:
    with pytest.raises(ValidationError, match="is a failure"):
        Trial(protocol="a", task_id="1", seed=0, status="errored", error="x", success=True, floor_tokens=1)
    with pytest.raises(ValidationError, match="says its error"):
        Trial(protocol="a", task_id="1", seed=0, status="errored", floor_tokens=1)


def test_identical_rows_show_no_difference() -> None:
    row = rows_of([*planned("natural_language", 20), *planned("a", 20)])["a"]
    assert (row.delta, row.ci_low, row.ci_high, row.p) == (0, 0, 0, 1)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda trials: trials[:-1], "1 of 150 trials of a are missing, first task 49, seed 2; resume"),
        (lambda trials: [*trials, trials[0]], "recorded twice: a, task 0, seed 0"),
        (lambda trials: [*trials, trial("a", "77", 0)], "unplanned trial: a, task 77"),
    ],
)
def test_records_that_do_not_fit_the_plan_are_named(change, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RecordsError, match=says):
        rows_of([*planned("natural_language"), *change(planned("a"))])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda sent: sent[:-1], "1 of 50 messages of a are missing, first task 49; resume"),
        (lambda sent: [*sent, sent[0]], "message recorded twice: a, task 0"),
        (lambda sent: [*sent, message("a", "77", 9)], "unplanned message: a, task 77"),
        (lambda sent: [sent[0].model_copy(update={"tokenizer": "o200k_base"}), *sent[1:]], "one tokenizer"),
    ],
)
def test_messages_that_do_not_fit_the_plan_are_named(change, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RecordsError, match=says):
        rows_of([*planned("natural_language"), *planned("a")], change([message("a", task, 100) for task in TASKS]))


def test_the_spread_over_seeds_is_shown_where_there_is_one() -> None:
    trials = [trial("a", task, seed, int(task) < 10 + seed) for task in TASKS for seed in SEEDS]
    row = rows_of([*planned("natural_language"), *trials])["a"]
    assert (row.success_low, row.success_high) == (0.2, 0.24)
    assert table().cells(row)[2] == "22.0 (20.0 to 24.0)"


def test_tokens_are_compared_over_the_same_tasks() -> None:
    sent = [message("a", task, 100 if int(task) % 2 else 300) for task in TASKS]
    sent[0] = message("a", "0", 300, lost=("#W1",), fallback="2 of 4 identifiers lost")
    row = rows_of([*planned("natural_language"), *planned("a")], sent)["a"]
    assert row.mean_tokens == 200
    assert row.compression == pytest.approx(2.0)
    assert row.floor_multiple == pytest.approx(4.0)
    assert row.identifier_recall == pytest.approx((49 + 0.75) / 50)
    assert row.n_fallback == 1


def test_only_protocols_are_hypotheses() -> None:
    trials = [*planned("natural_language", 10), *planned("a", 20), *planned("do_nothing", 5)]
    rows = rows_of(trials, [message("a", task, 100) for task in TASKS])
    assert rows["a"].p_holm == rows["a"].p
    assert rows["do_nothing"].p is not None
    assert rows["do_nothing"].p_holm is None


def table() -> ComparisonTable:
    messages = [message(row, task, n) for row, n in (("natural_language", 400), ("tfidf", 100)) for task in TASKS]
    rows = score_rows(
        messages,
        [*planned("natural_language", 6), *planned("tfidf", 8)],
        TASKS,
        SEEDS,
        ["natural_language", "tfidf", "t5_autoencoder"],
        {"t5_autoencoder": "no checkpoint: `graphhandoff train autoencoder` makes it"},
        n_resamples=500,
    )
    return ComparisonTable(
        name="test",
        track="plan",
        benchmark="tau2-retail",
        data={"tasks.json": "0123456789"},
        tokenizer="cl100k_base",
        models={},
        split="retail_pinned_50",
        seeds=SEEDS,
        commit=None,
        n_resamples=500,
        rows=rows,
    )


def test_all_forms_of_the_table_show_the_same(tmp_path: Path) -> None:
    write_table(table(), tmp_path)
    markdown = (tmp_path / "table.md").read_text()
    shown = [cell.strip() for cell in markdown.splitlines()[3].strip("|").split("|")]
    assert shown[:4] == ["tfidf", "150/150/0", "16.0", "16.0"]
    assert shown[4].startswith("+4.0 [")
    assert shown[7:9] == ["100.0", "4.0"]
    assert shown[-2:] == ["16.7", "0.9"]
    record = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text())))[1]
    assert float(record["success_rate"]) == pytest.approx(0.16)
    assert ComparisonTable.model_validate_json((tmp_path / "table.json").read_text()) == table()


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160])
def test_the_terminal_shows_whole_cells_at_any_width_and_names_what_it_hides(width: int) -> None:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(table().to_rich(width))
    text = console.export_text()
    assert "…" not in text.split("test")[1].split("t5_autoencoder:")[0]
    assert "16.0" in text
    assert ("not shown at this width" in text) == (width < 140)


def test_a_row_without_a_checkpoint_shows_its_reason_and_no_figure() -> None:
    cells = table().cells(table().rows[2])
    assert set(cells[1:-2]) == {NOTHING}
    assert cells[-2:] == ["20.0", "7.7"]
    assert "t5_autoencoder: no checkpoint: `graphhandoff train autoencoder` makes it" in table().to_markdown()


def test_the_caption_says_where_the_figures_come_from() -> None:
    caption = table().caption()
    for part in (
        "plan track",
        "tasks.json 01234567",
        "cl100k_base",
        "literal executor",
        "0, 1, 2",
        "clustered by task",
    ):
        assert part in caption
    assert "over 1 rows" in caption


def test_records_survive_json() -> None:
    done = trial("a", "1", 0).model_copy(
        update={"outcomes": (CallOutcome(call=ToolCall(name="t", arguments={"x": ["1", "1"]}), ok=False, error="no"),)}
    )
    assert Trial.model_validate_json(done.model_dump_json()) == done
