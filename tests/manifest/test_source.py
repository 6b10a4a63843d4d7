"""Reading: what is no usable YAML is a diagnostic with a place, in bounded time."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from devbay.manifest import parse
from devbay.manifest.source import MAX_BYTES, read

EXAMPLE = (Path(__file__).parents[2] / "devbay.yaml.example").read_bytes()
HEAD = "version: 1\nproject: shop\n"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(20)
)

UNREADABLE = [
    ("alias bomb", BOMB, 5, "limit"),
    ("10 MB", "a" * 10_000_000, 1, "limit"),
    ("one byte too many", "#" * (MAX_BYTES + 1), 1, "limit"),
    ("10,001 values", "a: [" + "x," * 10_000 + "]", 1, "limit"),
    ("51 levels", "[" * 51 + "]" * 51, 1, "limit"),
    ("half a million levels", "[" * 500_000, 1, "limit"),
    ("51 by alias", "a: &a " + "[" * 30 + "]" * 30 + "\nb: " + "[" * 25 + "*a" + "]" * 25, 2, "limit"),
    ("tab as indentation", "version: 1\nproject:\n\tname\n", 3, "tab"),
    ("tab after spaces", "services:\n  a:\n  \timage: x\n", 3, "tab"),
    ("a closing bracket", "version: 1\n]\n", 2, "yaml"),
    ("an open quote", 'version: 1\nproject: "shop\n', 3, "yaml"),
    ("a colon in a plain text", "version: 1\nproject: a: b\n", 2, "yaml"),
    ("json with comments", '{\n  // x\n  "version": 1\n}', 3, "yaml"),
    ("a directive of the future", "%YAML 99999999999.1\n---\na: b\n", 1, "yaml"),
    ("a code point that is none", 'a: "\\UFFFFFFFF"\n', 1, "yaml"),
    ("not UTF-8", b"version: 1\nproject: \xff\n", 2, "utf-8"),
    ("UTF-16", "version: 1".encode("utf-16"), 1, "utf-8"),
    ("NUL", b"version: 1\nproject: a\x00b\n", 2, "utf-8"),
    ("NUL as an escape", 'version: 1\nproject: "a\\0b"\n', 2, "utf-8"),
    ("half a surrogate pair", 'version: 1\nproject: "\\ud800"\n', 2, "utf-8"),
    ("a bell", "version: 1\nproject: \x07\n", 2, "utf-8"),
    ("several documents", "version: 1\n---\nversion: 1\n", 2, "documents"),
    ("empty", "", 1, "empty"),
    ("only a comment", "# nothing\n", 1, "empty"),
    ("null", "~\n", 1, "empty"),
    ("undefined alias", "version: 1\nproject: *x\n", 2, "alias"),
    ("alias of itself", "version: 1\nservices: &a [*a]\n", 2, "alias"),
    ("a tag of a program", "version: !!python/object/apply:os.system [x]\n", 1, "tag"),
    ("a tag of one's own", "version: !x 1\n", 1, "tag"),
    ("a tag that does not fit", "version: !!int x\n", 1, "tag"),
    ("a mapping as key", "? {a: b}\n: c\n", 1, "key"),
    ("an empty key", "version: 1\n: c\n", 2, "key"),
    ("merge of a text", "version: 1\n<<: x\n", 2, "merge"),
    ("a number of a million digits", "version: " + "9" * 1_000_000, 1, "number"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "rule"), [case[1:] for case in UNREADABLE], ids=[c[0] for c in UNREADABLE]
)
def test_unreadable_text_is_one_diagnostic_with_a_place(text: str | bytes, line: int, rule: str) -> None:
    started = time.monotonic()
    loaded = parse(text, source="x.yaml")
    assert time.monotonic() - started < 60
    assert not loaded.parses
    assert not loaded.valid
    assert loaded.manifest is None
    (found,) = loaded.diagnostics
    assert (found.severity, found.line, found.rule, found.file) == ("error", line, rule, "x.yaml")
    assert found.fix
    assert len(str(found)) < 2500


def test_a_duplicate_key_is_named_with_its_first_line() -> None:
    loaded = parse(f"{HEAD}project: other\n")
    (found,) = loaded.errors
    assert (found.line, found.path, found.rule) == (3, "project", "duplicate-key")
    assert "line 2" in found.message
    assert not loaded.valid


def test_every_duplicate_key_is_found_at_once() -> None:
    loaded = parse(f"{HEAD}project: a\ngit: ro\ngit: rw\nservices: {{a: 1, a: 2}}\n")
    assert [each.path for each in loaded.errors if each.rule == "duplicate-key"] == [
        "project",
        "git",
        "services/a",
    ]


@pytest.mark.parametrize(
    "word", ["on", "off", "yes", "no", "y", "n", "On", "NO", "1_000", "2024-01-01", "1:30"]
)
def test_words_that_yaml_1_1_would_change_stay_text(word: str) -> None:
    assert read(f"a: {word}").data == {"a": word}


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("007", 7),
        ("0x1F", 31),
        ("0o17", 15),
        ("-1", -1),
        ("1e3", 1e3),
    ],
)
def test_words_of_the_core_schema_have_their_type(word: str, value: object) -> None:
    found = read(f"a: {word}").data["a"]
    assert found == value
    assert isinstance(found, type(value))


@pytest.mark.parametrize(
    ("text", "value"),
    [("!!str 5", "5"), ("!!float 1", 1), ("!!null ''", None), ("! 5", "5"), ("!!seq [a]", ["a"])],
)
def test_tags_of_the_core_schema_are_understood(text: str, value: object) -> None:
    assert read(f"a: {text}").data["a"] == value


@pytest.mark.parametrize("spelling", ["1.10", "007", "0x1F", "1e3", "+5", "1.0", ".inf"])
def test_env_values_keep_the_spelling_of_numbers(spelling: str) -> None:
    manifest = parse(
        f"{HEAD}tasks: {{t: {{image: 'a:1', run: [x], needs: [], env: {{A: {spelling}}}}}}}"
    ).require()
    assert manifest.tasks["t"].env["A"] == spelling


def test_an_explicit_key_wins_over_a_merged_one_and_the_first_source_over_the_next() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  <<: [*a, *b]\n  x: 3\n"
    assert read(text).data["c"] == {"x": 3, "y": 1, "z": 2}


def test_a_finding_in_merged_text_points_to_where_it_is_written() -> None:
    text = f"{HEAD}services:\n  a: &a\n    build: a\n    bogus: 1\n    health: {{log: x}}\n  b:\n    <<: *a\n"
    assert {(each.line, each.path) for each in parse(text).errors} == {
        (6, "services/a/bogus"), (6, "services/b/bogus"),
    }  # fmt: skip


def test_a_byte_order_mark_does_not_shift_columns() -> None:
    (found,) = parse(f"\ufeffbogus: 1\n{HEAD}").errors
    assert (found.line, found.column) == (1, 1)


def test_what_is_said_of_a_hostile_file_stays_small() -> None:
    text = "".join(f"{'k' * 5000}{number}: 1\n" for number in range(190))
    loaded = parse(text)
    assert len(loaded.diagnostics) <= 101
    assert sum(len(str(each)) for each in loaded.diagnostics) < 100_000


TOKENS = [
    b"&a", b"*a", b"<<: ", b"!!int ", b"!x ", b"%YAML 1.1\n---\n", b"\t", b'"\\x00"', b'"\\ud800"', b"? ",
    b": ", b"- ", b"{", b"}", b"[", b"]", b"|", b">9", b"'", b'"', b"\xff", b"\x00", b"\n---\n", b"...\n",
    b"#", b"1" * 200, b"1e999", b".nan", b"!<", b"\xc2\x85", b"\xe2\x80\xa8", b"@", b"`", b"${", b"\r", b"~",
    b"null", b"true", b"!!set ", b"|+3",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_whatever_comes_in_parse_answers(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        text = bytearray(EXAMPLE[: chance.randrange(len(EXAMPLE))] if chance.random() < 0.7 else b"")
        for _ in range(chance.randint(1, 6)):
            place = chance.randint(0, len(text))
            if chance.random() < 0.7:
                text[place:place] = chance.choice(TOKENS)
            else:
                text[place:place] = chance.randbytes(4)
        loaded = parse(bytes(text))
        assert loaded.valid == (loaded.manifest is not None and not loaded.errors)
        for each in loaded.diagnostics:
            assert each.fix
            assert each.rule
            assert each.line >= 1
