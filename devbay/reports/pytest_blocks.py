"""One block of pytest's FAILURES or ERRORS section, and what pytest says about a whole run."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from devbay.reports.compare import compared
from devbay.reports.junit_messages import dedented_error
from devbay.reports.locate import frames_in
from devbay.reports.plain import shorten, tail
from devbay.reports.records import Found, Frame, Kind, Phase, Scope

MAX_LINES = 500
MAX_CAPTURED = 200
KEPT_OUTPUT = 4_000

_CAPTURED = re.compile(r"^-{3,} ?Captured (stdout|stderr|log) \w+ ?-{3,}$")
_ERROR_LINE = re.compile(r"^E( .*|$)")
_LOCATED = re.compile(r"^\S.*?:\d+: \S")
_AROUND = re.compile(r"^ERROR at (?P<phase>setup|teardown) of (?P<test>.+)$")
_COLLECTING = re.compile(r"^ERROR collecting (?P<path>.+)$")
_TRACEBACK_END = re.compile(r"^(?!\s|Traceback |During handling|The above exception|File )\S")
_CRASHED_WORKER = re.compile(r"^worker '\w+' crashed while running '(?P<node>.+)'")


@dataclass
class Block:
    """A block with its head; `title` is empty for the lines that `--tb=line` prints without heads."""

    section: str
    title: str
    _head: list[str] = field(default_factory=list)
    _end: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_LINES))
    captured: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_CAPTURED))
    _in_captured: bool = False

    def add(self, line: str) -> None:
        if _CAPTURED.match(line):
            self._in_captured = bool(self.title)
            return
        if self._in_captured:
            self.captured.append(line)
        elif len(self._head) < MAX_LINES:
            self._head.append(line)
        else:
            self._end.append(line)

    @property
    def lines(self) -> list[str]:
        """The block's own lines; of a very long one the start and the end."""
        return [*self._head, *self._end]

    @property
    def test(self) -> str:
        """The test (or the file that was collected) that the head names."""
        if match := _AROUND.match(self.title):
            return match["test"]
        if match := _COLLECTING.match(self.title):
            return match["path"]
        return self.title.removeprefix("[doctest] ")

    @property
    def crashed(self) -> str | None:
        """The test in which an xdist worker died; the head of such a block names only the file."""
        return next((match["node"] for line in self._head if (match := _CRASHED_WORKER.match(line))), None)

    def mentions(self, path: str) -> bool:
        spelled = path.replace("/", "\\")
        return any(path in line or spelled in line for line in self.lines)

    def located(self) -> list[str]:
        """The lines `path:line: message`."""
        return [line for line in self.lines if _LOCATED.match(line)]


def describe(block: Block, node: str | None, summary: str) -> list[Found]:
    """What a block says. node: the test by the short summary (`path::Class::test`), summary: its text."""
    node = node or block.crashed
    path = node.partition("::")[0] if node else None
    scope: Scope = "test"
    phase: Phase | None = None
    if around := _AROUND.match(block.title):
        phase = "setup" if around["phase"] == "setup" else "teardown"
    if _COLLECTING.match(block.title):
        scope, path = "suite", path or block.test
    suite, name = _named(node.partition("::")[2] if node and "::" in node else block.test)
    text = "\n".join(block.lines)
    message = _message(block.lines) or summary.removesuffix("...")
    if re.fullmatch(r"contains \d+ failed subtests?", message):
        return []
    expected, actual = compared(message)
    frames = _frames(text, message)
    return [
        Found(
            name=block.test if scope == "suite" else name,
            suite=None if scope == "suite" else suite or path,
            kind=_kind(block, message),
            scope=scope,
            phase=phase,
            message=message,
            expected=expected,
            actual=actual,
            frames=frames,
            own=(path,) if path else (),
            output=tail("\n".join(block.captured).strip(), KEPT_OUTPUT) or None,
        )
    ]


