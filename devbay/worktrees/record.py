"""What devbay is making or has made in a repository, kept in the repository itself.

One JSON file per worktree in `<common dir>/devbay/`, written before the deed and after it, so that whoever
comes after a crash can tell a half-made worktree of devbay's from somebody's folder. No container can write
there. The lock of the repository lies beside them.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from devbay.errors import DevbayError
from devbay.worktrees.git import common_dir_of

LOCK_LIMIT_S = 120.0
LOCK_POLL_S = 0.05


@dataclass(frozen=True)
class Record:
    """One worktree. inode: (device, inode) of its folder once devbay made that: the proof that it is ours."""

    path: str
    state: Literal["creating", "made", "removing"]
    branch: str
    created_branch: bool
    base_commit: str
    inode: tuple[int, int] | None = None
    git_dir: str = ""
    submodules: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def owns(self, path: Path) -> bool:
        """Whether the folder at `path` is the very one that devbay made."""
        try:
            found = path.lstat()
        except FileNotFoundError:
            return False
        return self.inode == (found.st_dev, found.st_ino)


def folder_of(common_dir: Path) -> Path:
    return common_dir / "devbay"


def scratch_logs(git_dir: Path) -> Path:
    """Where reflogs of shared refs go that a container of this worktree writes; the host never reads them."""
    return folder_of(common_dir_of(git_dir)) / "logs" / git_dir.name


def _file_of(common_dir: Path, path: Path) -> Path:
    return folder_of(common_dir) / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}.json"


def load_record(common_dir: Path, path: Path) -> Record | None:
    """The record of the worktree at `path`, if devbay has one."""
    try:
        return _read(_file_of(common_dir, path))
    except FileNotFoundError:
        return None


def all_records(common_dir: Path) -> list[Record]:
    """Every record of the repository."""
    return [_read(file) for file in sorted(folder_of(common_dir).glob("*.json"))]


def save_record(common_dir: Path, record: Record, **changes: object) -> Record:
    """Write a record (with changes), at once or not at all; returns it."""
    record = dataclasses.replace(record, **changes)  # type: ignore[arg-type]  # names are the fields
    file = _file_of(common_dir, Path(record.path))
    file.parent.mkdir(exist_ok=True)
    draft = file.with_suffix(".part")
    with draft.open("w") as out:
        json.dump(dataclasses.asdict(record), out)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(file)
    return record


def forget_record(common_dir: Path, path: Path) -> None:
    _file_of(common_dir, path).unlink(missing_ok=True)


def _read(file: Path) -> Record:
    try:
        data = json.loads(file.read_text())
        inode = data.pop("inode")
        return Record(inode=tuple(inode) if inode else None, **data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DevbayError(
            "bad_record",
            f"{file} cannot be read: {error}",
            next="look at the worktree it was for, then remove the file",
            exit_code=1,
        ) from error


@contextmanager
def repository_lock(common_dir: Path, *, limit_s: float = LOCK_LIMIT_S) -> Iterator[None]:
    """Hold the repository for making, removing and pruning, against every process and thread.

    Raises `repository_busy` after `limit_s`. The kernel lets go of the lock when its holder dies.
    """
    folder = folder_of(common_dir)
    try:
        folder.mkdir(exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise DevbayError(
            "repository_not_writable", f"{folder}: {os.strerror(error.errno or 0)}", exit_code=1
        ) from error
    try:
        deadline = time.monotonic() + limit_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise DevbayError(
                        "repository_busy",
                        f"another devbay process has held {common_dir} for {limit_s:g} s",
                        next="wait for it, or look for a hung devbayd",
                        exit_code=1,
                    ) from error
            time.sleep(LOCK_POLL_S)
        yield
    finally:
        os.close(descriptor)
