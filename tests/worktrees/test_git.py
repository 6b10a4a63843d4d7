"""What a container writes must not make the host run anything; each attack is shown to work on plain git."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job
from devbay.worktrees import (
    own_work,
    remove_worktree,
    to_trash,
    unheld_commits,
    untracked_files,
    worktree_state,
)
from devbay.worktrees.git import Git, common_dir_of, run_git
from tests.worktrees.repos import Made, commit, git


@pytest.fixture
def bait(tmp_path: Path) -> Path:
    """A script that leaves `ran` behind; `cat` keeps it usable as a filter."""
    script = tmp_path / "bait"
    script.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\nexec cat\n")
    script.chmod(0o755)
    return script


def ran(bait: Path) -> bool:
    """Whether the bait was taken since the last question."""
    mark = bait.with_name("ran")
    found = mark.exists()
    mark.unlink(missing_ok=True)
    return found


def plain(cwd: Path) -> None:
    subprocess.run(["git", "status"], cwd=cwd, capture_output=True, stdin=subprocess.DEVNULL, timeout=30)


def look_everywhere(made: Made, trash: Path) -> None:
    """All that devbay asks of a bay."""
    worktree_state(made.path, made.git_dir, made.submodules)
    untracked_files(made.path, made.git_dir)
    work = own_work(made.path, made.git_dir, made.submodules)
    unheld_commits(made.path, made.git_dir)
    to_trash(trash, "bay", made.path, [*work.changed, *work.untracked], git_dir=made.git_dir)


def fake_git_dir(place: Path, *config: str) -> None:
    git(place.parent, "init", "-q", place.name)
    commit(place, fake_txt="fake")
    for pair in config:
        git(place, "config", *pair.split("=", 1))


def test_git_file_rewritten_to_a_directory_with_fsmonitor(
    main: Path, bay, bait: Path, tmp_path: Path
) -> None:
    made = bay(main)
    fake = made.path / "fake"
    fake_git_dir(fake, f"core.fsmonitor={bait}")
    (made.path / ".git").write_text(f"gitdir: {fake}/.git\n")
    plain(made.path)
    assert ran(bait)
    look_everywhere(made, tmp_path / "trash")
    assert worktree_state(made.path, made.git_dir, {}).branch == "one"
    assert not ran(bait)
    assert remove_worktree(made.repository, made.path)
    assert not ran(bait)


def test_submodules_git_file_rewritten_with_a_filter(
    super_main: Path, bay, bait: Path, tmp_path: Path
) -> None:
    made = bay(super_main)
    sub = made.path / "libs" / "sub"
    fake = made.path / "fake"
    fake_git_dir(fake, f"filter.x.clean={bait}", f"core.fsmonitor={bait}")
    git(fake, "rm", "-q", "--cached", "fake.txt")
    (fake / "s.txt").write_text("s\n")
    git(fake, "add", "s.txt")
    (sub / ".git").write_text(f"gitdir: {fake}/.git\n")
    (sub / ".gitattributes").write_text("* filter=x\n")
    (sub / "s.txt").write_text("changed\n")
    plain(made.path)
    assert ran(bait)
    look_everywhere(made, tmp_path / "trash")
    assert "libs/sub/s.txt" in own_work(made.path, made.git_dir, made.submodules).changed
    assert not ran(bait)


def test_commondir_rewritten(main: Path, bay, bait: Path, tmp_path: Path) -> None:
    made = bay(main)
    fake_git_dir(tmp_path / "fake", f"core.fsmonitor={bait}")
    git(tmp_path / "fake", "branch", "one")
    (made.git_dir / "commondir").write_text(f"{tmp_path}/fake/.git\n")
    plain(made.path)
    assert ran(bait)
    with pytest.raises(DevbayError) as caught:
        look_everywhere(made, tmp_path / "trash")
    assert caught.value.code == "tampered"
    assert not ran(bait)
    assert remove_worktree(made.repository, made.path)
    assert not ran(bait)


@pytest.mark.parametrize(
    "setting",
    ["filter.x.clean=%s", "filter.x.process=%s", "core.fsmonitor=%s", "filter.a=b.clean=%s"],
)
def test_config_of_the_worktree_written_by_a_container(
    main: Path, bay, bait: Path, tmp_path: Path, setting: str
) -> None:
    made = bay(main)
    git(main, "config", "extensions.worktreeConfig", "true")
    key, value = (setting % bait).rsplit("=", 1)
    git(made.path, "config", "--worktree", key, value)
    name = key.split(".", 1)[1].rsplit(".", 1)[0]
    (made.path / ".gitattributes").write_text(f"* filter={name}\n")
    (made.path / "a.txt").write_text("b\n")  # as long as what is committed, so that git reads it
    if "a=b" not in setting:  # no attribute can name it, so it is harmless to plain git too
        plain(made.path)
        assert ran(bait)
    look_everywhere(made, tmp_path / "trash")
    assert "a.txt" in own_work(made.path, made.git_dir, {}).changed
    assert not ran(bait)


def test_include_in_the_config_of_the_worktree(main: Path, bay, bait: Path, tmp_path: Path) -> None:
    made = bay(main)
    git(main, "config", "extensions.worktreeConfig", "true")
    (made.path / "more.config").write_text(f'[filter "x"]\n clean = {bait}\n')
    git(made.path, "config", "--worktree", "include.path", str(made.path / "more.config"))
    (made.path / ".gitattributes").write_text("* filter=x\n")
    (made.path / "a.txt").write_text("b\n")
    look_everywhere(made, tmp_path / "trash")
    assert not ran(bait)


def test_core_worktree_rewritten_does_not_move_the_eye(main: Path, bay, tmp_path: Path) -> None:
    made = bay(main)
    git(main, "config", "extensions.worktreeConfig", "true")
    git(made.path, "config", "--worktree", "core.worktree", str(tmp_path))
    (made.path / "mine.txt").write_text("mine")
    assert own_work(made.path, made.git_dir, {}).untracked == ("mine.txt",)


def test_missing_object_does_not_start_a_transport(main: Path, bay, bait: Path, tmp_path: Path) -> None:
    made = bay(main)
    tree = git(main, "rev-parse", "HEAD^{tree}")
    git(main, "config", "core.repositoryformatversion", "1")
    git(main, "config", "extensions.partialClone", "origin")
    git(main, "config", "remote.origin.url", str(main))
    bait.write_text(bait.read_text().replace("exec cat", "exit 1"))
    git(main, "config", "remote.origin.uploadpack", str(bait))
    git(main, "config", "remote.origin.promisor", "true")
    (main / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    plain(made.path)
    assert ran(bait)
    with pytest.raises(DevbayError):
        worktree_state(made.path, made.git_dir, {})
    assert not ran(bait)


def test_external_diff_and_pager_stay_out(main: Path, bay, bait: Path, tmp_path: Path) -> None:
    made = bay(main)
    for key in (
        "diff.external",
        "diff.x.command",
        "diff.x.textconv",
        "core.pager",
        "gpg.program",
        "pager.status",
    ):
        git(main, "config", key, str(bait))
    git(main, "config", "log.showSignature", "true")
    (made.path / ".gitattributes").write_text("* diff=x\n")
    (made.path / "a.txt").write_text("changed")
    git(made.path, "checkout", "-q", "--detach")
    git(made.path, "commit", "-q", "--allow-empty", "-m", "detached")
    ran(bait)
    look_everywhere(made, tmp_path / "trash")
    assert not ran(bait)


def test_index_that_lies_through_its_file_system_monitor_is_not_believed(
    main: Path, bay, tmp_path: Path
) -> None:
    made = bay(main)
    monitor = tmp_path / "monitor"
    monitor.write_text("#!/bin/sh\nprintf 'token\\0'\n")  # "nothing has changed"
    monitor.chmod(0o755)
    git(main, "config", "core.fsmonitor", str(monitor))
    git(made.path, "update-index", "--fsmonitor")
    git(made.path, "status")
    (made.path / "a.txt").write_text("changed")
    assert git(made.path, "status", "--porcelain") == ""
    assert own_work(made.path, made.git_dir, {}).changed == ("a.txt",)


def test_named_pipe_in_place_of_an_attribute_file_does_not_hang(
    main: Path, bay, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bay(main)
    os.mkfifo(made.path / ".gitattributes")
    monkeypatch.setattr("devbay.worktrees.state.STATUS_LIMIT_S", 1.0)
    with pytest.raises(DevbayError) as caught:
        worktree_state(made.path, made.git_dir, {})
    assert caught.value.code == "git_timeout"


def test_variables_of_the_caller_do_not_reach_git(main: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "x.y")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "z")
    monkeypatch.setenv("GIT_OPTIONAL_LOCKS", "1")
    listed = run_git(["config", "--list"], cwd=main)
    assert b"x.y" not in listed.out
    shown = run_git(["-c", "alias.env=!env", "env"], cwd=main).out.decode()
    assert "GIT_OPTIONAL_LOCKS=0" in shown
    assert "GIT_TERMINAL_PROMPT=0" in shown


def test_time_limit_and_cancellation_end_the_whole_process_group(main: Path) -> None:
    sleeper = ["-c", "alias.nap=!sleep 54321 & wait", "nap"]
    started = time.monotonic()
    with pytest.raises(DevbayError) as caught:
        run_git(sleeper, cwd=main, timeout_s=0.3)
    assert caught.value.code == "git_timeout"
    job = Job()
    threading.Timer(0.3, job.cancel).start()
    with pytest.raises(Cancelled):
        run_git(sleeper, cwd=main, job=job)
    assert time.monotonic() - started < 10
    time.sleep(0.1)
    assert "sleep 54321" not in subprocess.run(["ps", "-ef"], capture_output=True, text=True).stdout


def test_missing_git_is_named(main: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    original = builtins.__import__

    def without(name: str, *args: object) -> object:
        if name == "git.cmd":
            raise ImportError("Bad git executable")
        return original(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DevbayError) as caught:
        run_git(["version"], cwd=main)
    assert caught.value.code == "git_missing"


def test_failure_says_what_git_said(main: Path) -> None:
    with pytest.raises(DevbayError, match="git rev-parse ended with 128: Needed a single revision"):
        Git(main / ".git").out("rev-parse", "--verify", "nothing")


def test_common_directory_follows_from_the_place_alone() -> None:
    assert common_dir_of(Path("/r/.git/worktrees/x")) == Path("/r/.git")
    assert common_dir_of(Path("/r/.git/modules/m/worktrees/x")) == Path("/r/.git/modules/m")
    assert common_dir_of(Path("/r/.git")) == Path("/r/.git")
