"""The printed output of linters, type checkers and compilers, of several in a row too.

A line that is a finding by itself is read by `lint_lines`. Here are the shapes that take several lines:
rows below a file's name (ESLint, Stylelint, PHP_CodeSniffer, PHPStan), a title above its place (rustc, Ruff,
oxlint, Biome), a place above its text (ShellCheck, svelte-check), wrapped messages, code frames, notes.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from devbay.reports.findings import Finding, Findings
from devbay.reports.lint_lines import AT, NOTES, PATH, SEVERITY, Line, describe, parse, without_code
from devbay.reports.plain import plain
from devbay.reports.records import Parsed
from devbay.reports.source import SAMPLE, Source

name = "lint-text"
commands: frozenset[str] = frozenset()

MAX_CONTINUED = 12

_CLEAN = re.compile(
    r"Success: no issues found in \d+ source files?$|All checks passed!$|No errors found!$|0 issues\.$"
    r"|0 errors, 0 warnings, 0 (?:informations|notes)|\d+ files? inspected, no offenses detected"
    r"|All matched files use Prettier code style!|✔ No problems found|All done! ✨ 🍰 ✨"
    r"|Your code has been rated at 10\.00/10|\[OK\] No errors|Found 0 errors|Found no (?:issues|problems)"
)
_SUMMARY = re.compile(r"# \S+(?: \[\S+\])?$|\d+ (?:issues?|problems?)\b|\* \S+: \d+$|Found \d+|> ")
_PREFIX = re.compile(
    r"[\w@.-]+ +\| |[\w@./-]+:(?!\d)[\w:.-]+: |[\w@./-]+ (?:lint|typecheck|types|check|build|test)[\w:-]*: "
)
_TIMESTAMP = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z ")
_HEADER = re.compile(rf"\s{{0,2}}{PATH}(?:{AT})?:?$")
_PHPCS_HEADER = re.compile(r"FILE: (?P<path>\S.*)$")
_PHPSTAN_HEADER = re.compile(r"\s+Line   (?P<path>\S.*?\.\w+)(?: \(in context of .*\))?\s*$")
_ROW = re.compile(r"\s*(?P<line>\d{1,7}):(?P<column>\d{1,6})\s+(?P<rest>\S.*)$")
_MARKED = re.compile(r"(?P<mark>[✖×✘⚠‼ℹ✗])\s+(?P<message>.+)")
_PHPCS_ROW = re.compile(r"\s*(?P<line>\d+) \| (?P<severity>ERROR|WARNING) +\| (?:\[[ x]\] )?(?P<message>.+)$")
_PHPCS_MORE = re.compile(r"\s+\|\s+\| {2,}(?P<text>\S.*)$")
_PHPSTAN_ROW = re.compile(r"  (?P<line>\d+|:)\s{2,}(?P<message>\S.*)$")
_PHPSTAN_MORE = re.compile(r"         (?P<text>\S.*)$")
_BELOW = re.compile(r"(?P<severity>Type error|Error|Warn(?:ing)?|Hint): (?P<message>.+)")
_COLUMNS = re.compile(r"(?P<message>.+?)\s{2,}(?P<code>[@\w][\w@/.-]*(?:\([\w/-]+\))?)$")
_CSV = re.compile(
    r'"(?P<path>(?:[^"\\]|\\.)+)",(?P<line>\d+),(?P<column>\d+),(?P<severity>error|warning),'
    r'"(?P<message>(?:[^"\\]|\\.|"")*)",(?P<code>[\w.]+)'
)
_TITLE = re.compile(
    rf"\s*(?:{SEVERITY}(?:\[(?P<code>[\w:./-]+)\])?: (?P<message>\S.*)"
    r"|(?P<rule>(?-i:[A-Z]{1,8}\d{2,5})|invalid-syntax):? (?:\[\*\] )?(?P<message2>\S.*)"
    r"|[×⚠✖!x] (?:(?P<plugin>[\w@-]+)\((?P<inner>[\w@/.-]+)\): )?(?P<message3>\S.*)"
    r"|(?P<kind>(?-i:[a-z]+(?:-[a-z]+)*)): (?P<message5>\S.*)"
    r"|(?P<upper>ERROR|WARN) (?P<message4>.+) \[(?P<upper_code>[\w-]+)\])$",
    re.IGNORECASE,
)
_MESSAGES = ("message", "message2", "message3", "message4", "message5")
_ARROW = re.compile(rf"\s*(?:-->|:::|└─|┌─|╭─\[|,-\[|╭─▶)\s*{PATH}{AT}(?P<tail>\D.*)?$")
_BIOME = re.compile(rf"{PATH}(?:{AT})? (?P<code>[a-zA-Z]+(?:/\w+)*)\b[^━]*━{{3,}}\s*$")
_SHELLCHECK = re.compile(r"In (?P<path>.+) line (?P<line>\d+):$")
_SHELLCHECK_POINT = re.compile(
    r"\s*\^-*\^? *-- (?P<code>SC\d{4})(?: \((?P<severity>\w+)\))?: (?P<message>.+)$"
    r"|\s*\^-+\^ (?P<code2>SC\d{4})(?: \((?P<severity2>\w+)\))?: (?P<message2>.+)$"
)
_OCAML = re.compile(
    r'File "(?P<path>[^"]+)", lines? (?P<line>\d+)(?:-\d+)?, characters (?P<column>\d+)-\d+:$'
)
_RULE = re.compile(
    r"#\[(?:warn|deny|forbid)\((?:clippy::)?(?P<a>\w+)\)\]|`-[DWF] (?:clippy::)?(?P<b>[\w-]+)` implied"
    r"|index\.html#(?P<c>\w+)$"
)
_FRAME = re.compile(r"\s*(?:\d+\s*[|│]|[|│]|\.\.\.)|\s*[\^~╵·│╷`]|\s{4,}\S|\s*= ")
_TEXTUAL = re.compile(r"\s{2,}(?![\d|^~│]|at )[\"'A-Za-z`(]")
_UNPLACED = re.compile(
    r"error (?P<code>TS\d+): (?P<message>.+)|\w+ : (?:fatal )?error (?P<code2>[A-Z]+\d+): (?P<message2>.+)"
    r"|(?:cc1\w*|collect2|clang(?:\+\+)?|gcc|g\+\+|lld|\S*ld(?:\.\w+)?): (?:fatal )?error: (?P<message3>.+)"
    r"|(?:\S*ld(?:\.\w+)?: )?(?:\S+\.o: )?(?P<path>[^\s:()]+\.\w{1,4}):\(\.text\S*\): "
    r"(?P<message4>undefined reference .+)"
)  # fmt: skip


def sniff(head: bytes) -> bool:
    """Whether a line is a finding by its shape alone, or says that a checker found none."""
    reader = _sampled(head)
    return reader.sure or 0 < reader.weak >= reader.others


def _sampled(head: bytes) -> _Reader:
    """A reader that took the lines of a sample, up to the first that is surely a checker's."""
    reader = _Reader(loose=True)
    if head.count(b"\0") > 8:
        return reader
    text = plain(head[: 2 * SAMPLE + 1].decode("utf-8", "replace"))
    prefixes = _prefixes(text)
    for line in text.split("\n"):
        reader.take(_unprefixed(line, prefixes).rsplit("\r", 1)[-1])
        if reader.sure:
            break
    return reader.finished()


