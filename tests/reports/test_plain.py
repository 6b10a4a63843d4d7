from devbay.reports.plain import plain, readable, shorten, tail


def test_escape_sequences_and_control_characters_go() -> None:
    assert (
        plain("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 a\x00\x08b\r\nc") == "red link ab\nc"
    )


def test_only_the_last_state_of_an_overwritten_line_and_no_progress_bar_is_left() -> None:
    text = "10%\r50%\rdone\n[==========>          ] 45%\n  ████████ 3/4\nnext\n\n\n\nlast\n"
    assert readable(text) == "done\nnext\n\nlast"


def test_cut_texts_say_so_and_keep_their_limit() -> None:
    assert shorten("abc", 3) == "abc"
    assert shorten("a" * 50, 10) == "a" * 8 + " …"
    cut = tail("first\n" + "x" * 90 + "\nlast", 60)
    assert len(cut) <= 60
    assert cut.startswith("… ")
    assert cut.endswith("last")
