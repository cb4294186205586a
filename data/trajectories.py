"""What agents did on the benchmark's tasks, read from the result files of the harnesses that ran them.

Three layouts are read: logs of Inspect AI, result files of tau-bench, and result files of tau2-bench. Every sample,
trial or simulation of a file becomes one trajectory, also one that was cut short, failed or cannot be read; what was
odd about it is kept beside it. What can be learned from a trajectory is :mod:`graphhandoff.data.label`'s to say.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from graphhandoff.data.environment import RetailEnvironment
from graphhandoff.data.inspect_samples import SampleRecord, read_samples
from graphhandoff.data.message_log import OPENAI, TAU2, Conversation, Step, read_messages
from graphhandoff.data.retail import write_customer_text
from graphhandoff.data.untrusted import read_text, shorten

TrajectoryFormat = Literal["inspect", "tau_bench", "tau2_bench"]


class UnreadableTrajectoriesError(ValueError):
    """A file holds no trajectories that could be read: it is missing, cut off, or in no known layout."""


class Trajectory(BaseModel):
    """What one agent did on one task, as its harness recorded it.

    ``source`` names the layout and the file, ``trial`` which of several runs of the task this is. A task id is the
    source's own: tau-bench numbers other tasks than tau2-bench does. ``task_text`` is what the customer was told to
    want, or, where the source does not hold that, what the customer said. ``said`` is what the customer was told.
    ``success`` is the source's own verdict, None where it has none. ``oddities`` tells what was missing, damaged or
    mended, steps being numbered from 1.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    source: str
    task_id: str
    trial: str = ""
    task_text: str = ""
    steps: tuple[Step, ...] = Field(default=(), strict=False)
    said: tuple[str, ...] = Field(default=(), strict=False)
    success: bool | None = None
    oddities: tuple[str, ...] = Field(default=(), strict=False)


def read_trajectories(path: str | Path) -> Iterator[Trajectory]:
    """Read the trajectories of a file in whichever of the known layouts it is.

    Args:
        path: an Inspect log (``.eval`` or ``.json``), or a result file of tau-bench or tau2-bench.

    Returns:
        The trajectories in the order of the file; those of an ``.eval`` log are read one at a time.

    Raises:
        UnreadableTrajectoriesError: the file is missing, is no JSON, or has another layout.
    """
    if find_format(path) == "inspect":
        return read_inspect_log(path)
    return read_tau_bench_results(path)


def find_format(path: str | Path) -> TrajectoryFormat:
    """Tell by its content which layout a file has; its name does not matter.

    Raises:
        UnreadableTrajectoriesError: the file is missing, is no JSON, or has another layout.
    """
    return "inspect" if _is_zip(Path(path)) else _format_of(_load_json(Path(path)), Path(path))


def read_inspect_log(path: str | Path) -> Iterator[Trajectory]:
    """Read the samples of an Inspect log, of the tau2 evaluation or of any other that calls the same tools.

    The tau2 evaluation keeps the agent's conversation in the sample's store; the sample's own messages are those of
    the simulated customer, in which the agent has the role of the user. Other evaluations keep it in the messages.

    Args:
        path: the log, ``.eval`` or ``.json``; one of a killed or failed run too.

    Returns:
        One trajectory per sample and epoch; those that were planned and never finished have no steps.

    Raises:
        UnreadableTrajectoriesError: the file is missing or is no Inspect log.
    """
    path = Path(path)
    log_format: Literal["eval", "json"] = "eval" if _is_zip(path) else "json"
    if log_format == "json":
        found = _format_of(_load_json(path), path)
        if found != "inspect":
            raise UnreadableTrajectoriesError(f"{path} is no Inspect log but has the layout {found}; {_READERS}")
    try:
        records = read_samples(path, log_format)
    except Exception as error:
        raise UnreadableTrajectoriesError(
            f"{path} cannot be read as an Inspect log ({type(error).__name__}: {error}); "
            "recover it with `inspect log recover`, or run the evaluation again"
        ) from error
    return (_read_sample(record, f"inspect:{path.name}") for record in records)


def read_tau_bench_results(path: str | Path) -> Iterator[Trajectory]:
    """Read a result file of tau-bench (a list of trials) or of tau2-bench (an object with ``simulations``).

    Returns:
        One trajectory per trial or simulation, in the order of the file.

    Raises:
        UnreadableTrajectoriesError: the file is missing, is no JSON, or has another layout.
    """
    path = Path(path)
    content = {} if _is_zip(path) else _load_json(path)
    found = "inspect" if _is_zip(path) else _format_of(content, path)
    if found == "inspect":
        raise UnreadableTrajectoriesError(f"{path} is an Inspect log, no result file of tau-bench; {_READERS}")
    if found == "tau_bench":
        return (_read_trial(entry, f"tau_bench:{path.name}") for entry in content)
    tasks = {str(task.get("id")): task for task in _list(content.get("tasks")) if isinstance(task, Mapping)}
    return (_read_simulation(entry, f"tau2_bench:{path.name}", tasks) for entry in content["simulations"])


