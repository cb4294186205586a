"""Writes files whole or not at all, and tells by a digest what is in them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def digest_config(config: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a resolved configuration, free of key order."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal; reads it in pieces.

    Raises:
        FileNotFoundError: there is no such file.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader, or a kill, meets the old text or the new one, never half."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
