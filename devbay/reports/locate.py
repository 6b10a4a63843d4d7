"""From the text of a failure to places in the user's code (decision 37).

Frames are read from what runners of many languages print, deepest first. `file` and `line` are the innermost
frame in the test's own file; library frames are nobody's to mend and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from devbay.answers import Failure
from devbay.reports.paths import SOURCE, PathMapper, cleaned, is_library
from devbay.reports.records import Found, Frame

MAX_FRAMES = 40
_PATH = rf"(?:file://)?(?:[A-Za-z]:)?[^\s:()\"'<>|,;\[\]`=]{{1,300}}?\.(?:{SOURCE})"

# Outermost first, as Python prints them.
_PYTHON = (
    re.compile(
        r'^\s*(?:\|\s*)*(?:E\s+)?File "(?P<path>[^"\n]+)", line (?P<line>\d+)(?:,? in (?P<function>.+))?'
    ),
    re.compile(
        r"^(?:E\s+)?(?P<path>(?:[A-Za-z]:)?[^\s:][^:\n]*?\.\w{1,6}):(?P<line>\d+):"
        r"(?: in (?P<function>\S+)| [\w.]*|)$"
    ),
    re.compile(r"^file (?P<path>.+?), line (?P<line>\d+)$"),
)
_CHAINED = re.compile(
    r"^(During handling of the above exception|The above exception was the direct cause)", re.MULTILINE
)
_RECENT_FIRST = "most recent call first"

# Innermost first, as everybody else prints them.
_OTHERS = (
    # V8, JavaScriptCore, Vitest: `at f (src/a.js:1:2)`, `at async src/a.js:1:2`, `❯ f src/a.ts:1:2`
    re.compile(
        r"^\s*(?:at|❯)\s+(?:async\s+)?(?:(?P<function>[^\n(]+?)\s+\(?)?"
        r"(?P<path>(?:file://)?(?:[A-Za-z]:)?[^\s:()][^:()\n]*?):(?P<line>\d+):\d+\)?(?:\s*\{)?\s*$"
    ),
    # The JVM: `at pkg.Class.method(File.java:12)`
    re.compile(
        r"^\s*at (?:[\w.@-]*/{1,2})?(?P<package>[\w$]+(?:\.[\w$]+)*)\.(?P<function>[\w$<>]+)"
        r"\((?P<path>[\w$-]+\.\w+):(?P<line>\d+)\)"
    ),
    # .NET: `at N.C.M() in /src/F.cs:line 17`
    re.compile(r"^\s*at (?P<function>.+?) in (?P<path>.+?):line (?P<line>\d+)\s*$"),
    # PHPUnit: the path alone; Ruby: `a.rb:12:in 'f'`; RSpec: `# ./spec/a_spec.rb:12`; Playwright: `at a.js:4`
    re.compile(
        rf"^\s*(?:#|from|at)?\s*(?P<path>{_PATH}):(?P<line>\d+)"
        r"(?::in [`'](?P<function>[^'\n]*)'.*|:\d+)?:?\s*(?:\(.*)?$"
    ),
    # Babel: `SyntaxError: /src/a.test.js: Unexpected token (6:17)`
    re.compile(rf"^\s*\w*Error: (?P<path>{_PATH}): .* \((?P<line>\d+):\d+\)$"),
    # Minitest: `test_x(Class) [test/a_test.rb:25]:`
    re.compile(rf"^.*\[(?P<path>{_PATH}):(?P<line>\d+)\]:$"),
    # Rust: `thread 'x' panicked at src/lib.rs:30:9:`
    re.compile(rf"panicked at (?:'.*', )?(?P<path>{_PATH}):(?P<line>\d+):\d+:?$"),
    # Go: `    a_test.go:22: text`, and the `/src/a.go:4 +0x1d` below a function's name
    re.compile(r"^\s*(?P<path>\S+\.go):(?P<line>\d+)(?:: .*| \+0x[0-9a-f]+)?$"),
    # GoogleTest, compilers: `/src/a.cc:11: Failure`
    re.compile(rf"^\s*(?P<path>{_PATH}):(?P<line>\d+)(?::\d+)?: (?:Failure|Skipped|error|fatal error)\b"),
    # Bats: `(from function `f' in file a.bats, line 24,`; Perl: `at t/a.t line 10.`
    re.compile(r"\bin (?:test )?file (?P<path>.+?), line (?P<line>\d+)"),
    re.compile(r"\bat (?P<path>\S+\.(?:t|pl|pm)) line (?P<line>\d+)"),
)
_ANYWHERE = re.compile(
    rf"(?<![\w/.@-])(?P<path>{_PATH}):(?P<line>\d+)(?!\d)(?![\w.-]*\.(?:com|org|net|io)\b)"
)
_ASSERTED = re.compile(r"([\w.]*(AssertionError|Failed|Failure)\b|assert\b)")
_TESTISH = re.compile(
    r"(^|/)(tests?|specs?|__tests__|e2e|t)/|(^|/)test_[^/]*$|[._-](test|spec|tests|specs|e2e|cy)\.\w+$"
    r"|_spec\.\w+$|(Test|Tests|Spec|IT|TestCase)\.\w+$|\.(bats|t|feature)$"
)


def frames_in(text: str) -> tuple[Frame, ...]:
    """The frames of a failure's text, deepest first, library frames included."""
    lines = [line for line in text[:100_000].split("\n") if len(line) < 2000]
    python = _python_frames(text, lines)
    found = python or _matched(lines, _OTHERS)
    if all(is_library(frame.path) for frame in found):
        found += [_frame(match) for line in lines for match in _ANYWHERE.finditer(line)]
    return tuple(dict.fromkeys(found))


