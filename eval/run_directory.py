"""A run's directory: its resolved configuration and digest, where it came from, and its records, one a line.

A run that was killed resumes in its directory and repeats nothing that is recorded. A directory of another
configuration is refused. Tables are rebuilt from the records, never kept.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import BaseModel, ValidationError

from graphhandoff.configs.files import digest_config, write_atomically
from graphhandoff.configs.loader import differing_keys

Record = TypeVar("Record", bound=BaseModel)


class RunDirectoryError(ValueError):
    """A run directory cannot be used."""


class OtherRunError(RunDirectoryError):
    """The directory belongs to a run of another configuration; the message names the keys that differ."""


class RunBusyError(RunDirectoryError):
    """Another process works in the directory."""


class CorruptRecordsError(RunDirectoryError):
    """A record cannot be read; says the file and the line."""


class RunDirectory:
    """An open run directory; use as a context manager, since it holds a lock.

    Args:
        path: created if it does not exist.
        config: the resolved configuration; an existing directory must hold an equal one.
        provenance: written when the directory is new, kept as it was when resuming.

    Raises:
        OtherRunError: the directory's configuration differs.
        RunBusyError: another process has it open.
        RunDirectoryError: the path is a file, or a directory with files but no run in it.
    """

    def __init__(self, path: Path, config: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
        self.path = path
        self.notices: list[str] = []
        self._files: dict[str, IO[str]] = {}
        if path.exists() and not path.is_dir():
            raise RunDirectoryError(f"{path} is a file; choose another name with --set name=…")
        path.mkdir(parents=True, exist_ok=True)
        config_path = path / "config.json"
        # A start that was killed leaves its provenance alone: the configuration is written last.
        begun = {"provenance.json"}
        foreign = [item.name for item in path.iterdir() if not item.name.startswith(".") and item.name not in begun]
        if foreign and not config_path.exists():
            raise RunDirectoryError(f"{path} holds {foreign[0]!r} but no run; choose another name with --set name=…")
        self._lock = (path / ".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise RunBusyError(f"another process works in {path}; wait for it or choose another name") from None
        try:
            self.resumed = self._open(config_path, config, provenance)
        except BaseException:
            self._lock.close()
            raise

    def _open(self, config_path: Path, config: Mapping[str, Any], provenance: Mapping[str, Any]) -> bool:
        digest = digest_config(config)
        if not config_path.exists():
            write_atomically(self.path / "provenance.json", json.dumps(provenance, indent=2) + "\n")
            write_atomically(config_path, json.dumps({"digest": digest, "config": config}, indent=2) + "\n")
            return False
        try:
            theirs = json.loads(config_path.read_text(encoding="utf-8"))
            same, their_config = theirs["digest"] == digest, theirs["config"]
            made_by = self.provenance
        except (OSError, ValueError, KeyError, TypeError):
            raise CorruptRecordsError(
                f"config.json or provenance.json in {self.path} cannot be read; move the directory away and run again"
            ) from None
        if not same:
            keys = "\n  ".join(differing_keys(their_config, config)) or "(only the digest)"
            raise OtherRunError(
                f"{self.path} holds a run of another configuration. Differing keys (there -> now):\n  {keys}\n"
                "Resume with the same configuration, or choose another name with --set name=…"
            )
        for key in ("commit", "data"):
            if made_by.get(key) != provenance.get(key):
                self.notices.append(f"records here were begun with {key} {made_by.get(key)}, now {provenance.get(key)}")
        return True

    @property
    def provenance(self) -> dict[str, Any]:
        """What made the records: the provenance of the first start."""
        made_by: dict[str, Any] = json.loads((self.path / "provenance.json").read_text(encoding="utf-8"))
        return made_by

    def read_records(self, name: str, model: type[Record]) -> list[Record]:
        """Read ``<name>.jsonl``; a half-written last line is dropped from the file, with a notice.

        Raises:
            CorruptRecordsError: a line before the last, or a whole last line, is no record.
        """
        path = self.path / f"{name}.jsonl"
        if not path.exists():
            return []
        content = path.read_bytes()
        whole, newline, rest = content.rpartition(b"\n")
        if rest:
            with path.open("r+b") as file:
                file.truncate(len(whole) + len(newline))
            self.notices.append(f"{path.name}: dropped a half-written last line of {len(rest)} bytes")
        records: list[Record] = []
        for number, line in enumerate(whole.split(b"\n") if newline else (), start=1):
            try:
                records.append(model.model_validate_json(line))
            except ValidationError as error:
                problem = error.errors(include_url=False)[0]
                where = ".".join(str(part) for part in problem["loc"])
                raise CorruptRecordsError(
                    f"{path}, line {number}: {where + ': ' if where else ''}{problem['msg']}. Nothing was changed; "
                    "restore the file, or move it away to run those items again"
                ) from None
        return records

    def append(self, name: str, record: BaseModel) -> None:
        """Append one record to ``<name>.jsonl`` and hand it to the operating system."""
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = (self.path / f"{name}.jsonl").open("a", encoding="utf-8")
        file.write(record.model_dump_json() + "\n")
        file.flush()

    def close(self) -> None:
        """Close the files and release the lock."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._lock.close()

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
