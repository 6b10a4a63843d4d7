"""The verdict on a run: exit code, report and output must agree before `passed` is said. Pure.

A crash, a time limit, a compile error or a missing report never reads as "0 failed" (contracts, RunResult).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from devbay.answers import Counts, Failure, ReportSource, RunReason, RunStatus
from devbay.reports.records import Kind, Stop, TestCase

ReportProblem = Literal["missing", "truncated", "stale", "unreadable"]

# Exit codes of a process that a fatal signal ended, as a shell or an engine tells them (128 + n). Others
# above 128 may be anything: Mocha and Catch2 exit with the number of failures.
_SIGNALS = {129: "SIGHUP", 132: "SIGILL", 133: "SIGTRAP", 134: "SIGABRT", 135: "SIGBUS", 136: "SIGFPE",
            137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM", 159: "SIGSYS"}  # fmt: skip


class ExitLike(Protocol):
    """How a command ended, such as `devbay.runtimes.base.Exit`. code: negative: a signal; None: not known."""

    @property
    def code(self) -> int | None: ...
    @property
    def timed_out(self) -> bool: ...
    @property
    def oom_killed(self) -> bool: ...
    @property
    def cancelled(self) -> bool: ...


@dataclass(frozen=True)
class Ending:
    """How a command ended, where no runtime says it."""

    code: int | None
    timed_out: bool = False
    oom_killed: bool = False
    cancelled: bool = False


@dataclass(frozen=True)
class Reading:
    """What was read of a run's report or output, with paths of the repository.

    problem: what was wrong with the source, in words. See `records.Parsed` for the rest.
    """

    report: ReportSource
    counts: Counts | None
    failures: tuple[Failure, ...] = ()
    complete: bool = True
    problem: str | None = None
    tests: tuple[TestCase, ...] = ()
    stopped: Stop | None = None
    checker: bool = False
    hidden: int = 0


@dataclass(frozen=True)
class Verdict:
    """The parts of a RunResult that reports decide."""

    status: RunStatus
    reason: RunReason | None = None
    detail: str | None = None
    parsed: bool = False
    report: ReportSource | None = None
    counts: Counts | None = None
    failures: tuple[Failure, ...] = ()
    output: str | None = None

    def parts(self) -> dict[str, Any]:
        """Keyword arguments for `RunResult`: what is promised, and what is known."""
        known = {
            "reason": self.reason,
            "detail": self.detail,
            "report": self.report,
            "failures": list(self.failures),
            "output": self.output,
        }
        promised = {"status": self.status, "parsed": self.parsed, "counts": self.counts}
        return promised | {key: value for key, value in known.items() if value}


def verdict(
    exit: ExitLike,
    *,
    declared: bool,
    reading: Reading | None,
    problem: ReportProblem | None = None,
    detail: str | None = None,
    output: str | None = None,
    runner: str | None = None,
) -> Verdict:
    """Judge a run.

    declared: a report was named or asked for by `auto`. reading: what was read of it, or of the output in its
    place. problem: what was wrong with the named report; `detail` says it in words. output: the end of what
    was printed, for where nothing else tells what went wrong. runner: the test runner that the command names.
    """
    failures = _as_timeouts(reading.failures, exit) if reading else ()
    read = reading is not None
    base = Verdict(
        status="error",
        parsed=read,
        report=reading.report if reading else None,
        counts=reading.counts if reading else None,
        failures=failures,
    )
    status, reason, why = _judged(exit, declared, reading, problem, detail)
    if reading is None and runner and exit.code and reason is None:
        status, reason, why = "error", "unreported", f"{runner} exited {exit.code} and named no test"
    failures += _of_the_run(failures, reading, reason, why, exit.code)
    base = replace(base, failures=failures)
    quiet = status == "passed" or (failures and reason in ("tests_failed", "findings", "collection_error"))
    return replace(base, status=status, reason=reason, detail=why, output=None if quiet else output or None)


def signal_name(code: int | None) -> str | None:
    """The signal that ended a process, by its exit code; None if none did."""
    if code is None:
        return None
    return _SIGNALS.get(code) or (f"signal {-code}" if code < 0 else None)


_Judged = tuple[RunStatus, RunReason | None, str | None]


def _judged(
    exit: ExitLike,
    declared: bool,
    reading: Reading | None,
    problem: ReportProblem | None,
    detail: str | None,
) -> _Judged:
    if exit.cancelled:
        return "cancelled", "cancelled", None
    if exit.timed_out:
        return "timeout", "timeout", None
    if exit.oom_killed:
        return "error", "out_of_memory", "the command was killed for want of memory"
    killed = signal_name(exit.code)
    if killed and not (reading and _is_count(exit.code, reading)):
        return "error", "crash", f"the command was ended by {killed}"
    if reading is None:
        return _unread(exit, declared, problem, detail)
    return _read(exit, reading, problem, detail)


def _unread(exit: ExitLike, declared: bool, problem: ReportProblem | None, detail: str | None) -> _Judged:
    if problem == "stale":
        return "error", "report_stale", detail or "the report is older than the run"
    if declared:
        return "error", "no_report", detail or "the command left no report that can be read"
    if exit.code is None:
        return "error", "no_report", "neither an exit code nor output of a known runner was given"
    return ("passed" if exit.code == 0 else "failed"), None, None


def _read(exit: ExitLike, reading: Reading, problem: ReportProblem | None, detail: str | None) -> _Judged:
    kinds = {failure.kind for failure in reading.failures if failure.scope == "run"}
    truncated = problem == "truncated" or not reading.complete
    why = detail or reading.problem
    if reading.stopped == "timeout":
        return "timeout", "timeout", "the runner's own time limit ended the run"
    if reading.stopped == "crash" or "crash" in kinds:
        return "error", "crash", None
    if truncated:
        return "error", "report_truncated", why or "the report ends in the middle"
    if problem == "stale":
        return "error", "report_stale", why
    if reading.failures:
        return _failing(exit, reading)
    if reading.counts and (reading.counts.failed or reading.counts.errors):
        return ("failed", "tests_failed", None) if exit.code else ("failed", "unreported", _DISAGREE)
    if reading.hidden:
        return "error", "unreported", f"the report counts {reading.hidden} failures but lists none"
    if exit.code:
        return _green_but(exit, reading)
    if reading.counts is not None and reading.counts.total == 0 and not reading.checker:
        return "error", "no_tests", "no test ran"
    return "passed", None, None


EMPTY = "it is empty"
"""`Reading.problem` of a report without a byte in it: opened by a runner that did not come to write it."""

_DISAGREE = "failures are listed, but the command exited 0"


def _failing(exit: ExitLike, reading: Reading) -> _Judged:
    scopes = {failure.scope for failure in reading.failures}
    loading = any(
        f.scope in ("suite", "run") and f.phase is None and f.kind == "error" for f in reading.failures
    )
    if (
        scopes <= {"suite", "run"}
        and reading.counts is not None
        and reading.counts.total == 0
        and "suite" not in scopes
    ):
        return "error", "no_tests", None
    if loading and not scopes & {"test", "finding"}:
        return "error", "collection_error", None
    if scopes == {"finding"} and exit.code == 0:
        # warnings are the checker's to judge; errors are not undone by a pipe or an `|| true`
        bad = any(failure.kind == "error" for failure in reading.failures)
        return ("failed", "findings", _DISAGREE) if bad else ("passed", None, None)
    if exit.code == 0:
        return "failed", "unreported", _DISAGREE
    return "failed", "findings" if "finding" in scopes else "tests_failed", None


def _green_but(exit: ExitLike, reading: Reading) -> _Judged:
    if reading.problem == EMPTY:
        return "error", "no_report", f"the report is empty, and the command exited {exit.code}"
    if reading.counts is not None and reading.counts.total == 0 and not reading.checker:
        return "error", "no_tests", f"no test ran, and the command exited {exit.code}"
    return "error", "unreported", f"no failure is reported, but the command exited {exit.code}"


def _is_count(code: int | None, reading: Reading) -> bool:
    """Whether an exit code that could be a signal is the number of failures."""
    counts = reading.counts
    return counts is not None and code is not None and code > 0 and code == counts.failed + counts.errors


def _of_the_run(
    failures: Sequence[Failure],
    reading: Reading | None,
    reason: RunReason | None,
    why: str | None,
    code: int | None,
) -> tuple[Failure, ...]:
    """The record of what stopped the run (decision 38), where nothing that was read is one."""
    stopped = reason in ("crash", "timeout", "out_of_memory") or (
        reason == "unreported" if reading is None else reason == "no_report"
    )
    if not stopped or any(f.scope == "run" or f.kind == "crash" for f in failures):
        return ()
    kind: Kind = "timeout" if reason == "timeout" else "error" if reason == "no_report" else "crash"
    message = why or ("the run's time limit ended it" if kind == "timeout" else "the run ended early")
    return (Failure(name="(run)", kind=kind, scope="run", message=message),)


def _as_timeouts(failures: Sequence[Failure], exit: ExitLike) -> tuple[Failure, ...]:
    """Of a run that its time limit ended, the test that was running timed out; it did not crash."""
    if not exit.timed_out:
        return tuple(failures)
    return tuple(
        failure.model_copy(update={"kind": "timeout"})
        if failure.scope == "run" and failure.kind == "crash"
        else failure
        for failure in failures
    )
