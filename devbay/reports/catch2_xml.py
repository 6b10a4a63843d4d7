"""The XML of Catch2 (`-r xml`) and of doctest (`-r=xml`), which grew from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

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
    Stop,
    TestCase,
    count,
)
from devbay.reports.source import Source

name = "catch2-xml"
commands: frozenset[str] = frozenset()

MAX_TEXT = 20_000
MAX_DEPTH = 500
_ROOTS = frozenset({"Catch2TestRun", "Catch", "doctest"})
_SNIFF = re.compile(rb"<(?:Catch2TestRun|Catch|doctest)\s[^>]{0,400}?(?:name|binary)=")
_SECTIONS = frozenset({"Section", "SubCase"})
_TEXTS = frozenset(
    {"Original", "Expanded", "Exception", "Info", "Failure", "Message", "Text", "FatalErrorCondition"}
)


def sniff(head: bytes) -> bool:
    """Whether the root element is Catch2's or doctest's."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The test cases. A case that is open when the text ends was running."""
    reader = _Reader()
    for token in tokens(source.text()):
        if token.kind == "doctype":
            reader.problem = "it has a document type declaration, which is not read"
            break
        reader.take(token)
    return reader.result()


@dataclass
class _Case:
    """A test case. parts: the texts of the assertion that is open, by element."""

    name: str
    file: str | None
    line: int | None
    suite: str | None
    allowed: bool
    skipped: bool
    sections: list[str] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    infos: list[str] = field(default_factory=list)
    success: bool | None = None
    skips: int = 0
    ms: int | None = None


