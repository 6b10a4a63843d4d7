"""Manifests as they are on disk now: read again when the file changes, validated every time they are read."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from devbay.manifest import Loaded, load
from devbay.manifest.load import NAMES

Mark = tuple[tuple[int, int, int, int] | None, ...]


class Manifests:
    """Keeps the last reading of each folder's manifest, for as long as the file is the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Path, tuple[Mark, Loaded]] = {}

    def load(self, folder: Path) -> Loaded:
        """As `devbay.manifest.load`; raises `no_manifest` and `bad_manifest_file`."""
        mark = _mark(folder)
        with self._lock:
            known = self._known.get(folder)
        if known is not None and known[0] == mark:
            return known[1]
        loaded = load(folder)
        with self._lock:
            self._known[folder] = (mark, loaded)
        return loaded


def _mark(folder: Path) -> Mark:
    """Identity and times of every file that could be the manifest (links followed: their target counts)."""
    marks: list[tuple[int, int, int, int] | None] = []
    for name in NAMES:
        try:
            found = os.stat(folder / name)  # noqa: PTH116 - one call, also through links
        except OSError:
            marks.append(None)
        else:
            marks.append((found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
    return tuple(marks)
