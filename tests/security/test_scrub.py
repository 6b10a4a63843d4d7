import base64
import html
import json
import random
import time
import urllib.parse
from pathlib import Path

import pytest

from devbay.manifest.credentials import credential
from devbay.security.disguises import disguises
from devbay.security.scrub import Scrubber, ScrubStream
from devbay.security.shapes import SHAPES

ORDINARY = (Path(__file__).parent / "ordinary.log").read_text()
VALUE = "p&ss/w\"rd+1 <ü>'x\\"
PLAIN = "Tr0ub4dor-and-3"
PEM = "\n".join(
    [
        "-----BEGIN RSA PRIVATE KEY-----",
        *(c * 64 for c in "MIEAbz"),
        "AB12cd==",
        "-----END RSA PRIVATE KEY-----",
    ]
)


def scrub(text: str, **values: str) -> str:
    return Scrubber(values).text(text)


@pytest.mark.parametrize(
    "form",
    [
        VALUE,
        urllib.parse.quote(VALUE, safe=""),
        urllib.parse.quote(VALUE),
        urllib.parse.quote_plus(VALUE),
        "p%26ss%2fw%22rd%2b1%20%3c%c3%bc%3e%27x%5c",
        urllib.parse.quote(VALUE, safe="!'()*~"),
        json.dumps({"x": VALUE}),
        json.dumps({"x": VALUE}, ensure_ascii=False),
        json.dumps({"x": VALUE}).replace("/", "\\/"),
        json.dumps(json.dumps({"x": VALUE})),
        json.dumps({"x": VALUE}).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        repr([VALUE]),
        html.escape(VALUE),
        "'" + VALUE.replace("'", "'\\''") + "'",
        VALUE.encode().hex(),
        VALUE.encode().hex().upper(),
        *(
            base64.b64encode((before + VALUE + after).encode()).decode()
            for before in ("", "u", "us", "use", "user:")
            for after in ("", "!", "!!")
        ),
        base64.urlsafe_b64encode(("user:" + VALUE).encode()).decode(),
    ],
)  # fmt: skip
def test_a_value_is_found_in_every_disguise(form: str) -> None:
    shown = scrub(f"before {form} after", db=VALUE)
    assert "[redacted:db]" in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")
    middle = shown.removeprefix("before ").removesuffix(" after")
    rest = middle.replace("[redacted:db]", "")
    assert len(rest) <= 16, f"more than the surroundings of the value is left: {rest}"


def test_the_longest_value_wins() -> None:
    assert scrub("hunter22 hunter2", a="hunter2", b="hunter22") == "[redacted:b] [redacted:a]"


def test_a_label_that_is_another_value_is_not_replaced_again() -> None:
    assert scrub("x=sesame123", password="sesame123", b="password") == "x=[redacted:password]"


def test_values_too_short_to_tell_are_left() -> None:
    assert scrub("abc 1 yes", a="abc", b="1", c="", d="   ") == "abc 1 yes"
    assert scrub("pin 4711", a="4711") == "pin [redacted:a]"


def test_each_line_of_a_value_of_several_lines_is_hidden() -> None:
    value = "first-line-here\nsecond-line-here\nxx"
    assert scrub("web | first-line-here\nweb | second-line-here\n", k=value) == (
        "web | [redacted:k]\nweb | [redacted:k]\n"
    )
    assert scrub(f"<{value}>", k=value + "\n") == "<[redacted:k]>"


def test_ordinary_lines_are_unchanged() -> None:
    values = {"db": PLAIN, "key": VALUE, "pem": PEM, "jwt": "Zm9vYmFyYmF6cXV4"}
    assert Scrubber(values).text(ORDINARY) == ORDINARY
    assert Scrubber({}).text(ORDINARY) == ORDINARY


