"""The XML of linters: Checkstyle's and the formats in its manner (PMD, cppcheck, Android lint, JSLint)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from devbay.reports.findings import Finding, Findings
from devbay.reports.markup import tokens
from devbay.reports.plain import plain
from devbay.reports.records import Parsed
from devbay.reports.source import Source

name = "checkstyle"
commands: frozenset[str] = frozenset()

MAX_TEXT = 4_000

_ROOTS = ("checkstyle", "pmd", "pmd-cpd", "jslint", "lint")
_SNIFF = re.compile(
    rb"<checkstyle[\s>/]|<pmd[\s>][^\0]{0,2000}?(?:<file|</pmd>)|<results[^>]{0,200}>\s*<cppcheck"
    rb"|<issues\s[^>]{0,200}format=|<(?:jslint|lint)>\s*(?:<file|</)"
)
_FINDINGS = frozenset({"error", "violation", "issue"})


def sniff(head: bytes) -> bool:
    """Whether an element starts that only these formats have."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The findings of every file."""
    findings = Findings()
    path, pending, text = "", None, ""
    seen = closed = False
    problem: str | None = None
    for token in tokens(source.text()):
        if token.kind == "doctype":
            problem = "it has a document type declaration, which is not read"
            break
        if token.kind == "cut":
            problem = "it ends in the middle"
        if token.kind == "start":
            seen = seen or token.name in (*_ROOTS, "results", "issues")
            if token.name == "file":
                path = token.attributes.get("name", "")
            elif token.name in _FINDINGS and seen:
                pending, text = dict(token.attributes), ""
                if token.closed:
                    _add(findings, pending, path, text)
                    pending = None
            elif token.name == "location" and pending is not None and "file" not in pending:
                pending.update(token.attributes)  # the first is the place, further ones lead to it
        elif token.kind == "text" and pending is not None and len(text) < MAX_TEXT:
            text += token.text
        elif token.kind == "end":
            if token.name in _FINDINGS and pending is not None:
                _add(findings, pending, path, text)
                pending = None
            closed = closed or token.name in (*_ROOTS, "results", "issues")
    if problem is None and not closed:
        problem = "it ends in the middle" if seen else "it holds no element of this format"
    return findings.parsed(complete=problem is None, problem=problem)


def _add(findings: Findings, item: Mapping[str, str], path: str, text: str) -> None:
    message = item.get("message") or item.get("msg") or item.get("reason") or " ".join(text.split())
    if item.get("errorLine1"):
        text = "\n".join(filter(None, (item["errorLine1"], item.get("errorLine2"))))
    priority = item.get("priority", "")
    severity = item.get("severity") or ("warning" if priority.isdigit() and int(priority) > 2 else "")
    findings.add(
        Finding(
            message=plain(message or item.get("id", "")).strip(),
            path=item.get("file") or path or None,
            line=_number(item.get("line") or item.get("beginline")),
            column=_number(item.get("column") or item.get("begincolumn") or item.get("char")),
            severity=severity,
            code=item.get("source") or item.get("rule") or item.get("id", ""),
            detail=plain(text) if message != " ".join(text.split()) else "",
        )
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d{1,9}", text.strip()) else None
