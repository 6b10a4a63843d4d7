"""The words of a failure in JUnit XML: attribute, body or captured output, whichever says it.

Each runner has its own custom; the rules are tried in order and recognise the text, not the runner's name.
"""

from __future__ import annotations

import re

from devbay.reports.locate import frames_in

_EMPTY = frozenset(
    {"", "failed", "failure", "error", "test failed", "collection failure", "assertion failed"}
)
_GTEST_BLOCK = re.compile(
    r"^(?:\S+:\d+|unknown file): Failure\n"
    r"(?:(?!\[  FAILED  \]|\[[-= ]+\]|\S+:\d+: Failure$|unknown file: Failure$).*\n?)*",
    re.MULTILINE,
)
_GO_LINE = re.compile(r"^\s+\S+\.go:\d+: (.*(?:\n {8}.*)*)", re.MULTILINE)
_GO_NOISE = re.compile(r"^(=== |--- |\s+--- |FAIL\b|ok\b)")
_E_LINE = re.compile(r"^E( .*|$)")
_NODE_CAUSE = re.compile(
    r"^\s*cause: (?P<text>.*(?:\n(?!\s+at |\s*\}"
    r"|\s*(?:generatedMessage|code|actual|expected|operator|exitCode|signal): ).*)*)",
    re.MULTILINE,
)
_PANIC = re.compile(r"panicked at [^\n]*?:\d+:\d+:?\n(?P<text>(?:(?!note: |stack backtrace).+\n?)*)")
_GO_PANIC = re.compile(r"^panic: (?:.+\n?)+", re.MULTILINE)
_STACK_LINE = re.compile(
    r"^\s*(at |❯ |File \"|Traceback \(|# |from )|^\s*\S+:\d+(:in .*|:\d+)?:?$|^\s+\S+\.rb:\d+:in "
    r"|^\(in test file|^\(from function"
)
_TYPE = re.compile(r"[\w.$\\:]*?(\w*(?:Error|Exception|Overflow|Exit)\w*)")


def parts(attribute: str, text: str, output: str) -> list[tuple[str, str]]:
    """(message, text to look for frames in): one pair, or one for each assertion that output holds."""
    if attribute.lower() in _EMPTY and not text.strip():
        blocks = [(_without_place(match[0]), match[0]) for match in _GTEST_BLOCK.finditer(output)]
        if blocks:
            return blocks
        if panic := _PANIC.search(output):
            return [(panic["text"].strip(), output)]
        return [(attribute or _last_lines(output), output)]
    return [(message(attribute, text), text)]


def message(attribute: str, text: str) -> str:
    """What went wrong, without stacks and without what only says that something did."""
    if fixture := re.match(r'failed on (?:setup|teardown) with "(.*)"$', attribute, re.DOTALL):
        return fixture[1].strip()
    if "ERR_TEST_FAILURE" in text and (cause := _NODE_CAUSE.search(text)):
        return _node_cause(cause["text"]) or attribute
    if (panic := _GO_PANIC.search(text)) and attribute.lower() in _EMPTY:
        return panic[0].split("\n\n")[0].strip()
    if attribute.lower() == "failed" and (logged := _GO_LINE.findall(text)):
        return "\n".join(re.sub(r"\n {8}", "\n", line) for line in logged).strip()
    if attribute.lower() in _EMPTY or attribute.endswith("..."):
        return _from_body(text) or attribute
    return _without_place(attribute)


def with_type(message: str, kind: str, body: str) -> str:
    """The message with its exception's type in front, where the body has it so (`KeyError: 'hour'`)."""
    match = _TYPE.fullmatch(kind)
    first = message.split("\n", 1)[0]
    if not match or not first or re.match(r"[\w.]*(Error|Exception)\b", first) or "Assert" in kind:
        return message
    if f"{match[1]}: {first}" in body:
        return f"{match[1]}: {message}"
    return message


def stack(body: str) -> str:
    """The part of a body to read frames from: of node:test's, the cause's own stack."""
    if "ERR_TEST_FAILURE" in body:
        cause = re.search(r"^\s*cause: .*\n(?:.*\n?)*", body, re.MULTILINE)
        if cause and frames_in(cause[0]):
            return cause[0]
    return body


def _node_cause(text: str) -> str:
    text = re.sub(r",? ?exitCode: .*|,? ?code: 'ERR_TEST_FAILURE'.*", "", text).strip()
    quoted = re.fullmatch(r"'(.*)'(?: \})?,?", text, re.DOTALL)
    text = quoted[1] if quoted else re.sub(r"^(\w*Error) \[(?:ERR_\w+|Error)\](?=:)", r"\1", text)
    lines = text.split("\n")
    return "\n".join([lines[0], *(line.removeprefix("  ") for line in lines[1:])]).strip()


def _without_place(text: str) -> str:
    """GoogleTest starts with the place, which has its own fields."""
    return re.sub(r"^(\S+:\d+|unknown file)(: Failure)?\n", "", text).strip()


def _from_body(text: str) -> str:
    lines = text.strip("\n").split("\n")
    errors = [line[1:] for line in lines if _E_LINE.match(line)]
    if errors:
        return dedented_error(errors)
    if place := re.search(r"^(?:Failure|Error|Skipped):\n.*\[.*\]:\n", text, re.MULTILINE):  # Minitest
        lines = text[place.end() :].split("\n")
    elif len(lines) > 1 and re.match(r"[\w\\]+::\w+", lines[0]):  # PHPUnit
        lines = lines[1:]
    lines = [line for line in lines if "● Test suite failed to run" not in line]
    while lines and (
        not lines[0].strip() or lines[0].startswith(("(in test file", "(from function", " in test file"))
    ):
        del lines[0]
    kept: list[str] = []
    for line in lines:
        if _STACK_LINE.match(line) or (kept and _GO_NOISE.match(line)):
            break
        kept.append(line)
    if not any(line.strip() for line in kept):  # a traceback, or nothing but places
        kept = [line for line in lines if line and not line.startswith(" ")][-1:] or lines[:1]
    return _dedent(kept).strip()


def dedented_error(lines: list[str]) -> str:
    """pytest's `E` lines from the least indented one on, dedented (a SyntaxError shows source first)."""
    sizes = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    if not sizes:
        return ""
    least = min(sizes)
    start = next(
        i for i, line in enumerate(lines) if line.strip() and len(line) - len(line.lstrip()) == least
    )
    return "\n".join(line[least:].rstrip() for line in lines[start:]).strip()


def _dedent(lines: list[str]) -> str:
    sizes = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    return "\n".join(line[min(sizes) :].rstrip() for line in lines) if sizes else ""


def _last_lines(output: str) -> str:
    return "\n".join(line for line in output.strip().split("\n")[-5:] if line.strip())
