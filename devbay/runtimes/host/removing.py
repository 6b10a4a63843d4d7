"""Removal of folders that a bay's processes filled: closed ones, endlessly deep ones, links to anywhere."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_WALK = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = stat.S_IRUSR | stat.S_IXUSR


def remove_tree(path: Path) -> None:
    """Remove a folder, or whatever else is at `path`, with all that is in it, if it is there.

    Modes are changed of folders in it alone: `shutil.rmtree` with a handler that opens what is closed changed
    the mode of what a link in a closed folder leads to. Each folder is moved to the top before it is emptied,
    so that no depth ends the stack or a path. Raises OSError for what cannot go.
    """
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    _open_up(path, None, stat.S_IRWXU)
    top = os.open(path, _WALK)
    try:
        while names := list(_emptied(top, top)):
            for name in names:
                with suppress(FileNotFoundError):  # somebody else removes it too
                    _remove_folder(name, top)
    finally:
        os.close(top)
    with suppress(FileNotFoundError):
        path.rmdir()


def open_tree(path: Path) -> None:
    """Give the owner of a folder the right to read all that is in it."""
    _open_up(path, None, _READ)
    for _, folders, files, at in os.fwalk(path):
        for name in (*folders, *files):
            _open_up(name, at, _READ)


def _remove_folder(name: str, top: int) -> None:
    _open_up(name, top, stat.S_IRWXU)
    folder = os.open(name, _WALK, dir_fd=top)
    try:
        for _ in _emptied(folder, top):
            pass
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def _emptied(folder: int, top: int) -> Iterator[str]:
    """Unlink what is no folder; move the folders to the top, and yield the names of those that are there."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if not is_folder:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
        elif folder == top:
            yield name
        else:
            _open_up(name, folder, stat.S_IRWXU)  # a folder that may not be written cannot be moved
            os.rename(name, f".{secrets.token_hex(8)}", src_dir_fd=folder, dst_dir_fd=top)


def _open_up(name: str | Path, at: int | None, folder_mode: int) -> None:
    """Nothing to do for root, whom no mode stops."""
    mode = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
    wanted = folder_mode if stat.S_ISDIR(mode) else stat.S_IRUSR if stat.S_ISREG(mode) else 0
    if os.geteuid() and mode & wanted != wanted:
        os.chmod(name, stat.S_IMODE(mode) | wanted, dir_fd=at)
