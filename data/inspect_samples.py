"""Reads the samples of an Inspect log one at a time: where each kept the agent's conversation, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from graphhandoff.data.message_log import INSPECT, Conversation, read_messages
from graphhandoff.data.untrusted import shorten

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample

_STORE = "StoredAgentState:"
"""Prefix under which the tau2 evaluation stores the agent's side of a conversation."""

_VERDICTS: Mapping[str, bool] = {"C": True, "I": False, "P": False, "N": False}


class SampleRecord(NamedTuple):
    """One sample of a log, as plain values; ``scenario`` is the task's own where the sample's metadata hold it."""

    task_id: str
    epoch: int
    scenario: Mapping[str, Any]
    conversation: Conversation
    success: bool | None
    oddities: tuple[str, ...]


def read_samples(path: Path, log_format: Literal["eval", "json"]) -> Iterator[SampleRecord]:
    """Open an Inspect log and read its samples when they are asked for.

    Args:
        path: the log.
        log_format: how it is written; samples of ``eval`` are read one at a time, ``json`` only as a whole.

    Returns:
        One record per planned sample and epoch; those that the log does not hold, or holds damaged, are empty.

    Raises:
        Exception: whatever Inspect raises on a log that it cannot open.
    """
    from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries

    log = read_eval_log(
        str(path), header_only=log_format == "eval", format=log_format, resolve_attachments=log_format == "json"
    )
    planned = [
        (sample_id, epoch)
        for sample_id in log.eval.dataset.sample_ids or ()
        for epoch in range(1, (log.eval.config.epochs or 1) + 1)
    ]
    if log_format == "json":
        held = {(sample.id, sample.epoch): sample for sample in log.samples or ()}
        return (_read_record(key, held.get(key)) for key in dict.fromkeys([*planned, *held]))
    summaries = read_eval_log_sample_summaries(str(path), format="eval")
    keys = dict.fromkeys([*planned, *((summary.id, summary.epoch) for summary in summaries)])
    return (_load_record(path, key) for key in keys)


def _load_record(path: Path, key: tuple[str | int, int]) -> SampleRecord:
    from inspect_ai.log import read_eval_log_sample

    try:
        # Events are most of a log and repeat what the messages say.
        sample = read_eval_log_sample(
            str(path), *key, resolve_attachments=True, format="eval", exclude_fields={"events"}
        )
    except IndexError:
        sample = None
    except Exception as error:
        return _empty_record(key, f"the sample cannot be read ({type(error).__name__}: {shorten(str(error))})")
    return _read_record(key, sample)


def _empty_record(key: tuple[str | int, int], oddity: str) -> SampleRecord:
    return SampleRecord(str(key[0]), key[1], {}, Conversation((), (), (), ()), None, (oddity,))


def _read_record(key: tuple[str | int, int], sample: EvalSample | None) -> SampleRecord:
    if sample is None:
        return _empty_record(key, "the log holds no record of this sample: its run was cut short")
    oddities = []
    if sample.error is not None:
        oddities.append(f"the sample ended with an error: {shorten(sample.error.message)}")
    if sample.limit is not None:
        oddities.append(f"the sample was ended by its {sample.limit.type} limit")
    conversation, oddity = _read_conversation(sample)
    success, unread = _read_scores(sample)
    oddities += [text for text in (oddity, unread) if text is not None]
    task = sample.metadata.get("task")
    scenario = task.get("user_scenario") if isinstance(task, Mapping) else None
    return SampleRecord(
        task_id=str(sample.id),
        epoch=sample.epoch,
        scenario=scenario if isinstance(scenario, Mapping) else {},
        conversation=conversation,
        success=success,
        oddities=tuple(oddities),
    )


def _read_conversation(sample: EvalSample) -> tuple[Conversation, str | None]:
    stored = sorted(key for key in sample.store if key.startswith(_STORE) and key.endswith(":messages"))
    if stored:
        extra = f"the store holds several agents; read {stored[0]}, not {', '.join(stored[1:])}" if stored[1:] else None
        return read_messages(sample.store[stored[0]], INSPECT), extra
    messages = [message.model_dump() for message in sample.messages]
    if "instance" not in sample.metadata:
        return read_messages(messages, INSPECT), None
    # The messages are the simulated customer's, in which the roles are swapped: calls there are not the agent's.
    swapped = {"user": "assistant", "assistant": "user"}
    n_prompts = 1 if isinstance(sample.input, str) else len(sample.input)
    told = [{"role": swapped.get(m["role"], "system"), "content": m["content"]} for m in messages[n_prompts:]]
    return read_messages(told, INSPECT), f"the store holds no {_STORE}*:messages, so the agent's calls are lost"


def _read_scores(sample: EvalSample) -> tuple[bool | None, str | None]:
    """Tell whether every score of a sample is full marks; None if it has none or one cannot be judged."""
    verdicts = []
    for name, score in (sample.scores or {}).items():
        value = score.value
        verdict = _VERDICTS.get(value) if isinstance(value, str) else None
        if isinstance(value, bool | int | float):
            verdict = value >= 1
        if verdict is None:
            return None, f"the score {name} is neither a mark nor a number: {shorten(value)}"
        verdicts.append(verdict)
    return (all(verdicts) if verdicts else None), None
