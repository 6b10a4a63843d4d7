"""The JSON of linters, type checkers and compilers: one reader, since all name a file, a line and a message.

Documents are arrays of findings, objects that hold such arrays, findings by file, or one object a line.
Sources: the reporters of ESLint 9, Stylelint 16, Ruff, Pylint 3 and 4, mypy 1.11, Pyright, GCC 12 (`json`),
rustc and Cargo (`--message-format=json`), GitLab's code quality, PHP_CodeSniffer 3, PHPStan 2, Psalm 6,
RuboCop 1, golangci-lint 1 and 2, Staticcheck, `go vet -json`, ShellCheck, hadolint, Biome 2, oxlint, Bandit,
Semgrep, Terraform.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from devbay.reports.findings import Finding, Findings
from devbay.reports.json_walk import END, Path, Walk
from devbay.reports.plain import plain
from devbay.reports.records import Parsed
from devbay.reports.source import Source

name = "lint-json"
commands: frozenset[str] = frozenset()

_LISTS = ("messages", "generalDiagnostics", "comments", "Issues", "issues", "diagnostics", "results", "files",
          "errors")  # fmt: skip
_INNER = ("messages", "warnings", "offenses", "errors", "parseErrors", "invalidOptionWarnings")
_SNIFF = tuple(
    re.compile(pattern)
    for pattern in (
        rb'"filePath"\s*:\s*"[^\0]{0,600}?"messages"\s*:\s*\[',  # ESLint
        rb'"invalidOptionWarnings"\s*:\s*\[',  # Stylelint
        rb'"cell"\s*:[^\0]{0,4000}?"filename"\s*:[^\0]{0,4000}?"noqa_row"\s*:',  # Ruff
        rb'"symbol"\s*:\s*"[^\0]{0,2000}?"message-?[iI]d"\s*:',  # Pylint
        rb'\{(?=[^{}]{0,3000}"file"\s*:)(?=[^{}]{0,3000}"line"\s*:\s*\d)(?=[^{}]{0,3000}"column"\s*:)'
        rb'(?=[^{}]{0,3000}"message"\s*:)[^{}]{0,3000}"(?:severity|level|errorCode)"\s*:',  # mypy, ShellCheck
        rb'"generalDiagnostics"\s*:\s*\[',
        rb'"(?:column-origin|escape-source)"\s*:\s*\w',  # GCC
        rb'"reason"\s*:\s*"compiler-message"|"\$message_type"\s*:\s*"diagnostic"',
        rb'"check_name"\s*:\s*"[^\0]{0,2000}?"(?:fingerprint|location)"\s*:',
        rb'"totals"\s*:\s*\{\s*"(?:errors|file_errors)"\s*:\s*\d',  # PHP_CodeSniffer, PHPStan
        rb'"line_from"\s*:\s*\d[^\0]{0,3000}?"file_name"\s*:|"taint_trace"\s*:',  # Psalm
        rb'"offenses"\s*:\s*\[|"offense_count"\s*:',
        rb'"FromLinter"\s*:|"Issues"\s*:\s*(?:\[|null)',
        rb'"code"\s*:\s*"\w+"\s*,\s*"severity"\s*:\s*"\w+"\s*,\s*"location"\s*:\s*\{\s*"file"',  # Staticcheck
        rb'"posn"\s*:\s*"',
        rb'"diagnostics"\s*:\s*\[\s*(?:\{[^\0]{0,4000}?"(?:severity|category)"\s*:|\][^\0]{0,400}"command")',
        rb'"issue_text"\s*:|"check_id"\s*:\s*"',
        rb'"rule_id"\s*:\s*"\w+"[^\0]{0,300}?"severity"\s*:|"ruleNames"\s*:\s*\[',  # SwiftLint, markdownlint
    )
)  # fmt: skip
_PATHS = ("file", "path", "filename", "fileName", "file_path", "file_name", "filePath", "filepath",
          "Filename", "source")  # fmt: skip
_LINES = ("line", "line_from", "start_line", "line_number", "lineNumber", "line_no", "row", "lines", "Line",
          "startLine")  # fmt: skip
_COLUMNS = ("column", "column_from", "start_column", "col", "character", "Column", "col_offset")
_CODES = ("ruleId", "rule", "code", "rule_id", "message-id", "messageId", "identifier", "cop_name",
          "check_name", "FromLinter", "test_id", "check_id", "type", "category",
          "option", "linter")  # fmt: skip
_MESSAGES = ("message", "description", "text", "Text", "reason", "issue_text", "summary", "errorDetail",
             "ruleDescription")  # fmt: skip
_INSIDE = ("location", "range", "extent", "pos", "Pos", "span", "caret", "start", "begin", "lines",
           "positions", "path")  # fmt: skip
_POSITION = re.compile(r"(?P<path>.+?):(?P<line>\d+)(?::(?P<column>\d+))?")


def sniff(head: bytes) -> bool:
    """Whether the bytes hold members that only a checker's JSON has together."""
    return b'"' in head and any(pattern.search(head) for pattern in _SNIFF)


