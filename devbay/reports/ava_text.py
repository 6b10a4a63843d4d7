"""AVA's plain output. Source: `lib/reporters/default.js` of AVA 4 to 7."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from devbay.reports import javascript
from devbay.reports.plain import overwritten, plain
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Outcome, Parsed, TestCase, count
from devbay.reports.source import Source

name = "ava"
commands = frozenset({"ava"})

KEPT_LINES = 2_000
_FAIL = re.compile(r"^ {2}✘ \[fail\]: (?P<title>.+)$")
_PASS = re.compile(r"^ {2}✔ (?:\[expected fail\] )?(?P<title>.+?)(?: \([\d.]+m?s\))?$")
_SKIP = re.compile(r"^ {2}- \[(?:skip|todo)\] (?P<title>.+)$")
_TROUBLE = re.compile(r"^ {2}✘ (?P<text>(?!\[fail\]).+)$")
_TROUBLE_FILE = re.compile(
    r"(?:in|running|of) (?P<path>\S+\.[cm]?[jt]sx?)$|^(?P<first>\S+\.[cm]?[jt]sx?) exited with"
)
_RULE = re.compile(r"^ {2}─+$")
_TITLE = re.compile(r"^ {2}(?P<title>\S.*)$")
_TOTAL = re.compile(
    r"^ {2}(?:\d+ (?:tests?|hooks?|known|uncaught|unhandled|failed|tests? skipped)\b.*"
    r"|Couldn.t find any .*)$"
)
_LOCATION = re.compile(r"^ {2}\S+:\d+$")
_EXCERPT = re.compile(r"^ *\d+:(?: |$)")
_SNIFF = re.compile(
    r"^ {2}✘ \[fail\]: |^ {2}\d+ (?:tests?|hooks?) (?:passed|failed)$"
    r"|^ {2}✘ (?:Couldn.t find any|No tests found)",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    return _SNIFF.search(javascript.printed(head)) is not None


def read(source: Source) -> Parsed:
    """What AVA said: results as they come, then a block for each failure, then totals."""
    reader = _Reader()
    for line in source.lines():
        reader.take(overwritten(plain(line)).rstrip())
    return reader.result()


@dataclass
class _Reader:
    failed: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)  # failed, and without a block yet
    troubles: list[tuple[str, list[str]]] = field(default_factory=list)
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    tests: list[TestCase] = field(default_factory=list)
    blocks: list[tuple[str, list[str]]] = field(default_factory=list)
    detail: bool = False
    ended: bool = False

    def take(self, line: str) -> None:
        if _RULE.match(line):
            self.detail = True
        elif _TOTAL.match(line):
            self.ended = True
            self.blocks.append(("", []))
        elif self.detail:
            self._detail(line)
        else:
            self._progress(line)

    def _progress(self, line: str) -> None:
        if match := _FAIL.match(line):
            self.failed.append(match["title"])
            self.waiting.append(match["title"])
            self._test(match["title"], "failed")
        elif match := _PASS.match(line):
            self._test(match["title"], "passed")
        elif match := _SKIP.match(line):
            self._test(match["title"], "skipped")
        elif match := _TROUBLE.match(line):
            if len(self.troubles) < MAX_FAILURES:
                self.troubles.append((match["text"], []))
        elif self.troubles and len(self.troubles[-1][1]) < KEPT_LINES:
            self.troubles[-1][1].append(line)

    def _test(self, title: str, outcome: Outcome) -> None:
        self.outcomes[outcome] += 1
        suite, leaf = _split(title)
        if len(self.tests) < MAX_TESTS:
            self.tests.append(TestCase(leaf, suite or None, None, None, outcome))

    def _detail(self, line: str) -> None:
        match = _TITLE.match(line)
        # The progress line has the title, and behind it perhaps the message.
        mine = [each for each in self.waiting if match and (each + " ").startswith(match["title"] + " ")]
        if match and mine and not line.endswith(":"):
            self.waiting.remove(mine[0])
            if len(self.blocks) < MAX_FAILURES:
                self.blocks.append((match["title"], []))
        elif self.blocks and len(self.blocks[-1][1]) < KEPT_LINES:
            self.blocks[-1][1].append(line)

    def result(self) -> Parsed:
        failures = [_described(title, lines) for title, lines in self.blocks if title]
        failures += [_described(title, []) for title in self.waiting]
        failures += _troubles(self.troubles)
        crashed = any(found.kind == "crash" for found in failures)
        complete = self.ended or crashed or any(found.scope == "run" for found in failures)
        if not (complete or self.tests or failures):
            return Parsed(counts=None)  # another of its commands, or nothing of it was printed
        if not complete:
            failures.append(javascript.died("AVA", bool(self.tests)))
        outcomes = self.outcomes
        return Parsed(
            counts=count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"]),
            failures=tuple(failures[:MAX_FAILURES]),
            complete=complete,
            problem=None if complete else "AVA's totals are missing",
            tests=tuple(self.tests),
            stopped="crash" if crashed or not complete else None,
        )


def _split(title: str) -> tuple[str, str]:
    suite, separator, leaf = title.rpartition(" › ")
    return (suite, leaf) if separator else ("", title)


def _described(title: str, lines: list[str]) -> Found:
    suite, leaf = _split(title)
    own: tuple[str, ...] = ()
    own_line = None
    kept: list[str] = []
    for line in lines:
        if not own and _LOCATION.match(line):
            path, _, number = line.strip().rpartition(":")
            own, own_line = (path,), int(number)
        elif not (own and _EXCERPT.match(line)):
            # AVA's own notation of a relative path: `› file://test/a.js:10:5`
            kept.append(
                re.sub(r"^ +› (?:file://)?(?=.+:\d+:\d+$)", "    at ", line).replace(
                    "at file://", "at file://"
                )
            )
    text = re.sub(r"file://(?!/)", "", "\n".join(kept))
    hook = bool(re.match(r"(?:before|after)(?:Each)?\.?(?:always)? hook\b", leaf))
    return javascript.problem(
        leaf, text, suite=suite, scope="suite" if hook else "test", own=own, own_line=own_line
    )


def _troubles(troubles: list[tuple[str, list[str]]]) -> list[Found]:
    """What happened outside tests: to a file, or to the whole run. A file is named once."""
    found: list[Found] = []
    named: set[str] = set()
    for said, lines in troubles:
        if re.match(r"\d+ tests? remaining in ", said):
            continue
        text = f"{said}\n" + "\n".join(lines)
        match = _TROUBLE_FILE.search(said)
        path = (match["path"] or match["first"]) if match else ""
        if not path:
            found.append(javascript.problem("(run)", text, scope="run"))
        elif path not in named:
            named.add(path)
            ended = "exit" in said.lower()
            found.append(
                javascript.problem(path, text, scope="suite", own=(path,), kind="crash" if ended else "error")
            )
    return found
