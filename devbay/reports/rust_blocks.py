"""What the captured output of one failed Rust test says: its panic, or the error it returned.

Source: libtest and std's panic hook of Rust 1.40 to 1.95 (the place moved before the message in 1.73).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from devbay.reports.compare import compared
from devbay.reports.locate import frames_in
from devbay.reports.paths import is_library
from devbay.reports.plain import shorten, tail
from devbay.reports.records import Found, Frame, Kind

KEPT_OUTPUT = 4_000
MAX_TEXT = 100_000
MAX_MESSAGE = 8_000

PANIC = re.compile(
    r"^(?:thread '(?P<thread>[^'\n]*)'(?: \(\d+\))?|Test) panicked at "
    r"(?:(?P<place>[^'\n][^\n]*?:\d+:\d+):?$|')"
)
_PANICS = re.compile(
    r"^thread '(?P<thread>[^'\n]*)'(?: \(\d+\))? panicked at "
    r"(?:(?P<path>[^'\n][^\n]*?):(?P<line>\d+):\d+:?\n"
    r"(?P<text>(?:(?!note: run with |stack backtrace:$|thread ').*\n?)*)"
    r"|'(?P<old>(?s:.*?))', (?P<oldpath>[^\n']+?):(?P<oldline>\d+)(?::\d+)?$)",
    re.MULTILINE,
)
_NOTE = re.compile(
    r"^note: (?P<text>test did not panic as expected(?: at (?P<path>\S+?):(?P<line>\d+):\d+)?$"
    r"|(?:panic did not contain|expected panic with) expected.*(?:\n[ \t]+.*)*"
    r"|expected panic with string value.*(?:\n[ \t]+.*)*)",
    re.MULTILINE,
)
_RETURNED = re.compile(r"^Error: (?P<text>.*(?:\n(?!thread |note: |\n).*)*)", re.MULTILINE)
_DOCTEST = re.compile(r"^(?P<path>\S+\.(?:rs|md)) - (?P<what>.*?)\(line (?P<line>\d+)\)")
_COMPILER = re.compile(r"^error(?:\[E\d+\])?: (?P<text>.+)$", re.MULTILINE)
_ASSERTED = re.compile(r"assertion\b|test did not panic|panic did not contain|snapshot assertion|Test failed")
_RUNTIME = re.compile(
    r"called `(?:Option|Result)::|index out of bounds|attempt to \w+|already (?:mutably )?borrowed|Error: "
    r"|explicit panic|not (?:yet )?implemented|internal error: entered unreachable|range (?:start|end) index"
    r"|slice index|byte index|capacity overflow|.*: (?:Os \{|\w+Error\b)|no entry found|divide by zero"
)
_MEMBER = re.compile(r"panicked at (?:'.*', )?(?!/)([^\s:']+?/)(?:src|tests|benches|examples)/\S+:\d+")
_OVERFLOW = re.compile(r"^thread '(?P<thread>[^'\n]*)'(?: \(\d+\))? has overflowed its stack", re.MULTILINE)


def overflowed(line: str) -> str | None:
    """The thread (the test) that ran out of stack, by the runtime's line."""
    match = _OVERFLOW.match(line)
    return match["thread"] if match else None


def member(lines: Sequence[str]) -> str | None:
    """The folder of the workspace's member (`crates/pea/`) that panics tell, or None."""
    for line in lines:
        if match := re.search(
            r"panicked at (?:'.*', )?(?!/)([^\s:']+?/)(?:src|tests|benches|examples)/\S+:\d+", line
        ):
            return match[1]
    return None


