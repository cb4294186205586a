"""Writes the data card: the front matter by which ``datasets`` finds the splits, and what a reader should know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from graphhandoff.data.examples import COLUMNS, SplitName
from graphhandoff.data.manifest import SplitRecord

_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)


def write_card(
    name: str, config: Mapping[str, Any], splits: Mapping[SplitName, SplitRecord], sources: Mapping[str, int]
) -> str:
    """Return the text of ``README.md``.

    Args:
        name: of the set.
        config: the resolved configuration.
        splits: the counts of every split that has rows.
        sources: rows by source.
    """
    n_rows = sum(split.rows for split in splits.values())
    front = {
        "pretty_name": f"Graph Handoff: {name}",
        "language": ["en"],
        "license": "apache-2.0",
        "task_categories": ["text-generation", "summarization"],
        "tags": ["agents", "tool-use", "prompt-compression", "synthetic", "tau-bench"],
        "size_categories": [next((label for bound, label in _SIZES if n_rows < bound), "n>10M")],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": f"data/{split}-*.parquet"} for split in splits],
            }
        ],
    }
    lines = [
        "---",
        yaml.safe_dump(front, sort_keys=False, allow_unicode=True).rstrip(),
        "---",
        "",
        f"# {name}: delegations as prose and as typed graphs",
        "",
        f"{n_rows:,} delegations between agents of a retail shop, each told in natural language and as the dependency "
        "graph that a receiving agent can execute, with the calls as they were executed on the shop's own tools and "
        "what the tools answered. Made to train and to test handoff compressors, with the "
        "[graphhandoff](https://pypi.org/project/graphhandoff/) package.",
        "",
        "```python",
        "from datasets import load_dataset",
        "",
        f'train = load_dataset("<this folder or repository>", split="{next(iter(splits), "train")}", streaming=True)',
        "```",
        "",
        "## Splits",
        "By customer: whoever occurs in one split occurs in no other. `validation` holds the customers of the "
        "hand-written delegations, `test` a fixed twentieth of all others. The same content never stands in two "
        "splits; the last two columns count rows that repeat an earlier one of their own split.",
        "",
        "| split | rows | customers | repeated prose | repeated graph and task text |",
        "|---|---:|---:|---:|---:|",
        *(
            f"| {split} | {record.rows:,} | {record.customers} | {record.duplicate_prose:,} "
            f"| {record.duplicate_content:,} |"
            for split, record in splits.items()
        ),
        "",
        f"By source: {', '.join(f'{count:,} {source}' for source, count in sources.items())}.",
        "",
        "## Columns",
        "| column | type | meaning |",
        "|---|---|---|",
        *(f"| `{column}` | {_type_name(COLUMNS[column].feature)} | {COLUMNS[column].meaning} |" for column in COLUMNS),
        "",
        "## Where it comes from",
        "The shop, its customers, orders, products and tools are those of τ²-bench retail (MIT), as shipped by "
        "inspect-evals. Synthetic problems are sampled from that database and kept only if their plan works on the "
        f"real tools; no customer of a task in `{config['split']}`, the tasks that are measured, occurs. Synthetic "
        "prose is generated, English, and more alike than people's; names and addresses are made up by the benchmark. "
        "`hand_written` prose was written by a language model, one delegation at a time, from real training tasks.",
        "",
        "`manifest.json` holds the SHA-256 of every file, the resolved configuration and the versions that made it; "
        "`graphhandoff data validate` re-executes a sample and checks every rule above.",
        "",
    ]
    return "\n".join(lines)


def _type_name(feature: Any) -> str:
    if isinstance(feature, list):
        return f"list of {_type_name(feature[0])}"
    if isinstance(feature, dict):
        return "{" + ", ".join(f"{name}: {_type_name(inner)}" for name, inner in feature.items()) + "}"
    return str(feature)
