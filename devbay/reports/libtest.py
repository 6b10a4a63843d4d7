"""What `cargo test` prints: libtest's plain output of any verbosity, its JSON, and builds that failed.

Each binary prints for itself; which one it was, Cargo says on the other stream. Source: libtest's formatters
(pretty, terse, json) of Rust 1.40 to 1.95, and Cargo's `cargo_test.rs`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from devbay.reports.plain import plain
from devbay.reports.records import (
    MAX_FAILURES,
    MAX_TESTS,
    Found,
    Outcome,
    Parsed,
    Stop,
    TestCase,
    count,
)
from devbay.reports.rust_blocks import PANIC, describe, member, overflowed, own_files
from devbay.reports.rustc import Diagnostics
from devbay.reports.source import Source

name = "libtest"
commands: frozenset[str] = frozenset()

MAX_LINES = 500
MAX_WIDTH = 4_000
MAX_KEPT = 32 * 1024 * 1024
"""Characters of failed tests' output that are kept; further ones are told without theirs."""

_RUNNING = re.compile(r"^running (?P<count>\d+) tests?$")
_TEST = re.compile(r"^test (?P<name>\S.*?)(?: - should panic)? \.\.\. (?P<rest>.*)$")
_WORD = re.compile(
    r"^(?:.*?)(?P<word>ok|FAILED|ignored|bench:)(?:, .*|\s+[\d,]+ ns/iter.*)?"
    r"(?: <(?P<seconds>[\d.]+)s>)?$"
)
_QUIET = re.compile(r"^(?P<name>\S.*?)(?: - should panic)? --- FAILED$")
_RESULT = re.compile(
    r"^test result: \S+ (?P<passed>\d+) passed; (?P<failed>\d+) failed; (?P<ignored>\d+) ignored;"
    r"(?: (?P<allowed>\d+) allowed fail;)? (?P<measured>\d+) measured;"
)
_BLOCK = re.compile(r"^---- (?P<name>.+?) (?:stdout|stderr) ----$")
_LISTED = re.compile(r"^    (?P<name>\S.*)$")
_BINARY = re.compile(
    r"^\s+(?:Running (?:unittests )?(?P<path>\S+\.rs)(?: \(.*\))?"
    r"|Doc-tests (?P<doc>\S+)|Running \S+)$"
)
_RERUN = re.compile(r"^error: (?:doc)?test failed, to rerun pass [`'](?P<args>[^`']*)[`']$")
_DIED = re.compile(
    r"^\s*(?:Caused by:\s*)?process didn't exit successfully: [`'].*[`'] "
    r"\((?P<how>signal: [^)]+|exit \w+: \d+)\)"
)
_OUTCOMES: dict[str, Outcome] = {
    "ok": "passed", "FAILED": "failed", "failed": "failed", "ignored": "skipped", "bench:": "passed"
}  # fmt: skip
_SNIFF = re.compile(
    rb"^running \d+ tests?\r?$"
    rb"|^test result: (?:\x1b\[[\d;]*m|\(B)*(?:ok|FAILED)(?:\x1b\[[\d;]*m|\(B)*\. \d+ passed;"
    rb'|^\{ ?"type": ?"(?:suite|test)", ?"(?:event|name)"'
    rb"|^(?:\x1b\[[\d;]*m)*error(?:\x1b\[[\d;]*m)*: (?:doc)?test failed, to rerun pass ",
    re.MULTILINE,
)
_COMPILING = re.compile(
    rb"^(?:\x1b\[[\d;]*m)*\s+Compiling(?:\x1b\[[\d;]*m)* (?P<crate>[\w-]+) v", re.MULTILINE
)
_BROKEN = re.compile(rb"could not compile `(?P<crate>[\w-]+)`(?P<what>[^\n]*)")


def sniff(head: bytes) -> bool:
    """Whether libtest speaks, or Cargo says that what it builds (not only checks) does not compile."""
    if _SNIFF.search(head):
        return True
    broken = list(_BROKEN.finditer(head))
    built = {match["crate"] for match in _COMPILING.finditer(head)} if broken else set()
    return any(
        match["crate"] in built or re.search(rb"\((?:lib|bin .+|example .+) test\)|\(test ", match["what"])
        for match in broken
    )


def read(source: Source) -> Parsed:
    """All binaries' tests as one run; one that has no `test result` ended early."""
    reader = _Reader()
    for raw in source.lines():
        reader.take(plain(raw).rsplit("\r", 1)[-1])
    return reader.result()


