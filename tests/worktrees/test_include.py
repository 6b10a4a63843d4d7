from __future__ import annotations

import os
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.worktrees import copy_includes, read_includes
from devbay.worktrees.include import key_values
from tests.worktrees.repos import commit, git


def write(root: Path, name: str, text: str = "x\n") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_only_files_both_ignored_and_listed_are_copied(main: Path, bay) -> None:
    write(main, ".worktreeinclude", "# secrets\n.env\nbuild/\na.txt\nloose.txt\n*.log\n!debug.log\n")
    write(main, ".env")
    write(main, "sub/.env")
    write(main, "build/cache/x.bin")
    write(main, "loose.txt")
    write(main, "debug.log")
    write(main, "keep.log")
    made = bay(main)
    copied = copy_includes(main, made.path)
    assert sorted(copied) == [".env", "build/cache/x.bin", "keep.log", "sub/.env"]
    assert (made.path / "build" / "cache" / "x.bin").read_text() == "x\n"
    assert not (made.path / "loose.txt").exists()


def test_modes_are_kept_and_links_and_pipes_are_left_out(main: Path, bay, tmp_path: Path) -> None:
    write(main, ".worktreeinclude", "build/\n")
    write(main, "build/run.sh").chmod(0o750)
    (main / "build" / "link").symlink_to(tmp_path)
    os.mkfifo(main / "build" / "pipe")
    made = bay(main)
    assert sorted(copy_includes(main, made.path)) == ["build/run.sh"]
    assert (made.path / "build" / "run.sh").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize(
    "pattern", ["../x", "a/../../b", "/etc/passwd", "~/.ssh/id_rsa", "//x", "!../y", ".."]
)
def test_pattern_that_leaves_the_repository_is_refused_before_anything_is_copied(
    main: Path, bay, pattern: str
) -> None:
    write(main, ".worktreeinclude", f".env\n{pattern}\n")
    write(main, ".env")
    made = bay(main)
    with pytest.raises(DevbayError) as caught:
        copy_includes(main, made.path)
    assert caught.value.code == "bad_include"
    assert ".worktreeinclude:2" in caught.value.message
    assert not (made.path / ".env").exists()


def test_leading_slash_anchors_to_the_repository(main: Path, bay) -> None:
    write(main, ".worktreeinclude", "/.env\n/build/x\n")
    for name in (".env", "sub/.env", "build/x"):
        write(main, name)
    assert sorted(copy_includes(main, bay(main).path)) == [".env", "build/x"]


def test_nothing_there_is_overwritten_and_a_repeat_yields_the_same(main: Path, bay) -> None:
    write(main, ".worktreeinclude", ".env\nbuild/\n")
    write(main, ".env", "new")
    write(main, "build/x")
    made = bay(main)
    write(made.path, ".env", "mine")
    first = copy_includes(main, made.path)
    assert sorted(first) == ["build/x"]
    assert (made.path / ".env").read_text() == "mine"
    assert copy_includes(main, made.path) == first


def test_link_in_the_bay_leads_nowhere(main: Path, bay, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (main / "build").symlink_to(tmp_path / "outside")
    git(main, "add", "-f", "build")
    git(main, "commit", "-qm", "link")
    made = bay(main)
    (main / "build").unlink()
    write(main, ".worktreeinclude", "build/\n")
    write(main, "build/x")
    assert copy_includes(main, made.path) == {}
    assert list((tmp_path / "outside").iterdir()) == []


def test_half_copied_file_of_a_killed_call_is_replaced(main: Path, bay) -> None:
    write(main, ".worktreeinclude", ".env\n")
    write(main, ".env", "whole")
    made = bay(main)
    write(made.path, "..env.devbay-part", "wh")
    copy_includes(main, made.path)
    assert (made.path / ".env").read_text() == "whole"
    assert not (made.path / "..env.devbay-part").exists()


def test_include_file_that_is_a_link_or_no_text_is_refused(main: Path, bay, tmp_path: Path) -> None:
    write(tmp_path, "list", ".env\n")
    (main / ".worktreeinclude").symlink_to(tmp_path / "list")
    made = bay(main)
    with pytest.raises(DevbayError, match="no UTF-8 text file"):
        copy_includes(main, made.path)
    (main / ".worktreeinclude").unlink()
    assert copy_includes(main, made.path) == {}


def test_values_of_dotenv_files_are_read(tmp_path: Path) -> None:
    text = (
        '# comment\nexport API_KEY=abc123 # note\nQUOTED="a \\"b\\" c"\nSINGLE=\'x # y\'\nEMPTY=\n'
        'PEM="line1\nline2"\nspring.password: hunter2\nnot an assignment\nLAST=1=2\n'
    )
    assert key_values(text) == [
        ("API_KEY", "abc123"),
        ("QUOTED", 'a "b" c'),
        ("SINGLE", "x # y"),
        ("PEM", "line1\nline2"),
        ("spring.password", "hunter2"),
        ("LAST", "1=2"),
    ]


def test_values_are_never_read_through_a_link(tmp_path: Path) -> None:
    write(tmp_path, "real", "A=1\n")
    (tmp_path / "bay").mkdir()
    (tmp_path / "bay" / ".env").symlink_to(tmp_path / "real")
    write(tmp_path / "bay", "ok", "B=2\n")
    (tmp_path / "bay" / "binary").write_bytes(b"\xff\xfe")
    assert read_includes(tmp_path / "bay", [".env", "ok", "binary", "missing"]) == [("B", "2")]


def test_main_checkout_itself_gets_nothing(main: Path) -> None:
    commit(main, b_txt="b")
    write(main, ".worktreeinclude", ".env\n")
    write(main, ".env", "secret")
    copy_includes(main, main)
    assert (main / ".env").read_text() == "secret"
