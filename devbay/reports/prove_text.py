"""prove's output: its summary, with `-v` the TAP of every file, and what Test::More says about failures.

What Test::More prints goes to another stream than the rest, so failures and the files they belong to are
brought together at the end. The same words give a place to the failures of TAP::Formatter::JUnit's reports.
 Source: `TAP/Formatter` of Test-Harness 3.44, `Test/Builder.pm` of Test-Simple 1.302.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace

from devbay.answers import Counts
from devbay.reports import junit
from devbay.reports.records import MAX_FAILURES, Found, Outcome, Parsed, count
from devbay.reports.screen import screen_lines, screen_text
from devbay.reports.source import Source
from devbay.reports.test_more import Died, Said, TestMore

name = "prove"
commands = frozenset({"prove"})

_FILES = re.compile(r"Files=(?P<files>\d+), Tests=(?P<tests>\d+), .*")
_RESULT = re.compile(r"Result: (?P<result>PASS|FAIL|NOTESTS)")
_FILE = re.compile(r"(?P<path>\S+) \.{2,} *(?P<rest>.*)")
_SUMMED = re.compile(
    r"(?P<path>\S.*?) +\(Wstat: (?P<wstat>\d+)(?: \((?P<how>.+?)\))?"
    r" Tests: (?P<tests>\d+) Failed: (?P<failed>\d+)\)"
)
_TROUBLE = re.compile(r"  Parse errors: (?P<text>.+)")
_NUMBERS = re.compile(r"  Failed tests?:\s+(?P<numbers>[\d, -]+)")
_SKIPPED = re.compile(r"\t\(less (?P<skipped>\d+) skipped subtests?: \d+ okay\)")
_TAP = re.compile(
    r"(?P<not>not )?ok\b(?: +\d+)?(?: +-)?(?: +(?P<name>[^#\s].*?))?(?: +# *(?P<why>skip|todo)\b.*)?",
    re.IGNORECASE,
)
_SUITE = re.compile(r"<testsuite\b[^>]*\bname=\"\w+_t\"")
_WORDS = re.compile(r"^ *# +Failed test|^# Looks like (your test exited|you (planned|failed))", re.MULTILINE)
_SNIFF = re.compile(
    r"^Files=\d+, Tests=\d+, |^Result: (PASS|FAIL|NOTESTS)$|^Test Summary Report\n-{10,}$", re.MULTILINE
)


def sniff(head: bytes) -> bool:
    """Whether the bytes hold prove's last lines, or the report that its JUnit formatter prints."""
    text = screen_text(head)
    return bool(_SNIFF.search(text)) or (_beside_junit(text) and junit.sniff(head))


def read(source: Source) -> Parsed:
    """What prove said. Output without its last line is not complete."""
    if _beside_junit(screen_text(source.sample())):
        return _placed(junit.read(source), source)
    reader = _Reader()
    for line in screen_lines(source):
        reader.take(line)
    return reader.result()


def _beside_junit(text: str) -> bool:
    """Whether a JUnit report of Perl tests stands beside the words of Test::More."""
    return bool(_SUITE.search(text) and _WORDS.search(text))


@dataclass
class _Summed:
    """A file in the summary. how: how its process ended (`exited 255`, `Signal: SEGV`)."""

    path: str
    how: str
    tests: int
    failed: int
    troubles: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    @property
    def broken(self) -> bool:
        """Whether more went wrong than that tests failed: Test::More exits with the number of failures."""
        return bool(self.troubles) or "ignal" in self.how or self.how == "exited 255" or not self.failed


