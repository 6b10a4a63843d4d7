from __future__ import annotations

import struct
from typing import Any

import pytest

from devbay.runtimes.docker import logs
from devbay.runtimes.docker.containers import Container
from devbay.runtimes.docker.logs import LINE_LIMIT, Line, LineReader
from tests.runtimes.docker.fake_engine import FakeEngine, Handler

AT = "2026-11-30T22:28:20.123456789Z"
LATER = "2026-11-30T22:28:20.123456790Z"


def message(text: bytes, at: str = AT) -> bytes:
    return at.encode() + b" " + text


def test_each_message_is_a_line_of_its_stream() -> None:
    reader = LineReader()
    assert reader.feed(1, message(b"one two\n")) == Line(AT, "one two")
    assert reader.feed(2, message(b"oops\r\n")) == Line(AT, "oops", stderr=True)
    assert reader.feed(1, message(b"\n")) == Line(AT, "")


def test_the_parts_of_a_long_line_are_joined_per_stream() -> None:
    reader = LineReader()
    assert reader.feed(1, message(b"abc")) is None
    assert reader.feed(2, message(b"err\n", LATER)) == Line(LATER, "err", stderr=True)
    assert reader.feed(1, message(b"def\n", LATER)) == Line(AT, "abcdef")
    assert reader.feed(1, message(b"next\n")) == Line(AT, "next")


def test_a_line_without_end_comes_last() -> None:
    reader = LineReader()
    reader.feed(1, message(b"half"))
    assert reader.rest() == [Line(AT, "half")] and reader.rest() == []


def test_a_line_is_cut_at_its_limit() -> None:
    reader = LineReader()
    for _ in range(10):
        reader.feed(1, message(b"x" * 16384))
    line = reader.feed(1, message(b"end\n"))
    assert line is not None and line.text == "x" * LINE_LIMIT


def test_bad_bytes_are_replaced_and_colours_kept() -> None:
    line = LineReader().feed(1, message(b"\x1b[32mok\x1b[0m \xff\n"))
    assert line is not None and line.text == "\x1b[32mok\x1b[0m �"


def _log(handler: Handler) -> None:
    body = b""
    for at, text in ((AT, b"old\n"), (LATER, b"new\n")):
        payload = message(text, at)
        body += struct.pack(">BxxxL", 1, len(payload)) + payload
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def test_since_is_a_cursor_that_gives_no_line_twice(fake: FakeEngine) -> None:
    fake.answers["GET /containers/c/logs"] = _log
    assert [line.text for line in logs.tail(fake.engine, "c", lines=10)] == ["old", "new"]
    assert [line.text for line in logs.tail(fake.engine, "c", since=AT)] == ["new"]
    assert fake.asked[-1][1]["since"] == "1796077700.123456789"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:01Z", "1.000000000"),
        ("1970-01-01T00:00:01.5Z", "1.500000000"),
        ("1970-01-01T01:00:01.123456789+01:00", "1.123456789"),
        ("1970-01-01T00:00:02", "2.000000000"),
    ],
)
def test_moments_are_sent_to_the_nanosecond(text: str, seconds: str) -> None:
    assert logs.epoch(text) == seconds


def container(**fields: Any) -> Container:
    return Container("1", "n", "i", "running", {}, **fields)


def test_the_first_run_has_all_lines_and_a_later_one_those_after_the_former_end() -> None:
    assert logs.start_of_run(container(started_at=AT)) is None
    again = container(started_at=AT, finished_at="2026-11-30T22:28:19.990456789Z")
    assert logs.start_of_run(again) == "2026-11-30T22:28:20.040456789Z"
