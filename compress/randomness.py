"""Gives the caller's random state back: libraries that train or load models draw from it, or seed it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def random_state_kept(device: str) -> Iterator[None]:
    """Restore the state of ``random``, NumPy and torch afterwards, whatever is drawn or seeded inside.

    Args:
        device: what the work inside runs on; GPUs are only looked at where they are used anyway.
    """
    import numpy
    import torch

    states = random.getstate(), numpy.random.get_state()
    uses_cuda = device.startswith("cuda") or torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    gpus = list(range(torch.cuda.device_count())) if uses_cuda else []
    with torch.random.fork_rng(devices=gpus):
        try:
            yield
        finally:
            random.setstate(states[0])
            numpy.random.set_state(states[1])
