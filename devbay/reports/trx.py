"""TRX, the XML of `dotnet test --logger trx` and of MSTest.

Source: Microsoft's schema `vstst.xsd` (TestRun, UnitTestResult) and the TRX logger of VSTest 17.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from devbay.reports.compare import compared
from devbay.reports.locate import frames_in
from devbay.reports.markup import Token, tokens
from devbay.reports.plain import plain, tail
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Outcome, Parsed, Stop, TestCase, count
from devbay.reports.source import Source

name = "trx"
commands: frozenset[str] = frozenset()

KEPT_TEXT = 64_000
KEPT_OUTPUT = 4_000
MAX_DEPTH = 2_000

_TEXTS = frozenset({"Message", "StackTrace", "StdOut", "StdErr", "Text"})
_OUTCOMES: dict[str, Outcome] = {
    "Passed": "passed", "PassedButRunAborted": "passed", "Warning": "passed", "Completed": "passed",
    "Failed": "failed", "Timeout": "failed", "Error": "error", "Aborted": "error", "Disconnected": "error",
    "NotExecuted": "skipped", "NotRunnable": "skipped", "Inconclusive": "skipped", "Pending": "skipped",
}  # fmt: skip
_ABORTED = re.compile(r"test run was aborted|[Tt]est host process crashed|process (?:crashed|exited)")
_HUNG = re.compile(r"inactivity time|hang|timed? ?out", re.IGNORECASE)
_EXPECTATION = re.compile(
    r"^(?:Assert\.|Expected|\s*Expected|Shouldly|.* should )|Assert\w*(?:Exception|Failed)"
)
_DURATION = re.compile(r"(\d+):(\d\d):(\d\d(?:\.\d+)?)")
_SNIFF = re.compile(rb"<TestRun\b[^>]{0,2000}TeamTest")


def sniff(head: bytes) -> bool:
    """Whether the root element is TRX's (in any text encoding)."""
    return _SNIFF.search(head.replace(b"\0", b"")) is not None


def read(source: Source) -> Parsed:
    """The report. Rows of a data-driven test are tests of their own, in place of the one around them."""
    reader = _Reader()
    for token in tokens(source.text()):
        if not reader.take(token):
            break
    return reader.result()


@dataclass
class _Result:
    """A `UnitTestResult` that is open."""

    attributes: Mapping[str, str]
    texts: dict[str, list[str]] = field(default_factory=dict)
    size: int = 0
    rows: int = 0

    def text(self, tag: str) -> str:
        return plain("".join(self.texts.get(tag, ()))).strip("\n")