def _named(test: str) -> tuple[str | None, str]:
    """(class, test) of `TestTax::test_x[a::b]` or, as heads have it, `TestTax.test_x[a.b]`."""
    match = re.match(r"((?:\w+(?:::|\.))*)(\w+)(?=$|[\[ (])", test)
    if match is None or _is_module(match[1]):
        return None, test
    owner = match[1].removesuffix("::").removesuffix(".").replace("::", ".")
    return owner or None, test[match.start(2) :]


def _is_module(owner: str) -> bool:
    """Whether what stands before a test is a module (as in doctests) rather than a class."""
    return "::" not in owner and owner[:1].islower()


def _kind(block: Block, message: str) -> Kind:
    if "from pytest-timeout" in message:
        return "timeout"
    if _CRASHED_WORKER.match(message):
        return "crash"
    return "error" if block.section == "ERRORS" else "failure"


def _frames(text: str, message: str) -> tuple[Frame, ...]:
    return tuple(frame for frame in frames_in(text) if frame.line) or frames_in(message)


def _message(lines: Sequence[str]) -> str:
    """The last group of `E` lines; of a native traceback its end; else what the block says at all."""
    groups: list[list[str]] = [[]]
    for line in lines:
        if _ERROR_LINE.match(line):
            groups[-1].append(line[1:])
        elif groups[-1] and line.strip():
            groups.append([])
    groups = [group for group in groups if any(part.strip() for part in group)]
    if groups:
        return dedented_error(groups[-1])
    if any(line.startswith("Traceback (most recent call last)") for line in lines):
        return _native(lines)
    kept = [line for line in lines if line.strip() and not line.startswith(("[gw", "self = "))]
    if kept and (located := re.match(r"^\S.*?:\d+: (\S.*)$", kept[-1])) and len(kept) == 1:
        return located[1]
    return "\n".join(line.strip() for line in kept[-12:] if not re.match(r"^\S+:\d+: ?\w*$", line))


def _native(lines: Sequence[str]) -> str:
    last = max((i for i, line in enumerate(lines) if line.startswith(('  File "', "  | File"))), default=0)
    for start in range(last + 1, len(lines)):
        if _TRACEBACK_END.match(lines[start]):
            return "\n".join(lines[start:]).strip()
    return ""


def run_problem(lines: Sequence[str], bang: str) -> Found | None:
    """What ended the run as a whole: a crash, pytest-timeout's thread, an internal or a usage error."""
    if not lines:
        if "KeyboardInterrupt" in bang or bang.startswith(("_pytest.outcomes.Exit", "Exit")):
            return Found("pytest", kind="error", scope="run", message=bang)
        return None
    text = "\n".join(lines)
    first = lines[0]
    if first.startswith("INTERNALERROR> "):
        inner = [line.removeprefix("INTERNALERROR> ") for line in lines if line.startswith("INTERNALERROR> ")]
        message = _message(inner) or inner[-1]
        return Found("pytest", kind="crash", scope="run", message=message, frames=frames_in("\n".join(inner)))
    frames = frames_in(text)
    if first.startswith("Fatal Python error"):
        return Found(_running(frames), kind="crash", scope="run", message=first, frames=frames)
    if "Timeout" in first and first.startswith("+"):
        return Found(
            _running(frames), kind="timeout", scope="run", message="Timeout (pytest-timeout)", frames=frames
        )
    if first.startswith("ImportError while loading conftest"):
        path = re.search(r"conftest '(.+?)'", first)
        message = _message(lines) or first
        own = (path[1],) if path else ()
        return Found("conftest", kind="error", scope="run", message=message, frames=frames, own=own)
    message = first.removeprefix("ERROR: ")
    if "usage:" in message:
        message = next((line for line in lines if ": error: " in line), message)
    return Found("pytest", kind="error", scope="run", message=shorten(message, 600))


def _running(frames: Sequence[Frame]) -> str:
    """The test that ran: the outermost function in a stack that is named like one."""
    return next(
        (f.function for f in reversed(frames) if f.function and f.function.startswith("test")), "pytest"
    )
