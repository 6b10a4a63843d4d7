"""From a run's sources to one reading of it: which format, which source, mapped to the repository.

The report that was named comes first; where it is missing, or says nothing though the command failed, the
output is read too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from devbay.answers import Failure, ReportSource
from devbay.errors import DevbayError
from devbay.reports.findings import as_broken_build
from devbay.reports.locate import place
from devbay.reports.paths import PathMapper
from devbay.reports.plain import readable, tail
from devbay.reports.records import Parsed, count, merge
from devbay.reports.registry import CHECKERS, Format, candidates, named, of_command, recognised, runs_tests
from devbay.reports.source import Source, joined
from devbay.reports.verdict import EMPTY, ExitLike, Reading, ReportProblem, Verdict, verdict

OUTPUT_TAIL = 4_000


@dataclass(frozen=True)
class Concluded:
    """The verdict on a run and its tests for the history (paths mapped)."""

    verdict: Verdict
    reading: Reading | None


def conclude(
    exit: ExitLike,
    *,
    reports: Sequence[Source],
    output: Sequence[Source],
    mapper: PathMapper,
    declared: bool,
    format: str = "auto",
    argv: Sequence[str] = (),
    fresh: bool = True,
) -> Concluded:
    """Judge a run that is over.

    reports: the report files that were named (they may not exist). output: what the command printed, in order
    (stdout and stderr, or both in one). format: `auto` or a format's name, of the reports and, if there are
    none, of the output. fresh: False if the report was there before the run and is unchanged: then it is
    stale and not believed.
    Raises `unknown_format`; a report that is missing or broken is part of the verdict.
    """
    chosen = None if format == "auto" else named(format)
    reading, problem, detail = _of_reports(reports, chosen, mapper, fresh)
    if reading is None or exit.code != 0:
        printed = _of_output(output, None if reports else chosen, argv, mapper)
        if exit.code and printed and not chosen:
            printed = _with_findings(printed, output, mapper)
        reading = _supplemented(reading, printed)
    known = chosen or of_command(argv)
    judged = verdict(
        exit,
        declared=declared,
        reading=reading,
        problem=problem,
        detail=detail,
        output=_tail(output),
        runner=known.name if known else None,
    )
    return Concluded(judged, reading)


def _of_reports(
    reports: Sequence[Source], chosen: Format | None, mapper: PathMapper, fresh: bool
) -> tuple[Reading | None, ReportProblem | None, str | None]:
    parsed: list[Parsed] = []
    used: list[Source] = []
    formats: list[str] = []
    problem: ReportProblem | None = "missing" if not reports else None
    detail: str | None = None
    for source in reports:
        try:
            found, name = _parsed(source, chosen)
            if not fresh:
                problem, detail = (
                    "stale",
                    f"{source.label} was there before the run, and the run left it as it was",
                )
                continue
        except DevbayError as error:
            problem = "missing" if error.code == "report_missing" else "unreadable"
            detail = error.message
            continue
        if found is None:
            problem, detail = "unreadable", f"{source.label} is in no known report format"
            continue
        parsed.append(found)
        used.append(source)
        formats.append(name)
    if not parsed:
        return None, problem, detail
    merged = merge(parsed)
    label = used[0].label if len(used) == 1 else f"{used[0].label} and {len(used) - 1} more"
    reading = _mapped(merged, ReportSource(format=formats[0], source=label), mapper)
    if not merged.complete:
        problem, detail = "truncated", merged.problem and f"{used[0].label}: {merged.problem}"
    return reading, problem, detail


def _parsed(source: Source, chosen: Format | None) -> tuple[Parsed | None, str]:
    sample = source.sample()
    if not sample.strip(b"\0 \t\r\n\xef\xbb\xbf"):
        return Parsed(counts=count(), problem=EMPTY), chosen.name if chosen else "empty"
    known = chosen or recognised(sample)
    return (known.read(source), known.name) if known else (None, "")


def _of_output(
    output: Sequence[Source], chosen: Format | None, argv: Sequence[str], mapper: PathMapper
) -> Reading | None:
    """What a runner printed, if it is one that is known."""
    samples = [source.sample() for source in output]
    if not any(sample.strip() for sample in samples):
        return None
    whole = joined(output)
    first: Reading | None = None
    for known in (chosen,) if chosen else candidates(b"\n".join(samples), argv):
        parsed = known.read(whole)
        if parsed.checker and runs_tests(argv) and (broken := as_broken_build(parsed.failures)):
            parsed = replace(parsed, counts=None, failures=broken, checker=False)
        if parsed.counts is None and not parsed.failures:
            continue
        reading = _mapped(parsed, ReportSource(format=known.name, source=whole.label), mapper)
        total = parsed.counts.total if parsed.counts else 0
        if total or any(found.scope != "run" for found in parsed.failures):
            return reading
        first = first or reading  # at most it says that the run ended: another format may say why
    return first


def _with_findings(reading: Reading, output: Sequence[Source], mapper: PathMapper) -> Reading:
    """Of a failed command whose tests all passed: with the errors that a checker beside them printed."""
    stopped = reading.stopped or not reading.complete
    if reading.checker or stopped or any((f.scope, f.kind) != ("run", "error") for f in reading.failures):
        return reading
    sample = b"\n".join(source.sample() for source in output)
    checker = next((each for each in CHECKERS if each.sniff(sample)), None)
    if checker is None:
        return reading
    found = _mapped(checker.read(joined(output)), reading.report, mapper).failures
    errors = tuple(each for each in found if each.kind == "error" and each.file)
    return replace(reading, failures=(*errors, *reading.failures)) if errors else reading


def _mapped(parsed: Parsed, report: ReportSource, mapper: PathMapper) -> Reading:
    return Reading(
        report=report,
        counts=parsed.counts,
        failures=tuple(place(found, mapper) for found in parsed.failures),
        complete=parsed.complete,
        problem=parsed.problem,
        tests=tuple(
            replace(test, file=mapper.own(test.file) if test.file else None) for test in parsed.tests
        ),
        stopped=parsed.stopped,
        checker=parsed.checker,
        hidden=parsed.hidden,
    )


def _supplemented(reading: Reading | None, printed: Reading | None) -> Reading | None:
    """A report, with what it leaves to the output: what stopped the run, and why suites did not load.

    The output alone for want of a report.
    """
    if reading is None or printed is None:
        return reading or printed
    if not reading.counts or not reading.counts.total:
        return printed if printed.failures or printed.counts else reading
    more = tuple(f for f in printed.failures if f.scope in ("run", "suite") or _found_beside(f, reading))
    if reading.failures:
        return replace(reading, failures=_left_out(reading.failures, more))
    return replace(reading, failures=more, stopped=reading.stopped or printed.stopped)


def _found_beside(failure: Failure, reading: Reading) -> bool:
    """Whether a checker that ran beside tests that passed found it."""
    return failure.scope == "finding" and not reading.failures


def _left_out(listed: tuple[Failure, ...], printed: tuple[Failure, ...]) -> tuple[Failure, ...]:
    """A report's failures, with what only the output tells of suites: why one broke, a failed set-up."""
    suites = tuple(each for each in printed if each.scope == "suite" and each.file)
    if suites and any(map(_unlocated, listed)):
        return (*(each for each in listed if not _unlocated(each)), *suites)
    places = {(each.file, each.line) for each in listed}
    return (*listed, *(each for each in suites if each.phase and (each.file, each.line) not in places))


def _unlocated(failure: Failure) -> bool:
    """Whether a report only says that a suite did not load or build."""
    return failure.scope == "suite" and failure.file is None and failure.kind == "error"


def _tail(output: Sequence[Source]) -> str | None:
    """The end of what was printed, as a person would read it."""
    ends = [source.sample()[-4 * OUTPUT_TAIL :].decode("utf-8", "replace") for source in output]
    return tail(readable("\n".join(end for end in ends if end.strip())), OUTPUT_TAIL) or None