def _prefixes(text: str) -> frozenset[str]:
    """What runners of several tasks (Compose, Turborepo, pnpm) put in front of each task's lines."""
    seen = Counter(match[0] for line in text.split("\n") if (match := _PREFIX.match(line)))
    return frozenset(prefix for prefix, times in seen.items() if times > 1)


def _unprefixed(line: str, prefixes: frozenset[str]) -> str:
    line = _TIMESTAMP.sub("", line)
    match = _PREFIX.match(line) if prefixes else None
    return line[match.end() :] if match and match[0] in prefixes else line


def read(source: Source) -> Parsed:
    """The findings; counts are not known if no line was one and none said that all is well."""
    sample = source.sample()
    prefixes = _prefixes(plain(sample.decode("utf-8", "replace")))
    reader = _Reader(loose=not _sampled(sample).sure)
    for line in source.lines():
        reader.take(_unprefixed(plain(line), prefixes).rsplit("\r", 1)[-1])
    reader.finished()
    findings = reader.findings
    if not findings.errors:
        placed = [finding for finding in reader.unplaced if finding.path]
        for finding in placed or reader.unplaced:  # the linker's summary says no more than they do
            findings.add(finding)
    parsed = findings.parsed()
    return parsed if findings.kept or reader.clean else replace(parsed, counts=None)


