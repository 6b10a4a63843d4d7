from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job
from devbay.runtimes.host.templates import JUST_USED_S, Templates


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def templates(tmp_path: Path, clock: Clock) -> Templates:
    return Templates(tmp_path / "templates", clock)


def writing(text: str, size: int = 0) -> object:
    def make(draft: Path) -> None:
        (draft / "file").write_text(text)
        (draft / "fill").write_bytes(os.urandom(size))

    return make


def test_a_template_is_made_once_and_found_again(templates: Templates, tmp_path: Path) -> None:
    made: list[Path] = []

    def make(draft: Path) -> None:
        assert not any(draft.iterdir())
        assert draft.stat().st_mode & 0o777 == 0o700
        made.append(draft)
        (draft / "file").write_text("x")

    first = templates.ensure("install", "k1", make, Job())
    assert templates.ensure("install", "k1", make, Job()) == first
    assert Templates(tmp_path / "templates").ensure("install", "k1", make, Job()) == first
    assert templates.ensure("install", "k2", make, Job()) != first
    assert len(made) == 2
    assert (first / "file").read_text() == "x"


def test_many_who_want_one_template_at_once_wait_for_one_maker(templates: Templates) -> None:
    made, got, gate = [], [], threading.Event()

    def make(draft: Path) -> None:
        made.append(draft)
        gate.wait(10)

    threads = [
        threading.Thread(target=lambda: got.append(templates.ensure("k", "x", make, Job()))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(set(got)) == 1 and len(got) == 4


def test_a_maker_that_fails_or_is_cancelled_leaves_nothing(templates: Templates, tmp_path: Path) -> None:
    def fails(draft: Path) -> None:
        (draft / "half").touch()
        raise DevbayError("install_failed", "no")

    with pytest.raises(DevbayError, match="no"):
        templates.ensure("k", "x", fails, Job())
    job = Job()
    with pytest.raises(Cancelled):
        templates.ensure("k", "x", lambda draft: job.cancel(), job)
    assert not [path for path in (tmp_path / "templates").rglob("*") if path.parent.name in ("drafts", "k")]


KILLED = """
import os, signal, sys
from pathlib import Path
from devbay.jobs import Job
from devbay.runtimes.host.templates import Templates
def make(draft):
    (draft / "half").touch()
    os.kill(os.getpid(), signal.SIGKILL)
Templates(Path(sys.argv[1])).ensure("k", "x", make, Job())
"""


def test_a_maker_killed_half_way_is_no_template_and_its_draft_is_swept(
    templates: Templates, tmp_path: Path
) -> None:
    root = tmp_path / "templates"
    done = subprocess.run([sys.executable, "-c", KILLED, str(root)], check=False)
    assert done.returncode == -9
    assert len(list(root.glob("drafts/*"))) == 1
    folder = templates.ensure("k", "x", writing("whole"), Job())
    assert (folder / "file").read_text() == "whole"
    assert templates.sweep(1 << 40) == []
    assert not list(root.glob("drafts/*"))
    assert [lock.name for lock in root.glob("locks/*")] == ["k-x.lock"]


def test_a_draft_in_the_making_is_not_swept(templates: Templates) -> None:
    def make(draft: Path) -> None:
        templates.sweep(0)
        templates.clear()
        (draft / "file").write_text("kept")

    assert (templates.ensure("k", "x", make, Job()) / "file").read_text() == "kept"


def test_a_copy_replaces_what_is_there_and_shares_nothing(templates: Templates, tmp_path: Path) -> None:
    folder = templates.ensure("k", "x", writing("new"), Job())
    to = tmp_path / "bay" / "own" / "env"
    templates.copy(folder, to)
    (to / "file").write_text("changed")
    (to / "more").touch()
    templates.copy(folder, to)
    assert sorted(path.name for path in to.iterdir()) == ["file", "fill"]
    assert (to / "file").read_text() == (folder / "file").read_text() == "new"
    assert [path.name for path in to.parent.iterdir()] == ["env"]


def test_a_copy_that_fails_leaves_what_was_there(templates: Templates, tmp_path: Path) -> None:
    folder = templates.ensure("k", "x", writing("new"), Job())
    to = tmp_path / "env"
    to.mkdir()
    (to / "old").touch()
    (tmp_path / ".env.new").mkdir()  # what a killed copy left
    job = Job()
    job.cancel()
    with pytest.raises(Cancelled):
        templates.copy(folder, to, job=job)
    assert [path.name for path in to.iterdir()] == ["old"]
    assert not (tmp_path / ".env.new").exists()


def test_a_copy_is_adjusted_before_it_is_seen(templates: Templates, tmp_path: Path) -> None:
    folder = templates.ensure("k", "x", writing("new"), Job())

    def adjust(draft: Path) -> None:
        assert not (tmp_path / "env").exists()
        (draft / "file").write_text("adjusted")

    templates.copy(folder, tmp_path / "env", adjust=adjust)
    assert (tmp_path / "env" / "file").read_text() == "adjusted"


def test_the_least_recently_used_go_first_and_only_until_the_rest_fits(
    templates: Templates, clock: Clock
) -> None:
    for key in ("a", "b", "c"):
        clock.now += 1
        templates.ensure("k", key, writing(key, 1 << 20), Job())
    clock.now += 1
    templates.ensure("k", "a", writing("never"), Job())  # used again
    clock.now += JUST_USED_S + 1
    assert templates.sweep(10 << 20) == []
    assert templates.sweep(int(2.5 * (1 << 20))) == ["template k/b"]
    assert templates.sweep(0) == ["template k/c", "template k/a"]


def test_what_was_just_given_out_stays_unless_all_shall_go(
    templates: Templates, clock: Clock, tmp_path: Path
) -> None:
    templates.ensure("k", "x", writing("x"), Job())
    clock.now += JUST_USED_S - 1
    assert templates.sweep(0) == []
    assert templates.clear() == ["template k/x"]
    assert not (tmp_path / "templates").exists()


def test_what_is_being_copied_is_not_removed(
    templates: Templates, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = templates.ensure("k", "x", writing("x"), Job())
    clock.now += JUST_USED_S + 1

    def copying(source: Path, to: Path, **_: object) -> None:
        assert templates.sweep(0) == templates.clear() == []
        shutil.copytree(source, to)

    monkeypatch.setattr("devbay.runtimes.host.templates.copy_tree", copying)
    templates.copy(folder, tmp_path / "env")
    assert (tmp_path / "env" / "file").read_text() == "x"
    assert templates.clear() == ["template k/x"]


def test_a_template_removed_by_another_is_told_and_made_anew(templates: Templates, tmp_path: Path) -> None:
    folder = templates.ensure("k", "x", writing("first"), Job())
    templates.clear()
    with pytest.raises(DevbayError) as caught:
        templates.copy(folder, tmp_path / "env")
    assert caught.value.code == "template_gone"
    assert (templates.ensure("k", "x", writing("second"), Job()) / "file").read_text() == "second"


def test_folders_closed_to_their_owner_go_too(templates: Templates, clock: Clock) -> None:
    def make(draft: Path) -> None:
        (draft / "mod").mkdir()
        (draft / "mod" / "file").touch()
        (draft / "mod").chmod(0o500)

    templates.ensure("k", "x", make, Job())
    assert templates.clear() == ["template k/x"]


@pytest.mark.parametrize(
    ("kind", "key"), [("..", "x"), ("k", "../x"), ("k", ""), ("locks", "x"), ("a/b", "x")]
)
def test_a_key_that_is_no_plain_word_is_refused(templates: Templates, kind: str, key: str) -> None:
    with pytest.raises(ValueError, match="no template"):
        templates.ensure(kind, key, lambda draft: None, Job())
