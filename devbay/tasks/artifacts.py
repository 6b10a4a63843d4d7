"""Where a run's report is and whether it is of this run; which files appeared while it ran."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from devbay.manifest import Report
from devbay.worktrees import beneath

RUN_DIR_PREFIX = "${run.dir}/"


@dataclass(frozen=True)
class ReportPlace:
    """A declared report on the host. `relative` is its path below `base`, which is trusted."""

    format: str
    base: Path
    relative: PurePosixPath
    in_worktree: bool

    @property
    def path(self) -> Path:
        return self.base / self.relative

    def mark(self) -> tuple[int, int, int] | None:
        """Identity of what is there now (inode, size, mtime in ns), to tell a stale report from a new one."""
        try:
            found = os.lstat(self.path)
        except OSError:
            return None
        return (found.st_ino, found.st_size, found.st_mtime_ns)


def report_place(report: Report, worktree: Path, run_dir: Path) -> ReportPlace:
    """Below the run's folder for `${run.dir}/...`, else below the worktree. The path was confined on load."""
    if report.path.startswith(RUN_DIR_PREFIX):
        relative = PurePosixPath(report.path.removeprefix(RUN_DIR_PREFIX))
        return ReportPlace(report.format, run_dir, relative, in_worktree=False)
    return ReportPlace(report.format, worktree, PurePosixPath(report.path), in_worktree=True)


def ensure_parent(place: ReportPlace) -> None:
    """Make the report's folder, as the user, without following a link out of the base."""
    folder = os.open(place.base, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in place.relative.parent.parts:
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
