"""What Perl's Test::More says about failures: comment lines beside the TAP, or on the other stream."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from devbay.reports.compare import compared
from devbay.reports.locate import frames_in
from devbay.reports.records import MAX_FAILURES, Found, Frame
from devbay.reports.screen import Lines

_FAILED = re.compile(
    r"(?P<indent> *)# +Failed (?P<todo>\(TODO\) )?test(?: '(?P<name>.*)')?(?P<rest> at .* line \d+\.)?"
)
_AT = re.compile(r" *#\s+(?:in '.*'\s+)?at (?P<path>.+) line (?P<line>\d+)\.")
_NAMELESS = re.compile(r" at (?P<path>.+) line (?P<line>\d+)\.")
_LOOKS = re.compile(r"(?P<indent> *)# Looks like (?P<text>.+)")
_EXITED = re.compile(
    r"your test exited with \d+ (?:just after (?P<after>\d+)|before it could output anything)\."
)
_PLANNED = re.compile(r"you planned (?P<planned>\d+) tests? but ran (?P<ran>\d+)\.")
_COMMENT = re.compile(r" *# ?(?P<text>.*)")
_THROWN = re.compile(r".* at \S+ line \d+\.?(?:, .*)?$")
_OTHERS = re.compile(r"\s*(?:#|(?:not )?ok\b|\d+\.\.\d+)|Dubious, test returned |Failed \d+/\d+ ")
MAX_LOOSE = 2_000


@dataclass
class Said:
    """A test that failed. name: empty if it has none. parent: the subtest that it stands in."""

    name: str
    path: str | None
    line: int | None
    file: str | None
    indent: int
    parent: str | None = None
    lines: Lines = field(default_factory=Lines)

    def found(self) -> Found:
        head = f"Failed test '{self.name}'" if self.name else f"Failed test at {self.path} line {self.line}."
        message = "\n".join([head, *self.lines.all]).rstrip()
        expected, actual = compared(self.lines.text)
        own = tuple(each for each in (self.file, self.path) if each)
        return Found(
            self.name or f"test at {self.path} line {self.line}",
            suite=self.parent or self.file or self.path,
            message=message,
            expected=expected,
            actual=actual,
            frames=(Frame(self.path, self.line),) if self.path and self.line else (),
            own=own,
        )


@dataclass
class Died:
    """A file whose process ended early. after: the tests that had run; None where it is not said."""

    message: str
    frames: tuple[Frame, ...]
    after: int | None
    path: str | None
    used: bool = False


@dataclass
class TestMore:
    """Reads the lines; after the last one `failures` and `died_of` tell what they said."""

    __test__ = False

    said: list[Said] = field(default_factory=list)
    block: Said | None = None
    died: list[Died] = field(default_factory=list)
    parents: dict[str, None] = field(default_factory=dict)
    loose: list[str] = field(default_factory=list)
    inner: int = 0
    inner_from: int = 0

    def take(self, line: str, file: str | None) -> None:
        """One line. file: the test file that it is known to be of."""
        if match := _FAILED.fullmatch(line):
            self._failed(match, file)
        elif self.block is not None and self.block.path is None and (match := _AT.fullmatch(line)):
            self.block.path, self.block.line = match["path"], int(match["line"])
        elif match := _LOOKS.fullmatch(line):
            self.end_block()
            self._looks(match, file)
        elif self.block is not None and (match := _COMMENT.fullmatch(line)):
            self.block.lines.add(match["text"])
        else:
            self.end_block()
            if line.strip() and not _OTHERS.match(line) and len(self.loose) < MAX_LOOSE:
                self.loose.append(line)

    def end_block(self) -> None:
        self.block = None

    def _failed(self, match: re.Match[str], file: str | None) -> None:
        self.block = None
        indent, title = len(match["indent"]), match["name"] or ""
        if self.inner > indent:  # a subtest failed because of what failed in it
            for each in self.said[self.inner_from :]:
                if each.indent > indent and each.parent is None:
                    each.parent = title or None
            self.parents[title] = None
            self.inner = 0
            if len(self.said) > self.inner_from:
                return
        if match["todo"] or len(self.said) >= MAX_FAILURES:
            return
        place = _NAMELESS.fullmatch(match["rest"] or "")
        path, at = (place["path"], int(place["line"])) if place else (None, None)
        self.block = Said(title, path, at, file, indent)
        self.said.append(self.block)

    def _looks(self, match: re.Match[str], file: str | None) -> None:
        text, indent = match["text"].strip(), len(match["indent"])
        if indent:
            self.inner = indent
            self.inner_from = next(
                (at + 1 for at in reversed(range(len(self.said))) if self.said[at].indent < indent), 0
            )
        elif exited := _EXITED.fullmatch(text):
            at = next((at for at in reversed(range(len(self.loose))) if _THROWN.match(self.loose[at])), None)
            told = self.loose[at:] if at is not None else self.loose[-1:]
            message = "\n".join(told) or f"Looks like {text}"
            after = int(exited["after"]) if exited["after"] else 0
            self.died.append(Died(message, frames_in(message), after, file))
            self.loose.clear()
        elif planned := _PLANNED.fullmatch(text):
            self.died.append(Died(f"Looks like {text}", (), int(planned["ran"]), file))

    def failures(self) -> list[Said]:
        return self.said

    def next_died(self) -> Died | None:
        """The first of the files that ended early which was not asked for yet."""
        died = next((each for each in self.died if not each.used), None)
        if died is not None:
            died.used = True
        return died

    def died_of(self, path: str, ran: int) -> Died | None:
        """What a file said as it ended: by its name, else by the number of tests it had run."""
        named = [each for each in self.died if each.path == path]
        same = [each for each in self.died if not each.used and each.after == ran and each.path is None]
        died = next(iter(named or same), None)
        if died is not None:
            died.used = True
            return died
        lines = [line for line in self.loose if f"{path} line " in line]
        if lines:
            message = "\n".join(lines)
            return Died(message, frames_in(message), ran, path, used=True)
        return None
