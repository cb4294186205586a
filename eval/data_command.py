"""``graphhandoff data``: build, describe, check and upload data sets to train on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from graphhandoff.configs.files import write_atomically
from graphhandoff.configs.loader import load_config
from graphhandoff.configs.provenance import collect_provenance
from graphhandoff.data.data_config import DataConfig
from graphhandoff.data.distributions import (
    DIMENSIONS,
    Counts,
    count_set,
    count_tasks,
    total_variation,
    values_in_order,
)
from graphhandoff.data.manifest import Manifest, read_manifest
from graphhandoff.data.retail import data_hashes, load_split, load_tasks

app = typer.Typer(add_completion=False, no_args_is_help=True)

LEAST_TEXTS = 10
"""Generated texts below which their prose is not measured."""

Folder = Annotated[Path, typer.Argument(help="A folder that `data build` wrote.")]
MOST_VIOLATIONS = 100
GENERATED = "generated"


@app.command()
def build(
    config: Annotated[Path, typer.Option(help="A YAML file; configs/… is also found in the installed package.")],
    set_: Annotated[list[str] | None, typer.Option("--set", help="Override a key: a.b=value. May be repeated.")] = None,
    ray: Annotated[
        bool, typer.Option("--ray", help="Make the shards as a Ray Data job (needs the extra `ray`).")
    ] = False,
    ray_address: Annotated[str | None, typer.Option(help="Of a Ray cluster, such as auto; implies --ray.")] = None,
) -> None:
    """Build a data set, or resume a build that was killed."""
    from graphhandoff.data.build import build as build_set
    from graphhandoff.data.build_ray import run_on_ray
    from graphhandoff.data.hub import check_push, push_to_hub

    checked = load_config(DataConfig, config, set_ or [])
    if checked.push_to_hub is not None:
        check_push(checked.push_to_hub)
    run_shards = partial(run_on_ray, address=ray_address) if ray or ray_address else None
    with _bar() as show:
        built = build_set(checked, collect_provenance(data_hashes()), partial(show, "shards"), run_shards)
    console = Console(stderr=True, highlight=False)
    for notice in built.notices:
        console.print(f"note: {notice}", style="yellow", markup=False)
    _output().print(_splits_table(built.manifest))
    console.print(f"data/*.parquet, README.md and manifest.json in {built.folder}", markup=False, soft_wrap=True)
    if checked.push_to_hub is not None:
        address = push_to_hub(built.folder, checked.push_to_hub, checked.private)
        console.print(f"uploaded to {address}", markup=False, soft_wrap=True)


@app.command()
def stats(folder: Folder) -> None:
    """Print what a data set holds beside the benchmark's real tasks, and draw it into the folder."""
    from graphhandoff.eval.data_figure import draw_distributions

    manifest = read_manifest(folder)
    pinned = load_split(manifest.config["split"])
    n_tasks = len(load_tasks())
    counts: dict[str, Counts] = {
        GENERATED: count_set(folder, manifest),
        f"all {n_tasks} real": count_tasks(),
        f"{n_tasks - len(pinned.task_ids)} real not pinned": count_tasks(pinned),
    }
    out = _output()
    out.print(_splits_table(manifest))
    out.print(_distributions_table(counts))
    record: dict[str, object] = {
        "counts": {
            label: {name: dict(sorted(counter.items())) for name, counter in count.items()}
            for label, count in counts.items()
        },
        "total_variation": {
            label: {name: total_variation(counts[GENERATED][name], count[name]) for name in DIMENSIONS}
            for label, count in counts.items()
            if label != GENERATED
        },
    }
    prose = _measure_prose(folder, manifest)
    if prose:
        out.print(_prose_table(prose))
        record["prose"] = prose
    write_atomically(folder / "stats.json", json.dumps(record, indent=2) + "\n")
    n_generated = manifest.sources.get("synthetic", 0)
    title = f"{manifest.name}: plans of {n_generated:,} generated problems and of the real tau2-retail tasks"
    draw_distributions(counts, title, folder / "stats.png")
    Console(stderr=True, highlight=False).print(f"stats.json and stats.png in {folder}", markup=False, soft_wrap=True)


@app.command()
def validate(
    folder: Folder,
    sample: Annotated[int, typer.Option(min=1, help="How many plans are executed again.")] = 500,
    all_: Annotated[bool, typer.Option("--all", help="Execute every plan again.")] = False,
    seed: Annotated[int | None, typer.Option(help="Of the sample; by default the set's own.")] = None,
) -> None:
    """Hold a data set against every rule; exits with 1 and names each row or file that breaks one."""
    from graphhandoff.data.validate import validate as validate_set

    own_seed = int(read_manifest(folder).config["seed"])
    with _bar() as show:
        result = validate_set(folder, own_seed if seed is None else seed, None if all_ else sample, show)
    for violation in result.violations[:MOST_VIOLATIONS]:
        print(f"{violation.where}: {violation.rule}: {violation.detail}")
    if len(result.violations) > MOST_VIOLATIONS:
        print(f"… and {len(result.violations) - MOST_VIOLATIONS} more")
    checked = f"{result.n_rows:,} rows checked, {result.n_executed:,} plans executed again"
    print(f"{checked}: {len(result.violations) or 'no'} violation{'' if len(result.violations) == 1 else 's'}")
    if result.violations:
        raise typer.Exit(1)


