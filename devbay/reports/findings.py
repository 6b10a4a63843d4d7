"""Findings of linters, type checkers and compilers, whatever the shape they were printed in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from devbay.reports.plain import shorten
from devbay.reports.records import MAX_FAILURES, Found, Frame, Kind, Parsed, count

MAX_MESSAGE = 600
MAX_DETAIL = 1_200

_MILD = re.compile(
    r"warn|note|notice|info|hint|help|remark|style|convention|refactor|minor|low|medium|suggest|perform"
    r"|portab|debug|message|ignore|advice|[CRWIN]$",
    re.IGNORECASE,
)
COMPILED = re.compile(
    r"\.(?:c|cc|cpp|cxx|c\+\+|h|hh|hpp|hxx|ipp|m|mm|cu|rs|java|kt|kts|scala|groovy|swift|cs|fs|vb|go|ts|tsx|mts|cts"
    r"|vue|zig|hs|ml|nim|d|f90|dart|ex|exs|erl|elm)$"
)
_COMPILER_CODE = re.compile(r"(?:TS|CS|FS|BC|C|LNK|E|GHC-)\d{3,6}")


def kind_of(severity: str) -> Kind:
    """`failure` of what is milder than an error, `error` of errors and of what names no severity."""
    return "failure" if _MILD.match(severity) else "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. path: as spelled. line, column: 1-based. code: the rule. detail: code frame."""

    message: str
    path: str | None = None
    line: int | None = None
    column: int | None = None
    severity: str = ""
    code: str = ""
    detail: str = ""

    def found(self) -> Found:
        """The record; one without a rule is named by its severity."""
        line = self.line if self.line and self.line > 0 else None
        return Found(
            name=self.code or self.severity.lower() or "error",
            kind=kind_of(self.severity),
            scope="finding",
            message=shorten(self.message.strip(), MAX_MESSAGE),
            frames=(Frame(self.path, line),) if self.path and line else (),
            own=(self.path,) if self.path else (),
            own_line=line,
            output=shorten(self.detail.strip("\n"), MAX_DETAIL) or None,
        )


@dataclass
class Findings:
    """What one source listed: each finding once where its column tells it from others."""

    failed: int = 0
    errors: int = 0
    kept: list[Found] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)

    def add(self, finding: Finding) -> None:
        if finding.column is not None or finding.path is None:
            # compilers repeat what they said of one file for each target that holds it
            key = hash((finding.path, finding.line, finding.column, finding.code, finding.message))
            if key in self._seen:
                return
            if len(self._seen) < MAX_FAILURES:
                self._seen.add(key)
        found = finding.found()
        if found.kind == "failure":
            self.failed += 1
        else:
            self.errors += 1
        if len(self.kept) < MAX_FAILURES:
            self.kept.append(found)

    def parsed(self, *, complete: bool = True, problem: str | None = None) -> Parsed:
        return Parsed(
            counts=count(failed=self.failed, errors=self.errors),
            failures=tuple(self.kept),
            complete=complete,
            problem=problem,
            checker=True,
        )


def as_broken_build(failures: Iterable[Found]) -> tuple[Found, ...]:
    """The compile errors among findings, as what kept a test run from starting; empty if there are none."""
    return tuple(
        replace(found, scope="suite", name=found.own[0], kind="error")
        for found in failures
        if found.kind == "error" and found.own and _compile_error(found)
    )


def _compile_error(found: Found) -> bool:
    unruled = found.name in ("error", "fatal error") or _COMPILER_CODE.fullmatch(found.name) is not None
    return unruled and COMPILED.search(found.own[0]) is not None