EXAMPLES = {
    "json web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "stripe key": "sk_" + "live_4eC39HqLyjWDarjtT1zdp7dc",
    "stripe webhook secret": "whsec_" + "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4",
    "github token": "ghp_" + "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6",
    "gitlab token": "glpat-" + "a1B2c3D4e5F6a1B2c3D4",
    "aws access key": "AKIA" + "IOSFODNN7EXAMPLE",
    "google api key": "AIza" + "SyA1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e",
    "google oauth secret": "GOCSPX-" + "a1B2c3D4e5F6a1B2c3D4e5F6a1B2",
    "slack token": "xoxb-" + "123456789012-1234567890123-a1B2c3D4e5F6",
    "npm token": "npm_" + "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6",
    "pypi token": "pypi-" + "AgEIcHlwaS5vcmcCJGExQjJjM0Q0ZTVGNmExQjJj",
    "digitalocean token": "dop_v1_" + "0123456789abcdef" * 4,
    "anthropic key": "sk-ant-" + "api03-a1B2c3D4e5F6a1B2c3D4",
    "openai key": "sk-proj-" + "a1B2c3D4e5F6a1B2c3D4e5F6",
    "hugging face token": "hf_" + "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5",
    "sendgrid key": "SG." + "a1B2c3D4e5F6a1B2c3D4e5." + "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D",
    "docker token": "dckr_pat_" + "a1B2c3D4e5F6a1B2c3D4e5F6a1B",
    "vault token": "hvs." + "a1B2c3D4e5F6a1B2c3D4e5F6",
    "google oauth token": "ya29." + "a1B2c3D4e5F6a1B2c3D4e5F6",
    "age key": "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE",
}


@pytest.mark.parametrize(("label", "example"), EXAMPLES.items())
def test_what_is_hidden_for_its_shape_is_refused_in_a_manifest(label: str, example: str) -> None:
    assert label in (credential(f"--token={example}") or "").lower()


@pytest.mark.parametrize(
    "text", ["postgres://shop:local@db:5432/shop", "Authorization: Bearer ${bay.web.url}"]
)
def test_a_login_of_a_local_service_is_hidden_and_still_allowed_in_a_manifest(text: str) -> None:
    assert credential(text) is None


@pytest.mark.parametrize(("label", "example"), EXAMPLES.items())
def test_credentials_are_known_by_their_shape(label: str, example: str) -> None:
    assert scrub(f'{{"x": "{example}"}}') == f'{{"x": "[redacted:{label}]"}}'
    assert scrub(f"token={example}\n") == f"token=[redacted:{label}]\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgres://shop:hunter2@db:5432/shop", "postgres://shop:[redacted:url password]@db:5432/shop"),
        ("redis://:hunter2@cache", "redis://:[redacted:url password]@cache"),
        ("//hooks.slack.com/services/T0/B0/abc", "//hooks.slack.com/services/[redacted:slack webhook]"),
        ("Authorization: Bearer abcdef12345", "Authorization: Bearer [redacted:authorization]"),
        ('"authorization":"Basic dXNlcjpwdw=="', '"authorization":"Basic [redacted:authorization]"'),
        (
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "aws_secret_access_key = [redacted:aws secret key]",
        ),
        (f"key:\n{PEM}\nnext", "key:\n[redacted:private key]\nnext"),
        (json.dumps({"k": PEM}), '{"k": "[redacted:private key]"}'),
        ("\n".join(PEM.splitlines()[:4]) + "\n", "[redacted:private key]\n"),
        ("no -----BEGIN PRIVATE KEY----- here", "no [redacted:private key] here"),
    ],
)  # fmt: skip
def test_what_must_be_hidden_is_and_its_surroundings_stay(text: str, expected: str) -> None:
    assert scrub(text) == expected


def test_a_known_password_in_a_url_keeps_its_own_label() -> None:
    assert scrub(f"postgres://u:{PLAIN}@db", db=PLAIN) == "postgres://u:[redacted:db]@db"


def test_no_value_stands_in_its_repr() -> None:
    assert PLAIN not in repr(Scrubber({"a": PLAIN}))


def pieces(data: bytes, seed: int) -> list[bytes]:
    rng = random.Random(seed)
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.choice([1, 5, 50, 400])))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def streamed(scrubber: Scrubber, chunks: list[bytes]) -> bytes:
    stream = scrubber.stream()
    return b"".join([*(stream.feed(chunk) for chunk in chunks), stream.close()])