def read(source: Source) -> Parsed:
    """The findings of all documents in the source."""
    findings = Findings()
    walk = Walk(source.text(), _descends)
    root: dict[str, object] = {}
    for path, value in walk:
        if path == END:
            for finding in _of_root(root):
                findings.add(finding)
            root = {}
        elif len(path) == 1 and isinstance(path[0], str):
            root[path[0]] = value
        elif isinstance(value, dict):
            named = path[1] if path[0] == "files" and isinstance(path[1], str) else None
            for finding in _of_element(value, named, zero=path[0] == "generalDiagnostics"):
                findings.add(finding)
        elif isinstance(value, str) and path[0] == "errors":
            findings.add(Finding(value, severity="error"))
    complete = walk.complete and walk.seen
    why = None if complete else "it ends in the middle, or is broken" if walk.seen else "it holds no JSON"
    return findings.parsed(complete=complete, problem=why)


def _descends(path: Path) -> bool:
    return not path or (len(path) == 1 and path[0] in _LISTS)


def _of_root(root: Mapping[str, object]) -> Iterator[Finding]:
    """A document that is one finding (a line of mypy, Ruff, Cargo), or analyzers by package (`go vet`)."""
    message = root.get("message")
    if root.get("reason") == "compiler-message" and isinstance(message, dict):
        yield from _rustc(message)
    elif root.get("$message_type") == "diagnostic":
        yield from _rustc(root)
    elif message is not None or "description" in root:
        yield from _of_element(root, None)
    else:
        for package in root.values():
            for analyzer, found in _pairs(package):
                for each in found if isinstance(found, list) else []:
                    if isinstance(each, dict) and isinstance(each.get("posn"), str):
                        yield from _of_element({**each, "code": analyzer}, None)


def _of_element(item: Mapping[str, object], named: str | None, *, zero: bool = False) -> Iterator[Finding]:
    """The findings of an element: one, or those of a file that holds them in a list of its own."""
    inner = [each for key in _INNER if isinstance(each := item.get(key), list)]
    path = named or _text(item, _PATHS)
    if inner and path:
        for found in (each for group in inner for each in group):
            if isinstance(found, dict):
                yield from _single(found, path)
        return
    if isinstance(item.get("spans"), list) and "level" in item:
        yield from _rustc(item)
    else:
        yield from _single(item, path, zero=zero)


def _single(item: Mapping[str, object], path: str | None, *, zero: bool = False) -> Iterator[Finding]:
    message = _text(item, _MESSAGES) or _text(_mapping(item.get("extra")), _MESSAGES)
    if not message:
        return
    where = list(_places(item))
    path = path or next((text for each in where if (text := _text(each, _PATHS))), None)
    line = next((number for each in where if (number := _number(each, _LINES)) is not None), None)
    column = next((number for each in where if (number := _number(each, _COLUMNS)) is not None), None)
    if position := _POSITION.fullmatch(_text(item, ("posn",)) or ""):
        path, line = position["path"], int(position["line"])
        column = int(position["column"] or 0) or None
    if zero and line is not None:
        line += 1
    code = _code(item)
    if path is None and not code:
        return
    head, _, rest = message.partition("\n\n")
    yield Finding(
        message=plain(_without_code(head, code)),
        path=path,
        line=line,
        column=column,
        severity=_severity(item),
        code=code,
        detail=plain(rest or _text(item, ("hint", "detail")) or ""),
    )


