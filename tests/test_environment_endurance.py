"""The shop does not wear out: memory stays flat, and threads and forked processes get the verdicts of one alone."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, count, cycle, islice
from pathlib import Path
from threading import Event
from time import perf_counter

import pytest

from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data import environment as environment_module
from graphhandoff.data.environment import RetailEnvironment, Verdict, load_environment
from graphhandoff.data.retail import Task, load_tasks
from tests.plans import iter_disturbed_plans, iter_drawn_plans

TASKS = {task.id: task for task in load_tasks()}
STATM = Path("/proc/self/statm")
N_EPISODES, N_WARM_UP = 100_000, 5_000
MOST_GROWTH_MIB = 4.0
FORK = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this platform")

Plans = Sequence[tuple[Task, Sequence[ToolCall]]]


def mixed_plans(seed: int, n_plans: int) -> Plans:
    half = n_plans // 2
    return [*iter_drawn_plans(seed, half), *iter_disturbed_plans(seed, n_plans - half)]


def judge_all(seed: int, n_plans: int, prefix: str = "") -> list[Verdict]:
    """What a child process runs, with the shop that it inherited or builds; a prefix makes every task a new one."""
    shop = load_environment()
    return [
        shop.verdict(task.model_copy(update={"id": prefix + task.id}), plan, "")
        for task, plan in mixed_plans(seed, n_plans)
    ]


def resident_mib() -> float:
    gc.collect()
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def iter_ever_new_plans() -> Iterator[tuple[Task, Sequence[ToolCall]]]:
    """Yield plans without end; two in three are for a task that was never seen before, as made-up tasks are."""
    known = mixed_plans(seed=1, n_plans=3000)
    number = 0
    while True:
        for task, plan in known:
            number += 1
            fresh = task.model_copy(update={"id": f"made_up_{number}"}, deep=True) if number % 3 else task
            yield fresh, plan


@pytest.fixture
def restless_threads() -> Iterator[None]:
    """Let threads change places in the middle of an episode; by default an episode is over long before that."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.slow
@pytest.mark.skipif(not STATM.exists(), reason="reads the process's memory from /proc")
def test_memory_is_flat_over_100_000_episodes(capsys: pytest.CaptureFixture[str]) -> None:
    shop, plans = RetailEnvironment(), iter_ever_new_plans()
    before = resident_mib()
    for task, plan in islice(plans, N_WARM_UP):
        shop.verdict(task, plan, "")
    # The shop keeps the JSON of rows that a plan touched: at most once per row, so all rows belong to the warming up.
    for table in shop._tables.values():
        for key in table.rows:
            table.copy_row(key)
            table.canonical_row(key)
    warm = resident_mib()
    started = perf_counter()
    for task, plan in islice(plans, N_EPISODES - N_WARM_UP):
        shop.verdict(task, plan, "")
    passed_s = perf_counter() - started
    grown = resident_mib() - warm
    with capsys.disabled():
        print(
            f"\nmemory: {before:.1f} MiB new, {warm:.1f} MiB after {N_WARM_UP} episodes, "
            f"{grown:+.1f} MiB over the next {N_EPISODES - N_WARM_UP} ({passed_s:.0f} s)"
        )
    assert shop._database.get_hash() == load_environment()._database.get_hash()
    assert grown < MOST_GROWTH_MIB


def test_only_the_gold_replays_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment_module, "N_KEPT_GOLD_REPLAYS", 8)
    shop, gold = RetailEnvironment(), TASKS["0"].actions
    made_up = [Task(id=f"made_up_{number}", split="train", text="", actions=gold) for number in range(50)]
    for task in made_up:
        assert shop.verdict(task, gold, "").database
        assert shop.verdict(TASKS["1"], TASKS["1"].actions, "").database
    kept = shop._replay_gold.cache_info()
    assert (kept.currsize, kept.misses) == (8, 51), "a task that is asked for again and again stays"
    assert shop.verdict(made_up[0], gold, "").database, "a dropped replay is made again"
    assert not shop.verdict(made_up[0], [], "").database


def test_a_gold_replay_is_made_once_for_equal_calls(environment: RetailEnvironment) -> None:
    again = Task.model_validate_json(TASKS["2"].model_dump_json())
    environment.verdict(TASKS["2"], [], "")
    before = environment._replay_gold.cache_info().misses
    environment.verdict(again, [], "")
    environment.verdict(TASKS["2"], [], "")
    assert environment._replay_gold.cache_info().misses == before


@pytest.fixture(scope="module")
def environment() -> RetailEnvironment:
    return load_environment()


@pytest.mark.usefixtures("restless_threads")
def test_threads_share_one_shop() -> None:
    shop = RetailEnvironment()  # new, so that the threads also meet empty caches
    plans = list(chain.from_iterable(zip(*[mixed_plans(seed=5, n_plans=150)] * 4, strict=True)))  # each plan 4 times
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda pair: shop.verdict(pair[0], pair[1], ""), plans))
    assert together == [load_environment().verdict(task, plan, "") for task, plan in plans]
    assert shop._database.get_hash() == load_environment()._database.get_hash()


@pytest.mark.parametrize(
    "method", [pytest.param("fork", marks=FORK), pytest.param("spawn", marks=pytest.mark.slow)], ids=str
)
def test_child_processes_get_the_parents_verdicts_and_leave_the_parent_alone(
    environment: RetailEnvironment, method: str
) -> None:
    untouched, alone = environment._database.get_hash(), judge_all(seed=6, n_plans=60)
    with multiprocessing.get_context(method).Pool(2) as children:
        told = [children.apply_async(judge_all, (6, 60)) for _ in range(4)]
        assert judge_all(seed=6, n_plans=60) == alone, "while the children are at work"
        assert all(answer.get(timeout=120) == alone for answer in told)
    assert environment._database.get_hash() == untouched
    assert judge_all(seed=6, n_plans=60) == alone


@FORK
@pytest.mark.usefixtures("restless_threads")
def test_a_fork_in_the_middle_of_other_threads_episodes_does_not_hang(environment: RetailEnvironment) -> None:
    # A child has only the thread that forked: whatever the others hold at that moment is held for ever.
    alone, stop = judge_all(seed=6, n_plans=20), Event()
    plans, numbers = cycle(mixed_plans(seed=8, n_plans=300)), count()

    def keep_busy() -> None:
        while not stop.is_set():
            task, plan = next(plans)
            environment.verdict(task.model_copy(update={"id": f"made_up_{next(numbers)}"}), plan, "")

    with ThreadPoolExecutor(3) as pool:
        busy = [pool.submit(keep_busy) for _ in range(3)]
        try:
            for _ in range(3):
                with multiprocessing.get_context("fork").Pool(2) as children:
                    told = [children.apply_async(judge_all, (6, 20, "new_")) for _ in range(2)]
                    assert all(answer.get(timeout=60) == alone for answer in told)
        finally:
            stop.set()
    for thread in busy:
        thread.result()
