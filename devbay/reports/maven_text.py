"""Maven's plain output: Surefire's and Failsafe's tests, compile errors, and forks that died.

Source: `surefire-common` 2.12 to 3.5 (`ConsoleReporter`, `TestSetStats`), maven-compiler-plugin 3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from devbay.answers import Counts
from devbay.reports.jvm import described
from devbay.reports.records import MAX_FAILURES, Found, Parsed, Stop, TestCase, count
from devbay.reports.screen import Lines, screen_lines, screen_text
from devbay.reports.source import Source

name = "maven"
commands = frozenset({"mvn", "mvnw", "mvnd"})

_LEVEL = re.compile(r"\[(?P<level>INFO|WARNING|ERROR|DEBUG)\] ?(?P<text>.*)")
_RUN = re.compile(
    r"Tests run: (?P<ran>\d+), Failures: (?P<failed>\d+), Errors: (?P<errors>\d+), Skipped: (?P<skipped>\d+)"
    r"(?:, Flakes: \d+)?(?P<timed>, Time elapsed: .*?(?:in (?P<class>\S+))?)?"
)
_FAILED = re.compile(
    r"(?P<test>\S.*?) +(?:-- )?Time elapsed: (?P<seconds>[\d.,]+) s(?:ec)? +<<< (?P<word>ERROR|FAILURE)!"
)
_OLD_NAME = re.compile(r"(?P<test>.+)\((?P<class>[\w.$]+)\)")
_COMPILED = re.compile(r"(?P<path>(?:/|[A-Za-z]:).+?\.\w+):\[(?P<line>\d+),\d+\] (?P<text>.+)")
_NO_MATCH = re.compile(r".*?(?P<text>No tests (?:matching pattern .*? )?were executed!)")
_FORK = re.compile(
    r"(?P<text>(?P<died>The forked VM terminated without|ExecutionException The forked VM terminated)"
    r".*|There was a timeout (?:in|or other error in) the fork.*)"
)
_GOAL = re.compile(r"Failed to execute goal (?P<goal>\S+).*?: (?P<text>.+?)(?: -> \[Help \d+\])?")
_SNIFF = re.compile(
    r"^\[(INFO|WARNING|ERROR)\] (Scanning for projects\.\.\.| T E S T S|COMPILATION ERROR"
    r"|Tests run: \d+, Failures|Failed to execute goal )",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether the bytes hold lines of Maven or of Surefire."""
    return _SNIFF.search(screen_text(head)) is not None


def read(source: Source) -> Parsed:
    """What Maven said of the tests of all modules. A build that ended before its tests has no counts."""
    reader = _Reader()
    for line in screen_lines(source):
        reader.take(line)
    return reader.result()


@dataclass
class _Block:
    """A test or a class that failed, with its stack."""

    test: str
    suite: str | None
    failed: bool
    whole: bool
    lines: Lines = field(default_factory=Lines)


