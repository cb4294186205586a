"""How many pinned trials a second the literal executor and the environment make together in one process."""

from __future__ import annotations

from time import perf_counter

import pytest

from graphhandoff.compress.contract import signatures_of
from graphhandoff.compress.literal import read_message
from graphhandoff.compress.wire import write
from graphhandoff.data.delegations import load_delegations
from graphhandoff.data.environment import RetailEnvironment
from graphhandoff.data.retail import load_split, load_tasks, load_tools

LEAST_TRIALS_A_SECOND = 300
N_ROUNDS = 10


@pytest.mark.slow
def test_at_least_300_pinned_trials_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    tasks = {task.id: task for task in load_tasks()}
    delegations = load_delegations(load_split("retail_pinned_50").task_ids)
    environment, tools = RetailEnvironment(), load_tools()
    signatures = signatures_of(tools)
    graphs = {d.task_id: d.graph for d in delegations if d.graph is not None}
    forms = {
        "compact": {task_id: write(graph, "compact", signatures) for task_id, graph in graphs.items()},
        "json": {task_id: write(graph, "json") for task_id, graph in graphs.items()},
        "prose": {d.task_id: d.prose for d in delegations},
    }
    for form, texts in forms.items():
        for task_id, text in texts.items():  # the gold replays are cached from here on
            environment.verdict(tasks[task_id], read_message(text, tools).calls, "")
        started = perf_counter()
        for _ in range(N_ROUNDS):
            for task_id, text in texts.items():
                reading = read_message(text, tools)
                environment.verdict(tasks[task_id], reading.calls, reading.said)
        rate = N_ROUNDS * len(texts) / (perf_counter() - started)
        with capsys.disabled():
            print(f"\n{form}: {rate:.0f} pinned trials a second (read, execute, judge)")
        assert rate >= LEAST_TRIALS_A_SECOND
