"""What `go test` prints for people, with and without `-v`, and what gotestsum makes of it.

Source: `testing` of Go 1.12 to 1.24, gotestsum 1.8 to 1.12 (`testjson/summary.go`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from devbay.reports.go_blocks import is_panic
from devbay.reports.go_tests import Package, Run, Test
from devbay.reports.plain import plain
from devbay.reports.records import Found, Outcome, Parsed, count
from devbay.reports.source import Source

name = "gotest"
commands = frozenset({"gotestsum"})

MAX_WIDTH = 4_000

_OUTCOMES: dict[str, Outcome] = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped", "BENCH": "passed"}
_MARK = re.compile(r"^=== (?P<what>RUN|PAUSE|CONT|NAME) +(?P<test>\S.*?)$")
_ENDED = re.compile(
    r"^(?P<before>.*?)--- (?P<what>PASS|FAIL|SKIP|BENCH): (?P<test>\S+) \((?P<seconds>[\d.]+)s\)$"
)
_PACKAGE = re.compile(
    r"^(?P<what>ok  |FAIL|---|\?   )\t(?P<package>\S+)(?:\t(?P<rest>.*)| \[(?P<why>[\w ]+)\])?$"
)
_SUMMED = re.compile(r"^=== (?P<what>FAIL|SKIP): (?P<package>\S+) (?P<test>\S*)(?: \(re-run \d+\))? \(.*\)$")
_SECTION = re.compile(r"^=== (?P<what>Skipped|Failed|Errors|Output)$")
_DONE = re.compile(
    r"^DONE (?:\d+ runs, )?(?P<tests>\d+) tests?(?:, (?P<skipped>\d+) skipped)?"
    r"(?:, (?P<failed>\d+) failures?)?(?:, (?P<errors>\d+) errors?)? in [\d.ms]+s?$"
)
_NO_TESTS = re.compile(r"\[no test(?:s to run| files)\]")
_GO_SAYS = re.compile(
    r"^(?:go: |go test: |pattern \S+: |no Go files in |flag provided but not defined)(?P<text>.*)"
)
_SNIFF = re.compile(
    rb"^(?:ok  |FAIL|\?   )\t\S+(?:\t| \[)"
    rb"|^[^\n]{0,300}?--- (?:PASS|FAIL|SKIP): [A-Z]\S* \(\d+\.\d\ds\)$|^=== RUN   \S"
    rb"|^=== (?:FAIL|SKIP): \S+ \S* ?\(|^DONE (?:\d+ runs, )?\d+ tests?\b[^\n]* in [\d.ms]+s?$",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether the bytes hold a result of a Go test or package."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """What `go test` said; of output without `-v` only what failed and how often."""
    reader = _Reader()
    for raw in source.lines():
        reader.take(plain(raw).rsplit("\r", 1)[-1][:MAX_WIDTH])
    return reader.result()


@dataclass
class _Ended:
    """The test whose result was printed last: what is indented below it is its own."""

    test: Test
    depth: int


class _Reader:
    def __init__(self) -> None:
        self.run = Run()
        self.summed: Run | None = None
        self.summed_package: Package | None = None
        self.package = Package.of(self.run)
        self.current: Test | None = None
        self.ended: _Ended | None = None
        self.verbose = False
        self.without_tests = True
        self.silent_pass = False
        self.in_trace = False
        self.said: list[str] = []
        self.section = ""
        self.done: re.Match[str] | None = None
        self.unsummed = 0

    def take(self, line: str) -> None:
        if self.section and not (done := _DONE.match(line)):
            self._summary(line)
        elif self.section:
            self.done, self.section = done, ""
        elif section := _SECTION.match(line):
            self._open_section(section["what"])
        elif done := _DONE.match(line):
            self.done = done
        elif mark := _MARK.match(line):
            self._mark(mark["what"], mark["test"])
        elif not (self._result(line) or self._package_line(line) or self._built(line)):
            self._output(line)

    def result(self) -> Parsed:
        if self.done is not None:
            return self._of_summary(self.done)
        cut = bool(self.package.tests) or bool(self.package.loose.first)
        if self.package.tests:
            self.run.end(self.package, failed=False, cut=True)
        running = [test.name for test in self.package.tests.values() if test.outcome is None]
        if not self.verbose:
            self._only_failed()
        if self.said and not self.run.ended_packages and not self.run.failures:
            self.run.failures.append(Found("go", kind="error", scope="run", message="\n".join(self.said)))
        complete = not (cut and running) or self.run.timed_out
        return self.run.result(complete, f"it ends while {running[-1]} runs" if running else None)

    def _built(self, line: str) -> bool:
        """Whether a line is the build's; one that a test prints is not."""
        return not (self.verbose and self.current) and self.run.build.take(line)

    def _only_failed(self) -> None:
        """Without `-v` only failures are printed: the counts are theirs, or 0 if there were no tests."""
        if self.silent_pass or not self.run.ended_packages:
            self.run.all_seen = False

    def _mark(self, what: str, name: str) -> None:
        self.verbose = True
        self.ended, self.in_trace = None, False
        self.current = None if what == "PAUSE" else self.package.test(name)

    def _result(self, line: str) -> bool:
        match = _ENDED.match(line)
        if match is None:
            return False
        before, name = match["before"], match["test"]
        if before.strip():
            # A test's own print without a line break stands before it.
            if name not in self.package.tests and not name.startswith(("Test", "Example", "Fuzz", "Bench")):
                return False
            self._output(before)
            before = ""
        test = self.package.ended(name, _OUTCOMES[match["what"]], round(float(match["seconds"]) * 1000))
        if not self.verbose and not before:
            for line in self.package.loose.all():
                test.lines.add(line)
            self.package.loose.drop()
        self.ended = _Ended(test, len(before))
        self.current, self.in_trace = None, False
        return True

    def _package_line(self, line: str) -> bool:
        if line in ("FAIL", "PASS") or line.startswith(("exit status ", "coverage: ")):
            self.ended, self.in_trace = None, False
            if line.startswith("exit status "):
                self.package.loose.add(line)
            return True
        match = _PACKAGE.match(line)
        if match is None or match["what"] == "---":
            return False
        self.ended = self.current = None
        self.in_trace = False
        if match["why"] in ("build failed", "setup failed"):
            self.run.build.take(line)
            return True
        self.package.name = match["package"]
        if match["what"] == "ok  " and not _NO_TESTS.search(line):
            self.silent_pass = self.silent_pass or not self.package.tests
        self.run.end(self.package, failed=match["what"] == "FAIL")
        self.package = Package.of(self.run)
        return True

    def _output(self, line: str) -> None:
        said = _GO_SAYS.match(line)
        if said and not self.package.tests and len(self.said) < 20:
            self.said.append(line)
        if is_panic(line) and not self.in_trace:
            self.in_trace = True
            if self.ended is not None and self.ended.test.outcome == "failed":
                self.current = self.ended.test
        if self.in_trace:
            (self.current.lines if self.current else self.package.loose).add(line)
        elif self.ended is not None and (line[:1].isspace() or self._example()):
            self.ended.test.lines.add(line)
        elif self.current is not None:
            self.current.lines.add(line)
        else:
            self.package.loose.add(line)

    def _example(self) -> bool:
        ended = self.ended
        return ended is not None and ended.test.outcome == "failed" and ended.test.name.startswith("Example")

    def _open_section(self, what: str) -> None:
        self.section = what
        if self.summed is None:
            self.summed = Run(build=self.run.build)

    def _summary(self, line: str) -> None:
        """A line of gotestsum's summary, which repeats what failed, with the package."""
        if section := _SECTION.match(line):
            self.section = section["what"]
            return
        if match := _SUMMED.match(line):
            self._end_summed()
            self.summed_package = Package.of(self.run, match["package"])
            if match["test"]:
                self.current = self.summed_package.ended(match["test"], _OUTCOMES[match["what"]], None)
            else:
                self.unsummed += 1
                self.current = None
        elif self.section == "Errors" or self.summed_package is None:
            self.run.build.take(line)
        elif not self.run.build.take(line):
            (self.current.lines if self.current else self.summed_package.loose).add(line)

    def _end_summed(self) -> None:
        package, self.summed_package = self.summed_package, None
        if package is not None and self.summed is not None:
            self.summed.end(package, failed=not package.tests and any(map(str.strip, package.loose.all())))

    def _of_summary(self, done: re.Match[str]) -> Parsed:
        self._end_summed()
        run = self.summed or self.run
        parsed = run.result(complete=True)
        tests, skipped, failed = (int(done[key] or 0) for key in ("tests", "skipped", "failed"))
        failed = max(0, failed - self.unsummed)
        errors = min(failed, run.outcomes["error"])
        counts = count(max(0, tests - skipped - failed), failed - errors, errors, skipped)
        return Parsed(
            counts,
            parsed.failures,
            tests=parsed.tests or tuple(self.run.tests),
            stopped=parsed.stopped,
        )
