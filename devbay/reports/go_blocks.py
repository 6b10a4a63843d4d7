"""What the output of one Go test says: logged lines, panics, data races, an example's difference.

Source: `testing` (testing.go, example.go) and the runtime's traces, Go 1.12 to 1.24.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from devbay.reports.compare import compared
from devbay.reports.locate import frames_in
from devbay.reports.plain import shorten, tail
from devbay.reports.records import Found, Frame, Kind

KEPT_OUTPUT = 4_000
MESSAGE = 600
MAX_MESSAGE = 8_000

_LOGGED = re.compile(r"^(?P<indent>\s+)(?P<path>[^\s:][^:]*\.go):(?P<line>\d+): ?(?P<text>.*)$")
_PANIC = re.compile(r"^(panic: |fatal error: |SIG[A-Z]+: |unexpected fault address|runtime: goroutine stack)")
_TIMED_OUT = "panic: test timed out after"
_RACE = "race detected during execution of test"
_FUNCTION = re.compile(r"^(?P<function>\S+?)\(.*\)?$")
_RUNNING = re.compile(r"^\t\t(?P<name>\S+) \([\d.hmsµn]+\)$")
_TESTIFY = re.compile(
    r"^\s*Error Trace:(?s:.*?)^\s*Error:\s*(?P<text>(?s:.*?))(?=^\s*(?:Test|Messages):\s|\Z)", re.MULTILINE
)
_TESTIFY_WORDS = re.compile(r"^\s*Messages:\s*(?P<text>(?s:.*))", re.MULTILINE)


def is_panic(line: str) -> bool:
    return _PANIC.match(line) is not None


def panic_start(lines: Sequence[str]) -> int | None:
    """The index of the line at which a trace of the runtime starts."""
    return next((index for index, line in enumerate(lines) if _PANIC.match(line)), None)


def running_tests(lines: Sequence[str]) -> list[str]:
    """The tests that a time limit's panic names as running."""
    return [match["name"] for line in lines[:200] if (match := _RUNNING.match(line))]


def test_in(lines: Sequence[str]) -> str | None:
    """The test function in whose call (or goroutine) a trace was made."""
    for line in lines:
        if match := re.search(r"\.((?:Test|Fuzz|Example|Benchmark)[A-Z_0-9]\w*)(?:[.(\s]|$)", line):
            return match[1]
    return None


def describe(name: str, package: str | None, lines: Sequence[str]) -> Found:
    """A failed test, by its own lines (without `=== RUN` and `--- FAIL`)."""
    at = panic_start(lines)
    if at is not None:
        return _panicked(name, package, lines[:at], lines[at:])
    logged = _logged(lines)
    raced = any(_RACE in text for _, _, text in logged)
    said = [(path, line, _assertion(text)) for path, line, text in logged if _RACE not in text]
    message = _joined([text for _, _, text in said if text])
    frames = tuple(Frame(path, line) for path, line, _ in said)
    if raced:
        frames = (*frames, *frames_in("\n".join(line for line in lines if _RACE not in line)))
        message = message or f"testing: {_RACE}"
    if not message:
        message = "\n".join(line.strip() for line in _printed(lines)[-12:]).strip()
    return _found(name, package, "failure", message, frames, _printed(lines))


def describe_run(package: str, lines: Sequence[str], running: str | None) -> Found:
    """A package whose process ended by itself, outside of any test that says so. running: its last test."""
    at = panic_start(lines)
    if at is not None:
        name = running or test_in(lines[at:]) or package
        found = _panicked(name, package, lines[:at], lines[at:])
        kind: Kind = "timeout" if found.kind == "timeout" else "crash"
    else:
        kept = [line for line in lines if line.strip() and not re.match(r"(FAIL|PASS)$|FAIL\t", line)]
        message = "\n".join(kept[-12:]) or "the test process failed without a failing test"
        found = _found(running or package, package, "crash", message, (), kept)
        kind = "crash" if running or re.search(r"^signal: ", message, re.MULTILINE) else "error"
    scope = "run" if kind != "error" else "suite"
    return Found(
        found.name,
        package,
        kind,
        scope,  # type: ignore[arg-type]
        message=found.message,
        frames=found.frames,
        package=package,
    )


