"""Makes shards here: in this process, or in several that end with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from graphhandoff.data.data_config import DataConfig
from graphhandoff.data.shards import Shard, ShardRecord, write_shard

START_METHOD = "spawn"
"""How worker processes begin: afresh. A fork would inherit the locks of whatever threads run here."""

ShardRunner = Callable[[DataConfig, Sequence[Shard]], Iterator[ShardRecord]]
"""Makes shards in any order and yields each one's record when it is finished."""


class BuildError(ValueError):
    """A data set cannot be built in this folder, or a worker was lost."""


def run_here(config: DataConfig, shards: Sequence[Shard]) -> Iterator[ShardRecord]:
    """Make shards in this process or, with more than one worker, in that many new ones.

    Raises:
        BuildError: a worker process was lost.
    """
    make = partial(write_shard, config.recipe, folder=config.folder)
    if config.n_workers == 1 or len(shards) < 2:
        yield from map(make, shards)
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    n_workers = min(config.n_workers, len(shards))
    with ProcessPoolExecutor(n_workers, get_context(START_METHOD), initializer=_end_with_parent) as pool:
        try:
            for future in as_completed([pool.submit(make, shard) for shard in shards]):
                yield future.result()
        except BrokenProcessPool:
            raise BuildError(
                f"one of {n_workers} worker processes was killed; finished shards are kept, so run the same command "
                "again, with fewer n_workers if memory ran out"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """Let a worker end when the process that started it is killed: by itself it would wait for work for ever."""
    import os
    from multiprocessing import parent_process
    from threading import Thread

    parent = parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=wait, daemon=True).start()
