"""One problem in PHPUnit's plain output, and what PHP says of a run that it could not go on with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from devbay.reports.compare import compared
from devbay.reports.locate import frames_in
from devbay.reports.records import Found, Frame, Kind
from devbay.reports.screen import Lines

_TITLE = re.compile(r"(?P<class>[\w\\]+)::(?P<test>.+)", re.DOTALL)
_PLACE = re.compile(r"(?:/|[A-Za-z]:\\)[^:]*\.\w+:\d+|[\w./-]+\.\w+:\d+")
_BELOW = re.compile(r"Caused by|Stack trace:|#0 .*")
_THROWN = re.compile(r"[\w\\]*(?:Exception|Error|Throwable)\b ?: ")
_IN = re.compile(r" in (?P<path>(?:/|[A-Za-z]:\\)\S.*?)(?::| on line )(?P<line>\d+)$")
_FATAL = re.compile(r"(?:PHP )?(?P<what>Fatal|Parse) error: +(?:Uncaught )?(?P<message>.+)")
_LOADING = re.compile(
    r"ParseError\b|Cannot (?:re)?declare|syntax error|(?:Class|Interface|Trait) .+ not found"
    r"|Failed opening required|must be compatible with|contains \d+ abstract method"
)


@dataclass
class Block:
    """A problem with its head. kind: of the section it stands in; None in testdox, which has no sections."""

    title: str
    kind: Kind | None = None
    suite: str | None = None
    lines: Lines = field(default_factory=Lines)


def describe(block: Block) -> Found:
    """What a block says: a message, then the places of the stack, then what caused it."""
    match = _TITLE.fullmatch(block.title)
    suite = match["class"] if match else block.suite
    lines = _own_part(block.lines.all)
    places = [line for line in lines if _PLACE.fullmatch(line)]
    message = "\n".join(line for line in lines if not _PLACE.fullmatch(line)).strip()
    frames = frames_in("\n".join(places))
    if not places and (at := _IN.search(message.split("\n")[0])):
        frames = (Frame(at["path"], int(at["line"])),)
        message = message[: at.start()]
    message = re.sub(r"\n{3,}", "\n\n", message)
    expected, actual = compared(message)
    kind = block.kind or ("error" if _THROWN.match(message) else "failure")
    return Found(
        match["test"] if match else block.title,
        suite=suite,
        kind=kind,
        message=message,
        expected=expected,
        actual=actual,
        frames=frames,
        own=_files(suite) if suite else (),
    )


def _own_part(lines: Sequence[str]) -> list[str]:
    """The lines of the problem itself, without its causes and without PHP's own stack."""
    end = next((at for at, line in enumerate(lines) if _BELOW.fullmatch(line)), len(lines))
    return list(lines[:end])


def _files(suite: str) -> tuple[str, ...]:
    """A class as its name, and as the file that autoloaders expect it in."""
    return (suite, "*/" + re.split(r"[\\:]", suite)[-1] + ".php")


def of_the_run(lines: Sequence[str], began: bool) -> Found:
    """What ended the run: a file that does not load, or a crash. began: tests had run before."""
    first = lines[0]
    message, place = first, None
    if match := _FATAL.fullmatch(first):
        message = match["message"]
        if match["what"] == "Parse":
            message = f"ParseError: {message}"
        if at := _IN.search(message):
            message, place = message[: at.start()], Frame(at["path"], int(at["line"]))
    else:  # PHPUnit 10: `Message:  text`, `Location: path:line`
        told = next((line for line in lines if line.startswith("Message:")), first)
        message = told.removeprefix("Message:").strip()
        location = next((line for line in lines if line.startswith("Location:")), "")
        if at := re.fullmatch(r"Location: +(.+):(\d+)", location):
            place = Frame(at[1], int(at[2]))
    loading = not began or bool(_LOADING.search(message))
    return Found(
        place.path if place else "phpunit",
        kind="error" if loading else "crash",
        scope="run",
        message=message,
        frames=(place,) if place else (),
        own=(place.path,) if place else (),
    )
