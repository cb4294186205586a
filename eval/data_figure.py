"""Draws what the plans of a data set are made of beside the benchmark's real ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphhandoff.data.distributions import DIMENSIONS, Counts, total_variation, values_in_order

if TYPE_CHECKING:
    from collections import Counter

_COLOURS = ("#1b6ca8", "#9aa5b1", "#e08e2b")
_MOST_BARS = 24
_SHORTER = (
    ("_details", ""),
    ("_pending_order", ""),
    ("_delivered_order_items", ""),
    ("find_user_id_by_", "find by "),
    ("name_zip", "name and zip"),
    ("_", " "),
)


def draw_distributions(counts: Mapping[str, Counts], title: str, path: Path) -> None:
    """Draw a chart of every dimension, a bar for every set, and write it as PNG.

    Args:
        counts: by the sets' names; the first is compared with each of the others.
        title: of the figure.
        path: where to write it, whole or not at all.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(17, 14), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=15)
    for axes, dimension in zip(figure.subplots(3, 3).flat, DIMENSIONS, strict=True):
        _draw(axes, dimension, {name: count[dimension] for name, count in counts.items()})
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(counts), fontsize=11, frameon=False)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    figure.savefig(temporary, format="png", dpi=110)
    os.replace(temporary, path)


def _draw(axes: Any, dimension: str, counters: Mapping[str, Counter[str]]) -> None:
    values = values_in_order(*counters.values())[:_MOST_BARS]
    sideways = not all(value.isdigit() for value in values)
    width = 0.8 / len(counters)
    draw = axes.barh if sideways else axes.bar
    for number, (name, counter) in enumerate(counters.items()):
        shares = [100 * counter[value] / max(counter.total(), 1) for value in values]
        places = [place + (number - (len(counters) - 1) / 2) * width for place in range(len(values))]
        draw(places, shares, width, label=name, color=_COLOURS[number % len(_COLOURS)])
    first, *others = counters.values()
    names = list(counters)[1:]
    far = ", ".join(f"{total_variation(first, other):.2f} to {name}" for name, other in zip(names, others, strict=True))
    axes.set_title(f"{DIMENSIONS[dimension].title}\ntotal variation {far}", fontsize=10)
    labels = [_shorten(value) for value in values]
    if sideways:
        axes.set_yticks(range(len(values)), labels, fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel(f"{DIMENSIONS[dimension].unit}, %", fontsize=9)
    else:
        axes.set_xticks(range(len(values)), labels, fontsize=8)
        axes.set_xlabel(DIMENSIONS[dimension].title.lower(), fontsize=9)
        axes.set_ylabel(f"{DIMENSIONS[dimension].unit}, %", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def _shorten(value: str) -> str:
    for long, short in _SHORTER:
        value = value.replace(long, short)
    return value
