"""How much faster plans are tried here than by reloading, replaying and hashing with the official tools."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from uuid import uuid4

import pytest

from graphhandoff.data.environment import STATELESS_TOOLS, RetailEnvironment
from graphhandoff.data.retail import Task, load_split, load_tasks

LEAST_SPEEDUP = 200.0
N_ROUNDS = 20


def judge_officially(task: Task) -> str:
    """One trial as the official scorer reckons it, with one reload and one hash where it spends two of each."""
    from inspect_ai.tool import ToolError
    from inspect_evals.tau2.retail.RetailAgentTools import RetailAgentTools

    tools = RetailAgentTools(instance=str(uuid4()))
    tools.initialize()
    for call in task.actions:
        if call.name not in STATELESS_TOOLS:
            with suppress(ToolError):
                getattr(tools, call.name)(**call.arguments)
    digest: str = tools.db.get_hash()
    return digest


@pytest.mark.slow
def test_gold_replays_are_judged_at_least_200_times_faster_than_officially(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The official loader leaves an unpacked database in the temporary folder at every reload.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pinned = set(load_split("retail_pinned_50").task_ids)
    tasks = [task for task in load_tasks() if task.id in pinned]

    started = perf_counter()
    environment = RetailEnvironment()
    build_s = perf_counter() - started
    said = {task.id: "\n".join(task.facts) for task in tasks}
    judge_officially(tasks[0])
    for task in tasks:
        environment.verdict(task, task.actions, said[task.id])

    started = perf_counter()
    for task in tasks:
        judge_officially(task)
    official_s = (perf_counter() - started) / len(tasks)

    started = perf_counter()
    for _ in range(N_ROUNDS):
        for task in tasks:
            assert environment.verdict(task, task.actions, said[task.id]).success
    ours_s = (perf_counter() - started) / (N_ROUNDS * len(tasks))

    with capsys.disabled():
        print(
            f"\ngold replays with verdict of the pinned 50: ours {1 / ours_s:.0f}/s ({1e3 * ours_s:.3f} ms each, "
            f"built in {build_s:.2f} s), official {1 / official_s:.1f}/s ({1e3 * official_s:.0f} ms each), "
            f"ratio {official_s / ours_s:.0f}"
        )
    assert official_s / ours_s >= LEAST_SPEEDUP