def _python_frames(text: str, lines: Sequence[str]) -> list[Frame]:
    found = _matched(lines, _PYTHON)
    if _RECENT_FIRST in text or not found:
        return found
    if not _CHAINED.search(text):
        return found[::-1]
    blocks: list[list[Frame]] = [[]]
    for line in lines:
        if _CHAINED.match(line):
            blocks.append([])
        blocks[-1] += _matched([line], _PYTHON)
    last = next((index for index in reversed(range(len(blocks))) if blocks[index]), 0)
    return [
        replace(frame, cause=index != last)
        for index, block in reversed(list(enumerate(blocks)))
        for frame in reversed(block)
    ]


def _matched(lines: Sequence[str], patterns: Sequence[re.Pattern[str]]) -> list[Frame]:
    found = []
    for line in lines:
        for pattern in patterns:
            if match := pattern.search(line):
                found.append(_frame(match))
                break
    return found


def _frame(match: re.Match[str]) -> Frame:
    groups = match.groupdict()
    path = groups["path"]
    if package := groups.get("package"):
        folder = package.split("$")[0].rpartition(".")[0].replace(".", "/")
        path = f"{folder}/{path}" if folder else path
    return Frame(path, int(groups["line"]), groups.get("function"))


def place(found: Found, mapper: PathMapper) -> Failure:
    """A failure with paths of the repository; what is not known is left out."""
    own, spelled = _own_file(found, mapper)
    mapped = [
        (path, frame)
        for frame in found.frames
        if not is_library(frame.path) and (path := _map_frame(frame, mapper, spelled, own, found.package))
    ]
    if own is None and mapped:
        own = _test_file([path for path, _ in mapped])
    file, line = _position(found, own, mapped, mapper)
    return _failure(found, file, line, mapped)


def _own_file(found: Found, mapper: PathMapper) -> tuple[str | None, str | None]:
    """The test's own file, and a spelling that ends the paths of its frames."""
    for hint in found.own:
        if path := mapper.own(hint):
            return path, cleaned(path)
    return None, None


def _map_frame(
    frame: Frame, mapper: PathMapper, spelled: str | None, own: str | None, package: str | None
) -> str | None:
    if package and "/" not in frame.path and (path := mapper.in_package(package, frame.path)):
        return path
    path = mapper.map(frame.path)
    if path is None and own and spelled and mapper.root is None:
        raw = cleaned(frame.path) or ""
        return own if raw.endswith("/" + spelled) or spelled.endswith("/" + raw) else None
    return path


def _test_file(paths: Sequence[str]) -> str:
    """Of files, deepest first: the outermost that is named like a test, else the outermost."""
    return next((path for path in reversed(paths) if _TESTISH.search(path)), paths[-1])


def _position(
    found: Found, own: str | None, mapped: Sequence[tuple[str, Frame]], mapper: PathMapper
) -> tuple[str | None, int | None]:
    inside = [frame for path, frame in mapped if path == own]
    if own and own.endswith("_test.go") and len(inside) > 1:  # t.Log and t.Errorf print alike
        inside = [f for f in inside if not re.search(r"\.Logf?\(", mapper.source_line(own, f.line))] or inside
    if inside and own and _raised(found, own):
        outer = [frame for frame in inside if not frame.cause] or inside
        return own, outer[-1].line  # an error in a helper of the same file: where the test called it
    if inside:
        return own, inside[0].line
    if mapped:
        return mapped[0][0], mapped[0][1].line
    return own, found.own_line if own else None


def _raised(found: Found, own: str) -> bool:
    """Whether an exception ended the test, rather than an assertion."""
    if own.endswith(".py"):
        return not _ASSERTED.match(found.message)
    return found.kind == "error" and own.endswith((".rb", ".php", ".java", ".kt"))


def _failure(
    found: Found, file: str | None, line: int | None, mapped: Sequence[tuple[str, Frame]]
) -> Failure:
    """Only what is known is set: answers leave out what is not."""
    name = found.name.strip() or found.suite or "(unnamed)"
    if file and found.scope == "suite" and name.startswith(("/", "file:")):
        name = file
    known: dict[str, object] = {"name": name, "kind": found.kind, "scope": found.scope}
    frames = list(dict.fromkeys(f"{path}:{frame.line}" for path, frame in mapped))[:MAX_FRAMES]
    if frames == [f"{file}:{line}"]:
        frames = []
    optional = {
        "suite": found.suite,
        "phase": found.phase,
        "file": file,
        "line": line,
        "message": found.message,
        "expected": found.expected,
        "actual": found.actual,
        "frames": frames,
        "output": found.output,
    }
    known.update((key, value) for key, value in optional.items() if value)
    return Failure.model_validate(known)