@dataclass
class _Reader:
    open: list[str] = field(default_factory=list)
    case: _Case | None = None
    suite: str | None = None
    expression: Mapping[str, str] | None = None
    place: Mapping[str, str] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)
    size: int = 0
    failures: list[Found] = field(default_factory=list)
    outcomes: dict[Outcome, int] = field(
        default_factory=lambda: {"passed": 0, "failed": 0, "error": 0, "skipped": 0}
    )
    tests: list[TestCase] = field(default_factory=list)
    seen: bool = False
    problem: str | None = None
    fatal: bool = False

    def take(self, token: Token) -> None:
        if token.kind == "start":
            self._start(token)
        elif token.kind == "end":
            self._end(token.name)
        elif token.kind == "text" and self.open and self.open[-1] in _TEXTS and self.size < MAX_TEXT:
            self.text.append(token.text)
            self.size += len(token.text)

    def _start(self, token: Token) -> None:
        tag, given = token.name, token.attributes
        self.seen = self.seen or tag in _ROOTS
        if tag == "TestSuite":
            self.suite = given.get("name") or None
        elif tag == "TestCase":
            self.case = _Case(
                plain(given.get("name", "")),
                given.get("filename"),
                _whole(given.get("line")),
                self.suite,
                "[!mayfail]" in given.get("tags", "")
                or "[!shouldfail]" in given.get("tags", "")
                or given.get("may_fail") == "true"
                or given.get("should_fail") == "true",
                given.get("skipped") == "true",
            )
        elif self.case is not None:
            self._inside(self.case, tag, given)
        if len(self.open) < MAX_DEPTH:
            self.open.append(tag)
        if token.closed:
            self._end(tag)

    def _inside(self, case: _Case, tag: str, given: Mapping[str, str]) -> None:
        if tag in _SECTIONS:
            case.sections.append(plain(given.get("name", "")))
        elif tag == "Expression":
            self.expression, self.parts, self.place = given, {}, given
        elif tag in _TEXTS:
            self.text, self.size = [], 0
            if self.expression is None and tag != "Text":
                self.place = given
        elif tag in ("OverallResult", "OverallResultsAsserts"):
            case.success = given.get("success", given.get("test_case_success")) != "false"
            case.skips = _whole(given.get("skips")) or 0
            seconds = given.get("durationInSeconds", given.get("duration", ""))
            case.ms = round(float(seconds) * 1000) if re.fullmatch(r"\d{1,9}(\.\d+)?", seconds) else None
        elif tag == "Skip":
            case.skips += 1

    def _end(self, tag: str) -> None:
        if tag not in self.open:
            return
        while self.open and self.open.pop() != tag:
            pass
        case = self.case
        if case is None:
            return
        if tag in _TEXTS:
            self._said(case, tag, _dedented("".join(self.text)))
        elif tag == "Expression" and self.expression is not None:
            if self.expression.get("success") != "true":
                self._failed(case)
            self.expression = None
            case.infos.clear()
        elif tag in _SECTIONS and case.sections:
            case.sections.pop()
        elif tag == "TestCase":
            self._case_ended(case)
            self.case = None

    def _said(self, case: _Case, tag: str, text: str) -> None:
        if self.expression is not None:
            self.parts[tag] = f"{self.parts[tag]}\n{text}" if tag in self.parts else text
        elif tag == "Info":
            if len(case.infos) < 50:
                case.infos.append(text)
        elif tag in ("Failure", "Exception", "FatalErrorCondition", "Text"):
            if tag == "Text" and not self.place.get("type", "").endswith("ERROR"):
                return
            self.parts = {tag: text}
            self._failed(case)
            case.infos.clear()

    def _failed(self, case: _Case) -> None:
        parts = self.parts
        original, expanded = parts.get("Original", ""), parts.get("Expanded", "")
        kind: Kind = "failure"
        if "FatalErrorCondition" in parts or self.place.get("crash") == "true":
            kind, self.fatal = "crash", True
        elif "Exception" in parts:
            kind = "error"
        macro = self.place.get("type", "")
        lines = [f"{macro}( {original} )" if original and macro else original]
        if expanded and expanded != original:
            lines.append(f"with expansion:\n{expanded}")
        lines += [
            parts[key] for key in ("Exception", "FatalErrorCondition", "Failure", "Text") if key in parts
        ]
        lines += [*case.infos, *([parts["Info"]] if "Info" in parts else [])]
        path, line = self.place.get("filename") or case.file, _whole(self.place.get("line")) or case.line
        frames = (Frame(path, line),) if path and line else ()
        actual, middle, expected = expanded.partition(" == ")
        pair = bool(middle) and "\n" not in expanded and " == " not in expected
        if len(case.found) < MAX_FAILURES:
            case.found.append(
                Found(
                    "/".join([case.name, *case.sections]),
                    case.suite,
                    kind,
                    message=shorten("\n".join(part for part in lines if part), 8_000),
                    expected=expected if pair else None,
                    actual=actual if pair else None,
                    frames=frames,
                    own=(case.file,) if case.file else (),
                )
            )

    def _case_ended(self, case: _Case) -> None:
        outcome: Outcome = "passed"
        if case.skipped or (case.skips and case.success is not False):
            outcome = "skipped"
        elif case.success is False or (case.success is None and case.found):
            errors = case.found and all(found.kind != "failure" for found in case.found)
            outcome = "error" if errors else "failed"
            found = case.found or [
                Found(case.name, case.suite, message="it should have failed", own_line=case.line)
            ]
            self.failures += found[: MAX_FAILURES - len(self.failures)]
        self.outcomes[outcome] += 1
        if len(self.tests) < MAX_TESTS:
            self.tests.append(TestCase(case.name, case.suite, case.file, case.ms, outcome))

    def result(self) -> Parsed:
        cut = bool(self.open)
        stopped: Stop | None = "crash" if self.fatal else None
        if self.case is not None:
            running = self.case
            self.failures += running.found
            if not self.fatal:
                own = (running.file,) if running.file else ()
                message = "the report ends in this test"
                self.failures.append(
                    Found(running.name, running.suite, "crash", "run", message=message, own=own)
                )
        problem = self.problem or ("it ends in the middle" if cut else None)
        outcomes = self.outcomes
        counts = count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"])
        return Parsed(counts, tuple(self.failures), not problem, problem, tuple(self.tests), stopped)


def _dedented(text: str) -> str:
    """The text of an element, without the indent of its first line."""
    lines = text.strip("\n").rstrip().split("\n")
    indent = len(lines[0]) - len(lines[0].lstrip(" "))
    return plain("\n".join(line[indent:] if line[:indent].isspace() else line for line in lines))


def _whole(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d{1,9}", text) else None
