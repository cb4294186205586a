"""The comparison, in the order it happens: delegations, messages, trials, rows, table.

``compare`` is the path to read first. Every stage takes frozen records and leaves its own as JSON lines in the run
directory; what is recorded there is not done again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from graphhandoff.compress.literal import read_message
from graphhandoff.compress.protocol import CheckpointMissingError, Message, Protocol, ToolSpec
from graphhandoff.compress.tokens import DEFAULT_TOKENIZER, count_tokens
from graphhandoff.configs.provenance import collect_provenance
from graphhandoff.configs.run_directory import RunDirectory, RunDirectoryError
from graphhandoff.configs.wandb import WandbConfig
from graphhandoff.data.delegations import load_delegations
from graphhandoff.data.environment import RetailEnvironment, load_environment
from graphhandoff.data.retail import Task, data_hashes, load_split, load_tasks, load_tools
from graphhandoff.eval.protocols import ProtocolsConfig, build_protocol
from graphhandoff.eval.report import ComparisonTable, write_table
from graphhandoff.eval.score import CallOutcome, Trial, score_rows

DO_NOTHING = "do_nothing"
BASELINE = "natural_language"


class CompareConfig(BaseModel):
    """A comparison. ``seed`` is that of the resampling; ``seeds`` are those of the trials."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    seed: int
    track: Literal["plan"] = "plan"
    split: str = "retail_pinned_50"
    seeds: tuple[int, ...] = Field(default=(0,), strict=False, min_length=1)
    tokenizer: str = DEFAULT_TOKENIZER
    n_resamples: int = Field(default=10_000, ge=100)
    protocols: ProtocolsConfig
    wandb: WandbConfig = WandbConfig()
    runs_directory: str = "runs"

    @model_validator(mode="after")
    def _check_together(self) -> CompareConfig:
        if self.protocols.natural_language is None:
            raise ValueError("protocols.natural_language is missing; every row is compared with it, so add it: {}")
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds {list(self.seeds)} repeat; name each once")
        return self

    def resolved(self) -> dict[str, Any]:
        """Return what decides the records and the table: everything but where they lie and who is told."""
        return self.model_dump(mode="json", exclude={"name", "runs_directory", "wandb"})


class OtherWeightsError(RunDirectoryError):
    """Recorded messages were written with other weights than the protocol has now."""


Progress = Callable[[str, int, int], None]
"""Called with the row, how many of its trials are done, and how many are planned."""


def compare(config: CompareConfig, progress: Progress | None = None) -> tuple[ComparisonTable, RunDirectory]:
    """Run or resume a comparison and write its table.

    Args:
        config: checked configuration.
        progress: called after every trial.

    Returns:
        The table and the (closed) run directory, whose ``notices`` tell what a user should know.

    Raises:
        RunDirectoryError: the directory is busy, of another configuration, or holds corrupt records.
        ValueError: subclasses name a missing split, tokenizer, delegation or changed benchmark data.
    """
    split = load_split(config.split)
    delegations = load_delegations(split.task_ids)
    tasks = {task.id: task for task in load_tasks() if task.id in set(split.task_ids)}
    tools = load_tools()
    environment = load_environment()
    floors = {task.id: count_tokens(write_floor(task), config.tokenizer) for task in tasks.values()}
    path = Path(config.runs_directory) / config.name
    with RunDirectory(path, config.resolved(), collect_provenance(data_hashes())) as run:
        messages = {(m.protocol, m.task_id): m for m in run.read_records("messages", Message)}
        trials = {(t.protocol, t.task_id, t.seed): t for t in run.read_records("trials", Trial)}
        unavailable: dict[str, str] = {}
        rows = config.protocols.iter_rows()
        for row, settings in (*rows.items(), (DO_NOTHING, None)):
            protocol: Protocol | None = None
            if settings is not None:
                try:
                    protocol = build_protocol(row, settings, config.tokenizer, split)
                    _check_weights(row, protocol, [m for (name, _), m in messages.items() if name == row], path)
                    missing = [d for d in delegations if (row, d.task_id) not in messages]
                    for message in protocol.encode(missing):
                        messages[row, message.task_id] = message
                        run.append("messages", message)
                except CheckpointMissingError as error:
                    unavailable[row] = str(error)
                    continue
            for done, (task_id, seed) in enumerate(((t, s) for t in split.task_ids for s in config.seeds), start=1):
                if (row, task_id, seed) not in trials:
                    message_or_none = messages[row, task_id] if protocol is not None else None
                    trial = run_trial(
                        row, tasks[task_id], seed, message_or_none, protocol, tools, environment, floors[task_id]
                    )
                    trials[row, task_id, seed] = trial
                    run.append("trials", trial)
                if progress is not None:
                    progress(row, done, len(split.task_ids) * len(config.seeds))
        table = build_table(
            config, split.task_ids, list(messages.values()), list(trials.values()), unavailable, run.provenance
        )
        write_table(table, run.path)
    if config.wandb.mode != "off":
        from graphhandoff.eval.wandb_log import log_comparison

        run.notices.extend(log_comparison(config, table, run.path))
    return table, run