def describe(name: str, lines: Sequence[str], target: str | None, suite: str | None = None) -> Found:
    """A failed test. lines: what was captured. target: the file of its binary (`tests/feeding.rs`)."""
    text = tail("\n".join(lines), MAX_TEXT)
    if doctest := _DOCTEST.match(name):
        return _doctest(name, text, doctest, suite)
    message, frames = _said(name, text)
    message = shorten(message, MAX_MESSAGE)
    expected, actual = compared(message)
    own = own_files(name, target)
    return Found(
        name,
        suite,
        _kind(message, frames, own),
        message=message,
        expected=expected,
        actual=actual,
        frames=frames,
        own=own,
        output=tail(text.strip(), KEPT_OUTPUT) or None,
    )


def own_files(name: str, target: str | None) -> tuple[str, ...]:
    """The files that may hold a test, most likely first: a module's own file, then its binary's."""
    if not target:
        return ()
    folder, _, file = target.rpartition("/")
    files = [target]
    if file in ("lib.rs", "main.rs", "mod.rs") and folder:
        parts = name.split("::")[:-1]
        modules = ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]
        files = [f"{folder}/{each}{ending}" for each in modules for ending in (".rs", "/mod.rs")] + [target]
    return tuple(dict.fromkeys(files))


def _kind(message: str, frames: Sequence[Frame], own: Sequence[str]) -> Kind:
    """An assertion failed, or something else went wrong (a panic is how both end)."""
    if _ASSERTED.match(message):
        return "failure"
    if _RUNTIME.match(message):
        return "error"
    foreign = bool(frames and own) and frames[0].path.removeprefix("./") not in own
    return "error" if foreign else "failure"


def _said(name: str, text: str) -> tuple[str, tuple[Frame, ...]]:
    panics = list(_PANICS.finditer(text))
    if note := _NOTE.search(text):
        frames = (Frame(note["path"], int(note["line"])),) if note["path"] else ()
        said = re.sub(r" at \S+:\d+:\d+$", "", note["text"].strip())
        return said, frames or (_frames(panics[-1], text) if panics else ())
    if panics:
        own = next((panic for panic in reversed(panics) if panic["thread"] == name), panics[0])
        return _panic_text(own), _frames(own, text)
    if returned := _RETURNED.search(text):
        return f"Error: {returned['text']}".strip(), ()
    return tail("\n".join(line for line in text.strip().split("\n")[-8:] if line.strip()), 600), ()


def _panic_text(panic: re.Match[str]) -> str:
    if panic["text"] is None:
        return str(panic["old"]).strip()
    return re.split(r"\n\n(?=\S+ --- |---- |failures:)", str(panic["text"]))[0].strip()


def _frames(panic: re.Match[str], text: str) -> tuple[Frame, ...]:
    """The panic's own place, then its backtrace."""
    path, line = panic["path"] or panic["oldpath"], int(panic["line"] or panic["oldline"])
    trace = text[panic.end() :]
    trace = trace[trace.find("stack backtrace:") :] if "stack backtrace:" in trace else ""
    end = _PANICS.search(trace)
    own = [Frame(path, line)] if not is_library(path) else []
    return tuple(
        dict.fromkeys(
            [*own, *(_relative(frame) for frame in _backtrace(trace[: end.start() if end else None]))]
        )
    )


def _relative(frame: Frame) -> Frame:
    return Frame(frame.path.removeprefix("./"), frame.line, frame.function)


def _backtrace(text: str) -> tuple[Frame, ...]:
    return frames_in(re.sub(r"(?m)^(\s+at .*:\d+):\d+$", r"\1", text)) if text else ()


def _doctest(name: str, text: str, match: re.Match[str], suite: str | None) -> Found:
    """Of a doc test only the name tells the place: its own lines are those of a generated file."""
    failed = _COMPILER.search(text) if "Couldn't compile the test" in text else None
    message = failed["text"] if failed else _said(name, text)[0]
    kind: Kind = "error" if failed else _kind(message, (), ())
    expected, actual = compared(message)
    return Found(
        name,
        suite,
        kind,
        message=message,
        expected=expected,
        actual=actual,
        own=(match["path"],),
        own_line=int(match["line"]),
        output=tail(text.strip(), KEPT_OUTPUT) or None,
    )