@dataclass
class _Reader:
    """The state between lines."""

    said: TestMore = field(default_factory=TestMore)
    summed: list[_Summed] = field(default_factory=list)
    file: str | None = None
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    unsaid: list[tuple[str, str | None]] = field(default_factory=list)
    skipped: int = 0
    tests: int | None = None
    ended: bool = False

    def take(self, line: str) -> None:
        if match := _FILES.fullmatch(line):
            self.tests = (self.tests or 0) + int(match["tests"])
        elif match := _RESULT.fullmatch(line):
            self.ended = True
        elif match := _SUMMED.fullmatch(line):
            self.file = None
            how = match["how"] or ("" if match["wstat"] == "0" else f"wait status {match['wstat']}")
            each = _Summed(match["path"], how, int(match["tests"]), int(match["failed"]))
            self.summed.append(each)
            del self.summed[MAX_FAILURES:]
        elif self.summed and (match := _TROUBLE.fullmatch(line)):
            self.summed[-1].troubles.append(match["text"])
        elif self.summed and (match := _NUMBERS.fullmatch(line)):
            self.summed[-1].numbers += _expanded(match["numbers"])
        elif match := _SKIPPED.fullmatch(line):
            self.skipped += int(match["skipped"])
        elif match := _FILE.fullmatch(line):
            self.file = match["path"]
        elif match := _TAP.fullmatch(line):
            self._tap(match)
        else:
            self.said.take(line, self.file)

    def _tap(self, match: re.Match[str]) -> None:
        self.said.end_block()
        if match["why"]:
            self.outcomes["skipped"] += 1
        elif match["not"]:
            self.outcomes["failed"] += 1
            if len(self.unsaid) < MAX_FAILURES:
                self.unsaid.append((match["name"] or "", self.file))
        else:
            self.outcomes["passed"] += 1

    def result(self) -> Parsed:
        said = self.said.failures()
        failures = [each.found() for each in said] + self._without_words(said)
        if not self.outcomes:
            failures += self._without_names(said)
        broken = [each for each in self.summed if each.broken]
        failures += [_broken(each, self.said.died_of(each.path, each.tests)) for each in broken]
        if not self.ended:
            message = "the run ended before prove's result"
            failures.append(Found(self.file or "prove", kind="crash", scope="run", message=message))
        return Parsed(
            counts=self._counts(len(broken)),
            failures=tuple(failures[:MAX_FAILURES]),
            complete=self.ended,
            problem=None if self.ended else "prove's last line is missing",
        )

    def _without_words(self, said: list[Said]) -> list[Found]:
        """Tests that failed without Test::More: of those only the TAP says so."""
        names = {each.name for each in said} | set(self.said.parents)
        return [
            Found(title or "(unnamed)", suite=path, message=f"not ok - {title}", own=(path,) if path else ())
            for title, path in self.unsaid
            if title not in names and not (said and not title)
        ]

    def _without_names(self, said: list[Said]) -> list[Found]:
        """Tests of which only the summary tells that they failed: files without a word of Test::More."""
        spoken = {path for each in said for path in (each.path, each.file)}
        return [
            Found(f"test {number}", suite=each.path, message=f"not ok {number}", own=(each.path,))
            for each in self.summed
            if each.path not in spoken
            for number in each.numbers
        ][:MAX_FAILURES]

    def _counts(self, broken: int) -> Counts | None:
        """Files that broke are counted as errors, besides their tests."""
        if self.outcomes:
            seen = self.outcomes
            return count(seen["passed"], seen["failed"], broken, seen["skipped"])
        if self.tests is None:
            return None
        failed = sum(each.failed for each in self.summed)
        return count(max(0, self.tests - failed - self.skipped), failed, broken, self.skipped)


def _expanded(text: str) -> list[int]:
    """The numbers of `2-4, 7`, up to a thousand."""
    found: list[int] = []
    for part in re.finditer(r"(\d{1,9})(?:-(\d{1,9}))?", text):
        first, last = int(part[1]), int(part[2] or part[1])
        found += range(first, min(last, first + 1000) + 1)
    return found[:1000]


def _broken(each: _Summed, died: Died | None) -> Found:
    """A file that ended before its tests did."""
    message = died.message if died else ""
    return Found(
        each.path,
        suite=each.path,
        kind="crash" if "ignal" in each.how else "error",
        scope="suite",
        message=message or "; ".join(each.troubles) or each.how,
        frames=died.frames if died else (),
        own=(each.path,),
    )


def _placed(parsed: Parsed, source: Source) -> Parsed:
    """A JUnit report with what Test::More printed beside it: the places and the words of its failures."""
    reader = TestMore()
    for line in screen_lines(source):
        reader.take(line, None)
    said: dict[str, list[Said]] = {}
    parents = dict(reader.parents)
    for each in reader.failures():
        said.setdefault(each.parent or each.name, []).append(each)
    result: list[Found] = []
    for found in parsed.failures:
        title = re.sub(r"^\d+(?: - )?", "", found.name)
        told = said.get(title) if found.scope == "test" else None
        if told and title in parents:
            result += [each.found() for each in told]
        elif told:
            first = told.pop(0).found()
            result.append(replace(first, name=found.name))
        elif found.scope == "suite" and (died := reader.next_died()):
            result.append(replace(found, message=died.message, frames=died.frames))
        else:
            result.append(found)
    return replace(parsed, failures=tuple(result))
