"""Uploads a finished data set to the Hugging Face hub, its files as they are, so that the manifest's hashes hold."""

from __future__ import annotations

import re
from pathlib import Path

from graphhandoff.configs.files import digest_file
from graphhandoff.data.manifest import MANIFEST, read_manifest

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")


class PushError(ValueError):
    """A set cannot be uploaded; says why and what to do."""


def check_push(repository: str) -> None:
    """Check, before anything long is begun, that a set could be uploaded there.

    Raises:
        PushError: the name is none, or there is no key.
    """
    if not _REPOSITORY.fullmatch(repository):
        raise PushError(f"{repository!r} is no repository name; write owner/name, such as somebody/retail-handoffs")
    from huggingface_hub import get_token

    if get_token() is None:
        raise PushError(
            "no Hugging Face key found; run `hf auth login` or set HF_TOKEN to one with write access, then push again"
        )


def push_to_hub(folder: Path, repository: str, private: bool = True) -> str:
    """Upload a finished data set; the repository is created if it does not exist.

    Args:
        folder: of the set.
        repository: ``owner/name``.
        private: of a repository that is created.

    Returns:
        The address of the data set.

    Raises:
        SetNotFoundError: the folder holds no finished set.
        PushError: no such name, no key, a file that is not as the manifest says, or the hub refuses.
    """
    manifest = read_manifest(folder)
    check_push(repository)
    for file in manifest.files:
        path = folder / file.path
        if not path.is_file() or digest_file(path) != file.sha256:
            raise PushError(f"{path} is not as the manifest says; build the set again before it is uploaded")
    from huggingface_hub import HfApi

    api = HfApi()
    wanted = [*(file.path for file in manifest.files), "stats.png", "stats.json", MANIFEST]
    try:
        address = api.create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
        api.upload_folder(
            repo_id=repository,
            repo_type="dataset",
            folder_path=folder,
            allow_patterns=wanted,
            commit_message=f"{manifest.name}: {manifest.rows} examples, configuration {manifest.config_digest[:12]}",
        )
    except Exception as error:  # the client's errors share no class between its versions
        raise PushError(f"the hub did not take {repository} ({type(error).__name__}): {error}") from error
    return str(address)
