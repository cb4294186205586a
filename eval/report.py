"""The comparison table: one set of cells for Markdown, the terminal and CSV, and everything behind it as JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from graphhandoff.configs.files import write_atomically
from graphhandoff.eval.score import Row

if TYPE_CHECKING:
    from rich.table import Table

NOTHING = "–"
_GAP = 3  # what rich puts around and between two columns of this box


class ComparisonTable(BaseModel):
    """A table and what it was made of; built from records, never edited.

    ``benchmark`` and ``data`` name the source and its hashes, ``models`` the model that wrote each
    row's messages, where there is one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    track: Literal["plan", "model"]
    benchmark: str
    data: dict[str, str]
    tokenizer: str
    models: dict[str, str]
    split: str
    seeds: tuple[int, ...] = Field(strict=False)
    commit: str | None
    n_resamples: int
    rows: tuple[Row, ...] = Field(strict=False)

    @property
    def success_name(self) -> str:
        """What the main column is called on this track."""
        return "plan fidelity" if self.track == "plan" else "TSR"

    def caption(self) -> str:
        """Say in one paragraph what the figures are."""
        family = sum(row.p_holm is not None for row in self.rows)
        models = "; ".join(
            ["none to execute (literal executor)", *(f"{role} {model}" for role, model in self.models.items())]
        )
        hashes = ", ".join(f"{name} {digest[:8]}" for name, digest in self.data.items())
        return (
            f"{self.track} track, split {self.split}, seeds {', '.join(map(str, self.seeds))}. "
            f"{self.benchmark} ({hashes}). Models: {models}. Tokens: {self.tokenizer}. "
            "Δ to natural_language in points with 95% interval: "
            f"{self.n_resamples:,} paired bootstrap resamples clustered by task; p by sign flips of tasks, "
            f"Holm-Bonferroni over {family} rows. {self.success_name}: database equal to the gold replay and facts "
            f"communicated, of all planned trials. Columns headed 'paper' are of arXiv 2608.25277, Table 2, on other "
            f"executors. Commit {self.commit or 'unknown'}."
        )

    def headers(self) -> list[str]:
        """Return the column headers, ``row`` first."""
        return ["row", *(column.header(self) for column in _COLUMNS)]

    def cells(self, row: Row) -> list[str]:
        """Return a row's cells as shown; of a row that is not available only the paper's figures."""
        return [row.id, *(column.show(row) for column in _COLUMNS)]

    def to_markdown(self) -> str:
        """Return the table, the reasons of rows that are not available, and the caption."""
        headers = self.headers()
        lines = [f"| {' | '.join(headers)} |", f"|---|{'---:|' * (len(headers) - 1)}"]
        lines += [f"| {' | '.join(self.cells(row))} |" for row in self.rows]
        reasons = [f"- {row.id}: {row.unavailable_reason}" for row in self.rows if not row.available]
        return "\n".join([*lines, "", *reasons, *([""] if reasons else []), self.caption(), ""])

    def to_csv(self) -> str:
        """Return every field of every row as CSV, unrounded; an empty field means there is no such figure."""
        fields = list(Row.model_fields)
        text = io.StringIO()
        writer = csv.DictWriter(text, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row.model_dump() for row in self.rows)
        return text.getvalue()

    def to_json(self) -> str:
        """Return the whole record; ``ComparisonTable.model_validate_json`` gives it back."""
        return self.model_dump_json(indent=2) + "\n"

    def to_rich(self, width: int = 120) -> Table:
        """Return the table for a terminal; where it is narrow, the columns that matter least are left out and named."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        shown = [[row.id, *(column.show(row) for column in _COLUMNS)] for row in self.rows]
        heads = ["row", *(column.short or column.header(self) for column in _COLUMNS)]
        widths = [max(len(line[i]) for line in [heads, *shown]) for i in range(len(heads))]
        kept = list(range(len(heads)))
        for i in sorted(kept[1:], key=lambda i: -_COLUMNS[i - 1].rank):
            if sum(widths[k] + _GAP for k in kept) > width and len(kept) > 2:
                kept.remove(i)
        hidden = [heads[i] for i in range(len(heads)) if i not in kept]
        notes = [f"{row.id}: {row.unavailable_reason}" for row in self.rows if not row.available]
        notes += [f"not shown at this width, see table.md: {', '.join(hidden)}"] if hidden else []
        caption = Text("\n".join([*notes, *([""] if notes else []), self.caption()]))
        table = Table(title=self.name, caption=caption, caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for i in kept:
            table.add_column(heads[i], justify="left" if i == 0 else "right", no_wrap=True)
        for row, line in zip(self.rows, shown, strict=True):
            table.add_row(*(line[i] for i in kept), style=None if row.available else "dim")
        return table


def write_table(table: ComparisonTable, directory: Path) -> None:
    """Write ``table.md``, ``table.csv`` and ``table.json``, each whole or not at all."""
    write_atomically(directory / "table.md", table.to_markdown())
    write_atomically(directory / "table.csv", table.to_csv())
    write_atomically(directory / "table.json", table.to_json())


class _Column(NamedTuple):
    header: Callable[[ComparisonTable], str]
    show: Callable[[Row], str]
    short: str
    rank: int  # in a narrow terminal the highest rank goes first


def _number(value: float | None, form: str) -> str:
    return NOTHING if value is None else format(value, form)


def _p_value(value: float | None) -> str:
    return "<0.0001" if value is not None and value < 0.00005 else _number(value, ".4f")


def _success(row: Row) -> str:
    """Show the rate, and its spread over seeds where there is one."""
    if row.success_low is None or row.success_low == row.success_high:
        return _percent(row.success_rate)
    return f"{_percent(row.success_rate)} ({_percent(row.success_low)} to {_percent(row.success_high)})"


def _percent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.1f}"


def _points(row: Row) -> str:
    if row.delta is None or row.ci_low is None or row.ci_high is None:
        return NOTHING
    low, high = (f"{100 * bound:.1f}".replace("-0.0", "0.0") for bound in (row.ci_low, row.ci_high))
    return f"{100 * row.delta:+.1f} [{low}, {high}]".replace("+0.0 ", "0.0 ").replace("-0.0 ", "0.0 ")


def _trials(row: Row) -> str:
    return NOTHING if row.planned is None else f"{row.planned}/{row.scored}/{row.errored}"


def _invalid(row: Row) -> str:
    return NOTHING if row.n_invalid is None else f"{row.n_invalid}/{_number(row.n_fallback, 'd')}"


def _named(name: str) -> Callable[[ComparisonTable], str]:
    return lambda _: name


_COLUMNS: Sequence[_Column] = (
    _Column(_named("planned / scored / errored"), _trials, "trials", 6),
    _Column(lambda table: f"{table.success_name} %", _success, "", 0),
    _Column(_named("database only %"), lambda row: _percent(row.database_rate), "db %", 7),
    _Column(_named("Δ to NL [95%]"), _points, "Δ NL [95%]", 2),
    _Column(_named("p"), lambda row: _p_value(row.p), "p", 12),
    _Column(_named("p Holm"), lambda row: _p_value(row.p_holm), "p Holm", 5),
    _Column(_named("tokens"), lambda row: _number(row.mean_tokens, ".1f"), "tokens", 1),
    _Column(_named("compression ×"), lambda row: _number(row.compression, ".1f"), "×", 1),
    _Column(_named("× floor"), lambda row: _number(row.floor_multiple, ".2f"), "× floor", 8),
    _Column(_named("id recall %"), lambda row: _percent(row.identifier_recall), "id %", 9),
    _Column(_named("invalid / fell back"), _invalid, "inv/back", 10),
    _Column(_named("paper TSR %"), lambda row: _number(row.paper_tsr, ".1f"), "paper %", 3),
    _Column(_named("paper ×"), lambda row: _number(row.paper_compression, ".1f"), "paper ×", 4),
)
