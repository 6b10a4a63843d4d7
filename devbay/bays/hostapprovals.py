"""What a worktree's commands of this machine ask for, worked out again only when a file they name changed."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from devbay.errors import DevbayError
from devbay.manifest import Capability, Loaded
from devbay.manifest.onhost import asked_of
from devbay.security.host_commands import host_capabilities
from devbay.security.named_scripts import File
from devbay.worktrees import beneath

MAX_TEXT = 256 * 1024
MAX_HASHED = 64 * 1024 * 1024
MAX_ENTRIES = 2000
_SETTLED_S = 0.1
"""A file written again so soon can have the same times as before (those of ext4 move every 4 ms)."""

_Mark = tuple[int, ...] | None
_Key = tuple[Path, str, bool]


class HostApprovals:
    """Keeps the last answer for each worktree, for as long as every file looked at is the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[_Key, tuple[dict[str, tuple[_Mark, _Mark]], list[Capability]]] = {}

    def capabilities(self, loaded: Loaded, worktree: Path, *, whole: bool) -> list[Capability]:
        """Those of kind `host` that a valid manifest asks for in a worktree.

        whole: the services run on this machine, not in containers.
        """
        manifest = loaded.require()
        if not asked_of(manifest, whole=whole):
            return []
        key = (worktree, loaded.digest, whole)
        with self._lock:
            known = self._known.get(key)
        if known is not None and all(marks(worktree, path) == mark for path, mark in known[0].items()):
            return known[1]
        files = WorktreeFiles(worktree)
        began = time.time()
        found = host_capabilities(manifest, files, whole=whole)
        settled = all(
            mark is None or max(mark[-2:]) / 1e9 < began - _SETTLED_S
            for both in files.seen.values()
            for mark in both
        )
        with self._lock:
            for old in [each for each in self._known if each[0] == worktree and each[2] == whole]:
                del self._known[old]
            if settled:
                self._known[key] = (files.seen, found)
        return found


class WorktreeFiles:
    """A worktree as approvals look at it (`named_scripts.Files`); `seen` has the marks of all looked at.

    Links are followed inside the worktree only, and what is opened is opened without following any.
    """

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))
        self.seen: dict[str, tuple[_Mark, _Mark]] = {}

    def look(self, path: str) -> File:
        self.seen.setdefault(path, marks(self._root, path))
        real = self._inside(path)
        if real is None:
            return File("outside", path)
        try:
            return self._read(real)
        except (OSError, DevbayError):  # swapped meanwhile, or not to be read: nothing that can be covered
            return File("other", real)

    def names(self, path: str) -> Sequence[str]:
        self.seen.setdefault(path, marks(self._root, path))
        real = self._inside(path)
        if real is None:
            return []
        try:
            return sorted(os.listdir(self._root / real))[:MAX_ENTRIES]  # noqa: PTH208 - names alone
        except OSError:
            return []

    def _inside(self, path: str) -> str | None:
        """Where a path leads, relative to the worktree; None outside."""
        try:
            real = Path(os.path.realpath(self._root / path))
        except ValueError:  # a NUL
            return None
        return str(real.relative_to(self._root)) if real.is_relative_to(self._root) else None

    def _read(self, path: str) -> File:
        kind = beneath.kind(self._root, path) if path != "." else stat.S_IFDIR
        if kind is None:
            return File("missing", path)
        if kind == stat.S_IFDIR:
            return File("folder", path)
        with beneath.open_regular(self._root, path) as descriptor:
            if descriptor is None:
                return File("other", path)
            found = os.fstat(descriptor)
            if found.st_size > MAX_HASHED:
                return File("other", path)
            with open(descriptor, "rb", closefd=False) as file:
                head = file.read(MAX_TEXT + 1)
                digest = hashlib.sha256(head)
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
        text = _text(head)
        can_run = bool(found.st_mode & 0o111)
        if text is None:
            return File("data", path, digest=digest.hexdigest(), executable=can_run)
        return File("text", path, text, digest.hexdigest(), can_run)


def marks(root: Path, path: str) -> tuple[_Mark, _Mark]:
    """Identity, size and times of what stands at a path, and of what it leads to."""
    return _mark(root / path, os.lstat), _mark(root / path, os.stat)


def _mark(path: Path, look: Callable[[Path], os.stat_result]) -> _Mark:
    try:
        found = look(path)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _text(head: bytes) -> str | None:
    if len(head) > MAX_TEXT or b"\0" in head:
        return None
    try:
        return head.decode()
    except UnicodeDecodeError:
        return None
