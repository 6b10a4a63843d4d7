"""What a failed test point of TAP says: its YAML block, its comments or the text below it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from devbay.reports import javascript
from devbay.reports.locate import frames_in
from devbay.reports.paths import is_library, looks_like_path
from devbay.reports.records import Found, Frame, Kind, Outcome, Phase, Scope, TestCase
from devbay.reports.tap_yaml import fields

_SEPARATOR = re.compile(r" (?:›|>) ")
_BATS_PLACE = re.compile(
    r"^\s*(?:\(from function|\(?in test file|\(in test file|in (?:test )?file ).*,? line \d+[),]?\s*$"
)
_BATS_PHASE = re.compile(r"\(from function `(setup|teardown)(_file|_suite)?'")
_PERL = re.compile(r"^ +Failed (?:\(TODO\) )?test(?: '(?P<name>.*)')?(?: at (?P<place>\S+ line \d+)\.?)?$")
_PERL_AT = re.compile(r"^ +(?:in |at )(?P<path>\S+)(?: at)? line (?P<line>\d+)\.?$")
_ERROR_LINE = re.compile(r"^(?:Uncaught )?(?:[A-Z]\w*)?(?:Error|Exception)\b.*")
_CANCELLED = "test did not finish before its parent"
_SUBTESTS = re.compile(r"^\d+ subtests? failed$")


@dataclass
class Point:
    """A test point. above: names of the subtests around it. before: comments between it and the last point.

    group: the comment that names its test, where points are assertions (tape, Catch2). parent: it sums up
    points of its own, of which `failed_inside` failed.
    """

    number: str
    name: str
    ok: bool
    skipped: bool
    above: tuple[str, ...]
    before: list[str]
    ms: int | None
    parent: bool
    failed_inside: int
    group: str = ""
    yaml: list[str] = field(default_factory=list)
    diagnostics: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    def outcome(self) -> Outcome:
        if self.skipped:
            return "skipped"
        return "passed" if self.ok else "failed"

    def parts(self) -> tuple[str | None, tuple[str, ...], str]:
        """(file, names of the suites, name), from the subtests around it and from separators in its name."""
        names = [*self.above, *_SEPARATOR.split(self.name)]
        files = [each for each in names if looks_like_path(each)]
        rest = [each for each in names if each not in files]
        leaf = rest[-1] if rest else (files[-1] if files else f"test {self.number}".strip())
        if self.group and self.group != leaf:
            leaf = f"{self.group}: {leaf}"
        return (files[0] if files else None), tuple(rest[:-1]), leaf

    def test_case(self) -> TestCase:
        file, suites, leaf = self.parts()
        return TestCase(leaf, " › ".join(suites) or None, file, self.ms, self.outcome())


def describe(point: Point, late: dict[str, list[list[str]]]) -> list[Found]:
    """The record of a failed point; none of a parent that only sums up. late: diagnostics by test name."""
    data = fields(point.yaml)
    said = _said(data)
    if point.parent and (not said or (point.failed_inside and _SUBTESTS.match(said))):
        return [] if point.failed_inside else [_found(point, data, "")]
    if data.get("failureType") == "cancelledByParent" and said.startswith(_CANCELLED):
        return []
    if data:
        return [_found(point, data, said)]
    if point.text:
        return [_of_text(point)]
    apart = late.get(point.name)
    several = sum(1 for line in point.diagnostics if _PERL.match(line)) > 1
    mine = apart.pop(0) if apart and (several or not point.diagnostics) else point.diagnostics
    return [_of_comments(point, mine)]


def run_problem(bail: str | None, died: str | None, short: str | None) -> Found | None:
    """What ended the whole stream early: a bail-out, an uncaught error, or what nothing tells."""
    if died is not None:
        return javascript.uncaught(died)
    if bail is not None:
        return Found("(run)", kind="crash", scope="run", message=bail, frames=frames_in(bail))
    return Found("(run)", kind="crash", scope="run", message=short) if short else None


def _said(data: dict[str, str]) -> str:
    """The message of a YAML block: of an error, of AVA's details, or of bats."""
    message = next(
        (data[key] for key in ("error.message", "error", "message", "reason") if data.get(key, "").strip()),
        "",
    ).strip()
    details = [f"{key[8:]}\n{value}" for key, value in data.items() if key.startswith("details.")]
    return "\n".join(part for part in [message, *details] if part).strip()


def _found(point: Point, data: dict[str, str], said: str) -> Found:
    file, suites, leaf = point.parts()
    if said == "test failed" and looks_like_path(leaf):
        return _file_failed(point, leaf)
    if said.startswith(("(in test file", "(from function")):
        return _of_comments(point, said.split("\n"))
    kind, scope, phase = _nature(point, data, said, leaf)
    error = data.get("error.name") or data.get("name", "")
    if error and error not in ("Error", "AssertionError") and not said.startswith(error):
        said = f"{error}: {said}"
    found = javascript.problem(
        leaf,
        said or point.name or leaf,
        suite=" › ".join(suites),
        own=tuple(each for each in (file, *_located(data)[0]) if each),
        own_line=_located(data)[1],
        kind=kind,
        scope=scope,
        phase=phase,
        frames=_frames(data),
    )
    expected = data.get("expected") or data.get("wanted") or found.expected
    actual = data.get("actual") or data.get("found") or found.actual
    return replace(found, expected=expected, actual=actual) if expected != actual else found


