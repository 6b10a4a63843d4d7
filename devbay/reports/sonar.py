"""SonarQube's generic test executions: files that hold test cases (Catch2 and others write it)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from devbay.reports.compare import compared
from devbay.reports.locate import frames_in
from devbay.reports.markup import Token, tokens
from devbay.reports.plain import plain, shorten
from devbay.reports.records import (
    MAX_FAILURES,
    MAX_TESTS,
    Found,
    Frame,
    Kind,
    Outcome,
    Parsed,
    TestCase,
    count,
)
from devbay.reports.source import Source

name = "sonar"
commands: frozenset[str] = frozenset()

MAX_TEXT = 50_000
_SNIFF = re.compile(rb"<(?:testExecutions|unitTest)\s+version\s*=")
_AT = re.compile(r"^at (?P<path>\S.*):(?P<line>\d+)$", re.MULTILINE)
_PROBLEMS = frozenset({"failure", "error", "skipped"})


def sniff(head: bytes) -> bool:
    """Whether the root element is the one of generic test executions."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The test cases of all files."""
    reader = _Reader()
    for token in tokens(source.text()):
        if token.kind in ("doctype", "cut"):
            reader.problem = (
                "it ends in the middle" if token.kind == "cut" else "it has a document type declaration"
            )
            break
        reader.take(token)
    return reader.result()


@dataclass
class _Reader:
    file: str | None = None
    case: str | None = None
    ms: int | None = None
    problems: list[tuple[str, str, str]] = field(default_factory=list)
    text: list[str] | None = None
    size: int = 0
    message: str = ""
    root: bool = False
    outcomes: dict[Outcome, int] = field(
        default_factory=lambda: {"passed": 0, "failed": 0, "error": 0, "skipped": 0}
    )
    failures: list[Found] = field(default_factory=list)
    tests: list[TestCase] = field(default_factory=list)
    problem: str | None = None

    def take(self, token: Token) -> None:
        tag = token.name
        if token.kind == "text":
            if self.text is not None and self.size < MAX_TEXT:
                self.text.append(token.text)
                self.size += len(token.text)
        elif token.kind == "start":
            self.root = self.root or tag in ("testExecutions", "unitTest")
            if tag == "file":
                self.file = token.attributes.get("path")
            elif tag == "testCase":
                self.case, self.problems = plain(token.attributes.get("name", "")), []
                duration = token.attributes.get("duration", "")
                self.ms = int(duration) if re.fullmatch(r"\d{1,12}", duration) else None
            elif tag in _PROBLEMS and self.case is not None:
                self.message, self.text, self.size = plain(token.attributes.get("message", "")), [], 0
            if token.closed:
                self._end(tag)
        elif token.kind == "end":
            self._end(tag)

    def _end(self, tag: str) -> None:
        if tag in _PROBLEMS and self.text is not None:
            self.problems.append((tag, self.message, plain("".join(self.text)).strip()))
            self.text = None
        elif tag == "testCase" and self.case is not None:
            self._case_ended(self.case)
            self.case = None
        elif tag in ("testExecutions", "unitTest"):
            self.root = False

    def _case_ended(self, case: str) -> None:
        tags = {tag for tag, _, _ in self.problems}
        outcome: Outcome = "passed"
        if "skipped" in tags:
            outcome = "skipped"
        elif tags:
            outcome = "failed" if "failure" in tags else "error"
            for tag, message, text in self.problems[: MAX_FAILURES - len(self.failures)]:
                self.failures.append(_found(case, self.file, tag, message, text))
        self.outcomes[outcome] += 1
        if len(self.tests) < MAX_TESTS:
            self.tests.append(TestCase(case, None, self.file, self.ms, outcome))

    def result(self) -> Parsed:
        outcomes = self.outcomes
        counts = count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"])
        problem = self.problem or ("it ends in the middle" if self.root else None)
        return Parsed(counts, tuple(self.failures), not problem, problem, tuple(self.tests))


def _found(case: str, file: str | None, tag: str, message: str, text: str) -> Found:
    kind: Kind = "error" if tag == "error" else "failure"
    places = [Frame(match["path"], int(match["line"])) for match in _AT.finditer(text)]
    said = re.sub(r"^(?:FAILED|SKIPPED):?\n", "", _AT.sub("", text)).strip()
    whole = "\n".join(dict.fromkeys(part for part in (message, said) if part))
    expected, actual = compared(message, text)
    return Found(
        case,
        None,
        kind,
        message=shorten(whole, 8_000),
        expected=expected,
        actual=actual,
        frames=tuple(places) or frames_in(text),
        own=(file,) if file else (),
    )
