"""The result of a run in a bay: its declared report and its log, judged together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from devbay.reports.paths import PathMapper
from devbay.reports.reading import conclude
from devbay.reports.records import TestCase
from devbay.reports.source import Source
from devbay.reports.verdict import ExitLike


class DeclaredReport(Protocol):
    """What a manifest declares of a report (`devbay.manifest.Report` is one)."""

    @property
    def format(self) -> str: ...
    @property
    def path(self) -> str: ...


@dataclass(frozen=True)
class RunReport:
    """The report of one run.

    declared: what the manifest names, or None. auto: the manifest says `report: auto`. path: where the report
    is on this machine, below the trusted folder `beneath`; no link on the way is followed. fresh: False if
    what is there was there before the run. started_at: seconds since the epoch.
    """

    declared: DeclaredReport | None = None
    path: Path | None = None
    beneath: Path | None = None
    fresh: bool = True
    started_at: float = 0.0
    auto: bool = False


@dataclass(frozen=True)
class Judged:
    """fields: what a RunResult gets of it, uncut. tests: every test, for the history."""

    fields: dict[str, Any]
    tests: tuple[TestCase, ...]


def judge(
    ending: ExitLike,
    report: RunReport,
    *,
    log: Path,
    argv: Sequence[str] = (),
    root: Path,
    cwd: str | None = None,
    mounts: Mapping[str, Path] | None = None,
) -> Judged:
    """Judge a run that is over. log: the file of what was printed (it may be missing). root: the worktree.

    cwd: the folder the command ran in, as its container named it. mounts: further container paths at which
    folders of the worktree are mounted. Nothing about a report raises.
    """
    declared = report.declared
    reports = []
    if declared is not None and report.path is not None:
        reports = [Source(declared.path, path=report.path, beneath=report.beneath)]
    output = [Source("output", path=log)] if log.is_file() else []
    concluded = conclude(
        ending,
        reports=reports,
        output=output,
        mapper=PathMapper.of_run(root, cwd, mounts),
        declared=declared is not None or report.auto,
        format=declared.format if declared is not None else "auto",
        argv=argv,
        fresh=report.fresh,
    )
    tests = concluded.reading.tests if concluded.reading is not None else ()
    return Judged(concluded.verdict.parts(), tests)