def _rustc(item: Mapping[str, object]) -> Iterator[Finding]:
    """A diagnostic of rustc or Clippy; what only sums up the others has no place."""
    spans = [each for each in _list(item.get("spans")) if isinstance(each, dict)]
    span = next((each for each in spans if each.get("is_primary")), None)
    message = _text(item, ("message",))
    if not message or span is None:
        return
    yield Finding(
        message=message,
        path=_text(span, ("file_name",)),
        line=_number(span, ("line_start",)),
        column=_number(span, ("column_start",)),
        severity=_text(item, ("level",)) or "error",
        code=_code(item).removeprefix("clippy::"),
        detail=plain(_text(item, ("rendered",)) or ""),
    )


def _places(item: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """The objects that may say where: the finding, and what it holds of places, outermost first."""
    queue: list[Mapping[str, object]] = [item]
    for inner in ("locations", "labels"):
        queue += [each for each in _list(item.get(inner))[:1] if isinstance(each, dict)]
    for each in queue:
        yield each
    for _ in range(3):
        deeper: list[Mapping[str, object]] = []
        for each in queue:
            for key in _INSIDE:
                if isinstance(value := each.get(key), dict):
                    deeper.append(value)
        yield from deeper
        queue = deeper


def _code(item: Mapping[str, object]) -> str:
    for key in _CODES:
        value = item.get(key)
        if isinstance(value, dict):
            value = value.get("code") or value.get("name") or value.get("value")
        if isinstance(value, int) and not isinstance(value, bool):
            value = f"SC{value}" if "level" in item else str(value)  # ShellCheck's
        if isinstance(value, str) and re.fullmatch(r"[^\n]{1,120}", value) and not _is_severity(value):
            return value
    names = _list(item.get("ruleNames"))
    source = item.get("source")
    if isinstance(source, str) and "." in source and " " not in source and "/" not in source:
        return source  # PHP_CodeSniffer's sniff
    return str(names[0]) if names else ""


def _severity(item: Mapping[str, object]) -> str:
    if item.get("fatal") is True:
        return "error"
    for each in (item, _mapping(item.get("extra"))):
        for key in ("severity", "level", "type", "kind", "Severity", "issue_severity"):
            value = each.get(key)
            if isinstance(value, int) and key == "severity" and "ruleId" in item:
                return "error" if value == 2 else "warning"  # ESLint's
            if isinstance(value, str) and _is_severity(value):
                return value
    return ""


def _is_severity(word: str) -> bool:
    return word.lower() in (
        *("error", "warning", "note", "notice", "info", "information", "style", "hint", "fatal", "refactor"),
        *("convention", "critical", "blocker", "major", "minor", "low", "medium", "high", "suggestion"),
        *("fatal error", "unused"),
    )


def _without_code(message: str, code: str) -> str:
    return message.removeprefix(f"{code}: ").removesuffix(f" ({code})") if code else message


def _text(item: Mapping[str, object], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = item.get(key)
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            value = "".join(str(each.get("content", "")) for each in value)  # Biome's markup
        if isinstance(value, str) and value:
            return value
    return None


def _number(item: Mapping[str, object], keys: tuple[str, ...]) -> int | None:
    for key in keys:
        value = item.get(key)
        if isinstance(value, dict):
            value = value.get("begin") if "begin" in value else value.get("start")
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**9:
            return value
    return None


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _pairs(value: object) -> list[tuple[str, object]]:
    return list(value.items()) if isinstance(value, dict) else []
