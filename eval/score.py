"""Trials, and the rows of a table made of them. Denominators are fixed: planned = scored + errored, per row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from graphhandoff.compress.protocol import Message, ToolCall
from graphhandoff.eval.paper import PAPER_TABLE_2
from graphhandoff.eval.statistics import Difference, compare_to_baseline, holm


class RecordsError(ValueError):
    """The records do not fit the plan: a trial is missing, unplanned, or there twice; names it."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class CallOutcome(_Record):
    """A call that was carried out: whether the tool accepted it, and its error if not."""

    call: ToolCall
    ok: bool
    error: str | None = None


class Trial(_Record):
    """One task executed from one row's message with one seed.

    ``skipped`` are calls that the executor could not read and why; ``invalid`` is the error of a graph message that is
    no graph. An errored trial holds ``error`` and counts as a failure; ``floor_tokens`` is the information floor.
    """

    protocol: str
    task_id: str
    seed: int
    status: Literal["scored", "errored"]
    error: str | None = None
    success: bool = False
    database_success: bool = False
    communicated: bool = False
    outcomes: tuple[CallOutcome, ...] = Field(default=(), strict=False)
    skipped: tuple[str, ...] = Field(default=(), strict=False)
    said: str = ""
    invalid: str | None = None
    floor_tokens: int = Field(ge=0)

    @model_validator(mode="after")
    def _check_error(self) -> Trial:
        if (self.status == "errored") != (self.error is not None):
            raise ValueError("an errored trial says its error, a scored one has none")
        if self.status == "errored" and (self.success or self.database_success or self.communicated):
            raise ValueError("an errored trial is a failure")
        return self


class Row(_Record):
    """What one row of the table shows; rates and differences are proportions, tokens are means over tasks.

    ``success_rate`` and ``database_rate`` divide by the planned trials. ``compression`` is the sum of the prose's
    tokens over the sum of this row's, on the same tasks. ``floor_multiple`` is the mean message over the mean
    information floor. ``n_invalid`` and ``n_fallback`` count messages. A row that is not available has a reason and no
    figures of its own; the paper's figures, in percent as printed there, stand beside every row.
    """

    id: str
    available: bool = True
    unavailable_reason: str | None = None
    planned: int | None = None
    scored: int | None = None
    errored: int | None = None
    success_rate: float | None = None
    database_rate: float | None = None
    success_low: float | None = None
    success_high: float | None = None
    delta: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    mean_tokens: float | None = None
    compression: float | None = None
    floor_multiple: float | None = None
    identifier_recall: float | None = None
    n_invalid: int | None = None
    n_fallback: int | None = None
    paper_tsr: float | None = None
    paper_compression: float | None = None


def score_rows(
    messages: Sequence[Message],
    trials: Sequence[Trial],
    planned_task_ids: Sequence[str],
    seeds: Sequence[int],
    row_ids: Sequence[str],
    unavailable: Mapping[str, str],
    baseline: str = "natural_language",
    without_messages: Sequence[str] = ("do_nothing",),
    n_resamples: int = 10_000,
    seed: int = 0,
) -> tuple[Row, ...]:
    """Turn records into rows, in the order of ``row_ids``.

    The Holm family is the available protocols but the baseline; a row without messages (the do-nothing floor) gets its
    interval and its raw p, and is no hypothesis of the family.

    Raises:
        RecordsError: a planned trial or message is missing (resume the run), unplanned or there twice; or messages
            were counted in different tokenizers.
        StatisticsError: the outcomes cannot be compared.
    """
    by_row = _group_trials(trials, planned_task_ids, seeds, [row for row in row_ids if row not in unavailable])
    sent = _group_messages(messages, planned_task_ids, [row for row in by_row if row not in without_messages])
    outcomes = {
        row: np.array([[found[task, s].success for s in seeds] for task in planned_task_ids], dtype=float)
        for row, found in by_row.items()
    }
    differences = compare_to_baseline(outcomes, baseline, n_resamples, seed)
    adjusted = holm({row: difference.p for row, difference in differences.items() if row in sent})
    rows: list[Row] = []
    for row in row_ids:
        paper = PAPER_TABLE_2.get(row)
        beside: dict[str, Any] = {"paper_tsr": paper.tsr, "paper_compression": paper.compression} if paper else {}
        if row in unavailable:
            rows.append(Row(id=row, available=False, unavailable_reason=unavailable[row], **beside))
            continue
        own = list(by_row[row].values())
        rates = outcomes[row].mean(axis=0)
        rows.append(
            Row(
                id=row,
                planned=len(own),
                scored=sum(trial.status == "scored" for trial in own),
                errored=sum(trial.status == "errored" for trial in own),
                success_rate=float(outcomes[row].mean()),
                database_rate=fmean(trial.database_success for trial in own),
                success_low=float(rates.min()),
                success_high=float(rates.max()),
                n_invalid=len({trial.task_id for trial in own if trial.invalid is not None}),
                p_holm=adjusted.get(row),
                **_difference_columns(differences.get(row)),
                **_message_columns(sent.get(row, []), own),
                **beside,
            )
        )
    return tuple(rows)