def _check_weights(row: str, protocol: Protocol, recorded: Sequence[Message], path: Path) -> None:
    """Refuse to go on with messages that other weights wrote, though the configuration names the same place."""
    now = protocol.fingerprint
    for message in recorded:
        weights, commit = message.details.get("weights_sha256"), message.details.get("commit")
        then = f"sha256:{weights}" if weights else f"commit:{commit}" if commit else None
        if now is not None and then is not None and now != then:
            raise OtherWeightsError(
                f"{path} holds messages of {row} written with the weights {then}, which are now {now}. Resume with the "
                "weights of then, or choose another name with --set name=…"
            )


def write_floor(task: Task) -> str:
    """Write the information floor of a task: its full gold plan as ``tool value …`` lines."""

    def plain(value: Any) -> str:
        return " ".join(map(plain, value)) if isinstance(value, list) else str(value)

    return "\n".join(" ".join([call.name, *map(plain, call.arguments.values())]) for call in task.actions)


def run_trial(
    row: str,
    task: Task,
    seed: int,
    message: Message | None,
    protocol: Protocol | None,
    tools: Sequence[ToolSpec],
    environment: RetailEnvironment,
    floor_tokens: int,
) -> Trial:
    """Execute one message literally and judge the result; without a message nothing is done or said.

    What goes wrong in a trial is data: the trial is recorded as errored and counts as a failure.
    """
    facts: dict[str, Any] = {"protocol": row, "task_id": task.id, "seed": seed, "floor_tokens": floor_tokens}
    try:
        if message is None or protocol is None:
            verdict = environment.verdict(task, (), "")
            return Trial(
                **facts,
                status="scored",
                success=verdict.success,
                database_success=verdict.database,
                communicated=verdict.communicated,
            )
        text = message.text if message.route == "natural_language" else protocol.decode(message.text)
        reading = read_message(text, tools)
        verdict = environment.verdict(task, reading.calls, reading.said)
        outcomes = [
            CallOutcome(call=outcome.call, ok=outcome.ok, error=None if outcome.ok else outcome.text)
            for outcome in verdict.episode.outcomes
        ]
        return Trial(
            **facts,
            status="scored",
            success=verdict.success,
            database_success=verdict.database,
            communicated=verdict.communicated,
            outcomes=tuple(outcomes),
            skipped=reading.skipped,
            said=reading.said,
            invalid=reading.problem,
        )
    except Exception as error:
        return Trial(**facts, status="errored", error=f"{type(error).__name__}: {error}")


def describe_models(messages: Sequence[Message]) -> dict[str, str]:
    """Say by row which model wrote its messages, with which setting, and how much of the plan was put back by rule."""
    models: dict[str, str] = {}
    for row in dict.fromkeys(message.protocol for message in messages):
        written = [message for message in messages if message.protocol == row and "model" in message.details]
        if not written:
            continue
        details = written[0].details
        which = details.get("weights_sha256") or details.get("commit") or "unknown"
        setting = "threshold" if details.get("rate_asked") is None else "rate_asked"
        restored = [int(str(message.details.get("identifiers_restored", 0))) for message in written]
        models[row] = (
            f"{details['model']} ({str(which)[:8]}, {setting.removesuffix('_asked')} {details.get(setting)}; of "
            f"{sum(m.n_identifiers for m in written) / len(written):.1f} identifiers and facts a message "
            f"{sum(restored) / len(written):.1f} were put back by rule)"
        )
    return models


def build_table(
    config: CompareConfig,
    task_ids: Sequence[str],
    messages: Sequence[Message],
    trials: Sequence[Trial],
    unavailable: dict[str, str],
    provenance: dict[str, Any],
) -> ComparisonTable:
    """Build the table from records alone."""
    rows = score_rows(
        messages=messages,
        trials=trials,
        planned_task_ids=task_ids,
        seeds=config.seeds,
        row_ids=(*config.protocols.iter_rows(), DO_NOTHING),
        unavailable=unavailable,
        baseline=BASELINE,
        n_resamples=config.n_resamples,
        seed=config.seed,
    )
    return ComparisonTable(
        name=config.name,
        track=config.track,
        benchmark=(
            f"tau2-retail, Inspect port (inspect-evals {provenance['packages']['inspect-evals']}), "
            "database + communicated info"
        ),
        data=provenance["data"],
        tokenizer=config.tokenizer,
        models=describe_models(messages),
        split=config.split,
        seeds=config.seeds,
        commit=provenance["commit"],
        n_resamples=config.n_resamples,
        rows=rows,
    )
