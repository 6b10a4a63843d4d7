"""SARIF 2.1 (and 2.0), the interchange format of static analysis. Source: OASIS SARIF 2.1.0, section 3.27."""

from __future__ import annotations

import re
from collections.abc import Mapping

from devbay.reports.findings import Finding, Findings
from devbay.reports.json_walk import Path, Walk
from devbay.reports.plain import plain
from devbay.reports.records import Parsed
from devbay.reports.source import Source

name = "sarif"
commands: frozenset[str] = frozenset()

MAX_RULES = 20_000
MAX_RESULTS = 50_000

_SNIFF = re.compile(
    rb'"\$schema"\s*:\s*"[^"\n]{0,200}sarif|"runs"\s*:\s*\[\s*\{\s*"(?:results|tool|\$schema|invocations|columnKind)"'
)


def sniff(head: bytes) -> bool:
    """Whether the bytes name SARIF's schema or start with a run."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The results that are findings: not suppressed, passed or gone (3.27.9, 3.27.23, 3.27.24)."""
    levels: dict[str, str] = {}
    results: list[Mapping[str, object]] = []
    dropped = 0
    stopped: list[Finding] = []
    walk = Walk(source.text(), _descends)
    for path, value in walk:
        if not isinstance(value, dict) or len(path) < 4:
            continue
        if path[2] == "results":
            if len(results) < MAX_RESULTS:
                results.append(_needed(value))
            else:
                dropped += 1
        elif path[2] == "tool" and len(levels) < MAX_RULES:
            level = _inner(value, "defaultConfiguration").get("level")
            if isinstance(level, str):
                levels[str(value.get("id"))] = level
        elif path[2] == "invocations":
            stopped += _notifications(value)
    findings = Findings()
    for result in results:
        if finding := _finding(result, levels):
            findings.add(finding)
    for finding in stopped:
        findings.add(finding)
    findings.failed += dropped
    complete = walk.complete and walk.seen
    why = None if complete else "it ends in the middle, or is broken" if walk.seen else "it holds no JSON"
    return findings.parsed(complete=complete, problem=why)


def _descends(path: Path) -> bool:
    match path:
        case () | ("runs",) | ("runs", _) | ("runs", _, "results" | "tool" | "invocations"):
            return True
        case ("runs", _, "tool", "driver") | ("runs", _, "tool", "driver", "rules"):
            return True
    return False


def _needed(result: Mapping[str, object]) -> dict[str, object]:
    """The members that are read, so that fixes and code flows of many results are not kept."""
    keys = ("ruleId", "rule", "level", "kind", "message", "suppressions", "baselineState")
    kept = {key: result[key] for key in keys if key in result}
    locations = result.get("locations")
    kept["locations"] = locations[:1] if isinstance(locations, list) else []
    return kept


def _finding(result: Mapping[str, object], levels: Mapping[str, str]) -> Finding | None:
    if result.get("suppressions") or result.get("baselineState") == "absent":
        return None
    if result.get("kind", "fail") not in ("fail", "open", "review"):
        return None
    rule = str(result.get("ruleId") or _inner(result, "rule").get("id") or "")
    level = result.get("level")
    severity = level if isinstance(level, str) else levels.get(rule, "warning")
    if severity == "none":
        return None
    locations = result.get("locations")
    first = locations[0] if isinstance(locations, list) and locations else {}
    physical = _inner(first, "physicalLocation")
    region = _inner(physical, "region")
    uri = _inner(physical, "artifactLocation").get("uri")
    line, column = region.get("startLine"), region.get("startColumn")
    return Finding(
        message=plain(_message(result)),
        path=uri if isinstance(uri, str) and uri else None,
        line=line if isinstance(line, int) else None,
        column=column if isinstance(column, int) else None,
        severity=severity,
        code=rule,
    )


def _notifications(invocation: Mapping[str, object]) -> list[Finding]:
    """What kept the tool from running to its end (3.20.14, 3.20.21)."""
    listed = invocation.get("toolExecutionNotifications")
    if invocation.get("executionSuccessful") is not False or not isinstance(listed, list):
        return []
    return [
        Finding(message=plain(_message(each)), severity="error")
        for each in listed
        if isinstance(each, dict) and each.get("level", "warning") == "error"
    ]


def _message(result: Mapping[str, object]) -> str:
    message = _inner(result, "message")
    return str(message.get("text") or message.get("markdown") or result.get("ruleId") or "")


def _inner(value: object, key: str) -> Mapping[str, object]:
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}
