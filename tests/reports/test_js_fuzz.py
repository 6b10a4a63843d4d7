"""Any bytes give the JavaScript formats a result or a typed error, in bounded time."""

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devbay.errors import DevbayError
from devbay.reports import (
    ava_text,
    bun_text,
    deno_text,
    jest_json,
    jest_text,
    mocha_json,
    mocha_text,
    node_text,
    playwright_json,
    playwright_text,
    tap,
    vitest_text,
)
from devbay.reports.registry import Format
from devbay.reports.source import Source
from tests.reports import test_jest, test_js_runners, test_mocha, test_playwright, test_tap, test_vitest

FORMATS: list[Format] = [
    ava_text, bun_text, deno_text, jest_json, jest_text, mocha_json, mocha_text, node_text, playwright_json,
    playwright_text, tap, vitest_text,
]  # fmt: skip
SAMPLES = [
    test_jest.PLAIN,
    test_jest.CRASH,
    test_vitest.OUT,
    test_vitest.ERR,
    test_mocha.PLAIN,
    test_playwright.PLAIN,
    test_tap.NODE,
    test_tap.TAPE,
    test_js_runners.NODE,
    test_js_runners.AVA,
    test_js_runners.BUN,
    test_js_runners.DENO,
]
JSON = [
    '{"numTotalTests": 1, "testResults": [',
    '{"stats": {"suites": 1}, "failures": [',
    '{"config": {"rootDir": "/x"}, "suites": [',
    '{"name": "a", "status": "failed", "assertionResults": [',
    '{"err": ',
    '"specs": [',
    "[",
    "]",
    "{",
    "}",
    ",",
    '"',
    "null",
    "1e999",
    '{"title": []}',
]
LINES = sorted({line for sample in SAMPLES for line in sample.split("\n")})
TEXT = st.lists(st.sampled_from(LINES) | st.text(max_size=40), max_size=40).map("\n".join).map(str.encode)
REPORT = st.lists(st.sampled_from(JSON) | st.text(max_size=8), max_size=25).map("".join).map(str.encode)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@settings(max_examples=120, deadline=5_000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=2_000) | TEXT | REPORT)
def test_any_bytes_give_a_result_or_a_typed_error(form: Format, data: bytes) -> None:
    form.sniff(data)
    try:
        parsed = form.read(Source("x", data=data))
    except DevbayError:
        return
    assert parsed.counts is None or parsed.counts.total >= 0


HOSTILE = [
    b" " * 400_000,
    b"not ok 1 - " + b"a > " * 20_000,
    b"\xe2\x9d\xaf " * 50_000,
    b"    not ok 1 x {\n" * 20_000,
    b"  1) a\n" * 40_000,
    b'{"numTotalTests": [' + b"[1]," * 200_000,
    b'{"stats": {"suites":' + b"{" * 300_000,
    b"\xe2\x97\x8f a\n" * 50_000,
    b" FAIL  a.ts > b\n" * 20_000,
    b"ok 1\n  ---\n" + b"  a: 'x\n" * 20_000,
    b'{"config": ' * 60_000,
    b"TAP version 13\nnot ok 1 - x\n  ---\n  stack: |-\n"
    + b"    at f (/a/b.js:1:2)\n" * 50_000
    + b"  ...\n1..1\n",
    b"Error: " + b"(" * 60_000,
    b"  \xe2\x9c\x98 [fail]: a\n" * 3_000 + b"  \xe2\x94\x80\n" + b"  a\n" * 3_000,
]


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_hostile_output_takes_bounded_time(form: Format) -> None:
    for data in HOSTILE:
        start = time.process_time()
        form.sniff(data)
        form.read(Source("x", data=data))
        assert time.process_time() - start < 4, data[:40]


@pytest.mark.parametrize(
    "form", [form for form in FORMATS if not form.name.endswith("-json")], ids=lambda f: f.name
)
def test_output_of_another_command_is_no_crash(form: Format) -> None:
    parsed = form.read(Source("x", data=b"Downloading Chromium 141.0\nDone in 3 s\n"))
    assert (parsed.failures, parsed.stopped) == ((), None)