def reexecute(trajectory: Trajectory, environment: RetailEnvironment) -> Trajectory:
    """Carry the calls of a trajectory out, to fill in what its source does not hold.

    Args:
        trajectory: any; calls that could not be read are left as they are and not carried out.
        environment: the shop, whose database must be the one the calls were made on.

    Returns:
        The trajectory with every missing observation and ``ok`` filled in. What was recorded is kept as it is; where
        the shop answers otherwise, ``oddities`` tells both.
    """
    places = [i for i, step in enumerate(trajectory.steps) if step.fault is None]
    outcomes = environment.run([trajectory.steps[i].call for i in places]).outcomes
    steps, oddities = list(trajectory.steps), list(trajectory.oddities)
    for i, outcome in zip(places, outcomes, strict=True):
        step = steps[i]
        both_answer = step.observation is not None and not step.refused and outcome.ok
        if step.refused not in (None, not outcome.ok) or (
            both_answer and not _says_the_same(step.observation or "", outcome.text)
        ):
            recorded = ("refused: " if step.refused else "") + shorten(step.observation)
            answered = ("" if outcome.ok else "refused: ") + shorten(outcome.text)
            oddities.append(f"step {i + 1} ({step.call.name}): recorded {recorded}, carried out {answered}")
        # A verdict is filled in only where the record does not already imply one.
        ok = outcome.ok if step.refused is None else not step.refused
        observation = outcome.text if step.observation is None else step.observation
        steps[i] = step.model_copy(update={"observation": observation, "ok": ok})
    return trajectory.model_copy(update={"steps": tuple(steps), "oddities": tuple(dict.fromkeys(oddities))})


_READERS = "read_trajectories() finds the layout by itself"
_LAYOUTS = (
    "an Inspect log (.eval, or .json with 'eval'), a tau-bench result file (a list of objects with 'traj'), "
    "a tau2-bench result file (an object with 'simulations')"
)


def _is_zip(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError as error:
        raise UnreadableTrajectoriesError(f"{path} cannot be read: {error}; give the path of {_LAYOUTS}") from error


def _load_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableTrajectoriesError(
            f"{path} is no whole JSON ({error}); allowed: {_LAYOUTS}. If its run was killed, cut the file after its "
            "last whole entry"
        ) from error


def _format_of(content: Any, path: Path) -> TrajectoryFormat:
    if isinstance(content, list) and (not content or any(isinstance(e, Mapping) and "traj" in e for e in content)):
        return "tau_bench"
    if isinstance(content, Mapping):
        if isinstance(content.get("simulations"), list):
            return "tau2_bench"
        if isinstance(content.get("eval"), Mapping):
            return "inspect"
    keys = sorted(map(str, content))[:8] if isinstance(content, Mapping) else type(content).__name__
    raise UnreadableTrajectoriesError(f"{path} has no known layout: got {keys}, allowed: {_LAYOUTS}")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _build(
    source: str,
    task_id: Any,
    trial: Any,
    task_text: str,
    conversation: Conversation,
    success: bool | None,
    *oddities: str,
) -> Trajectory:
    named = isinstance(task_id, str | int)
    return Trajectory(
        source=source,
        task_id=read_text(str(task_id))[0] if named else "",
        trial=read_text(str(trial))[0] if isinstance(trial, str | int) else "",
        task_text=read_text(task_text or "\n".join(conversation.heard))[0],
        steps=conversation.steps,
        said=conversation.said,
        success=success,
        oddities=(*(() if named else (f"the task has no id: {shorten(task_id)}",)), *oddities, *conversation.oddities),
    )


def _read_reward(reward: Any) -> bool | None:
    is_number = isinstance(reward, int | float) and math.isfinite(reward)
    return bool(reward >= 1 - 1e-6) if is_number else None


def _read_trial(entry: Any, source: str) -> Trajectory:
    fields, info = _mapping(entry), _mapping(_mapping(entry).get("info"))
    instruction = _mapping(info.get("task")).get("instruction")
    oddities = [] if isinstance(entry, Mapping) else [f"the trial is no object but {shorten(entry)}"]
    if info.get("error"):
        oddities.append(f"the run ended with an error: {shorten(info['error'])}")
    return _build(
        source,
        fields.get("task_id"),
        fields.get("trial"),
        instruction if isinstance(instruction, str) else "",
        read_messages(fields.get("traj"), OPENAI),
        _read_reward(fields.get("reward")),
        *oddities,
    )


def _read_simulation(entry: Any, source: str, tasks: Mapping[str, Any]) -> Trajectory:
    fields = _mapping(entry)
    task = _mapping(tasks.get(str(fields.get("task_id"))))
    oddities = [] if isinstance(entry, Mapping) else [f"the simulation is no object but {shorten(entry)}"]
    reason = fields.get("termination_reason")
    if isinstance(reason, str) and not reason.endswith("_stop"):
        oddities.append(f"the simulation ended early: {shorten(reason)}")
    return _build(
        source,
        fields.get("task_id"),
        fields.get("trial"),
        write_customer_text(_mapping(task.get("user_scenario"))),
        read_messages(fields.get("messages"), TAU2),
        _read_reward(_mapping(fields.get("reward_info")).get("reward")),
        *oddities,
    )


def _read_sample(record: SampleRecord, source: str) -> Trajectory:
    return _build(
        source,
        record.task_id,
        record.epoch,
        write_customer_text(record.scenario),
        record.conversation,
        record.success,
        *record.oddities,
    )


def _says_the_same(recorded: str, answered: str) -> bool:
    """Compare two observations by what they say: layout, the order of keys, nulls and rounding do not count."""
    try:
        return recorded == answered or _is_close(json.loads(recorded), json.loads(answered))
    except (ValueError, RecursionError):
        return recorded.strip() == answered.strip()


def _is_close(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        # One harness writes optional fields as null where another leaves them out.
        left, right = ({k: v for k, v in d.items() if v is not None} for d in (one, other))
        return left.keys() == right.keys() and all(_is_close(left[key], right[key]) for key in left)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_close, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6)
    return bool(one == other)
