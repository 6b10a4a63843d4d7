"""What the text of an error says that a JavaScript runner printed: its message, its kind and its frames.

Shared by the readers of Jest, Vitest, Mocha, node:test, AVA, Bun, Deno, Playwright and of TAP.
"""

from __future__ import annotations

import re

from devbay.reports.compare import compared
from devbay.reports.locate import frames_in
from devbay.reports.plain import plain, tail
from devbay.reports.records import Found, Frame, Kind, Phase, Scope

KEPT_OUTPUT = 4_000

# `at f (a.js:1:2)`, Vitest's `❯ f a.ts:1:2`
_STACK = re.compile(r"^\s*(?:at (?:async )?\S.*|❯ \S.*:\d+:\d+)$")
# `> 10 | code`, `10| code`, `   |   ^`
_CODE = re.compile(r"^\s*(?:>?\s*\d+ ?\|(?:\s|$)|\|\s*[\^~]+\s*$)")
_TIMEOUT = re.compile(
    r"\b(?:Timeout of \d+ms exceeded|[Tt]est timed out|(?:Test|Hook) timed out in \d|timed out after \d+ ?ms"
    r"|Exceeded timeout of \d+ ?ms for a (?:test|hook)|[Tt]imeout of \d+ ?ms exceeded)"
    r"|Promise resolution is still pending|^Error: STACK_TRACE_ERROR$|\bTimed out while running tests"
)
_ASSERTION = re.compile(
    r"AssertionError|ERR_ASSERTION|\bexpect(?:\(|\.\w+)|\bexpected\b.*\bto\b|[Aa]ssertions?\b|\bassert\b"
    r"|Difference \("
)
_THROWN = re.compile(r"^(?:Uncaught )?[\w.$]{0,80}(?:Error|Exception)\b", re.MULTILINE)
_HOOK = re.compile(
    r"[\"“{](?P<when>before|after) ?(?P<what>all|each)[\"”}] hook|^(?P<bare>before|after)(?:All|Each)?$", re.I
)
_FILE_AT_END = re.compile(r"[tT]imeout of .*\((?P<path>(?:/|[A-Za-z]:|file:)[^()]+\.\w{1,5})\)$")
_HOOK_TIMEOUT = re.compile(r"\bHook timed out\b|for a hook\b|\"before(?:All|Each)\" hook timeout", re.I)


def problem(
    name: str,
    text: str,
    *,
    suite: str | None = None,
    own: tuple[str, ...] = (),
    own_line: int | None = None,
    scope: Scope = "test",
    phase: Phase | None = None,
    kind: Kind | None = None,
    output: str = "",
    frames: tuple[Frame, ...] | None = None,
) -> Found:
    """A failure from its text: the error, a code frame and a stack in any order.

    frames, kind, phase: where the format says them itself, else they are read from the text.
    """
    text = plain(text).strip("\n")
    said = message_of(text)
    phase = phase or hook_phase(name) or ("setup" if _HOOK_TIMEOUT.search(said) else None)
    if place := _FILE_AT_END.search(said.split("\n", 1)[0]):
        own = (*own, place["path"])
    expected, actual = compared(said, text)
    return Found(
        name=name,
        suite=suite or None,
        kind=kind or kind_of(said, scope),
        scope=scope,
        phase=phase,
        message=said,
        expected=expected,
        actual=actual,
        frames=frames_in(text) if frames is None else frames,
        own=own,
        own_line=own_line,
        output=tail(plain(output).strip(), KEPT_OUTPUT) or None,
    )


def message_of(text: str) -> str:
    """The error's words: up to the stack or the excerpt of code, dedented, without node's error codes."""
    kept: list[str] = []
    for line in text.split("\n")[:400]:
        if _STACK.match(line) or _CODE.match(line):
            if any(each.strip() for each in kept):
                break
            continue
        kept.append(line.rstrip())
    first = next((line for line in kept if line.strip()), "")
    indent = len(first) - len(first.lstrip())
    lines = [line[indent:] if not line[:indent].strip() else line for line in kept]
    said = "\n".join(lines).strip()
    said = re.sub(r"^Error \[(?=[A-Z]\w*[a-z]\w*\]:)(?!Error\])(\w+)\]", r"\1", said)
    return re.sub(r"^([\w.]*Error) \[(?:[A-Z\d_]+|Error)\](?=:)", r"\1", said)


def kind_of(message: str, scope: Scope = "test") -> Kind:
    """Whether a message tells of a time limit, of an exception or of an assertion."""
    if _TIMEOUT.search(message):
        return "timeout"
    if scope != "test":
        return "error"
    head = message[:400]
    return "error" if _THROWN.search(head) and not _ASSERTION.search(head) else "failure"


def hook_phase(name: str) -> Phase | None:
    """The phase of a record that is named like a hook (`"before each" hook for "x"`)."""
    match = _HOOK.search(name)
    if match is None:
        return None
    return "setup" if (match["when"] or match["bare"]).lower() == "before" else "teardown"


def uncaught(text: str) -> Found:
    """What ended node.js as a whole: an excerpt of code, the error and its stack, as node prints them."""
    lines = text.split("\n")
    start = next((i for i, line in enumerate(lines) if _THROWN.match(line) and "Error" in line), None)
    told = "\n".join(lines[start:]) if start is not None else text
    said = re.split(r"\n+Node\.js v\d", message_of(plain(told)))[0]
    return Found("(run)", kind="crash", scope="run", message=said, frames=frames_in(told))


def printed(head: bytes) -> str:
    """A sample of output as text without colours, for a format to be recognised by."""
    return plain(head.decode("utf-8", "replace"))


def died(label: str, seen: bool) -> Found:
    """The record of a run whose output ends before the runner's summary."""
    said = f"the output ends before {label}'s summary" if seen else f"{label} ended before its first test"
    return Found("(run)", kind="crash", scope="run", message=said)
