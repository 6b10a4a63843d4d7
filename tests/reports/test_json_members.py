"""Members of a JSON report are read one at a time, whatever surrounds it and wherever chunks end."""

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devbay.reports import json_members, source
from devbay.reports.json_members import Members
from devbay.reports.source import Source

OPENING = re.compile(r'\{\s*"[a-z]+"')
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def read(text: str) -> tuple[list[tuple[str, object]], Members]:
    members = Members(Source("x", data=text.encode()), OPENING)
    return list(members), members


def flat(value: dict[str, object]) -> list[tuple[str, object]]:
    return [(k, each) for k, v in value.items() for each in (v if isinstance(v, list) else [v])]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), VALUES, min_size=1))
def test_members_are_those_of_the_object(value: dict[str, object]) -> None:
    found, members = read(json.dumps(value))
    assert found == flat(value)
    assert members.complete and members.problem is None


def test_members_are_the_same_wherever_a_chunk_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"a": [{"b": 'q"\\[{,'}, [1, [2]]], "c": {"d": []}, "e": "x\\", "f": []}
    monkeypatch.setattr(source, "CHUNK", 1)
    found, members = read(json.dumps(value))
    assert found == flat(value)
    assert members.complete


def test_what_is_printed_around_a_report_is_not_read() -> None:
    found, members = read('> test {3}\n{ listening: true }\n{"a": [1], "b": 2}\nbye {"')
    assert found == [("a", 1), ("b", 2)]
    assert members.complete


def test_reports_that_follow_each_other_are_all_read() -> None:
    assert read('{"a": [1]}\n{"a": [2]}')[0] == [("a", 1), ("a", 2)]


def test_a_report_that_is_cut_off_yields_what_was_complete() -> None:
    found, members = read('{"a": [{"b": 1}, {"b": ')
    assert found == [("a", {"b": 1})]
    assert members.seen and not members.complete


def test_what_is_no_json_is_a_problem_in_words() -> None:
    found, members = read('{"a": [1, nope, 2]}')
    assert found == [("a", 1)]
    assert members.problem is not None and "nope" in members.problem


def test_nesting_is_bounded() -> None:
    assert "nests deeper" in str(read('{"a": ' + "[" * 5_000)[1].problem)


def test_a_member_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_members, "MAX_MEMBER", 1_000_000)
    found, members = read('{"a": "' + "x" * 3_000_000)
    assert found == []
    assert "longer than" in str(members.problem)
