"""Building four times as many examples takes four times as long and no more memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SMALL, LARGE = 1_500, 6_000
SHARD_SIZE = 500
MOST_MEMORY_RATIO = 1.15
MOST_TIME_RATIO = 1.5  # times LARGE / SMALL: other work on the machine is measured too

JOB = """
import json, resource, sys, time
from graphhandoff.data.build import build
from graphhandoff.data.data_config import DataConfig
from graphhandoff.data.environment import load_environment

load_environment()
values = dict(name=sys.argv[1], seed=3, n_examples=int(sys.argv[1]), shard_size=int(sys.argv[2]))
started = time.perf_counter()
build(DataConfig.model_validate({**values, "output_directory": sys.argv[3]}), {})
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": time.perf_counter() - started, "peak_mb": peak / 1024}))
"""


def measure(n_examples: int, where: Path) -> Any:
    command = [sys.executable, "-c", JOB, str(n_examples), str(SHARD_SIZE), str(where)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_memory_is_flat_and_time_linear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small, large = measure(SMALL, tmp_path), measure(LARGE, tmp_path)
    memory, duration = large["peak_mb"] / small["peak_mb"], large["seconds"] / small["seconds"]
    with capsys.disabled():
        print(
            f"\n{LARGE:,} against {SMALL:,} examples: time × {duration:.2f} ({LARGE / small['seconds'] / 4:.0f} and "
            f"{LARGE / large['seconds']:.0f} a second), peak memory × {memory:.2f} ({large['peak_mb']:.0f} MB)"
        )
    assert memory <= MOST_MEMORY_RATIO
    assert duration <= MOST_TIME_RATIO * LARGE / SMALL
