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


RUN_DIR = "${run.dir}/"


@dataclass(frozen=True)
class NamedReport:
    """A report by format and path, as a manifest would declare it."""

    format: str
    path: str


@dataclass(frozen=True)
class RunReport:
    """The report of one run.

    declared: what the manifest names or was asked of the runner, or None. auto: the manifest says
    `report: auto`. path: where the report is on this machine, below the trusted folder `beneath`; no link
    on the way is followed. files: the files of a pattern or a folder, in place of `path`. fresh: False if
    what is there was there before the run. asked: what was asked of the runner, in words. due: False if the
    runner may do without that report.
    """

    declared: DeclaredReport | None = None
    path: Path | None = None
    beneath: Path | None = None
    fresh: bool = True
    auto: bool = False
    files: tuple[Path, ...] = ()
    asked: str = ""
    due: bool = True


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
    reports = _sources(report)
    output = [Source("output", path=log)] if log.is_file() else []
    concluded = conclude(
        ending,
        reports=reports,
        output=output,
        mapper=PathMapper.of_run(root, cwd, mounts),
        declared=report.auto or (declared is not None and report.due),
        format=declared.format if declared is not None else "auto",
        argv=argv,
        fresh=report.fresh,
    )
    tests = concluded.reading.tests if concluded.reading is not None else ()
    fields = concluded.verdict.parts()
    if report.asked and "report" in fields:
        fields["report"] = fields["report"].model_copy(update={"asked": report.asked})
    return Judged(fields, tests)


def _sources(report: RunReport) -> list[Source]:
    """The reports by the names that a result gives them: as declared, or below the folder they are in."""
    declared, beneath = report.declared, report.beneath
    if declared is None or report.path is None:
        return []
    prefix = RUN_DIR if declared.path.startswith(RUN_DIR) else ""
    sources = []
    for path in report.files or (report.path,):
        label = declared.path
        if path != report.path and beneath is not None:
            label = f"{prefix}{path.relative_to(beneath)}"
        sources.append(Source(label, path=path, beneath=beneath))
    return sources
