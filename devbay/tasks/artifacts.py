"""Where a run's report is and whether it is of this run; which files appeared while it ran."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from devbay.manifest import Report
from devbay.worktrees import beneath

RUN_DIR_PREFIX = "${run.dir}/"


MAX_FILES = 2_000
MAX_ENTRIES = 200_000
"""Bounds on the reports of one pattern, and on what is looked at to find them."""

_WILDCARD = re.compile(r"[*?\[]")
_SKIPPED = {".git", "node_modules"}
Mark = tuple[int, int, int]
"""Identity of a file's content: inode, size, mtime in ns."""


@dataclass(frozen=True)
class ReportPlace:
    """A declared report on the host. `relative` is its path below `base`, which is trusted.

    It may be a pattern (`*`, `?`, `[...]` in a name, `**` for folders), or a folder of reports. label: what
    the report is called in a result, where it is one file.
    """

    format: str
    base: Path
    relative: PurePosixPath
    in_worktree: bool
    label: str = ""

    @property
    def path(self) -> Path:
        return self.base / self.relative

    def marks(self) -> dict[Path, Mark]:
        """The regular files there are now, to tell stale reports from new ones; no link is followed."""
        found: dict[Path, Mark] = {}
        for relative, entry in _matching(self.base, self.relative.parts, self.format):
            if len(found) == MAX_FILES:
                break
            found[self.base / relative] = (entry.st_ino, entry.st_size, entry.st_mtime_ns)
        return dict(sorted(found.items()))


def report_place(report: Report, worktree: Path, run_dir: Path) -> ReportPlace:
    """Below the run's folder for `${run.dir}/...`, else below the worktree. The path was confined on load."""
    if report.path.startswith(RUN_DIR_PREFIX):
        relative = PurePosixPath(report.path.removeprefix(RUN_DIR_PREFIX))
        return ReportPlace(report.format, run_dir, relative, in_worktree=False, label=report.path)
    return ReportPlace(
        report.format, worktree, PurePosixPath(report.path), in_worktree=True, label=report.path
    )


def _matching(base: Path, parts: tuple[str, ...], format: str) -> Iterator[tuple[str, os.stat_result]]:
    """(Path below base, stat) of regular files that a pattern fits, or that are in the folder it names."""
    pending: list[tuple[str, tuple[str, ...]]] = [("", parts)]
    seen = 0
    while pending:
        folder, (part, *rest) = pending.pop()
        if not _WILDCARD.search(part):
            entries = [part]
        else:
            try:
                entries = sorted((each.name for each in (base / folder).iterdir()), reverse=True)
            except OSError:
                continue  # it went, or is not for the user to read
        if part == "**" and rest:
            pending.append((folder, tuple(rest)))
        for name in entries:
            seen += 1
            if seen > MAX_ENTRIES:
                return
            if part != "**" and part != name and not fnmatchcase(name, part):
                continue
            path = f"{folder}/{name}" if folder else name
            try:
                entry = os.lstat(base / path)
            except OSError:
                continue
            if stat.S_ISDIR(entry.st_mode):
                if part == "**" and name not in _SKIPPED:
                    pending.append((path, (part, *rest)))
                elif part != "**" and (rest or part == name):
                    pending.append((path, tuple(rest) or ("**", f"*{_suffix(format)}")))
            elif stat.S_ISREG(entry.st_mode) and not rest:
                yield path, entry


def _suffix(format: str) -> str:
    """How reports of a format end, for a folder that holds other files too."""
    for word in ("json", "tap", "sarif", "trx"):
        if word in format:
            return f".{word}"
    return ".xml"


def ensure_parent(place: ReportPlace) -> None:
    """Make the report's folder, as the user, without following a link out of the base."""
    folder = os.open(place.base, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in place.relative.parent.parts:
            if _WILDCARD.search(part):
                return
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=folder)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            try:
                inner = os.open(part, flags, dir_fd=folder)
            except OSError:
                return  # a link or a file stands there: the report will be missing, and said to be
            os.close(folder)
            folder = inner
    finally:
        os.close(folder)


def digests(worktree: Path, paths: list[str], *, limit: int = 2000) -> dict[str, str]:
    """sha256 of the regular files among `paths` (relative to the worktree); links are never followed."""
    found = {path: beneath.digest(worktree, path) for path in paths[:limit]}
    return {path: digest for path, digest in found.items() if digest is not None}