@pytest.mark.parametrize("seed", range(40))
def test_a_value_split_between_chunks_is_caught(seed: int) -> None:
    several = "short\nlines\nof one\nvalue"
    scrubber = Scrubber({"db": PLAIN, "odd": VALUE, "several": several, "pem": "x" + PEM})
    text = "\n".join(
        [
            *ORDINARY.splitlines()[:12], f"a {PLAIN}{PLAIN} b", json.dumps(VALUE), several, PEM, "x" + PEM,
            several,
            base64.b64encode(f"user:{PLAIN}".encode()).decode(), f"50%\r{PLAIN}\r60%", *EXAMPLES.values(),
            f"postgres://u:{PLAIN}@h", "tail without line end " + PLAIN,
        ]
    )  # fmt: skip
    data = text.encode()
    assert streamed(scrubber, pieces(data, seed)) == scrubber.data(data)
    assert PLAIN.encode() not in scrubber.data(data)
    assert b"MMMM" not in scrubber.data(data)


def test_every_single_split_of_a_value_is_caught() -> None:
    scrubber = Scrubber({"db": PLAIN})
    data = f"x{PLAIN}y".encode()
    for at in range(len(data)):
        assert streamed(scrubber, [data[:at], data[at:]]) == b"x[redacted:db]y"


def test_whole_lines_leave_at_once_and_little_is_held() -> None:
    stream = Scrubber({"db": PLAIN, "pem": PEM}).stream()
    assert stream.feed(b"one\ntw") == b"one\n"
    assert stream.feed(b"o\n") == b"two\n"
    assert stream.feed(b"-----BEGIN") == b""
    out = 0
    for _ in range(200):
        out += len(stream.feed(b"x" * 10_000))
        assert len(stream._held) <= ScrubStream.LIMIT + stream._margin
    assert out > 1_900_000


@pytest.mark.parametrize("offset", range(0, 160, 7))
def test_values_at_the_edge_of_a_line_too_long_to_hold_are_caught(offset: int) -> None:
    scrubber = Scrubber({"db": PLAIN})
    token = EXAMPLES["github token"]
    line = b"x" * (ScrubStream.LIMIT - offset) + b" " + f"{PLAIN} {token} ".encode() * 1000
    shown = streamed(scrubber, [line[i : i + 4096] for i in range(0, len(line), 4096)])
    assert PLAIN.encode() not in shown
    assert token.encode() not in shown
    assert shown == scrubber.data(line)


def test_a_private_key_that_never_ends_is_not_held_for_ever() -> None:
    stream = Scrubber({}).stream()
    shown = (
        stream.feed(b"-----BEGIN PRIVATE KEY-----\n" + (b"A" * 64 + b"\n") * 400 + b"end.\n") + stream.close()
    )
    assert shown == b"[redacted:private key]\nend.\n"


def test_bytes_that_are_no_text_pass_unchanged() -> None:
    data = bytes(range(256)) * 3 + "ü".encode()
    assert streamed(Scrubber({"db": PLAIN}), [data[:300], data[300:767], data[767:]]) == data


def test_long_logs_are_fast() -> None:
    scrubber = Scrubber({f"s{n}": f"{n}-{random.Random(n).getrandbits(128):032x}" for n in range(20)})
    data = (ORDINARY * 2000).encode()
    started = time.perf_counter()
    shown = streamed(scrubber, [data[i : i + 32768] for i in range(0, len(data), 32768)])
    assert time.perf_counter() - started < 60
    assert shown == data


@pytest.mark.parametrize(
    "text",
    [
        "a." * 100_000, "eyJ-" * 50_000, "://" * 50_000, "a://:" * 40_000, "eyJaaaaaaaaaaa." * 10_000,
        "-----BEGIN PRIVATE KEY-----" * 10_000, "authorization:" + " " * 100_000,
        "hooks.slack.com/services/T" * 9_000,
        "-----BEGIN " + "A " * 100_000, "SG." * 50_000, "authorization: basic " * 10_000, "hvs." * 50_000,
        "x" * 1_000_000, "-----BEGIN PRIVATE KEY-----" + "\\n" * 100_000,
    ],
)  # fmt: skip
def test_no_text_makes_it_slow(text: str) -> None:
    started = time.perf_counter()
    Scrubber({"a": PLAIN}).text(text)
    assert time.perf_counter() - started < 30  # a quadratic pattern takes minutes


def test_every_shape_has_an_example_or_a_case() -> None:
    cased = {"url password", "slack webhook", "authorization", "aws secret key"}
    assert {shape.label.lower() for shape in SHAPES} == EXAMPLES.keys() | cased


def test_a_short_value_has_few_disguises() -> None:
    assert disguises("abc") == set()
    assert disguises("abcd") >= {"abcd", "YWJjZA=="}
    assert len(disguises(PLAIN)) < 25