class _Reader:
    """The state between lines: the file whose rows come, a title without its place yet, the open finding."""

    def __init__(self, *, loose: bool) -> None:
        """loose: a place with free text is a finding too, since no line says more."""
        self.loose = loose
        self.weak = self.others = 0  # lines that may be findings, and lines that are nothing
        self.findings = Findings()
        self.unplaced: list[Finding] = []
        self.sure = self.clean = False
        self.header: Finding | None = None  # path (and line) of the rows that follow
        self.title: Line | None = None
        self.pending: Finding | None = None
        self.detail: list[str] = []
        self.wrapped: list[str] = []
        self.wraps = False  # the next line may go on the message
        self.explains = False  # so may indented ones (TypeScript, Pyright)
        self.table = ""

    def take(self, line: str) -> None:
        if len(line) > 8_000 or line.startswith(('{"', '[{"')):
            return
        if not (self._row(line) or self._finding(line) or self._block(line) or self._more(line)):
            self.others += bool(line.strip()) and not _SUMMARY.match(line)
            self._header(line)

    def finished(self) -> _Reader:
        self._commit()
        return self

    def _open(self, line: Line) -> bool:
        """Begin a finding; a note goes to the one that is open."""
        if line.note:
            if self.pending and len(self.detail) < MAX_CONTINUED:
                self.detail.append(f"note: {line.finding.message}")
            self.wraps = False
            return True
        self._commit()
        self.pending = line.finding
        self.sure = self.sure or line.sure
        return True

    def _commit(self) -> None:
        """The open finding is complete."""
        finding, self.pending = self.pending, None
        if finding is not None:
            detail = [text for text in self.detail if re.search(r"\w", text)]
            if not finding.message.strip() or re.fullmatch(r"\[[\w-]+\]", finding.message):
                finding = replace(finding, message=detail[0].strip(" •\t") if detail else finding.message)
            if not finding.code or finding.code.startswith("-"):
                rule = next((match for text in self.detail if (match := _RULE.search(text))), None)
                if rule:
                    code = rule["a"] or rule["c"] or rule["b"].replace("-", "_")
                    finding = replace(finding, code=code)
            if finding.message.strip():
                self.findings.add(replace(finding, detail=finding.detail or "\n".join(self.detail)))
        self.detail, self.wrapped, self.wraps, self.explains = [], [], False, False

    def _finding(self, line: str) -> bool:
        found = parse(line)
        if found is None or (line[0].isspace() and not self._indented(found)):
            return False
        if found.bare and not self.loose:
            return False
        self.weak += not found.sure
        self.title = None
        opened = self._open(found)
        self.wraps = not found.note
        self.explains = line[0].isspace() or found.finding.code.startswith("TS")
        return opened

    def _indented(self, found: Line) -> bool:
        """Whether an indented line is a finding of its own (Pyright's are, places related to one are not)."""
        return found.sure and not found.note and bool(found.finding.severity or found.finding.code)

    def _header(self, line: str) -> None:
        if match := _PHPCS_HEADER.match(line) or _PHPSTAN_HEADER.match(line):
            self._commit()
            self.header = Finding("", match["path"])
            self.table = "phpcs" if line.startswith("FILE") else "phpstan"
        elif match := _HEADER.match(line):
            self._commit()
            self.table = ""
            place, column = match["line"], match["column"]
            self.header = Finding(
                "", match["path"].strip(), int(place) if place else None, int(column) if column else None
            )
        elif line.strip() and not self.table:
            self.header = None
        elif not line.strip():
            self.title = None
        if _CLEAN.search(line):
            self.clean = self.sure = True
        if match := _UNPLACED.match(line):
            message = next(
                match[key] for key in ("message", "message2", "message3", "message4") if match[key]
            )
            if len(self.unplaced) < 100:
                code = match["code"] or match["code2"] or ""
                self.unplaced.append(Finding(message, match["path"], severity="error", code=code))
            self.sure = True

    def _row(self, line: str) -> bool:
        """A row below a file's name."""
        if match := _CSV.match(line):
            path, message = (re.sub(r"\\(.)|\"(\")", r"\1\2", match[key]) for key in ("path", "message"))
            place = Finding(message, path, int(match["line"]), int(match["column"]), match["severity"])
            return self._open(Line(replace(place, code=match["code"])))
        if self.header is None or not self.header.path:
            return False
        path = self.header.path
        if self.table in ("phpcs", "phpstan"):
            return self._table_row(line, path)
        if not self.table and (match := _ROW.match(line)):
            found = _row_text(match["rest"])
            if found is not None:
                place = replace(found, path=path, line=int(match["line"]), column=int(match["column"]))
                return self._open(Line(place))
        elif self.header.line and (match := _BELOW.match(line)):
            message, code = without_code(match["message"])
            here, self.header = self.header, None
            return self._open(Line(replace(here, message=message, severity=match["severity"], code=code)))
        return False

    def _table_row(self, line: str, path: str) -> bool:
        row = (_PHPCS_ROW if self.table == "phpcs" else _PHPSTAN_ROW).match(line)
        if row is not None:
            number = int(row["line"]) if row["line"].isdigit() else None
            severity = row["severity"].lower() if self.table == "phpcs" else "error"
            return self._open(Line(Finding(row["message"].strip(), path, number, severity=severity)))
        more = (_PHPCS_MORE if self.table == "phpcs" else _PHPSTAN_MORE).match(line)
        if more is None or self.pending is None:
            return False
        text = more["text"].strip()
        if rule := re.fullmatch(r"🪪\s+(\S+)", text):
            self.pending = replace(self.pending, code=rule[1])
        elif text[0] not in "💡✏":  # a tip, a link to an editor
            self.pending = replace(self.pending, message=f"{self.pending.message} {text}")
        return True

    def _block(self, line: str) -> bool:
        """A title or the place of one, or a place that its text follows."""
        if match := _ARROW.match(line):
            title, self.title = self.title, None
            if title is None or title.note:
                return False
            found = replace(
                title.finding,
                path=match["path"],
                line=int(match["line"]),
                column=int(match["column"]) if match["column"] else None,
            )
            return self._open(Line(found))
        if match := _BIOME.match(line):
            place, column = match["line"], match["column"]
            return self._open(
                Line(
                    Finding(
                        "", match["path"], int(place) if place else None, int(column) if column else None,
                        "error", match["code"],
                    )
                )
            )  # fmt: skip
        if match := _SHELLCHECK.match(line) or _OCAML.match(line):
            self._commit()
            self.header, self.table = Finding("", match["path"], int(match["line"])), "place"
            return True
        if (match := _SHELLCHECK_POINT.match(line)) and self.header is not None:
            return self._open(
                Line(
                    replace(
                        self.header,
                        message=match["message"] or match["message2"],
                        severity=match["severity"] or match["severity2"] or "",
                        code=match["code"] or match["code2"],
                    )
                )
            )
        if (match := _TITLE.match(line)) and not (self.pending and self._titled_inside(match)):
            return self._titled(match)
        return False

    def _titled_inside(self, match: re.Match[str]) -> bool:
        """Whether a line that could be a title belongs to the open finding (Biome's text, rustc's notes)."""
        if self.pending and not self.pending.message and match["message3"]:
            mark = match[0].strip()[0]
            self.pending = replace(
                self.pending, message=match["message3"], severity="warning" if mark in "!⚠" else "error"
            )
            return True
        return False

    def _titled(self, match: re.Match[str]) -> bool:
        severity = (match["severity"] or match["upper"] or "").lower()
        message = next(match[key] for key in _MESSAGES if match[key])
        code = next((match[key] for key in ("code", "rule", "inner", "upper_code", "kind") if match[key]), "")
        note = severity in NOTES
        if not note:
            self._commit()
        elif self.pending and len(self.detail) < MAX_CONTINUED:
            self.detail.append(match[0].strip())
        self.title = Line(Finding(message, severity=severity, code=code.removeprefix("clippy::")), note=note)
        return bool(severity or match["message2"] or match["message3"])

    def _more(self, line: str) -> bool:
        """A line that belongs to the open finding."""
        pending = self.pending
        if self.title is not None and not self.title.note and line.strip() and not _FRAME.match(line):
            title = self.title.finding
            if len(title.message) < 400 and title.severity:
                self.title = replace(
                    self.title, finding=replace(title, message=f"{title.message}\n{line.strip()}")
                )
            return False
        if pending is None or not line.strip():
            self.wraps = False
            return False
        if self._unwrapped(line, pending):
            return True
        self.wraps = False
        if self.explains and not self.detail and _TEXTUAL.match(line):
            message, code = without_code(line.rstrip())
            joined = f"{pending.message}\n{message.rstrip()}"
            self.pending = replace(pending, message=joined, code=pending.code or code)
            return True
        if _FRAME.match(line) or line[0].isspace():
            if len(self.detail) < MAX_CONTINUED or _RULE.search(line):
                self.detail.append(line.rstrip())
            return True
        return False

    def _unwrapped(self, line: str, pending: Finding) -> bool:
        """Whether the line goes on a message that was wrapped at the terminal's width (`mypy --pretty`)."""
        python = pending.path is not None and pending.path.endswith((".py", ".pyi"))
        if not self.wraps or not python or line[0].isspace() or pending.code or pending.severity != "error":
            return False
        if len(self.wrapped) >= MAX_CONTINUED or _CLEAN.search(line) or re.match(r"Found \d+ error", line):
            return False
        self.wrapped.append(line.strip())
        message, code = without_code(" ".join([pending.message.rstrip(), *self.wrapped]).replace("  [", " ["))
        if code:
            self.pending, self.wrapped = replace(pending, message=message, code=code), []
        return True


def _row_text(rest: str) -> Finding | None:
    """What a row says: severity, message and rule in columns, or a rule and its message."""
    severity = ""
    if match := _MARKED.match(rest):
        severity, rest = ("warning" if match["mark"] in "⚠‼" else "error"), match["message"]
    elif match := re.match(rf"{SEVERITY}(?::\s*|\s+)(?=\S)", rest, re.IGNORECASE):
        severity, rest = match["severity"].lower(), rest[match.end() :]
    elif found := describe(rest, placed=True):
        return found.finding
    if not severity:
        return None
    columns = _COLUMNS.fullmatch(rest.rstrip())
    message, code = (columns["message"], columns["code"]) if columns else without_code(rest)
    return Finding(message.strip(), severity=severity, code=code)
