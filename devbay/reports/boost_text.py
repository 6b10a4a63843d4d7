"""Boost.Test's human-readable log and report. Source: its compiler log formatter, Boost 1.58 to 1.86."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from devbay.answers import Counts
from devbay.reports.plain import plain, shorten
from devbay.reports.records import MAX_FAILURES, Found, Frame, Kind, Parsed, Stop, count
from devbay.reports.source import Source

name = "boost"
commands: frozenset[str] = frozenset()

MAX_LINES = 100
MAX_WIDTH = 4_000

_LOG = re.compile(
    r"^(?P<path>\S[^\n]*?)\((?P<line>\d+)\): (?P<level>fatal error|error): "
    r"in \"(?P<test>[^\"]+)\": (?P<text>.*)$"
)
_CHECKPOINT = re.compile(r"^(?P<path>\S[^\n]*?)\((?P<line>\d+)\): last checkpoint: (?P<text>.*)$")
_OTHER = re.compile(
    r"^\S[^\n]*?\(\d+\): |^(?:Entering|Leaving) test |^\*\*\* |^Test (?:case|suite|module) \"|^$"
)
_RUNNING = re.compile(r"^Running (?P<count>\d+) test cases?\.\.\.$")
_NO_ERRORS = re.compile(r"^\*\*\* No errors detected$")
_DETECTED = re.compile(
    r"^\*\*\* (?:\d+ failures? (?:is|are) detected|errors were detected|.*aborted|.*\d+ abort)"
)
_NO_TESTS = re.compile(r"^Test setup error: (?P<text>.*)$")
_PART = re.compile(
    r"^  (?P<count>\d+) test cases? out of (?P<total>\d+) (?P<what>passed|failed|skipped|aborted)"
)
_MODULE = re.compile(r"^Test (?:module|suite) \"[^\"]+\" (?:has|was) \w+ with:$")
_SYSTEM = re.compile(
    r"^(?:memory access violation|signal: |SIG[A-Z]+|unrecognized signal|fatal system error)"
)
_EXCEPTION = re.compile(r"^(?:unknown type|[\w:<>, ]+: |std::\S+|C string: |integer: )")
_SNIFF = re.compile(
    rb"^Running \d+ test cases?\.\.\."
    rb"|^(?:\x1b\[[\d;]*m)*\*\*\* (?:No errors detected|\d+ failures? (?:is|are) detected"
    rb"|errors were detected) ?(?:in the test module)?|^Test module \"[^\"]+\" has \w+ with:",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether a line is the start or the end of Boost.Test's log."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The failed checks, one each. Without the last line the run ended early."""
    reader = _Reader()
    for raw in source.lines():
        reader.take(plain(raw).rsplit("\r", 1)[-1][:MAX_WIDTH])
    return reader.result()


@dataclass
class _Reader:
    total: int = 0
    ended: bool = False
    open: list[str] | None = None
    failures: list[Found] = field(default_factory=list)
    parts: dict[str, int] = field(default_factory=dict)
    reporting: bool = False
    fatal: bool = False

    def take(self, line: str) -> None:
        if log := _LOG.match(line):
            self._end()
            self.open = [log["text"]]
            self._add(log)
        elif checkpoint := _CHECKPOINT.match(line):
            self._end()
            self._checkpoint(checkpoint)
        elif running := _RUNNING.match(line):
            self.total += int(running["count"])
            self.ended = False
        elif _NO_ERRORS.match(line) or _DETECTED.match(line):
            self._end()
            self.ended = True
        elif _MODULE.match(line):
            self.reporting = self.ended = True
        elif self.reporting and (part := _PART.match(line)):
            self.parts[part["what"]] = int(part["count"])
        elif setup := _NO_TESTS.match(line):
            self.ended = True
            self.failures.append(Found("test setup", kind="error", scope="run", message=setup["text"]))
        elif self.open is not None:
            if _OTHER.match(line):
                self._end()
            elif len(self.open) < MAX_LINES:
                self.open.append(line)

    def _add(self, log: re.Match[str]) -> None:
        if len(self.failures) >= MAX_FAILURES:
            return
        suite, _, test = log["test"].rpartition("/")
        known = int(log["line"]) > 0
        text = log["text"]
        kind: Kind = "failure"
        if _SYSTEM.match(text):
            kind = "crash"
        elif log["level"] == "fatal error" and not known and _EXCEPTION.match(text):
            kind = "error"
        frames = (Frame(log["path"], int(log["line"])),) if known else ()
        own = (log["path"],) if known else ()
        values = re.search(r"^check .* == .* has failed \[(.+?) != (.+)\]$", text)
        self.failures.append(
            Found(
                test,
                suite or None,
                kind,
                message=text,
                expected=values[2] if values else None,
                actual=values[1] if values else None,
                frames=frames,
                own=own,
            )
        )

    def _end(self) -> None:
        if self.open is not None and len(self.open) > 1 and self.failures:
            message = shorten("\n".join(self.open).strip(), 8_000)
            self.failures[-1] = replace(self.failures[-1], message=message)
        self.open = None

    def _checkpoint(self, match: re.Match[str]) -> None:
        """Where an exception without a place was last seen: the nearest place that the runner gives."""
        if self.failures and not self.failures[-1].frames:
            self.failures[-1] = replace(
                self.failures[-1], own=(match["path"],), own_line=int(match["line"]) or None
            )

    def result(self) -> Parsed:
        self._end()
        failed = {(found.suite, found.name) for found in self.failures if found.scope == "test"}
        errors = failed - {(found.suite, found.name) for found in self.failures if found.kind == "failure"}
        counts: Counts | None = None
        if self.parts:
            bad = self.parts.get("failed", 0)
            wrong = min(bad, len(errors))
            counts = count(self.parts.get("passed", 0), bad - wrong, wrong, self.parts.get("skipped", 0))
        elif self.total and self.ended:
            counts = count(max(0, self.total - len(failed)), len(failed) - len(errors), len(errors))
        elif not self.total and self.ended:
            counts = count()
        stopped: Stop | None = None
        problem = None if self.ended else "Boost.Test's last line is missing"
        return Parsed(counts, tuple(self.failures), self.ended, problem, stopped=stopped)
