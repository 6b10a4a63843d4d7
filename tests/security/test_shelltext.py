"""Every command of a shell's text is seen, also where the text is broken."""

from __future__ import annotations

import time

import pytest

from devbay.security.shelltext import commands


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a b; c && d|e & f", [("a", "b"), ("c",), ("d",), ("e",), ("f",)]),
        ("X=1 Y+=2 a 'b c' \"d e\"", [("a", "b c", "d e")]),
        ("if a; then b; else c; fi", [("a",), ("b",), ("c",), ("fi",)]),
        ("while ! a; do { b; } done", [("a",), ("b",), ("done",)]),
        ('echo "$(a "$(b c)")"', [("b", "c"), ("a", "$_"), ("echo", "$_")]),
        ("a `b c`", [("b", "c"), ("a", "$_")]),
        ("a # b\n  # c\nd#e", [("a",), ("d#e",)]),
        ("a \\\n b", [("a", "b")]),
        ("a > f 2>&1 < g", [("a", "f", "2"), ("1", "g")]),
        ("a 'open; b c", [("a", "open"), ("b", "c")]),
        ("(a; b)", [("a",), ("b",)]),
        ("exec time a", [("a",)]),
    ],
)
def test_the_commands_of_a_text(text: str, found: list[tuple[str, ...]]) -> None:
    assert commands(text) == found


@pytest.mark.parametrize(
    "text", ["$(" * 50_000, "'" * 100_001, '"' * 100_001, "\\" * 100_000, "a=" * 60_000, "`" * 99_999]
)
def test_a_hostile_text_is_read_quickly(text: str) -> None:
    began = time.process_time()
    commands(text)
    assert time.process_time() - began < 60