def _nature(
    point: Point, data: dict[str, str], said: str, leaf: str
) -> tuple[Kind | None, Scope, Phase | None]:
    """Kind, scope and phase, as far as the block says them."""
    failure = data.get("failureType", "")
    if failure == "testTimeoutFailure":
        return "timeout", "test", None
    if failure == "hookFailed":
        whole = data.get("type") == "suite"
        late = whole and point.parent and not point.failed_inside
        return "error", "suite" if whole else "test", "teardown" if late else "setup"
    if looks_like_path(leaf):
        return None, "suite", None
    if javascript.hook_phase(leaf):
        return None, "suite", None
    if data.get("error.name", data.get("name")) == "AssertionError" and "Error thrown in test" not in said:
        return "failure", "test", None
    if data.get("operator") or data.get("code") == "ERR_ASSERTION":
        return "failure", "test", None
    return None, "test", None


def _located(data: dict[str, str]) -> tuple[tuple[str, ...], int | None]:
    """Where the runner says that the test is (node's `location`)."""
    match = re.fullmatch(r"(?P<path>.+?):(?P<line>\d+)(?::\d+)?", data.get("location", "").strip())
    return ((match["path"],), int(match["line"])) if match else ((), None)


def _frames(data: dict[str, str]) -> tuple[Frame, ...]:
    """Frames from `stack` and `at`, in the notations of node, tape, AVA, node-tap and Vitest."""
    lines = [line.strip() for line in f"{data.get('at', '')}\n{data.get('stack', '')}".split("\n")]
    text = "\n".join(line if line.startswith("at ") else f"at {line}" for line in lines if line)
    found = list(frames_in(text)) if text else []
    path = data.get("at.fileName") or data.get("at.file") or data.get("file")
    line = data.get("at.lineNumber") or data.get("at.line") or data.get("line")
    if path and line and line.isdecimal():
        found.insert(0, Frame(path, int(line)))
    if all(is_library(frame.path) for frame in found):
        found += frames_in(data.get("error.message", data.get("message", "")))
    return tuple(dict.fromkeys(found))


def _file_failed(point: Point, path: str) -> Found:
    """A file that node:test could not run; what it printed stands before it as comments."""
    text = "\n".join(point.before)
    error = next((i for i, line in enumerate(point.before) if _ERROR_LINE.match(line)), None)
    said = "\n".join(point.before[error:]) if error is not None else text or "test failed"
    return javascript.problem(path, said, scope="suite", own=(path,), frames=frames_in(text))


def _of_text(point: Point) -> Found:
    """Mocha: the message, then the stack, which starts with the message again."""
    file, suites, leaf = point.parts()
    lines = [line[2:] for line in point.text]
    start = next((i for i, line in enumerate(lines) if i and _ERROR_LINE.match(line)), 0)
    hook = javascript.hook_phase(leaf)
    return javascript.problem(
        leaf,
        "\n".join(lines[start:]),
        suite=" › ".join(suites),
        scope="suite" if hook else "test",
        own=(file,) if file else (),
    )


def _of_comments(point: Point, comments: Sequence[str]) -> Found:
    """bats, Test::More, pytest-tap and others: the place and the message in comments."""
    file, suites, leaf = point.parts()
    text = "\n".join(comments)
    said = [line for line in comments if not _BATS_PLACE.match(line) and not _PERL_AT.match(line)]
    bats = _BATS_PHASE.search(text)
    phase: Phase | None = ("setup" if bats[1] == "setup" else "teardown") if bats else None
    scope: Scope = "suite" if bats and bats[2] else "test"
    own = re.findall(r"in test file (.+?), line \d+", text)
    frames = frames_in(text)
    if not frames:
        frames = tuple(
            Frame(at["path"], int(at["line"])) for line in comments if (at := _PERL_AT.match(line))
        )
    return javascript.problem(
        leaf,
        "\n".join(said) or point.name or leaf,
        suite=" › ".join(suites),
        scope=scope,
        phase=phase,
        kind="error" if phase else None,
        own=tuple(each for each in (file, *own) if each),
        frames=frames,
    )


def perl_blocks(comments: Sequence[str]) -> dict[str, list[list[str]]]:
    """The diagnostics of Test::More, which go to standard error apart from their points, by test name."""
    blocks: dict[str, list[list[str]]] = {}
    block: list[str] | None = None
    for line in comments:
        if match := _PERL.match(line):
            block = [line]
            blocks.setdefault(match["name"] or "", []).append(block)
        elif block is not None and len(block) < 100:
            block.append(line)
    return blocks