@app.command()
def push(
    folder: Folder,
    repository: Annotated[str, typer.Argument(help="owner/name on the Hugging Face hub.")],
    private: Annotated[bool, typer.Option("--private/--public", help="Of a repository that is created.")] = True,
) -> None:
    """Upload a finished data set to the Hugging Face hub; needs a key with write access."""
    from graphhandoff.data.hub import push_to_hub

    print(push_to_hub(folder, repository, private))


@contextmanager
def _bar() -> Iterator[partial[None]]:
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description:<14}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=not console.is_terminal) as bar:
        bars: dict[str, object] = {}

        def show(what: str, done: int, planned: int) -> None:
            if what not in bars:
                bars[what] = bar.add_task(what, total=planned)
            bar.update(bars[what], completed=done, total=planned)  # type: ignore[arg-type]

        yield partial(show)


def _splits_table(manifest: Manifest) -> Table:
    sources = ", ".join(f"{count:,} {source}" for source, count in manifest.sources.items())
    table = Table(title=f"{manifest.name}: {manifest.rows:,} examples ({sources})", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("split", "rows", "customers", "repeated prose", "repeated graph + task text", "files", "MB"):
        table.add_column(column, justify="left" if column == "split" else "right")
    for name, split in manifest.splits.items():
        files = manifest.parquet_files(name)
        repeated = (f"{split.duplicate_prose:,}", f"{split.duplicate_content:,}")
        size = f"{sum(file.n_bytes for file in files) / 1e6:.1f}"
        table.add_row(name, f"{split.rows:,}", str(split.customers), *repeated, str(len(files)), size)
    return table


def _distributions_table(counts: Mapping[str, Counts]) -> Table:
    table = Table(title="What plans are made of, in %", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    for label in counts:
        table.add_column(label, justify="right")
    for name, dimension in DIMENSIONS.items():
        counters = [count[name] for count in counts.values()]
        head = f"{dimension.title} ({dimension.unit}; n =)"
        table.add_row(head, *(f"{counter.total():,}" for counter in counters), style="bold")
        for value in values_in_order(*counters):
            shares = (100 * counter[value] / max(counter.total(), 1) for counter in counters)
            table.add_row(f"  {value}", *(f"{share:.1f}" for share in shares))
        far = (f"{total_variation(counters[0], counter):.3f}" for counter in counters[1:])
        table.add_row("  total variation distance to generated", "", *far, style="italic", end_section=True)
    return table


def _measure_prose(folder: Path, manifest: Manifest) -> dict[str, dict[str, float]]:
    """Measure as many generated texts as there are hand-written ones; nothing if the set has fewer than ten."""
    from graphhandoff.data.prose_measures import (
        load_hand_written_prose,
        measure_prose,
        sample_generated_prose,
        tell_apart,
    )

    written = load_hand_written_prose()
    generated = sample_generated_prose(folder, manifest, len(written), int(manifest.config["seed"]))
    if len(generated) < LEAST_TEXTS:
        return {}
    seed = int(manifest.config["seed"])
    apart = tell_apart(written, generated, seed)
    return {
        GENERATED: {**measure_prose(generated)._asdict(), "told_apart_auc": apart},
        "hand-written": measure_prose(written)._asdict(),
    }


def _prose_table(prose: Mapping[str, Mapping[str, float]]) -> Table:
    table = Table(title="Prose beside the hand-written delegations that are not pinned", box=box.SIMPLE_HEAD)
    table.add_column("", no_wrap=True)
    for label in prose:
        table.add_column(label, justify="right")
    rows = {
        "n_texts": "texts",
        "mean_words": "words a text",
        "mean_tokens": "cl100k_base tokens a text",
        "distinct_words": "different words in the first 5,000",
        "distinct_pairs": "different pairs of neighbours in them",
        "repeated_sentences": "sentences that recur, %",
        "told_apart_auc": "told from hand-written by a classifier, AUC",
    }
    for name, label in rows.items():
        cells = (measures.get(name) for measures in prose.values())
        scale = 100 if name == "repeated_sentences" else 1
        digits = 3 if name == "told_apart_auc" else 1 if name.startswith(("mean", "repeated")) else 0
        table.add_row(label, *("" if cell is None else f"{cell * scale:,.{digits}f}" for cell in cells))
    return table


def _output() -> Console:
    out = Console()
    return out if out.is_terminal else Console(width=120)
