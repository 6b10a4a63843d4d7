"""What a terminal is shown of other people's text moves, hides and turns round nothing."""

from __future__ import annotations

import pytest

from devbay.security.display import excerpt, plain


@pytest.mark.parametrize(
    "character",
    "\x1b\r\x08\x00\x7f\x9b\u202e\u2066\u200b\ufeff\u2028\u00a0\u3164\U000e0041\u2003\u00ad\ud800",
)
def test_what_could_fool_a_reader_is_spelt_out(character: str) -> None:
    assert plain(f"a{character}b") == f"a\\u{{{ord(character):x}}}b"


def test_ordinary_text_stays() -> None:
    text = "grüße 你好 🎉 é\n  indented"
    assert plain(text) == text
    assert plain("a\tb") == "a    b"
    assert plain(plain("\x1b")) == plain("\x1b")


def test_what_an_excerpt_leaves_out_is_counted() -> None:
    assert excerpt("1\n2\n3\n", lines=2, width=9) == ["1", "2", "... and 1 more line"]
    assert excerpt("1\n2\n", lines=2, width=9) == ["1", "2"]
    assert excerpt("a" * 12, lines=1, width=10) == [f"{'a' * 10} ... and 2 more characters"]
