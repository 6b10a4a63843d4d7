"""What a problem in JUnit XML says, in the dialect of the runner that wrote it."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from devbay.reports import junit_messages as messages
from devbay.reports.compare import compared
from devbay.reports.locate import frames_in
from devbay.reports.paths import looks_like_path
from devbay.reports.plain import plain, tail
from devbay.reports.records import Found, Frame, Kind, Outcome, Phase, Scope

KEPT_OUTPUT = 4_000

_CHECKERS = re.compile(
    r"(ruff|mypy|eslint|PHP_CodeSniffer\b.*|stylelint|flake8|pylint|org\.(eslint|ruff|stylelint)\b.*)"
)
_AT = re.compile(r"(?P<rule>\S+) at (?P<path>.+) \((?P<line>\d+):\d+\)")
_LINE = re.compile(r"line (?P<line>\d+)(?:, col(?:umn)? \d+)?[,:]", re.IGNORECASE)
_CHECKED = re.compile(
    r"^(?P<path>[^\n:]+\.\w+):(?P<line>\d+)(?::\d+)?: (?P<level>error|warning): "
    r"(?P<text>.*?)(?:  ?\[(?P<rule>[\w-]+)\])?$",
    re.MULTILINE,
)
_TIMEOUT = re.compile(
    r"\bTimeout of \d+ms exceeded|\b(Test|Hook) timed out in \d|\btest timed out\b|from pytest-timeout"
    r"|\bExceeded timeout of \d+ ?ms for a (test|hook)|\bTest timeout of \d+ms exceeded"
    r"|\bexecution timed out after"
    r"|^Promise resolution is still pending"
)
_CRASHED = re.compile(
    r"worker '\w+' crashed while running|The forked VM terminated without|^Fatal Python error"
)
_HOOK = re.compile(r"[\"{](before|after) (all|each)[\"}] hook", re.IGNORECASE)
_FIXTURE = re.compile(r"failed on (setup|teardown) with ")


@dataclass
class Suite:
    """A `testsuite` or `testsuites` that is open; `claimed`: failures and errors by its attributes."""

    name: str
    file: str | None
    package: str
    claimed: int
    tests: int = 0
    skipped: int = 0
    cases: int = 0
    skipped_cases: int = 0
    failing: int = 0

    @classmethod
    def of(cls, tag: str, attributes: Mapping[str, str]) -> Suite:
        return cls(
            name=plain(attributes.get("name", "")),
            file=attributes.get("file") or attributes.get("filepath") or attributes.get("filename"),
            package=attributes.get("package", ""),
            claimed=_whole(attributes.get("failures")) + _whole(attributes.get("errors")),
            tests=_whole(attributes.get("tests")),
            skipped=_whole(attributes.get("skipped")),
        )

    def unlisted_skips(self) -> int:
        """Skipped tests that the suite counts but does not list (libtest's ignored ones)."""
        missing = self.tests - self.cases
        return missing if missing > 0 and missing == self.skipped - self.skipped_cases else 0


@dataclass
class Problem:
    """A `failure` or `error` element."""

    tag: str
    attributes: Mapping[str, str]
    text: str = ""


@dataclass
class Case:
    """A `testcase` element: its attributes, the suites around it (outermost first) and its problems."""

    attributes: Mapping[str, str]
    suites: tuple[Suite, ...]
    problems: list[Problem] = field(default_factory=list)
    skipped: bool = False
    out: str = ""
    whole_suite: bool = False

    @property
    def name(self) -> str:
        name = plain(self.attributes.get("name", ""))
        # node:test (20) escapes twice
        return html.unescape(name) if self.classname == "test" and "&" in name else name

    @property
    def classname(self) -> str:
        return plain(self.attributes.get("classname") or self.attributes.get("class", ""))

    @property
    def suite(self) -> str:
        return next((suite.name for suite in reversed(self.suites) if suite.name), "")

    def outcome(self) -> Outcome:
        """Skipped wins: Catch2 writes a test that may fail as skipped and failed."""
        if self.skipped:
            return "skipped"
        tags = {problem.tag for problem in self.problems}
        if not tags:
            disabled = self.attributes.get("status") in ("notrun", "disabled", "skipped")
            return "skipped" if disabled else "passed"
        return "failed" if "failure" in tags else "error"

    def shown_suite(self) -> str | None:
        classname = self.classname
        if classname in ("", "test", self.name) or self.name.startswith(classname + " "):
            classname = ""
        suite = "" if self.suite == "undefined" else self.suite  # jest-junit, of a test outside `describe`
        return classname or suite or None

    def own(self) -> tuple[str, ...]:
        """Spellings of the file that holds the test, most reliable first."""
        given = self.attributes.get("file") or self.attributes.get("filepath")
        paths = [given, next((suite.file for suite in reversed(self.suites) if suite.file), None)]
        paths += [self.classname, self.name, *(suite.name for suite in reversed(self.suites))]
        found = [path for path in paths if path and looks_like_path(path)]
        return tuple(dict.fromkeys([*found, self.classname or self.name]))

    def own_line(self) -> int | None:
        """Where the runner says that the test is. pytest's xunit1 counts from 0."""
        given = _whole(self.attributes.get("line"))
        if not given:
            return None
        from_zero = bool(self.suites) and self.suites[-1].name == "pytest" and "file" in self.attributes
        return given + 1 if from_zero else given

    def history_file(self) -> str | None:
        own = self.own()
        return own[0] if own and own[0] else None

    def duration_ms(self) -> int | None:
        return milliseconds(self.attributes.get("time", ""))


def milliseconds(text: str) -> int | None:
    """A `time` attribute: seconds with any separators, or a clock; None if it is no number."""
    text = text.strip()
    if clock := re.fullmatch(r"(\d+):(\d\d):(\d\d(?:\.\d+)?)", text):
        return round((int(clock[1]) * 3600 + int(clock[2]) * 60 + float(clock[3])) * 1000)
    if "," in text:
        text = text.replace(",", "") if "." in text or text.count(",") > 1 else text.replace(",", ".")
    if not re.fullmatch(r"-?\d{1,12}(\.\d*)?([eE][+-]?\d{1,2})?|\.\d+", text):
        return None
    return max(0, round(float(text) * 1000))


def is_checker(suite: Suite) -> bool:
    """Whether a suite is the report of a linter or type checker."""
    return bool(_CHECKERS.fullmatch(suite.name) or _CHECKERS.fullmatch(suite.package))


def restated(case: Case) -> bool:
    """Whether a case only repeats another: jest-junit writes the error object of a suite a second time."""
    return case.classname == "Test suite failed to run" and all(
        problem.tag == "failure" and problem.text.lstrip().startswith("{") for problem in case.problems
    )


def describe(case: Case) -> list[Found]:
    """The problems of a case, one each."""
    found: list[Found] = []
    for problem in case.problems:
        found += _findings(case, problem) or _problems(case, problem)
    real = [each for each in found if not re.fullmatch(r"contains \d+ failed subtests?", each.message)]
    return real or found


def _findings(case: Case, problem: Problem) -> list[Found]:
    """The findings of a linter or type checker; none if this is a test's problem."""
    text, message = plain(problem.text).strip(), plain(problem.attributes.get("message", "")).strip()
    if case.suite == "mypy" or case.classname == "mypy":
        return [
            Found(
                name=match["rule"] or match["level"],
                scope="finding",
                kind="failure",
                message=match["text"],
                own=(match["path"],),
                own_line=int(match["line"]),
            )
            for match in _CHECKED.finditer(text)
        ]
    kind: Kind = "error" if problem.tag == "error" else "failure"
    if at := _AT.fullmatch(case.name):
        return [
            Found(
                at["rule"],
                scope="finding",
                kind=kind,
                message=message,
                own=(at["path"],),
                own_line=int(at["line"]),
            )
        ]
    line = _LINE.match(text)
    if line and looks_like_path(case.suite):
        rule = re.sub(r"^org\.(eslint|ruff|stylelint)\.", "", case.name)
        suite = case.suite if rule == case.name else None
        return [
            Found(
                rule,
                suite=suite,
                scope="finding",
                kind=kind,
                message=message or text,
                own=(case.suite,),
                own_line=int(line["line"]),
            )
        ]
    return []


def _problems(case: Case, problem: Problem) -> list[Found]:
    text = plain(problem.text).strip("\n")
    attribute = plain(problem.attributes.get("message", "")).strip()
    output = plain(case.out)
    parts = messages.parts(attribute, text, output)
    scope, phase, name = _place(case, attribute, text)
    result = []
    for message, body in parts:
        message = messages.with_type(message, plain(problem.attributes.get("type", "")), body)
        expected, actual = compared(message, body)
        result.append(
            Found(
                name=name,
                suite=case.shown_suite(),
                kind=_kind(problem, scope, message),
                scope=scope,
                phase=phase,
                message=message,
                expected=expected,
                actual=actual,
                frames=_frames(body, message),
                own=case.own(),
                own_line=case.own_line(),
                output=tail(output.strip(), KEPT_OUTPUT) or None,
            )
        )
    if name != case.name and looks_like_path(name):
        return [replace(found, own=(name, *found.own)) for found in result]
    return result


def _frames(body: str, message: str) -> tuple[Frame, ...]:
    return frames_in(messages.stack(body)) or frames_in(message)


def _kind(problem: Problem, scope: Scope, message: str) -> Kind:
    if _TIMEOUT.search(message) or problem.attributes.get("type") == "testTimeoutFailure":
        return "timeout"
    if _CRASHED.search(message):
        return "crash"
    return "error" if problem.tag == "error" or scope == "suite" else "failure"


def _place(case: Case, attribute: str, text: str) -> tuple[Scope, Phase | None, str]:
    """Scope, phase and name: whether a test failed, or a file, a hook or a fixture around it."""
    name, classname = case.name, case.classname
    if case.whole_suite:
        return "suite", None, name
    if attribute == "collection failure" or classname == "Test suite failed to run":
        return "suite", None, name
    if fixture := _FIXTURE.match(attribute):
        return "test", "setup" if fixture[1] == "setup" else "teardown", name
    if hook := _HOOK.search(name):
        return "suite", "setup" if hook[1].lower() == "before" else "teardown", name
    if looks_like_path(name) and (name == classname or attribute == "test failed"):
        return "suite", None, name
    if name == "TestMain" and not classname and re.search(r"\[(build|setup) failed\]", text):
        return "suite", None, case.suite
    if name in ("", "(unnamed)") or name == classname == case.suite:
        function = re.search(r"\(from function `(\w+)'", text)
        phase: Phase = "teardown" if function and "teardown" in function[1] else "setup"
        return "suite", phase, function[1] if function else classname or case.suite
    if bats := re.match(r"\(from function `(setup|teardown)'", text):
        return "test", "setup" if bats[1] == "setup" else "teardown", name
    if attribute.startswith(("failed running beforeEach hook", "failed running before hook")):
        return "test", "setup", name
    if attribute.startswith("Hook timed out"):
        return "test", "setup", name
    return "test", None, name


def _whole(text: str | None) -> int:
    return int(text) if text and re.fullmatch(r"\d{1,9}", text.strip()) else 0
