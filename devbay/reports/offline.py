"""`devbay report`: a RunResult from output that exists already, without a bay.

The same readers as a run's; every failure, ungrouped and uncut.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from devbay.answers import RunResult
from devbay.errors import DevbayError
from devbay.reports.budget import whole
from devbay.reports.paths import PathMapper
from devbay.reports.reading import conclude
from devbay.reports.source import Source
from devbay.reports.verdict import Ending

MAX_STDIN = 512 * 1024 * 1024


def report(
    files: Sequence[str] = (),
    *,
    format: str = "auto",
    root: str | None = None,
    cwd: str | None = None,
    stdout: str | None = None,
    stderr: str | None = None,
    exit_code: int | None = None,
    timed_out: bool = False,
    argv: Sequence[str] = (),
) -> RunResult:
    """Read reports and output.

    files: report files; `-` is standard input. stdout, stderr: files of what was printed. With nothing at all
    given, standard input is read as output. root: the checkout that paths are mapped to. cwd: the folder the
    command ran in, as the output names it. Raises `unknown_format`, `bad_root`, `bad_report` (a directory, a
    FIFO), `report_missing` (a file that does not exist).
    """
    if root is not None and not Path(root).is_dir():
        raise DevbayError("bad_root", f"--root {root} is not a directory", next="name the checkout's folder")
    output = [_source(path, label) for path, label in ((stdout, "stdout"), (stderr, "stderr")) if path]
    if not files and not output:
        output = [_source("-", "stdin")]
    reports = [_source(path, path) for path in files]
    for source in (*reports, *output):
        source.sample()  # a wrong argument is the caller's error, not a verdict on the run
    concluded = conclude(
        Ending(exit_code, timed_out),
        reports=reports,
        output=output,
        mapper=PathMapper.as_named(Path(root).absolute() if root else None, cwd),
        declared=bool(reports),
        format=format,
        argv=argv,
    )
    parts = concluded.verdict.parts()
    if failures := parts.get("failures"):
        parts["failures"] = [whole(failure) for failure in failures]
    if exit_code is not None:
        parts["exit_code"] = exit_code
    return RunResult(**parts)


def _source(path: str, label: str) -> Source:
    if path != "-":
        return Source(label, path=Path(path))
    data = sys.stdin.buffer.read(MAX_STDIN + 1)
    if len(data) > MAX_STDIN:
        raise DevbayError(
            "too_much_input", "standard input is over 512 MiB", next="give the output as a file"
        )
    return Source("stdin", data=data)
