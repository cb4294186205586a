"""Logs a comparison to Weights & Biases. Whatever goes wrong there is a notice: the local records are the truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from graphhandoff.configs.wandb import open_wandb_run

if TYPE_CHECKING:
    from graphhandoff.eval.comparison import CompareConfig
    from graphhandoff.eval.report import ComparisonTable

_METRICS = (
    "success_rate",
    "database_rate",
    "delta",
    "ci_low",
    "ci_high",
    "p",
    "p_holm",
    "mean_tokens",
    "compression",
    "floor_multiple",
    "identifier_recall",
    "planned",
    "scored",
    "errored",
    "n_invalid",
    "n_fallback",
)


def log_comparison(config: CompareConfig, table: ComparisonTable, directory: Path) -> list[str]:
    """Log the configuration, every row's metrics and the table; return notices for the user, never raise.

    Without a key an unattended ``online`` run would stop at a prompt, so it becomes ``offline`` with a notice. A
    resumed comparison logs a new run in the same group: an offline run cannot be continued without overwriting it.
    """
    notices: list[str] = []
    try:
        import wandb

        run, mode = open_wandb_run(
            config.wandb, config.name, "compare", directory, config.model_dump(mode="json"), notices
        )
        records = json.loads(table.to_json())["rows"]
        columns = [key for key in records[0] if key != "id"]
        run.log({"comparison": wandb.Table(["row", *columns], [[r["id"], *(r[c] for c in columns)] for r in records])})
        for record in records:
            for metric in _METRICS:
                if record.get("available", True) and record.get(metric) is not None:
                    run.summary[f"{record['id']}/{metric}"] = record[metric]
        where = Path(run.dir).parent
        run.finish()
        notices.append(f"W&B: logged {mode} to {where}")
    except Exception as error:  # a logger must not take a finished comparison down with it
        notices.append(f"W&B: not logged ({type(error).__name__}: {error}); the table and records are complete")
    return notices