def _found(
    name: str,
    package: str | None,
    kind: Kind,
    message: str,
    frames: tuple[Frame, ...],
    printed: Sequence[str],
) -> Found:
    message = shorten(message, MAX_MESSAGE)
    expected, actual = compared(message)
    return Found(
        name,
        package,
        kind,
        message=message,
        expected=expected,
        actual=actual,
        frames=frames,
        package=package,
        output=tail("\n".join(printed).strip(), KEPT_OUTPUT) or None,
    )


def _logged(lines: Sequence[str]) -> list[tuple[str, int, str]]:
    """(path, line, text) of what `t.Log`, `t.Error` and their kin printed; their print is the same."""
    result: list[tuple[str, int, str]] = []
    indent = ""
    for line in lines:
        if match := _LOGGED.match(line):
            indent = match["indent"]
            result.append((match["path"], int(match["line"]), match["text"]))
        elif result and indent and line.startswith(indent + "    "):
            path, number, text = result[-1]
            if len(text) < 8_000:
                result[-1] = path, number, f"{text}\n{line[len(indent) + 4 :]}".lstrip("\n")
        else:
            indent = ""
    return result


def _printed(lines: Sequence[str]) -> list[str]:
    """What the test printed itself, without what it logged."""
    kept: list[str] = []
    indent = ""
    for line in lines:
        if match := _LOGGED.match(line):
            indent = match["indent"]
        elif not (indent and line.startswith(indent + "    ")):
            indent = ""
            kept.append(line)
    return kept


def _assertion(text: str) -> str:
    """The words of an assertion of testify's; any other text as it is."""
    match = _TESTIFY.search(text)
    if match is None:
        return text.strip("\n")
    lines = [line.strip() for line in match["text"].strip().split("\n")]
    words = _TESTIFY_WORDS.search(text, match.end())
    extra = [words["text"].strip()] if words else []
    return "\n".join([line for line in lines if line] + extra)


def _joined(texts: Sequence[str]) -> str:
    """All texts; of too many the last ones, since what ends a test comes last."""
    whole = "\n".join(texts)
    kept = list(texts)
    while len(kept) > 1 and sum(map(len, kept)) + len(kept) > MESSAGE:
        del kept[0]
    return whole if len(whole) <= MESSAGE else "\n".join(kept)


def _panicked(name: str, package: str | None, before: Sequence[str], trace: Sequence[str]) -> Found:
    end = next((i for i, line in enumerate(trace) if not line.strip() or line.startswith("goroutine ")), 6)
    head = [line for line in trace[:end] if not _RUNNING.match(line) and line != "\trunning tests:"]
    message = re.sub(r" \[recovered(?:, repanicked)?\]$", "", head[0]) if head else ""
    rest = [line for line in head[1:] if line.strip() and not line.startswith("\tpanic: ")]
    message = "\n".join([message, *rest])
    kind: Kind = "timeout" if message.startswith(_TIMED_OUT) else "error"
    logged = _logged(before)
    frames = (*_frames(name, trace), *(Frame(path, line) for path, line, _ in logged))
    return _found(name, package, kind, message, frames, _printed(before))


def _frames(name: str, trace: Sequence[str]) -> tuple[Frame, ...]:
    """The frames of the goroutine that ran the test; else of the one that panicked."""
    goroutines: list[list[str]] = []
    for line in trace:
        if line.startswith("goroutine "):
            goroutines.append([])
        elif goroutines:
            goroutines[-1].append(line)
    root = name.split("/")[0]
    mine = next((each for each in goroutines if _calls(each, root)), goroutines[0] if goroutines else [])
    if goroutines and not re.search(r"test timed out", trace[0]):
        mine = goroutines[0] if frames_in("\n".join(_stack(goroutines[0]))) else mine
    return frames_in("\n".join(_stack(mine))) or frames_in("\n".join(mine))


def _calls(goroutine: Sequence[str], test: str) -> bool:
    return any(f".{test}(" in line or f".{test}.func" in line for line in _stack(goroutine))


def _stack(goroutine: Sequence[str]) -> list[str]:
    """A goroutine's calls, without the one that made it."""
    end = next((i for i, line in enumerate(goroutine) if line.startswith("created by ")), len(goroutine))
    return list(goroutine[:end])