def _difference_columns(difference: Difference | None) -> dict[str, Any]:
    if difference is None:
        return {}
    return {"delta": difference.delta, "ci_low": difference.low, "ci_high": difference.high, "p": difference.p}


def _message_columns(messages: Sequence[Message], trials: Sequence[Trial]) -> dict[str, Any]:
    if not messages:
        return {}
    tokens = sum(message.n_tokens for message in messages)
    prose_tokens = sum(message.n_prose_tokens for message in messages)
    floor = fmean({trial.task_id: trial.floor_tokens for trial in trials}.values())
    mean_tokens = tokens / len(messages)
    return {
        "mean_tokens": mean_tokens,
        "compression": prose_tokens / tokens if tokens else 1.0,
        **({"floor_multiple": mean_tokens / floor} if floor else {}),
        "identifier_recall": fmean(message.identifier_recall for message in messages),
        "n_fallback": sum(message.fallback is not None for message in messages),
    }


def _group_trials(
    trials: Sequence[Trial], task_ids: Sequence[str], seeds: Sequence[int], rows: Sequence[str]
) -> dict[str, dict[tuple[str, int], Trial]]:
    planned = {(task, seed) for task in task_ids for seed in seeds}
    by_row: dict[str, dict[tuple[str, int], Trial]] = {row: {} for row in rows}
    for trial in trials:
        name = f"{trial.protocol}, task {trial.task_id}, seed {trial.seed}"
        if trial.protocol not in by_row:
            continue  # of a row that has become unavailable: its records stay, its figures are not shown
        if (trial.task_id, trial.seed) not in planned:
            raise RecordsError(f"unplanned trial: {name}; the records are of another plan")
        if (trial.task_id, trial.seed) in by_row[trial.protocol]:
            raise RecordsError(f"trial recorded twice: {name}; remove one of its records")
        by_row[trial.protocol][trial.task_id, trial.seed] = trial
    for row, found in by_row.items():
        missing = sorted(planned - found.keys())
        if missing:
            raise RecordsError(
                f"{len(missing)} of {len(planned)} trials of {row} are missing, first task {missing[0][0]}, seed "
                f"{missing[0][1]}; resume the run to fill them"
            )
    return by_row


def _group_messages(
    messages: Sequence[Message], task_ids: Sequence[str], rows: Sequence[str]
) -> dict[str, list[Message]]:
    by_row: dict[str, dict[str, Message]] = {row: {} for row in rows}
    tokenizers = {message.tokenizer for message in messages if message.protocol in by_row}
    if len(tokenizers) > 1:
        raise RecordsError(f"messages were counted in {', '.join(sorted(tokenizers))}; compare with one tokenizer")
    for message in messages:
        name = f"{message.protocol}, task {message.task_id}"
        if message.protocol not in by_row:
            continue
        if message.task_id not in task_ids:
            raise RecordsError(f"unplanned message: {name}; the records are of another plan")
        if message.task_id in by_row[message.protocol]:
            raise RecordsError(f"message recorded twice: {name}; remove one of its records")
        by_row[message.protocol][message.task_id] = message
    for row, found in by_row.items():
        missing = [task for task in task_ids if task not in found]
        if missing:
            raise RecordsError(
                f"{len(missing)} of {len(task_ids)} messages of {row} are missing, first task {missing[0]}; resume the "
                "run to fill them"
            )
    return {row: list(found.values()) for row, found in by_row.items()}