@dataclass
class _Reader:
    """The state between tokens."""

    open: list[str] = field(default_factory=list)
    results: list[_Result] = field(default_factory=list)
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    failures: list[tuple[str, Found]] = field(default_factory=list)
    tests: list[tuple[str, TestCase]] = field(default_factory=list)
    classes: dict[str, str] = field(default_factory=dict)
    definition: str | None = None
    info: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    seen: bool = False
    why: str | None = None

    def take(self, token: Token) -> bool:
        """Take one token in; False if reading must end."""
        if token.kind == "text":
            self._text(token.text)
        elif token.kind == "start":
            self._start(token.name.rpartition(":")[2], token.attributes)
            if token.closed:
                self._end(token.name.rpartition(":")[2])
            if len(self.open) > MAX_DEPTH:
                self.why = f"its elements nest deeper than {MAX_DEPTH}"
        elif token.kind == "end":
            self._end(token.name.rpartition(":")[2])
        elif token.kind == "doctype":
            self.why = "it has a document type declaration, which is not read"
        return self.why is None

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.seen = self.seen or tag == "TestRun"
        self.open.append(tag)
        if tag == "UnitTestResult":
            for outer in self.results:
                outer.rows += 1
            self.results.append(_Result(attributes))
        elif tag == "UnitTest":
            self.definition = attributes.get("id")
        elif tag == "TestMethod" and self.definition and len(self.classes) < MAX_TESTS:
            self.classes[self.definition] = attributes.get("className", "").split(",")[0]
        elif tag == "RunInfo":
            self.info = [attributes.get("outcome", "")]

    def _text(self, text: str) -> None:
        tag = self.open[-1] if self.open else ""
        if tag not in _TEXTS:
            return
        if self.results:
            result = self.results[-1]
            if result.size < KEPT_TEXT:
                result.texts.setdefault(tag, []).append(text[:KEPT_TEXT])
                result.size += len(text)
        elif tag == "Text" and "RunInfo" in self.open and len(self.told) < 50:
            self.told.append(plain(text[:KEPT_TEXT]).strip())

    def _end(self, tag: str) -> None:
        while tag in self.open:
            closed = self.open.pop()
            if closed == "UnitTestResult" and self.results:
                self._ended(self.results.pop())
            if closed == tag:
                return

    def _ended(self, result: _Result) -> None:
        if result.rows:
            return
        outcome = _OUTCOMES.get(result.attributes.get("outcome", "Passed"), "error")
        identity = result.attributes.get("testId", "")
        title = plain(result.attributes.get("testName", ""))
        if outcome in ("failed", "error"):
            found = _failure(title, outcome, result)
            outcome = "error" if found.kind == "error" else "failed"
            if len(self.failures) < MAX_FAILURES:
                self.failures.append((identity, found))
        self.outcomes[outcome] += 1
        if len(self.tests) < MAX_TESTS:
            duration = _milliseconds(result.attributes.get("duration", ""))
            self.tests.append((identity, TestCase(title, None, None, duration, outcome)))

    def result(self) -> Parsed:
        """Classes come after the results, so names are completed here."""
        failures = [self._classed(identity, found) for identity, found in self.failures]
        aborted = [text for text in self.told if _ABORTED.search(text)]
        stopped: Stop | None = None
        if aborted:
            stopped = "timeout" if _HUNG.search(aborted[0]) else "crash"
            failures.append(Found("dotnet test", kind=stopped, scope="run", message="\n".join(aborted)))
        cut = bool(self.open)
        why = self.why or ("it ends in the middle" if cut else None if self.seen else "it holds no TestRun")
        seen = self.outcomes
        return Parsed(
            counts=count(seen["passed"], seen["failed"], seen["error"], seen["skipped"]),
            failures=tuple(failures),
            complete=why is None,
            problem=why,
            tests=tuple(
                replace(test, suite=self.classes.get(identity), file=self.classes.get(identity))
                for identity, test in self.tests
            ),
            stopped=stopped,
        )

    def _classed(self, identity: str, found: Found) -> Found:
        suite = self.classes.get(identity)
        if not suite:
            return found
        leaf = found.name.removeprefix(f"{suite}.")
        last = suite.rpartition(".")[2]
        return replace(found, name=leaf, suite=suite, own=(suite, f"*/{last}.cs"))


def _failure(title: str, outcome: Outcome, result: _Result) -> Found:
    message, stack = result.text("Message").strip(), result.text("StackTrace")
    expected, actual = compared(message)
    timeout = result.attributes.get("outcome") == "Timeout" or re.match(
        r"Test '.*' exceeded execution", message
    )
    thrown = re.match(
        r"(?:Test method \S+ threw exception:\s*)?(?:System\.\w+ ?: )?[\w.]*Exception ?: ", message
    )
    error = outcome == "error" or (thrown is not None and not _EXPECTATION.search(message[: thrown.end()]))
    output = "\n".join(filter(None, (result.text("StdOut"), result.text("StdErr"))))
    return Found(
        title,
        kind="timeout" if timeout else "error" if error else "failure",
        message=message,
        expected=expected,
        actual=actual,
        frames=frames_in(stack) or frames_in(message),
        output=tail(output.strip(), KEPT_OUTPUT) or None,
    )


def _milliseconds(text: str) -> int | None:
    match = _DURATION.fullmatch(text)
    return (
        round((int(match[1]) * 3600 + int(match[2]) * 60 + float(match[3])) * 1000)
        if match and len(match[1]) < 6
        else None
    )
