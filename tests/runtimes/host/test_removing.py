from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from devbay.runtimes.host.removing import open_tree, remove_tree

PERSON = 61300
AsPerson = Callable[[Callable[[], None]], None]


@pytest.fixture
def as_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsPerson:
    """Run something in `tmp_path` as somebody whom modes stop; root is let through everywhere."""
    monkeypatch.chdir(tmp_path)  # the folders above are closed to others

    def run(work: Callable[[], None]) -> None:
        if os.geteuid():
            work()
            return
        for path in (tmp_path, *tmp_path.rglob("*")):
            os.chown(path, PERSON, PERSON, follow_symlinks=False)
        if (child := os.fork()) == 0:
            code = 1
            try:
                os.setgroups([])
                os.setgid(PERSON)
                os.setuid(PERSON)
                work()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0

    return run


def test_closed_folders_go_and_what_their_links_lead_to_keeps_its_mode(
    tmp_path: Path, as_person: AsPerson
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    outside.chmod(0o640)
    inner = tmp_path / "bay" / "closed" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    (inner / "link").symlink_to(outside)
    (tmp_path / "bay" / "closed" / "folder").symlink_to(tmp_path)

    def work() -> None:
        Path("bay/closed/inner").chmod(0o500)
        Path("bay/closed").chmod(0)
        remove_tree(Path("bay"))

    as_person(work)
    assert not (tmp_path / "bay").exists()
    assert outside.read_text() == "mine" and outside.stat().st_mode & 0o777 == 0o640


def test_a_folder_deeper_than_the_stack_and_any_path_goes(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("deeper-and-deeper", dir_fd=here)
        below = os.open("deeper-and-deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove_tree(tmp_path / "deeper-and-deeper")
    assert not list(tmp_path.iterdir())


def test_a_link_is_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    remove_tree(tmp_path / "link")
    remove_tree(tmp_path / "never there")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_what_an_install_closed_can_be_read_afterwards(as_person: AsPerson) -> None:
    Path("made/a/b").mkdir(parents=True)
    Path("made/a/b/file").write_text("text")

    def work() -> None:
        Path("made/a/b/file").chmod(0)
        Path("made/a/b").chmod(0)
        Path("made/a").chmod(0o100)
        open_tree(Path("made"))
        assert Path("made/a/b/file").read_text() == "text"

    as_person(work)
