"""File work below a folder that a container may have written to: no link is ever followed.

Paths below the folder are opened one component at a time with `O_NOFOLLOW`, so that a link swapped in while
devbay works leads nowhere.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from devbay.errors import DevbayError

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}
MAX_DEPTH = 64


@contextmanager
def disk_errors(what: str) -> Iterator[None]:
    """Tell what the system refuses (no space, no permission, ...) as the error `disk_failed`."""
    try:
        yield
    except OSError as error:
        raise DevbayError(
            "disk_failed",
            f"{what}: {error.strerror or error}" + (f": {error.filename}" if error.filename else ""),
            next="make room or correct the permissions, then repeat",
            exit_code=1,
        ) from error


def parts_of(relative: str) -> list[str]:
    """The components of a relative path; raises `path_escapes` for absolute paths and `..`."""
    parts = [part for part in relative.split("/") if part not in ("", ".")]
    if relative.startswith("/") or ".." in parts or not parts:
        raise DevbayError("path_escapes", f"{relative!r} does not stay below its folder")
    return parts


@contextmanager
def parent_of(root: Path, relative: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """A descriptor of the folder that holds `relative`, and the last name. `make` makes missing folders.

    Raises OSError (`ELOOP` or `ENOTDIR` where a component is a link).
    """
    *folders, name = parts_of(relative)
    current = os.open(root, DIRECTORY)
    try:
        for folder in folders:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=current)
            below = os.open(folder, DIRECTORY, dir_fd=current)
            os.close(current)
            current = below
        yield current, name
    finally:
        os.close(current)


@contextmanager
def open_regular(root: Path, relative: str) -> Iterator[int | None]:
    """A descriptor of a regular file; None if it is missing, is anything else, or lies behind a link."""
    descriptor = None
    try:
        try:
            with parent_of(root, relative) as (folder, name):
                descriptor = os.open(name, FILE, dir_fd=folder)
        except OSError as error:
            if error.errno not in NOT_THERE:
                raise
        if descriptor is not None and not stat.S_ISREG(os.fstat(descriptor).st_mode):
            yield None
        else:
            yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def digest(root: Path, relative: str) -> str | None:
    """sha256 of a regular file in hex; None if it is missing, is anything else, or lies behind a link."""
    with open_regular(root, relative) as descriptor:
        if descriptor is None:
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def read_text(root: Path, relative: str, *, limit: int) -> str | None:
    """A regular file's text; None as for `digest`, and if it is longer than `limit` bytes or not UTF-8."""
    with open_regular(root, relative) as descriptor:
        if descriptor is None or os.fstat(descriptor).st_size > limit:
            return None
        with open(descriptor, "rb", closefd=False) as file:
            raw = file.read(limit + 1)
    try:
        return raw.decode() if len(raw) <= limit else None
    except UnicodeDecodeError:
        return None


