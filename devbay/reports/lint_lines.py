"""One printed line of a linter, type checker or compiler: where, how bad, which rule, what.

The shapes are those of one family, `file:line:column: severity: message (rule)`, in its many spellings.
Sources: the text reporters of mypy, Ruff, Flake8, Pylint, Pyright, GCC, Clang, javac, Kotlin, Swift, MSBuild,
TypeScript, ESLint 9, Go's vet and golangci-lint, ShellCheck, hadolint, RuboCop, PHPStan, Psalm, yamllint,
markdownlint, and the workflow commands of GitHub and Azure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from devbay.reports.findings import Finding

_WORDS = (
    "fatal error|internal error|error|fatal|warning|warn|note|notice|info|information|style|hint|help|remark"
    "|critical|convention|refactor"
)
SEVERITY = rf"(?P<severity>{_WORDS})"
NOTES = frozenset({"note", "help", "remark", "hint"})
_NAMED = (
    r"(?:Dockerfile|Containerfile|Makefile|GNUmakefile|Gemfile|Rakefile|Jenkinsfile|Vagrantfile|Justfile)"
)
_STEM = (
    r"(?:(?:[A-Za-z]:)?[\\/][^:\n\"<>|*?]{0,400}?|\.{1,2}[\\/][^:\n\"<>|*?]{0,400}?"
    r"|[^\s:\"'<>|,;=*?\-]{1,2}[^\s:\"'<>|,;=*?]{0,400}?)"
)
PATH = rf"(?P<path>{_STEM}\.[A-Za-z][\w+]{{0,11}}|(?:{_STEM}[\\/])?{_NAMED}(?:\.[\w-]{{1,40}})?)"
AT = r":(?P<line>\d{1,7})(?::(?P<column>\d{1,6}))?(?:-\d{1,7}|:\d{1,7}:\d{1,6})?"

_COLONS = re.compile(rf"{PATH}{AT}(?::\s*|\s+-\s+|\s+)(?P<rest>\S.*)")
_BRACES = re.compile(
    rf"{PATH}\((?P<line>\d{{1,7}})(?:,\s?(?P<column>\d{{1,6}})(?:,\d+,\d+)?)?\)\s?:\s*(?P<rest>\S.*)"
)
_COMPACT = re.compile(rf"{PATH}: line (?P<line>\d+), col (?P<column>\d+), (?P<rest>\S.*)")
_MAVEN = re.compile(
    rf"\[(?P<severity>ERROR|WARNING)\] {PATH}:\[(?P<line>\d+)(?:,(?P<column>\d+))?\] (?P<message>.+)"
)
_KOTLIN = re.compile(
    rf"(?P<severity>[ew]): (?:file://)?{PATH}:?"
    rf"(?:{AT}:?| ?\((?P<line2>\d+), (?P<column2>\d+)\):) (?P<message>.+)"
)
_PSALM = re.compile(rf"(?P<severity>ERROR|INFO|WARNING): (?P<code>\w+) - {PATH}{AT} - (?P<message>.+)")
_PHP = re.compile(
    r"(?:PHP )?(?P<severity>Parse error|Fatal error|Warning): +(?P<message>.+)"
    rf" in {PATH} on line (?P<line>\d+)"
)
_AZURE = re.compile(r"##vso\[task\.logissue (?P<values>[^\]]*)\](?P<message>.+)")
_GITHUB = re.compile(r"::(?P<severity>error|warning|notice) (?P<values>[^\n]*?)::(?P<message>.+)")
_UNFORMATTED = re.compile(
    rf"(?:\[warn\] (?P<prettier>{_STEM}\.\w{{1,12}})$"
    r"|(?:would reformat|Would reformat:) (?P<black>.+\.\w{2,6})$"
    rf"|ERROR: (?P<isort>{_STEM}\.pyi?) (?P<message>Imports are .+)"
    rf"|Diff in (?P<rustfmt>\S.*?\.rs)(?: at line |:)(?P<line>\d+):?)"
)
_UNPARSED = re.compile(
    rf"(?:\[error\] (?P<path>{_STEM}\.\w{{1,12}}): (?P<message>\w*Error: .+?)"
    r" \((?P<line>\d+):(?P<column>\d+)\)"
    rf"|error: cannot parse: {PATH.replace('path', 'path3')}:(?P<line3>\d+):(?P<column3>\d+)$"
    r"|error: cannot format (?P<path2>.+?): "
    r"(?P<message2>Cannot parse.*?: (?P<line2>\d+):(?P<column2>\d+): .*))"
)

_LEVEL = re.compile(
    rf"(?:(?P<before>[A-Z]{{2,4}}\d{{3,5}}) )?\[?{SEVERITY}\]?(?:\[(?P<code>[\w:./-]+)\])?"
    r"(?:\s+(?P<after>[A-Z]{1,8}\d{2,6}(?:/[\w-]+)*))?(?:\s*:|\s+-|(?<=\])|(?<=\d)(?= )|(?<=\w)(?=\s+MD\d))"
    r"\s*(?P<message>.*)",
    re.IGNORECASE,
)
_RULED = re.compile(
    r"(?P<severity>[CRWEFIN]): (?:\[\w+\] )?(?P<cop>[A-Z]\w*(?:/\w+)+): (?P<message>.+)"
    r"|\[(?P<bracket>[A-Z]{1,8}\d{2,5})(?:\((?P<symbol>[\w-]+)\))?(?:, [^\]]*)?\] (?P<message2>.+)"
    r"|(?P<plain>[A-Z]{1,8}\d{2,5}):? (?:\[\*\] )?(?P<message3>.+)"
    r"|(?P<word>invalid-syntax|MD\d{3}(?:/[\w-]+)*):? (?P<message4>.+)"
)
_UNIX = re.compile(
    r"(?P<message>.+?)(?: \((?P<rule>[\w/-]+)\))? \[(?P<severity>[Ee]rror|[Ww]arning)(?:/(?P<code>[^\]]+))?\]"
)
_TRAILING = re.compile(
    r"(?P<message>.+?)\s{1,2}(?:\[(?P<a>-W[\w=+,-]+|[a-zA-Z][\w.,/-]*)\]|\((?P<b>[a-zA-Z@][\w@:/.,-]*)\)"
    r"|\[(?P<category>[\w/]+)\] \[\d\])"
)
_PROJECT = re.compile(r"\s\[[^\]\s][^\]]*\.\w*proj(?:::[^\]]*)?\]$")
_PREFIX = re.compile(r"(?:vet: |\[(?:error|warn)\] (?=\S+:\d))")
_REPEATED = re.compile(rf"(?:{PATH}:)?\d+:\d+:? (?:\[(?P<code>[\w-]+)\] )?")
_RUFF_TITLE = re.compile(r"\w[\w-]* \((?P<code>[\w-]+)\)")


@dataclass(frozen=True, slots=True)
class Line:
    """A line that holds a finding.

    sure: its shape tells a checker. note: it belongs to the one before. bare: a place and free text.
    """

    finding: Finding
    sure: bool = True
    note: bool = False
    bare: bool = False


def parse(line: str) -> Line | None:
    """The finding in a line without escape sequences; None if there is none."""
    if len(line) > 8_000 or not line.strip():
        return None
    line = _PREFIX.sub("", line.strip()) if line[0] in "v[ \t" else line.rstrip()
    if (mark := line[0]) in "#:":
        return _command(line)
    if match := _COLONS.match(line) or _BRACES.match(line) or _COMPACT.match(line):
        return _placed(match)
    if mark in "[eEwWIPD" and (found := _other(line)):
        return Line(found)
    return None


def _placed(match: re.Match[str]) -> Line | None:
    column = match["column"]
    described = describe(match["rest"], placed=column is not None)
    if described is None:
        if not column:
            return None
        bare = not match["path"].endswith(".go")  # Go's compiler and vet name no severity
        described = Line(Finding(match["rest"]), sure=False, bare=bare)
    place = replace(
        described.finding, path=match["path"], line=int(match["line"]), column=int(column) if column else None
    )
    return replace(described, finding=place)


def describe(rest: str, *, placed: bool) -> Line | None:
    """What follows the place. placed: a column was named, so a rule at the end is enough."""
    rest = _PROJECT.sub("", rest)
    if match := _LEVEL.match(rest):
        severity = match["severity"].lower()
        message, code = match["message"], match["code"] or match["after"] or match["before"] or ""
        if not code and (ruled := re.match(r"(MD\d{3}(?:/[\w-]+)*)\s+(?=\S)", message)):
            code, message = ruled[1], message[ruled.end() :]
        if not code:
            message, code = without_code(message)
        ruled = re.fullmatch(r"[A-Z]{2}\d+", code)  # ShellCheck calls what it advises a note
        return Line(Finding(message, severity=severity, code=code), note=severity in NOTES and not ruled)
    if match := _UNIX.fullmatch(rest):
        return Line(
            Finding(match["message"], severity=match["severity"], code=match["code"] or match["rule"] or "")
        )
    if (match := _RULED.match(rest)) and (placed or not match["plain"]):
        message = match["message"] or match["message2"] or match["message3"] or match["message4"]
        code = match["symbol"] or match["cop"] or match["bracket"] or match["plain"] or match["word"]
        severity = match["severity"] or ""
        if match["plain"] and (symbol := re.fullmatch(r"(.+) \(([a-z][a-z0-9-]+)\)", message)):
            message, code = symbol[1], symbol[2]
            severity = code and match["plain"][0] if match["plain"][0] in "CRWEF" else ""
        return Line(Finding(message, severity=severity, code=code))
    if placed and (match := _TRAILING.fullmatch(rest)):
        code = match["a"] or match["b"] or match["category"]
        return Line(Finding(match["message"], code=code), sure=False)
    return None


def without_code(message: str) -> tuple[str, str]:
    """A message and the rule at its end, if there is one."""
    match = _TRAILING.fullmatch(message.rstrip())
    if match is None:
        return message, ""
    return match["message"], match["a"] or match["b"] or match["category"]


def _command(line: str) -> Line | None:
    """A workflow command: what it says of the file is in its values."""
    if match := _AZURE.match(line):
        values = dict(pair.partition("=")[::2] for pair in match["values"].split(";"))
        path, severity = values.get("sourcepath", ""), values.get("type", "error")
        place, column, code = values.get("linenumber"), values.get("columnnumber"), values.get("code", "")
        message = match["message"]
    elif match := _GITHUB.match(line):
        values = dict(pair.partition("=")[::2] for pair in match["values"].split(","))
        path, severity = values.get("file", ""), match["severity"]
        place, column, code = values.get("line"), values.get("col"), values.get("title", "")
        if titled := _RUFF_TITLE.fullmatch(code):
            code = titled["code"]
        message = _unescaped(match["message"])
    else:
        return None
    if not path or " > " in code or " › " in code:
        return None  # a test's annotation (Vitest, Jest)
    head, _, detail = message.partition("\n")
    if (inner := parse(head)) and inner.finding.path:
        head, code = inner.finding.message, inner.finding.code or code
    elif placed := _REPEATED.match(head):
        head, code = head[placed.end() :], code or placed["code"] or ""
    finding = Finding(head, path, _whole(place), _whole(column), severity, code.replace(" ", "-"), detail)
    return Line(finding)


def _other(line: str) -> Finding | None:
    if match := _MAVEN.match(line) or _PSALM.match(line) or _PHP.match(line) or _KOTLIN.match(line):
        found = match.groupdict()
        severity = {"e": "error", "w": "warning"}.get(found["severity"], found["severity"])
        return Finding(
            found["message"],
            found["path"],
            _whole(found["line"] or found.get("line2")),
            _whole(found.get("column") or found.get("column2")),
            severity.lower(),
            found.get("code") or "",
        )
    if match := _UNPARSED.match(line):
        return Finding(
            match["message"] or match["message2"] or "it cannot be parsed",
            match["path"] or match["path2"] or match["path3"],
            _whole(match["line"] or match["line2"] or match["line3"]),
            _whole(match["column"] or match["column2"] or match["column3"]),
            "error",
        )
    if match := _UNFORMATTED.match(line):
        path = match["prettier"] or match["black"] or match["isort"] or match["rustfmt"]
        message = match["message"] or "it is not formatted"
        return Finding(message, path, _whole(match["line"]), code="format")
    return None


def _unescaped(text: str) -> str:
    for escape, character in (("%0A", "\n"), ("%0D", ""), ("%25", "%")):
        text = text.replace(escape, character)
    return text


def _whole(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d{1,9}", text) else None
