"""The card of a trained checkpoint: what made it, from what, how good it is, and what its files are.

``checkpoint.json`` is written last, so a folder without one was never finished. Trainers write it; whoever loads or
reports a checkpoint reads it here.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

CARD_NAME = "checkpoint.json"


class CheckpointIncompleteError(ValueError):
    """A folder holds no whole checkpoint; says what is missing or changed."""


class CheckpointCard(BaseModel):
    """What made a checkpoint.

    ``config`` is the resolved configuration and ``config_sha256`` its digest; ``data_sha256`` is the digest of each
    set of examples; ``files`` has the SHA-256 of every other file of the folder.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: str
    config: dict[str, JsonValue]
    config_sha256: str
    data_sha256: dict[str, str]
    metrics: dict[str, JsonValue]
    provenance: dict[str, JsonValue]
    files: dict[str, str]


def load_checkpoint_card(folder: str | Path, verify: bool = True) -> CheckpointCard:
    """Read the card of a checkpoint.

    Args:
        folder: of a trained checkpoint.
        verify: read every file and compare its SHA-256 with the card's.

    Raises:
        CheckpointIncompleteError: no card, a card that cannot be read, or (with ``verify``) a file that is missing
            or is not the one the card was written for.
    """
    folder = Path(folder)
    path = folder / CARD_NAME
    again = "train it again, or copy the whole folder"
    try:
        card = CheckpointCard.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise CheckpointIncompleteError(f"{folder} has no {CARD_NAME}, so it was never finished; {again}") from None
    except (OSError, ValidationError) as error:
        problem = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else error
        raise CheckpointIncompleteError(f"{path} cannot be read ({problem}); {again}") from None
    if verify:
        for name, expected in card.files.items():
            found = _digest_file(folder / name) if (folder / name).is_file() else None
            if found != expected:
                state = f"has SHA-256 {found[:12]}…" if found else "is missing"
                raise CheckpointIncompleteError(
                    f"{folder / name} {state}, expected {expected[:12]}… by {CARD_NAME}; {again}"
                )
    return card


def _digest_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_weights(folder: Path) -> str | None:
    """Return the SHA-256 of a model's weights: of ``model.safetensors``, or of its shards' digests; ``None`` if none.

    Two folders with equal weights give equal digests, whatever else is in them.
    """
    single = folder / "model.safetensors"
    if single.is_file():
        return _digest_file(single)
    shards = sorted(folder.glob("model-*.safetensors"))
    digests = [f"{shard.name} {_digest_file(shard)}" for shard in shards]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest() if digests else None