def kind(root: Path, relative: str) -> int | None:
    """The file type bits (`stat.S_IFMT`) of what is there, links not followed; None if nothing is."""
    try:
        with parent_of(root, relative) as (folder, name):
            return stat.S_IFMT(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError as error:
        if error.errno in NOT_THERE:
            return None
        raise


def save(source: Path, relative: str, target: Path) -> bool:
    """Copy a file, link or folder to the same relative place below `target`; False if it is not there.

    Regular files are hard-linked where they can be (their owners are about to be removed), else copied.
    Special files are left out. What `target` already holds stays, so that a repeat goes on.
    """
    try:
        with parent_of(source, relative) as (folder, name):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            with parent_of(target, relative, make=True) as (into, into_name):
                _save(folder, name, into, into_name, found.st_mode)
    except OSError as error:
        if error.errno in NOT_THERE:
            return False
        raise
    return True


def _save(folder: int, name: str, into: int, into_name: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        with suppress(FileExistsError):
            os.mkdir(into_name, 0o700, dir_fd=into)
        below, into_below = (
            os.open(name, DIRECTORY, dir_fd=folder),
            os.open(into_name, DIRECTORY, dir_fd=into),
        )
        try:
            for entry in sorted(os.listdir(below)):  # noqa: PTH208 - a descriptor
                inner = os.stat(entry, dir_fd=below, follow_symlinks=False).st_mode
                _save(below, entry, into_below, entry, inner)
        finally:
            os.close(below)
            os.close(into_below)
    elif exists(into, into_name):
        return
    elif stat.S_ISLNK(mode):
        os.symlink(os.readlink(name, dir_fd=folder), into_name, dir_fd=into)
    elif stat.S_ISREG(mode):
        try:
            os.link(name, into_name, src_dir_fd=folder, dst_dir_fd=into, follow_symlinks=False)
        except OSError:  # another file system, another owner, or no hard links: copy
            copy_file(folder, name, into, into_name)


def exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def copy_file(folder: int, name: str, into: int, into_name: str) -> None:
    """Copy a regular file with its permission bits; at no moment is half of it under its name."""
    draft = f".{into_name[:200]}.devbay-part"
    with suppress(FileNotFoundError):
        os.unlink(draft, dir_fd=into)
    source = os.open(name, FILE, dir_fd=folder)
    try:
        mode = os.fstat(source).st_mode
        if not stat.S_ISREG(mode):
            return
        target = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=into)
        with open(source, "rb", closefd=False) as reader, open(target, "wb") as writer:  # noqa: PTH123
            shutil.copyfileobj(reader, writer, 1 << 20)
            os.fchmod(target, stat.S_IMODE(mode) & 0o777)
    finally:
        os.close(source)
    os.rename(draft, into_name, src_dir_fd=into, dst_dir_fd=into)


def remove_tree(path: Path) -> dict[str, str]:
    """Delete a folder and all below it; returns what could not be deleted, with the reason.

    Read-only folders are opened up. Other file systems mounted below are left and reported. Depth does not
    matter: what lies too deep is moved up first. A missing folder is nothing to do.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return {}
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "not a directory", str(path))
    left: dict[str, str] = {}
    with _opened(path.name, os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as root:
        while _empty(root, root, found.st_dev, "", 0, left):
            continue
    if not left:
        try:
            path.rmdir()
        except OSError as error:
            left["."] = os.strerror(error.errno or 0)
    return {str(path / name): reason for name, reason in left.items()}


def _empty(root: int, folder: int, device: int, shown: str, depth: int, left: dict[str, str]) -> bool:
    """Delete what is in `folder`; True if something too deep was moved to `root` and waits there."""
    moved = False
    with os.scandir(folder) as listing:
        entries = list(listing)
    for entry in entries:
        name, place = entry.name, f"{shown}{entry.name}"
        if place in left:
            continue
        try:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(name, dir_fd=folder)
            elif (found := os.stat(name, dir_fd=folder, follow_symlinks=False)).st_dev != device:
                left[place] = "another file system is mounted here"
            elif depth >= MAX_DEPTH:
                os.rename(name, f".devbay-deep-{found.st_ino}", src_dir_fd=folder, dst_dir_fd=root)
                moved = True
            else:
                known = len(left)
                with _opened(name, os.dup(folder)) as below:
                    moved |= _empty(root, below, device, f"{place}/", depth + 1, left)
                if len(left) == known:
                    os.rmdir(name, dir_fd=folder)
                else:
                    left[place] = "not empty"
        except FileNotFoundError:
            continue
        except OSError as error:
            left[place] = os.strerror(error.errno or 0)
    return moved


@contextmanager
def _opened(name: str, parent: int) -> Iterator[int]:
    """A descriptor of the folder `name` in `parent` (closed here), readable and writable if it is ours."""
    try:
        try:
            folder = os.open(name, DIRECTORY, dir_fd=parent)
        except PermissionError:
            if sys.platform != "linux":
                os.chmod(name, 0o700, dir_fd=parent, follow_symlinks=False)
            else:  # Linux changes no mode without following links, except through an O_PATH descriptor
                place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
                try:
                    Path(f"/proc/self/fd/{place}").chmod(0o700)
                finally:
                    os.close(place)
            folder = os.open(name, DIRECTORY, dir_fd=parent)
    finally:
        os.close(parent)
    try:
        found = os.fstat(folder)
        if found.st_mode & 0o700 != 0o700 and found.st_uid == os.geteuid():
            os.fchmod(folder, 0o700 | stat.S_IMODE(found.st_mode))
        yield folder
    finally:
        os.close(folder)
