"""Differences are paired, clustered by task, and never quietly NaN."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from graphhandoff.eval.statistics import StatisticsError, compare_to_baseline, holm

Array = NDArray[np.float64]


def outcomes(seed: int, rate: float, n_tasks: int = 50, n_seeds: int = 1) -> Array:
    return (np.random.default_rng(seed).random((n_tasks, n_seeds)) < rate).astype(float)


def test_identical_rows_differ_by_nothing() -> None:
    base = outcomes(1, 0.4)
    assert compare_to_baseline({"nl": base, "same": base.copy()}, "nl")["same"] == (0.0, 0.0, 0.0, 1.0)


def test_interval_and_p_agree_with_scipy() -> None:
    base, row = outcomes(1, 0.3), outcomes(2, 0.55)
    ours = compare_to_baseline({"nl": base, "row": row}, "nl", n_resamples=20_000, seed=3)["row"]
    paired = (row - base).mean(axis=1)
    theirs = stats.bootstrap(
        (paired,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(4)
    ).confidence_interval
    assert ours.delta == pytest.approx(paired.mean())
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.021)
    flips = stats.permutation_test(
        (paired,), np.mean, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(5)
    )
    assert ours.p == pytest.approx(flips.pvalue, abs=0.01)


def test_pairing_matters() -> None:
    base = outcomes(1, 0.5)
    row = np.maximum(base, outcomes(2, 0.1))  # solves all that the baseline does, and a few more
    shuffled = np.random.default_rng(3).permutation(row)
    result = compare_to_baseline({"nl": base, "paired": row, "shuffled": shuffled}, "nl")
    assert result["paired"].delta == pytest.approx(result["shuffled"].delta)
    assert result["paired"].high - result["paired"].low < result["shuffled"].high - result["shuffled"].low
    assert result["paired"].p < result["shuffled"].p


def test_seeds_of_a_task_are_no_independent_evidence() -> None:
    base, row = outcomes(1, 0.3), outcomes(2, 0.5)
    once = compare_to_baseline({"nl": base, "row": row}, "nl")["row"]
    thrice = compare_to_baseline({"nl": np.tile(base, 3), "row": np.tile(row, 3)}, "nl")["row"]
    assert thrice == pytest.approx(once)


def test_the_same_seed_gives_the_same_figures_and_leaves_the_global_state_alone() -> None:
    rows = {"nl": outcomes(1, 0.3), "row": outcomes(2, 0.5)}
    np.random.seed(7)
    before = np.random.get_state()[1].copy()  # type: ignore[index,union-attr]
    assert compare_to_baseline(rows, "nl", seed=1) == compare_to_baseline(rows, "nl", seed=1)
    assert (np.random.get_state()[1] == before).all()  # type: ignore[index]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (np.full((50, 1), np.nan), "'row' holds NaN"),
        (np.full((50, 1), np.inf), "'row' holds NaN or infinity"),
        (np.zeros((49, 1)), r"'row' has shape \(49, 1\)"),
        (np.zeros(50), "'row' has shape"),
    ],
)
def test_what_cannot_be_compared_is_named(row: Array, says: str) -> None:
    with pytest.raises(StatisticsError, match=says):
        compare_to_baseline({"nl": outcomes(1, 0.3), "row": row}, "nl")
    with pytest.raises(StatisticsError, match="no outcomes of the baseline 'prose'"):
        compare_to_baseline({"nl": outcomes(1, 0.3)}, "prose")


def test_all_rows_take_under_two_seconds() -> None:
    rows = {f"row{i}": outcomes(i, 0.3, n_seeds=3) for i in range(9)}
    start = time.perf_counter()
    compare_to_baseline(rows, "row0", n_resamples=10_000)
    assert time.perf_counter() - start < 2


def test_holm_by_hand() -> None:
    # sorted 0.01 0.03 0.04: times 3, 2, 1, then never falling
    assert holm({"a": 0.04, "b": 0.01, "c": 0.03}) == pytest.approx({"a": 0.06, "b": 0.03, "c": 0.06})
    assert holm({}) == {}


def test_holm_refuses_nan_by_name() -> None:
    with pytest.raises(StatisticsError, match="'b' has p = nan"):
        holm({"a": 0.01, "b": float("nan")})
