"""Differences to a baseline: paired, clustered by task, deterministic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95


class StatisticsError(ValueError):
    """The outcomes cannot be compared; says which row and why."""


class Difference(NamedTuple):
    """Mean difference to the baseline as a proportion (-1 to 1), its 95% interval, and a two-sided p."""

    delta: float
    low: float
    high: float
    p: float


def compare_to_baseline(
    successes: Mapping[str, NDArray[Any]], baseline: str, n_resamples: int = 10_000, seed: int = 0
) -> dict[str, Difference]:
    """Compare every row with the baseline.

    Trials are paired by task and seed. The seeds of a task are not independent, so tasks are what is resampled: the
    interval is the percentile interval of a bootstrap over tasks (the same resamples for every row), and p comes from
    flipping the sign of whole tasks' differences at random, a test of "the format makes no difference" that, unlike a p
    read off the bootstrap, stays valid for few discordant tasks.

    Args:
        successes: row id to outcomes of shape (n_tasks, n_seeds), 0 or 1, tasks and seeds in the same order.
        baseline: the row compared with.
        n_resamples: bootstrap resamples and sign flips.
        seed: of the generator; the global random state is not touched.

    Returns:
        A difference for every row but the baseline. Identical rows give exactly 0, [0, 0] and p = 1.

    Raises:
        StatisticsError: unknown baseline, another shape, or a NaN; names the row.
    """
    if baseline not in successes:
        raise StatisticsError(f"no outcomes of the baseline {baseline!r}; rows: {', '.join(successes)}")
    reference = np.asarray(successes[baseline], dtype=float)
    if n_resamples < 1:
        raise StatisticsError(f"n_resamples must be at least 1, got {n_resamples}; 10,000 is usual")
    names = [name for name in successes if name != baseline]
    differences = []
    for name in successes:
        values = np.asarray(successes[name], dtype=float)
        if values.ndim != 2 or values.shape != reference.shape or not values.size:
            raise StatisticsError(
                f"row {name!r} has shape {values.shape}, the baseline {reference.shape} (tasks, seeds)"
            )
        if not np.isfinite(values).all():
            raise StatisticsError(f"row {name!r} holds NaN or infinity; an errored trial is a failure, so write 0")
        if name != baseline:
            differences.append((values - reference).mean(axis=1))
    if not names:
        return {}
    by_task = np.stack(differences)  # (rows, tasks)
    n_tasks = by_task.shape[1]
    rng = np.random.default_rng(seed)
    # How often each task is drawn in each resample; a matrix product then gives all resampled means at once.
    draws = rng.multinomial(n_tasks, np.full(n_tasks, 1 / n_tasks), size=n_resamples)  # (resamples, tasks)
    resampled = by_task @ draws.T / n_tasks  # (rows, resamples)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail], axis=1)
    signs = rng.choice(np.array([-1.0, 1.0]), size=(n_resamples, n_tasks))
    flipped = by_task @ signs.T / n_tasks
    observed = by_task.mean(axis=1)
    at_least = (np.abs(flipped) >= np.abs(observed)[:, None] - 1e-12).sum(axis=1)
    p = (at_least + 1) / (n_resamples + 1)
    return {
        name: Difference(float(observed[i]), float(low[i]), float(high[i]), float(p[i]))
        if by_task[i].any()
        else Difference(0.0, 0.0, 0.0, 1.0)
        for i, name in enumerate(names)
    }


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjust a family of p-values by Holm-Bonferroni.

    Raises:
        StatisticsError: a p-value is NaN (it would turn all of them to NaN) or outside 0 to 1; names the row.
    """
    from statsmodels.stats.multitest import multipletests

    for name, p in p_values.items():
        if not 0 <= p <= 1:
            raise StatisticsError(f"row {name!r} has p = {p}; leave it out of the family or recompute it")
    if not p_values:
        return {}
    adjusted = multipletests(list(p_values.values()), method="holm")[1]
    return dict(zip(p_values, map(float, adjusted), strict=True))
