"""The events of `go test -json` (test2json), with whatever the go command prints between them.

Source: `cmd/test2json` and `cmd/go` of Go 1.12 to 1.24 (build events are of 1.24).
"""

from __future__ import annotations

import json
import re

from devbay.reports.go_tests import MAX_OPEN, Package, Run
from devbay.reports.plain import plain
from devbay.reports.records import Outcome, Parsed
from devbay.reports.source import Source

name = "gojson"
commands: frozenset[str] = frozenset()

_EVENT = re.compile(
    rb'^\{(?=[^\n]{0,2000}?"Action": ?"'
    rb'(?:start|run|output|pass|fail|skip|pause|cont|bench|build-output|build-fail)")'
    rb'(?=[^\n]{0,2000}?"(?:Package|ImportPath)": ?")',
    re.MULTILINE,
)
_OUTCOMES: dict[object, Outcome] = {"pass": "passed", "fail": "failed", "skip": "skipped", "bench": "passed"}
_MARK = re.compile(r"^\s*(?:===|---) (?:RUN|PAUSE|CONT|NAME|PASS|FAIL|SKIP|BENCH)\b")


def sniff(head: bytes) -> bool:
    """Whether a line is an event of test2json's."""
    return _EVENT.search(head) is not None


def read(source: Source) -> Parsed:
    """The events' tests. A run whose output ends before its packages do is not complete."""
    reader = _Reader()
    for raw in source.lines():
        event = _event(raw)
        if event is None:
            reader.plain(plain(raw).rsplit("\r", 1)[-1])
        else:
            reader.event(event)
    return reader.result()


def _event(line: str) -> dict[str, object] | None:
    if not line.startswith("{"):
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("Action"), str) else None


class _Reader:
    def __init__(self) -> None:
        self.run = Run()
        self.packages: dict[str, Package] = {}
        self.rests: dict[tuple[str, str], str] = {}

    def event(self, event: dict[str, object]) -> None:
        action = str(event["Action"])
        if action == "build-output":
            for line in str(event.get("Output", "")).removesuffix("\n").split("\n"):
                self.run.build.take(plain(line))
            return
        name = event.get("Package")
        if not isinstance(name, str) or (name not in self.packages and len(self.packages) >= MAX_OPEN):
            return
        package = self.packages.get(name) or self.packages.setdefault(name, Package.of(self.run, name))
        test = event.get("Test")
        if action == "output":
            self._output(package, test if isinstance(test, str) else "", str(event.get("Output", "")))
        elif isinstance(test, str):
            if action == "run":
                package.test(test)
            elif outcome := _OUTCOMES.get(action):
                package.ended(test, outcome, _milliseconds(event.get("Elapsed")))
        elif action in ("pass", "fail", "skip"):
            self.run.end(package, failed=action == "fail")
            del self.packages[name]

    def plain(self, line: str) -> None:
        """A line that is no event: the go command's own, or a program's."""
        self.run.build.take(line)

    def result(self) -> Parsed:
        for package in self.packages.values():
            self.run.end(package, failed=False, cut=True)
        running = [
            f"{package.name}.{test.name}"
            for package in self.packages.values()
            for test in package.tests.values()
            if test.outcome is None
        ]
        problem = f"it ends while {running[-1]} runs" if running else None
        return self.run.result(complete=not running or self.run.timed_out, problem=problem)

    def _output(self, package: Package, test: str, text: str) -> None:
        """Add output; a line may come in several events."""
        key = (package.name or "", test)
        text = self.rests.pop(key, "") + text
        *lines, rest = text.split("\n")
        if rest and len(rest) < 64 * 1024:
            self.rests[key] = rest
        elif rest:
            lines.append(rest)
        for line in lines:
            line = plain(line).rsplit("\r", 1)[-1]
            if _MARK.match(line) or (not test and self.run.build.take(line)):
                continue
            if test:
                package.test(test).lines.add(line)
            else:
                package.loose.add(line)


def _milliseconds(elapsed: object) -> int | None:
    if isinstance(elapsed, (int, float)) and 0 <= elapsed < 1e9:
        return round(elapsed * 1000)
    return None
