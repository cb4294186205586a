"""Where a result comes from: our own commit, the versions it ran with, the data, the device."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = (
    "accelerate",
    "graphhandoff",
    "inspect-ai",
    "inspect-evals",
    "llmlingua",
    "numpy",
    "pydantic",
    "safetensors",
    "scikit-learn",
    "scipy",
    "statsmodels",
    "tiktoken",
    "tokenizers",
    "torch",
    "transformers",
)


def read_commit() -> str | None:
    """Return the commit of this source tree, ``-dirty`` if tracked files differ; ``None`` outside a checkout of it."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists() or not (root / "compress").is_dir():
        return None  # installed from a wheel: the git directory one stands in is somebody else's

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()

    try:
        dirty = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "HEAD") + ("-dirty" if dirty else "")
    except (OSError, subprocess.SubprocessError):
        return None


def collect_provenance(data: dict[str, str], device: str = "cpu") -> dict[str, Any]:
    """Collect what a reader needs to tell whether two runs are comparable.

    Args:
        data: SHA-256 of each file or set of examples.
        device: what computed, in words: ``cpu`` or a GPU's name.
    """
    versions: dict[str, str | None] = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return {
        "commit": read_commit(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "device": device,
        "packages": versions,
        "data": data,
    }
