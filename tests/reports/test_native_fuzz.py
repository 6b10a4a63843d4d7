"""Any bytes give the readers of Go, Rust, C and C++ a result, in bounded time."""

from __future__ import annotations

import time
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devbay.reports import (
    boost_text,
    boost_xml,
    catch2_json,
    catch2_text,
    catch2_xml,
    check_text,
    cmocka_text,
    ctest_text,
    doctest_text,
    go_json,
    go_text,
    gtest_json,
    gtest_text,
    libtest,
    meson_text,
    nextest,
    sonar,
)
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports import test_c_frameworks as c
from tests.reports import test_cpp_reports as cpp
from tests.reports import test_go as go
from tests.reports import test_gtest as gtest
from tests.reports import test_libtest as rust
from tests.reports import test_meson as meson
from tests.reports import test_nextest as next_test
from tests.reports.samples import failures_of

EVENTS = "\n".join(
    f'{{"Action":"{action}","Package":"p","Test":"T/b","Output":"panic: x\\n\\ngoroutine 1 [running]:\\n"}}'
    for action in ("run", "output", "fail")
)
SAMPLES: dict[ModuleType, str] = {
    go_text: go.PLAIN + go.VERBOSE + go.PANIC + go.BUILD,
    go_json: EVENTS,
    libtest: rust.STDOUT + rust.STDERR + rust.BROKEN,
    gtest_text: gtest.FULL,
    gtest_json: '{"tests": 2, "failures": 0, "disabled": 0, "testsuites": [{"testsuite": [{}]}]}',
    ctest_text: gtest.CTEST,
    catch2_text: cpp.CONSOLE + cpp.COMPACT,
    catch2_xml: cpp.CATCH2_XML + cpp.DOCTEST_XML,
    catch2_json: '{"metadata": {"catch2-version": "3"}, "test-run": {"test-cases": [{"runs": []}]}}',
    doctest_text: cpp.DOCTEST,
    boost_text: cpp.BOOST,
    boost_xml: cpp.BOOST_XML,
    sonar: cpp.SONAR,
    cmocka_text: c.CMOCKA,
    check_text: c.CHECK,
    nextest: next_test.OLD + next_test.NEW,
    meson_text: meson.OUTPUT,
}
BROAD = settings(max_examples=60, deadline=2_000, suppress_health_check=[HealthCheck.too_slow])


def read(format: ModuleType, data: bytes) -> Parsed:
    format.sniff(data)
    parsed: Parsed = format.read(Source("output", data=data))
    failures_of(parsed)
    counts = parsed.counts
    if counts is not None:
        assert counts.total == counts.passed + counts.failed + counts.errors + counts.skipped
        assert min(counts.passed, counts.failed, counts.errors, counts.skipped) >= 0
    return parsed


@pytest.mark.parametrize("format", SAMPLES, ids=lambda each: each.name)
@BROAD
@given(data=st.data())
def test_lines_in_any_order_and_any_bytes_between_them_give_a_result(
    format: ModuleType, data: st.DataObject
) -> None:
    lines = SAMPLES[format].encode().split(b"\n")
    chosen = data.draw(st.lists(st.one_of(st.sampled_from(lines), st.binary(max_size=40)), max_size=40))
    read(format, b"\n".join(chosen))


@pytest.mark.parametrize("format", SAMPLES, ids=lambda each: each.name)
@BROAD
@given(data=st.data())
def test_a_cut_or_damaged_text_gives_a_result(format: ModuleType, data: st.DataObject) -> None:
    text = SAMPLES[format].encode()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    read(format, text[:start] + data.draw(st.binary(max_size=20)) + text[end:])


@pytest.mark.parametrize("format", SAMPLES, ids=lambda each: each.name)
@pytest.mark.parametrize(
    "unit",
    [b"a" * 60_000 + b"\n", b"[ RUN      ] A.b\n", b"--- FAIL: TestA (0.00s)\n", b"test a ... FAILED\n",
     b" " * 5_000 + b"\n", b"(" * 2_000 + b"\n", b"a.cpp:1: FAILED:\n", b"x" * 300 + b": " * 300 + b"\n",
     b"    Start 1: a\n1/1 Test #1: a ...***Failed 0.1 sec\n", b"# pkg\n",
     b"thread 'a' panicked at a.rs:1:1:\n",
     b"error: x\n" + b"-" * 79 + b"\n", b"<a><b>", b'{"Action":"run","Package":"p","Test":"T"}\n'],
    ids=range(14),
)  # fmt: skip
def test_a_megabyte_of_one_thing_is_read_in_bounded_time(format: ModuleType, unit: bytes) -> None:
    head = SAMPLES[format].encode()
    started = time.monotonic()
    read(format, head + b"\n" + unit * (1_000_000 // len(unit)))
    assert time.monotonic() - started < 10
