"""Where things are laid over the worktree: places for them, and git kept out of reach under each."""

from __future__ import annotations

import dataclasses
import os
import stat
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from devbay.errors import WORK_FAILED, DevbayError
from devbay.manifest import confined
from devbay.runtimes.base import BindMount, ServiceSpec


def with_git_kept(spec: ServiceSpec) -> list[BindMount]:
    """The manifest's mounts, and on top of each what protects git inside it (decision 1).

    A folder of the worktree that is mounted at a second place shows its `.git` there too. The sources are
    checked once more, because the worktree belongs to programs that may have put links in since.
    """
    mounts: list[BindMount] = []
    for mount in spec.mounts:
        mounts.append(mount)
        source = PurePosixPath(mount.source)
        if spec.worktree is None or not source.is_relative_to(spec.worktree):
            continue
        confined(spec.worktree, str(source.relative_to(spec.worktree)))
        for guard in spec.git_mounts:
            inner = PurePosixPath(guard.target)
            if inner.is_relative_to(source):
                target = str(PurePosixPath(mount.target) / inner.relative_to(source))
                mounts.append(dataclasses.replace(guard, target=target))
    return mounts


def make_mount_points(worktree: Path, folders: Iterable[str], files: Iterable[str] = ()) -> list[Path]:
    """Make what is missing below the worktree for something to be mounted on, owned as the worktree is.

    The engine would make it as root. Targets elsewhere are left alone. No component is followed if it is a
    symbolic link: raises `unsafe_mount_point`. Returns what was made.
    """
    made: list[Path] = []
    for target, is_file in (*((path, False) for path in folders), *((path, True) for path in files)):
        pure = PurePosixPath(os.path.normpath(target))
        if PurePosixPath(worktree) in pure.parents:
            made += _make_below(worktree, pure.relative_to(worktree).parts, is_file)
    return made


def _make_below(worktree: Path, parts: tuple[str, ...], is_file: bool) -> list[Path]:
    made: list[Path] = []
    path, folder = worktree, os.open(worktree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        owner = os.fstat(folder)
        for place, part in enumerate(parts, 1):
            path, last = path / part, place == len(parts)
            if not _exists(part, folder):
                _make(part, folder, is_file and last, owner)
                made.append(path)
            kind = os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode
            if last and stat.S_ISREG(kind):
                return made  # a file is laid over a file
            if not stat.S_ISDIR(kind):
                raise _unsafe(path)
            deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = deeper
    except OSError as error:
        raise _unsafe(path, str(error)) from error
    finally:
        os.close(folder)
    return made


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _make(name: str, folder: int, is_file: bool, owner: os.stat_result) -> None:
    if is_file:
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder))
    else:
        os.mkdir(name, 0o755, dir_fd=folder)
    if os.geteuid() == 0:
        os.chown(name, owner.st_uid, owner.st_gid, dir_fd=folder, follow_symlinks=False)


def _unsafe(
    path: Path, detail: str = "it, or a folder on the way, is a symbolic link or a file"
) -> DevbayError:
    return DevbayError(
        "unsafe_mount_point",
        f"nothing can be mounted on {path}: {detail}",
        next="remove what is there, or name another path in `volumes` or `mounts`",
        exit_code=WORK_FAILED,
    )
