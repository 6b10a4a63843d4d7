"""Whether a checkout is, byte for byte, a repository that devbay itself ships."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from devbay.worktrees import Repository, beneath
from devbay.worktrees.git import Git

_CACHES = frozenset({"__pycache__", ".pytest_cache"})
_MODES = ("100644", "100755")


def difference(repository: Repository, shipped: Path) -> str | None:
    """How the caller's checkout differs from the folder `shipped`; None if it does not.

    Compared are HEAD, the index and the files: each must hold all of `shipped` and nothing else that is
    tracked. Raises `git_failed`.
    """
    wanted = {
        path.relative_to(shipped).as_posix(): path.read_bytes()
        for path in shipped.rglob("*")
        if path.is_file() and not _CACHES & set(path.relative_to(shipped).parts)
    }
    git = Git(repository.git_dir, repository.toplevel)
    in_head, in_index = _head(git), _index(git)
    for name in sorted({*wanted, *in_head, *in_index}):
        if name not in wanted:
            return f"{name} is none of its files"
        blob = _blob(wanted[name], len(next(iter(in_head.values()), "")))
        if in_head.get(name) != blob or in_index.get(name) != blob:
            return f"{name} is not committed as it was shipped"
        with beneath.open_regular(repository.toplevel, name) as descriptor:
            if descriptor is None:
                return f"{name} is missing, or no plain file"
            with os.fdopen(os.dup(descriptor), "rb") as file:
                if file.read(len(wanted[name]) + 1) != wanted[name]:
                    return f"{name} was changed"
    return None


def _head(git: Git) -> dict[str, str]:
    """Path to blob id of HEAD; what is no plain file has no id."""
    found: dict[str, str] = {}
    for record in git.records("ls-tree", "-r", "-z", "HEAD"):
        (mode, _, blob), name = record.partition("\t")[0].split(" "), record.partition("\t")[2]
        found[name] = blob if mode in _MODES else ""
    return found


def _index(git: Git) -> dict[str, str]:
    found: dict[str, str] = {}
    for record in git.records("ls-files", "--stage", "-z"):
        (mode, blob, stage), name = record.partition("\t")[0].split(" "), record.partition("\t")[2]
        found[name] = blob if mode in _MODES and stage == "0" else ""
    return found


def _blob(data: bytes, digits: int) -> str:
    """git's id of a file with this content, in the repository's hash (40 digits of SHA-1, else SHA-256)."""
    digest = hashlib.sha256() if digits == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % len(data) + data)
    return digest.hexdigest()
