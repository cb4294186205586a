"""Makes a data set's shards as a Ray Data job, on as many machines as the cluster has.

Every task is the function that a local build calls, and it writes its files itself: the driver sees only their records.
So the folder must be on storage that all machines share. A task that is lost is repeated, and gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphhandoff.data.data_config import DataConfig
from graphhandoff.data.shards import Shard, ShardRecord, write_shard


class RayMissingError(ValueError):
    """Ray is not installed; the message says how to install it."""


def run_on_ray(config: DataConfig, shards: Sequence[Shard], address: str | None = None) -> Iterator[ShardRecord]:
    """Make shards on Ray; pass it to :func:`graphhandoff.data.build.build` as ``run_shards``.

    Args:
        config: whose folder all machines see under the same path.
        shards: to be made.
        address: of a cluster (``auto`` for the one this machine is in); a local Ray is started by default. A Ray that
            runs already is used as it is.

    Yields:
        Each shard's record, in the order in which they finish.

    Raises:
        RayMissingError: Ray is not installed.
    """
    try:
        import ray
        import ray.data
    except ImportError:
        raise RayMissingError('Ray is not installed; `pip install "graphhandoff[ray]"` brings it') from None
    if not shards:
        return
    ours = not ray.is_initialized()
    if ours:
        ray.init(address=address, include_dashboard=False if address is None else None, log_to_driver=False)
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        recipe, folder = config.recipe, config.folder.absolute()

        def make(row: dict[str, Any]) -> dict[str, str]:
            shard = Shard(row["name"], row["start"], row["stop"])
            return {"record": write_shard(recipe, shard, folder).model_dump_json()}

        jobs = ray.data.from_items([shard._asdict() for shard in shards], override_num_blocks=len(shards))
        for row in jobs.map(make).iter_rows():
            yield ShardRecord.model_validate_json(row["record"])
    finally:
        if ours:
            ray.shutdown()
