import json
from typing import Any

import anyio
import pytest

from devbay.daemon.lines import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, Refusal, lines, parse


class Chunks:
    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = list(chunks)

    async def receive(self, size: int) -> bytes:
        if not self._chunks:
            raise anyio.EndOfStream
        return self._chunks.pop(0)


def cut(chunks: list[bytes], limit: int = 20) -> list[Any]:
    async def read() -> list[Any]:
        return [line async for line in lines(Chunks(chunks), limit)]  # type: ignore[arg-type]

    return anyio.run(read)


def test_lines_come_out_whole_however_they_arrive() -> None:
    assert cut([b"on", b"e\ntwo\nth", b"ree\n"]) == [b"one", b"two", b"three"]


def test_half_a_line_at_the_end_is_dropped() -> None:
    assert cut([b"one\nhalf"]) == [b"one"]


def test_a_long_line_is_refused_once_and_the_next_one_is_read() -> None:
    found = cut([b"x" * 15, b"x" * 15, b"x" * 50 + b"\nok\n"])
    assert [type(line) for line in found] == [Refusal, bytes]
    assert found[1] == b"ok"


def test_a_long_line_in_one_chunk_is_refused_too() -> None:
    found = cut([b"y" * 21 + b"\nok\n"])
    assert isinstance(found[0], Refusal)
    assert found[1:] == [b"ok"]


def test_a_line_that_never_ends_is_not_kept_in_memory() -> None:
    assert [type(line) for line in cut([b"x" * 15] * 100)] == [Refusal]


def test_a_line_at_the_limit_is_taken() -> None:
    assert cut([b"z" * 20 + b"\n"]) == [b"z" * 20]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"garbage", PARSE_ERROR),
        (b"\x00\x00", PARSE_ERROR),
        (b"\xff\xfe{}", PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}', PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', PARSE_ERROR),
        (b"[" * 100_000, PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b"}", PARSE_ERROR),
        (b"[]", INVALID_REQUEST),
        (b"7", INVALID_REQUEST),
        (b'{"id":1,"method":"x"}', INVALID_REQUEST),
        (b'{"jsonrpc":"1.0","id":1,"method":"x"}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}', INVALID_PARAMS),
    ],
)
def test_what_is_no_message_is_refused_with_the_protocols_code(line: bytes, code: int) -> None:
    found = parse(line)
    assert isinstance(found, Refusal)
    assert found.code == code
    json.dumps(found.as_message()).encode()


def test_a_refusal_names_the_request_it_refuses() -> None:
    found = parse(b'{"jsonrpc":"1.0","id":"a","method":"x"}')
    assert isinstance(found, Refusal)
    assert found.as_message()["id"] == "a"


def test_params_of_null_count_as_absent() -> None:
    assert parse(b'{"jsonrpc":"2.0","id":1,"method":"x","params":null}') == {
        "jsonrpc": "2.0", "id": 1, "method": "x",
    }  # fmt: skip