@dataclass
class _Binary:
    """One test binary's run. failed: tests in the order they failed, with their captured lines."""

    outcomes: dict[Outcome, int] = field(
        default_factory=lambda: {"passed": 0, "failed": 0, "error": 0, "skipped": 0}
    )
    failed: dict[str, list[str]] = field(default_factory=dict)
    tests: list[TestCase] = field(default_factory=list)
    totals: dict[Outcome, int] | None = None
    running: dict[str, None] = field(default_factory=dict)
    ended: bool = False
    target: str | None = None

    def add(self, name: str, outcome: Outcome, ms: int | None, room: bool) -> None:
        self.running.pop(name, None)
        self.outcomes[outcome] += 1
        if outcome == "failed" and len(self.failed) < MAX_FAILURES:
            self.failed.setdefault(name, [])
        if room:
            self.tests.append(TestCase(name, None, None, ms, outcome))


@dataclass
class _Reader:
    binaries: list[_Binary] = field(default_factory=list)
    build: Diagnostics = field(default_factory=Diagnostics)
    targets: list[str] = field(default_factory=list)
    reruns: list[str] = field(default_factory=list)
    block: list[str] | None = None
    panics: dict[str, list[str]] = field(default_factory=dict)
    panic: list[str] | None = None
    pending: str | None = None
    died: list[str] = field(default_factory=list)
    overflow: str | None = None
    listing: bool = False
    kept: int = 0
    room: int = MAX_KEPT

    @property
    def binary(self) -> _Binary:
        if not self.binaries:
            self.binaries.append(_Binary())
        return self.binaries[-1]

    def take(self, line: str) -> None:
        if line.startswith("{") and self._event(line):
            return
        if _RUNNING.match(line):
            self._end_block()
            self.binaries.append(_Binary())
        elif result := _RESULT.match(line):
            self._totals(result)
        elif block := _BLOCK.match(line):
            self._end_block()
            self.block = self.binary.failed.setdefault(block["name"], [])
        elif line == "failures:":
            self.listing = self.block is not None or self.listing
            self._end_block()
            self.listing = True
        elif self.block is not None:
            self._keep(self.block, line)
        else:
            self._between(line)

    def _keep(self, lines: list[str], line: str) -> None:
        line = line[:MAX_WIDTH]
        if len(lines) < MAX_LINES and self.room >= len(line):
            lines.append(line)
            self.room -= len(line)

    def _between(self, line: str) -> None:
        """A line outside of a failed test's block."""
        if self._cargo(line):
            self.panic = None
        elif self.panic is not None:
            self._in_panic(line)
        elif PANIC.match(line):
            self._start_panic(line)
        elif match := _TEST.match(line):
            self._test(match["name"], match["rest"])
        elif (match := _QUIET.match(line)) and self.binaries:
            self.binary.failed.setdefault(match["name"], [])
        elif self.pending and (word := _WORD.match(line)) and word["word"] != "bench:":
            self._outcome(self.pending, word)
        elif self.listing and (match := _LISTED.match(line)):
            if len(self.binary.failed) < MAX_FAILURES:
                self.binary.failed.setdefault(match["name"], [])
        elif name := overflowed(line):
            self.overflow = name
            self.died.append("stack overflow")
        else:
            self.build.take(line)

    def _cargo(self, line: str) -> bool:
        if binary := _BINARY.match(line):
            self.targets.append(binary["path"] or (f"doc {binary['doc']}" if binary["doc"] else ""))
            return True
        if rerun := _RERUN.match(line):
            self.reruns.append(rerun["args"])
            return True
        if (died := _DIED.match(line)) and not re.search(r"exit \w+: 101$", died["how"]):
            self.died.append(line.strip().removeprefix("Caused by:").strip())
            return True
        return False

    def _start_panic(self, line: str) -> None:
        thread = re.match(r"thread '([^']*)'", line)
        key = thread[1] if thread else ""
        if key in ("main", "<unnamed>", ""):
            key = self.pending or key
        if len(self.panics) < MAX_FAILURES:
            self.panic = self.panics.setdefault(key, [])
            self.panic.append(line)

    def _in_panic(self, line: str) -> None:
        """Lines of a panic that was not captured (`--nocapture`)."""
        match = _TEST.match(line)
        if match or not line.strip():
            self.panic = None
            if match:
                self._test(match["name"], match["rest"])
        elif self.panic is not None:
            self._keep(self.panic, line)

    def _test(self, name: str, rest: str) -> None:
        if word := _WORD.match(rest):
            self._outcome(name, word)
        else:
            self.pending = name
            self.binary.running[name] = None
            if PANIC.match(rest):
                self._start_panic(rest)
            elif rest.startswith("error: "):  # of a binary that died in the test
                self._cargo(rest)

    def _outcome(self, name: str, word: re.Match[str]) -> None:
        ms = round(float(word["seconds"]) * 1000) if word["seconds"] else None
        self._add(name, _OUTCOMES[word["word"]], ms)
        self.pending = None

    def _add(self, name: str, outcome: Outcome, ms: int | None) -> None:
        self.kept += 1
        self.binary.add(name, outcome, ms, self.kept <= MAX_TESTS)

    def _totals(self, result: re.Match[str]) -> None:
        self._end_block()
        self.listing = False
        self.pending = None
        binary = self.binary
        binary.ended = True
        binary.totals = {
            "passed": int(result["passed"]) + int(result["measured"]),
            "failed": int(result["failed"]),
            "error": 0,
            "skipped": int(result["ignored"]) + int(result["allowed"] or 0),
        }

    def _end_block(self) -> None:
        self.block = self.panic = None

    def _event(self, line: str) -> bool:
        """A line of libtest's JSON."""
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return False
        if not isinstance(event, dict) or event.get("type") not in ("suite", "test", "bench"):
            return False
        what, test = event.get("event"), str(event.get("name", "")).rpartition("$")[2]
        if event["type"] == "suite":
            if what == "started":
                self.binaries.append(_Binary())
            elif what in ("ok", "failed"):
                self.binary.ended = True
                numbers = {
                    key: _number(event.get(key)) for key in ("passed", "failed", "ignored", "measured")
                }
                self.binary.totals = {
                    "passed": numbers["passed"] + numbers["measured"],
                    "failed": numbers["failed"],
                    "error": 0,
                    "skipped": numbers["ignored"],
                }
        elif what == "started":
            if len(self.binary.running) < MAX_TESTS:
                self.binary.running[test] = None
        elif what in _OUTCOMES:
            seconds = event.get("exec_time")
            ms = round(seconds * 1000) if isinstance(seconds, (int, float)) and 0 <= seconds < 1e9 else None
            self._add(test, _OUTCOMES[what], ms)
            if what == "failed" and test in self.binary.failed:
                said = f"note: {event['message']}\n" if isinstance(event.get("message"), str) else ""
                text = plain(said + str(event.get("stdout") or "") + "\n" + str(event.get("stderr") or ""))
                for each in text.split("\n"):
                    self._keep(self.binary.failed[test], each)
        return True

    def result(self) -> Parsed:
        self._name_targets()
        found = [*self.build.failures(), *self._failures()]
        counts = count()
        outcomes = dict.fromkeys(("passed", "failed", "error", "skipped"), 0)
        for binary in self.binaries:
            for key, number in (binary.totals or binary.outcomes).items():
                outcomes[key] += number
        counts = count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"])
        cut = [binary for binary in self.binaries if not binary.ended]
        stopped: Stop | None = None
        if cut or self.died:
            crash = self._crash(cut[-1] if cut else None)
            if crash is not None:
                found.append(crash)
            stopped = "crash" if self.died else None
        return Parsed(
            counts=counts if self.binaries else None,
            failures=tuple(found[:MAX_FAILURES]),
            complete=not cut or stopped is not None,
            problem="a test binary's last line is missing" if cut else None,
            tests=tuple(
                replace(test, suite=binary.target) for binary in self.binaries for test in binary.tests
            ),
            stopped=stopped,
        )

    def _failures(self) -> Iterator[Found]:
        """The failed tests. A target is relative to its package: where that is, panics tell."""
        loose = [lines for thread, lines in self.panics.items() if thread in ("main", "")]
        for binary in self.binaries:
            said = {
                test: lines or self.panics.get(test) or (loose.pop(0) if loose else [])
                for test, lines in binary.failed.items()
            }
            folders = {folder for lines in said.values() if (folder := member(lines))}
            target = binary.target
            if target and len(folders) == 1:
                target = folders.pop() + target
            for test, lines in said.items():
                yield describe(test, lines, target, binary.target)

    def _crash(self, binary: _Binary | None) -> Found | None:
        """What ended a binary, and the test it was in if that is known."""
        running = list(binary.running) if binary else []
        test = self.overflow or (running[0] if len(running) == 1 else None)
        if not self.died and test is None:
            return None
        said = [text for text in self.died if text != "stack overflow"] or self.died
        parts = ["stack overflow", *said[-1:]] if self.overflow else said[-1:]
        message = "; ".join(dict.fromkeys(parts))
        own = own_files(test, binary.target) if test and binary else ()
        return Found(test or "cargo test", kind="crash", scope="run", message=message, own=own)

    def _name_targets(self) -> None:
        """Give each binary its file: by Cargo's lines in order, else by what it says of failed ones."""
        if self.targets:
            for binary, target in zip(self.binaries, self.targets, strict=False):
                binary.target = target if target and not target.startswith("doc ") else None
            return
        failed = [binary for binary in self.binaries if binary.failed or not binary.ended]
        for binary, args in zip(failed, self.reruns, strict=False):
            if match := re.search(r"--(test|bench|example) (\S+)", args):
                folder = {"test": "tests", "bench": "benches", "example": "examples"}[match[1]]
                binary.target = f"{folder}/{match[2]}.rs"
            elif "--lib" in args.split():
                binary.target = "src/lib.rs"
            elif match := re.search(r"--bin (\S+)", args):
                binary.target = "src/main.rs"


def _number(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
