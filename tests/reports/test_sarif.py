"""SARIF, as the specification's section 3.27 has it."""

import json
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from devbay.reports import sarif
from devbay.reports.records import Parsed
from devbay.reports.registry import recognised
from devbay.reports.source import Source


def read(data: bytes) -> Parsed:
    return sarif.read(Source("report.sarif", data=data))


def log(*results: Mapping[str, object], rules: object = (), **run: object) -> bytes:
    driver = {"name": "x", "rules": list(rules) if isinstance(rules, list | tuple) else rules}
    runs = [{"results": list(results), "tool": {"driver": driver}, **run}]
    return json.dumps({"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "runs": runs}).encode()


def result(**more: object) -> dict[str, object]:
    location = {"artifactLocation": {"uri": "file:///r/o.py"}, "region": {"startLine": 3, "startColumn": 1}}
    base = {"ruleId": "F401", "message": {"text": "unused"}, "locations": [{"physicalLocation": location}]}
    return {**base, **more}


def test_a_result_is_a_finding_at_its_first_location() -> None:
    data = log(result(level="error"))
    assert recognised(data) is sarif
    (found,) = read(data).failures
    assert (found.own, found.own_line, found.kind, found.name, found.message) == (
        ("file:///r/o.py",),
        3,
        "error",
        "F401",
        "unused",
    )


def test_a_result_without_level_has_its_rules_or_is_a_warning() -> None:
    rules = [{"id": "F401", "defaultConfiguration": {"level": "error"}}]
    assert read(log(result(), rules=rules)).failures[0].kind == "error"
    assert read(log(result())).failures[0].kind == "failure"


def test_what_was_suppressed_passed_or_is_gone_is_no_finding() -> None:
    data = log(
        result(ruleId="suppressed", suppressions=[{"kind": "inSource"}]),
        result(ruleId="passed", kind="pass"),
        result(ruleId="gone", baselineState="absent"),
        result(ruleId="off", level="none"),
        result(suppressions=[]),
    )
    assert [found.name for found in read(data).failures] == ["F401"]


def test_a_tool_that_did_not_run_to_its_end_is_told() -> None:
    notice = {"level": "error", "message": {"text": "config is broken"}}
    data = log(invocations=[{"executionSuccessful": False, "toolExecutionNotifications": [notice]}])
    assert [found.message for found in read(data).failures] == ["config is broken"]


def test_a_cut_log_keeps_its_complete_results() -> None:
    data = log(result(), result(ruleId="F402"))
    parsed = read(data[: data.index(b"F402")])
    assert [found.name for found in parsed.failures] == ["F401"]
    assert not parsed.complete


@given(st.binary(max_size=1_500))
@settings(max_examples=60, deadline=None)
def test_any_bytes_give_a_result(data: bytes) -> None:
    sarif.sniff(data)
    read(data)


@given(st.integers(0, 600), st.sampled_from([None, [], {}, "x", 1, [[]], [{"physicalLocation": 3}]]))
@settings(max_examples=80, deadline=None)
def test_members_of_the_wrong_type_and_cuts_give_a_result(cut: int, wrong: object) -> None:
    data = log(result(locations=wrong, message=wrong, suppressions=wrong), rules=wrong, invocations=wrong)
    read(data)
    read(data[:cut])
