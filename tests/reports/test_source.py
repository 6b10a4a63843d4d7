import os
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.reports.source import MAX_LINE, Source, joined


def read(source: Source) -> bytes:
    return b"".join(source.chunks())


def test_only_regular_files_are_opened_and_opening_never_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path / "fifo", tmp_path, tmp_path / "loop", Path("/dev/zero"), Path("a\0b")):
        with pytest.raises(DevbayError) as error:
            read(Source("r", path=path))
        assert error.value.code == "bad_report"


def test_a_missing_file_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(DevbayError) as error:
        read(Source("r", path=tmp_path / "gone"))
    assert error.value.code == "report_missing"


def test_below_a_worktree_no_link_is_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "out").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(b"s")
    (root / "out" / "r.xml").write_bytes(b"r")
    (root / "link.xml").symlink_to(tmp_path / "secret")
    (root / "linked").symlink_to(tmp_path)
    assert read(Source("r", path=root / "out" / "r.xml", beneath=root)) == b"r"
    for path in (root / "link.xml", root / "linked" / "secret", root / ".." / "secret", tmp_path / "secret"):
        with pytest.raises(DevbayError) as error:
            read(Source("r", path=path, beneath=root))
        assert error.value.code == "bad_report"


def test_several_sources_are_read_as_one_with_a_line_break_between() -> None:
    both = joined([Source("stdout", data=b"a"), Source("stderr", data=b"b\n")])
    assert (both.label, list(both.lines())) == ("output", ["a", "b"])
    assert joined([Source("stdout", data=b"a")]).label == "stdout"


def test_lines_come_in_bounded_pieces_and_broken_bytes_are_replaced() -> None:
    text = b"x" * (3 * MAX_LINE) + b"\r\n\xff\xc3\n"
    lines = list(Source("r", data=text).lines())
    assert max(len(line) for line in lines) <= MAX_LINE
    assert "".join(lines[:-1]) == "x" * (3 * MAX_LINE)
    assert lines[-1] == "\ufffd\ufffd"