@dataclass
class _Reader:
    """The state between lines."""

    blocks: list[_Block] = field(default_factory=list)
    block: _Block | None = None
    totals: list[Counts] = field(default_factory=list)
    so_far: list[Counts] = field(default_factory=list)
    compiled: dict[tuple[str, int, str], list[str]] = field(default_factory=dict)
    compiling: list[str] | None = None
    fork: re.Match[str] | None = None
    crashed: list[str] = field(default_factory=list)
    crash_list: bool = False
    nothing: str | None = None
    goal: re.Match[str] | None = None
    began: bool = False
    ended: bool = False
    class_name: str = ""

    def take(self, line: str) -> None:
        level = _LEVEL.fullmatch(line)
        if level is None:
            if self.block is not None:
                self.block.lines.add(line)
            elif self.compiling is not None and len(self.compiling) < 20:
                self.compiling.append(line.strip())
            return
        self.block = None
        text = level["text"]
        if match := _RUN.fullmatch(text):
            self._ran(match)
        elif match := _FAILED.fullmatch(text):
            self._failed(match)
        elif match := _COMPILED.fullmatch(text):
            key = (match["path"], int(match["line"]), match["text"])
            if level["level"] == "ERROR" and len(self.compiled) < MAX_FAILURES:
                # the build's last lines say it all again
                self.compiling = None if key in self.compiled else self.compiled.setdefault(key, [key[2]])
            return
        elif text.startswith("  ") and self.compiling is not None and len(self.compiling) < 20:
            self.compiling.append(text.strip())
            return
        else:
            self._other(text)
        self.compiling = None

    def _ran(self, match: re.Match[str]) -> None:
        ran, failed, errors, skipped = (int(match[key]) for key in ("ran", "failed", "errors", "skipped"))
        counts = count(max(0, ran - failed - errors - skipped), failed, errors, skipped)
        self.began = True
        if match["timed"] is None:
            self.totals.append(counts)
            self.so_far.clear()
        else:
            self.so_far.append(counts)
            self.class_name = match["class"] or ""

    def _failed(self, match: re.Match[str]) -> None:
        test = match["test"]
        if old := _OLD_NAME.fullmatch(test):
            suite, leaf = old["class"], old["test"]
            whole = leaf == suite
        else:
            whole = test == self.class_name
            owner = re.split(r"[(\[ ]", test, maxsplit=1)[0].rpartition(".")[0]
            suite, leaf = (test, test) if whole else (owner, test[len(owner) :].lstrip("."))
        self.block = _Block(leaf, suite or None, match["word"] == "FAILURE", whole)
        if len(self.blocks) < MAX_FAILURES:
            self.blocks.append(self.block)

    def _other(self, text: str) -> None:
        if text.startswith(("BUILD ", "Total time:")):
            self.ended = True
        elif text.strip() == "T E S T S":
            self.began = True
        elif text == "No tests to run.":
            self.nothing = self.nothing or ""
        elif match := _FORK.fullmatch(text):
            self.fork = self.fork or match
        elif text == "Crashed tests:":
            self.crash_list = True
        elif self.crash_list and re.fullmatch(r"[\w.$]+", text):
            if text not in self.crashed and len(self.crashed) < 50:
                self.crashed.append(text)
        elif match := _GOAL.fullmatch(text):
            self.goal = self.goal or match
            if none := _NO_MATCH.fullmatch(text):
                self.nothing = none["text"]
        else:
            self.crash_list = False

    def result(self) -> Parsed:
        failures = [_describe(block) for block in self.blocks]
        if self.totals and not any(each.failed or each.errors for each in self.totals):
            failures = []  # tests that failed at first and passed when they were run again
        failures += [
            Found(path, kind="error", scope="suite", message="\n".join(told), own=(path,), own_line=line)
            for (path, line, _), told in self.compiled.items()
        ]
        stopped: Stop | None = None
        if self.fork is not None:
            stopped = "crash" if self.fork["died"] else "timeout"
            message = self.fork["text"]
            for each in self.crashed or ["maven"]:
                failures.append(Found(each, kind=stopped, scope="run", message=message, own=(each,)))
        elif not failures:
            failures += self._of_the_build()
        complete = self.ended or stopped is not None
        return Parsed(
            counts=self._counts(),
            failures=tuple(failures),
            complete=complete,
            problem=None if complete else "Maven's last lines are missing",
            tests=tuple(
                TestCase(block.test, block.suite, block.suite, None, "failed" if block.failed else "error")
                for block in self.blocks
                if not block.whole
            ),
            stopped=stopped,
        )

    def _of_the_build(self) -> list[Found]:
        """Why the build failed or ended, where no test and no source file is to blame."""
        if self.nothing:
            return [Found("maven", kind="error", scope="run", message=self.nothing)]
        if not self.ended:
            return [Found("maven", kind="crash", scope="run", message="the run ended before the build did")]
        if self.goal is not None and not any(each.failed or each.errors for each in self.totals):
            return [Found(self.goal["goal"], kind="error", scope="run", message=self.goal["text"])]
        return []

    def _counts(self) -> Counts | None:
        each = [*self.totals, *self.so_far]
        if not each:
            return count() if self.nothing is not None else None
        if self.fork is not None and not any(counts.total for counts in each):
            return None
        return count(
            sum(counts.passed for counts in each),
            sum(counts.failed for counts in each),
            sum(counts.errors for counts in each),
            sum(counts.skipped for counts in each),
        )


def _describe(block: _Block) -> Found:
    return described(
        Found(
            block.test,
            suite=block.suite,
            kind="failure" if block.failed else "error",
            scope="suite" if block.whole else "test",
            phase="setup" if block.whole else None,
            own=(block.suite,) if block.suite else (),
        ),
        block.lines.all,
    )
