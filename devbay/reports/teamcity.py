"""TeamCity's service messages, as PHPUnit, pytest-teamcity, Catch2 and others print them among their output.

Source: TeamCity's documentation, "Service Messages" (escapes, `testStarted`, `testFailed`, `testIgnored`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from devbay.reports.compare import compared
from devbay.reports.locate import frames_in
from devbay.reports.paths import looks_like_path
from devbay.reports.plain import plain
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Kind, Outcome, Parsed, TestCase, count
from devbay.reports.source import Source

name = "teamcity"
commands: frozenset[str] = frozenset()

_MESSAGE = re.compile(r"##teamcity\[(?P<what>\w+)(?P<rest>(?:[^'\]]|'(?:[^'|]|\|.)*')*)\]")
_ATTRIBUTE = re.compile(r"(\w+)='((?:[^'|]|\|.)*)'")
_ESCAPE = re.compile(r"\|(?:0x([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "x": "\x85", "l": "\u2028", "p": "\u2029"}
_HINT = re.compile(
    r"^(?:php_qn|file|python|java:test)://+(?P<path>.+?\.\w+)(?:::(?P<rest>.*)|:(?P<line>\d+))?$"
)
_ERROR = re.compile(r"^(?P<type>[\w\\.]*(?:Exception|Error|Throwable))\b ?: ", re.MULTILINE)
_DOTTED = re.compile(r"^\.{20,}$", re.MULTILINE)  # Catch2: the test above it, the assertion below it
_PLACE = re.compile(r"^(?:/|[A-Za-z]:\\)?\S+\.\w+:\d+$")
_SNIFF = re.compile(rb"^##teamcity\[(testCount|testSuiteStarted|testStarted)\b", re.MULTILINE)


def sniff(head: bytes) -> bool:
    """Whether a test is announced in TeamCity's way at the start of a line."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """What the messages said. A test that was started and never finished is where the run ended."""
    reader = _Reader()
    for line in source.lines():
        if "##teamcity[" in line:
            for match in _MESSAGE.finditer(line):
                reader.take(match["what"], _attributes(match["rest"]))
    return reader.result()


def _attributes(text: str) -> dict[str, str]:
    return {key: plain(_ESCAPE.sub(_unescaped, value)) for key, value in _ATTRIBUTE.findall(text)}


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2])


@dataclass
class _Test:
    """A test that is running."""

    name: str
    suite: str | None
    path: str | None
    outcome: Outcome = "passed"


@dataclass
class _Reader:
    """The state between messages. `flowId` tells interleaved tests apart."""

    suites: dict[str, list[tuple[str, str | None]]] = field(default_factory=dict)
    running: dict[tuple[str, str], _Test] = field(default_factory=dict)
    outcomes: dict[Outcome, int] = field(
        default_factory=lambda: {"passed": 0, "failed": 0, "error": 0, "skipped": 0}
    )
    failures: list[Found] = field(default_factory=list)
    tests: list[TestCase] = field(default_factory=list)

    def take(self, what: str, attributes: Mapping[str, str]) -> None:
        flow, title = attributes.get("flowId", ""), attributes.get("name", "")
        suites = self.suites.setdefault(flow, [])
        if what == "testSuiteStarted":
            suites.append((title, _path(attributes)))
            del suites[1000:]
        elif what == "testSuiteFinished":
            if any(each == title for each, _ in suites):
                while suites.pop()[0] != title:
                    pass
        elif what == "testStarted":
            if len(self.running) < MAX_TESTS:
                self.running[flow, title] = self._test(title, suites, attributes)
        elif what in ("testFailed", "testIgnored"):
            test = self.running.get((flow, title)) or self._test(title, suites, attributes)
            self._problem(what, test, attributes)
            if (flow, title) not in self.running:
                self._finished(test, None)
        elif what == "testFinished" and (finished := self.running.pop((flow, title), None)):
            self._finished(finished, attributes.get("duration"))

    def _test(self, title: str, suites: list[tuple[str, str | None]], attributes: Mapping[str, str]) -> _Test:
        suite = next((each for each, _ in reversed(suites) if not title.startswith(each)), None)
        if suite and looks_like_path(suite.rstrip("/") + "/x.py") and suite.startswith("/"):
            suite = None
        path = _path(attributes) or next((each for _, each in reversed(suites) if each), None)
        return _Test(title, suite, path)

    def _problem(self, what: str, test: _Test, attributes: Mapping[str, str]) -> None:
        if what == "testIgnored":
            test.outcome = "skipped"
            return
        found = _failure(test, attributes)
        if test.outcome == "passed":
            test.outcome = "error" if found.kind == "error" else "failed"
        if len(self.failures) < MAX_FAILURES:
            self.failures.append(found)

    def _finished(self, test: _Test, duration: str | None) -> None:
        self.outcomes[test.outcome] += 1
        if len(self.tests) < MAX_TESTS:
            milliseconds = int(duration) if duration and re.fullmatch(r"\d{1,12}", duration) else None
            self.tests.append(TestCase(test.name, test.suite, test.path, milliseconds, test.outcome))

    def result(self) -> Parsed:
        failures = list(self.failures)
        open_suites = any(self.suites.values())
        for test in self.running.values():
            own = (test.path,) if test.path else ()
            message = "the run ended in this test"
            failures.append(
                Found(test.name, suite=test.suite, kind="crash", scope="run", message=message, own=own)
            )
        complete = not self.running and not open_suites
        return Parsed(
            counts=count(
                self.outcomes["passed"],
                self.outcomes["failed"],
                self.outcomes["error"],
                self.outcomes["skipped"],
            ),
            failures=tuple(failures[:MAX_FAILURES]),
            complete=complete,
            problem=None if complete else "its messages end before the tests do",
            tests=tuple(self.tests),
        )


def _path(attributes: Mapping[str, str]) -> str | None:
    hint = _HINT.match(attributes.get("locationHint", ""))
    return hint["path"] if hint else None


def _failure(test: _Test, attributes: Mapping[str, str]) -> Found:
    """Catch2 puts everything into the message; PHPUnit leaves the place of a risky test in it."""
    message, details = attributes.get("message", "").strip(), attributes.get("details", "").strip()
    lines = _DOTTED.split(message)[-1].strip().split("\n")
    while len(lines) > 1 and _PLACE.match(lines[0]):
        details = f"{details}\n{lines.pop(0)}"
    while lines and (not lines[-1].strip() or _PLACE.match(lines[-1])):
        details = f"{lines.pop()}\n{details}"
    message = "\n".join(lines).strip()
    error = _ERROR.match(message)
    kind: Kind = "error" if error else "failure"
    expected, actual = attributes.get("expected"), attributes.get("actual")
    if not expected or not actual:
        expected, actual = compared(message, details)
    return Found(
        test.name,
        suite=test.suite,
        kind=kind,
        message=message or details.split("\n")[0],
        expected=expected,
        actual=actual,
        frames=frames_in("\n".join(line.strip() for line in details.split("\n"))) or frames_in(message),
        own=(test.path,) if test.path else (),
    )
