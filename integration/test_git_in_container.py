"""git inside a container of a bay: what `git: none`, `ro` and `rw` allow, and nothing more."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from devbay.runtimes.base import GitAccess
from devbay.worktrees import (
    Repository,
    adopt_worktree,
    create_worktree,
    git_env,
    git_mounts,
    worktree_path,
    worktree_state,
)

IMAGE = "python:3.13-slim"
PERSON = ("-c", "user.name=A Person", "-c", "user.email=person@example.invalid")


def git(cwd: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", *PERSON, "-c", "protocol.file.allow=always", *args], cwd=cwd, capture_output=True, text=True
    )
    assert done.returncode == 0, f"git {args}: {done.stderr}"
    return done.stdout.rstrip("\n")


def commit(cwd: Path, name: str) -> str:
    (cwd / name).write_text(f"{name}\n")
    git(cwd, "add", name)
    git(cwd, "commit", "-q", "-m", f"add {name}")
    return git(cwd, "rev-parse", "HEAD")


@dataclass
class Bay:
    repository: Repository
    path: Path
    git_dir: Path
    submodules: dict[str, Path]

    def docker(self, access: GitAccess, *options: str) -> list[str]:
        mounts = git_mounts(self.repository, self.path, self.git_dir, self.submodules, access)
        given = [f"type=bind,source={self.path},target={self.path}"]
        given += [f"type=bind,source={m.source},target={m.target}{',readonly' * m.read_only}" for m in mounts]
        env = git_env(self.path, self.submodules, access)
        return [
            "docker", "run", "--rm", "--workdir", str(self.path),
            "--env", f"COMMON={self.repository.common_dir}", "--env", f"OWN={self.git_dir}",
            *(word for name, value in env.items() for word in ("--env", f"{name}={value}")),
            *(word for mount in given for word in ("--mount", mount)), *options, IMAGE,
        ]  # fmt: skip

    def sh(self, access: GitAccess, script: str, *options: str) -> tuple[int, str]:
        """Exit code and all output of a shell script in a container of the bay."""
        who = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b"
        prologue = f"exec 2>&1; {who}\n"
        done = subprocess.run(
            [*self.docker(access, *options), "sh", "-c", prologue + script],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
        )  # fmt: skip
        return done.returncode, done.stdout


def bay_of(main: Path, name: str = "one") -> Bay:
    repository = Repository.discover(main)
    path = worktree_path(repository, name, "inside")
    made = create_worktree(repository, path=path, branch=name)
    assert made.warnings == ()
    return Bay(repository, path, made.git_dir, dict(made.submodules))


@pytest.fixture(scope="module")
def _git_there() -> None:
    done = subprocess.run(["docker", "run", "--rm", IMAGE, "git", "--version"], capture_output=True)
    if done.returncode != 0:
        pytest.skip(f"{IMAGE} has no git")


@pytest.fixture
def main(tmp_path: Path, _git_there: None) -> Path:
    """A repository with a submodule, in a path with a space and an accent."""
    sub, folder = tmp_path / "sub-source", tmp_path / "my repo é"
    for place in (sub, folder):
        place.mkdir()
        git(place, "init", "-q", "-b", "main")
    commit(sub, "s.txt")
    commit(folder, "a.txt")
    git(folder, "submodule", "--quiet", "add", str(sub), "libs/sub")
    git(folder, "commit", "-q", "-m", "libs")
    return folder


@pytest.fixture
def bay(main: Path) -> Bay:
    return bay_of(main)


def test_none_shows_no_repository(bay: Bay) -> None:
    code, said = bay.sh("none", "git status")
    assert code == 128
    assert "not a git repository" in said
    assert bay.sh("none", 'test -e "$COMMON/config"')[0] == 1
    assert bay.sh("none", "echo evil > .git")[0] != 0


def test_ro_reads_everything_and_writes_nothing(bay: Bay) -> None:
    head = git(bay.path, "rev-parse", "HEAD")
    code, said = bay.sh(
        "ro", "git status --porcelain && git log -1 --format=%H && git rev-parse --show-toplevel"
    )
    assert (code, said.split("\n")) == (0, [head, str(bay.path), ""])
    code, said = bay.sh(
        "ro", "git submodule status && git -C libs/sub log --format=%s && git -C libs/sub status -s"
    )
    assert code == 0, said
    assert "add s.txt" in said
    code, said = bay.sh("ro", "echo b > a.txt; git status --porcelain; git diff --stat")
    assert code == 0
    assert " M a.txt" in said
    for attempt in (
        "git commit -q -am x", "git add a.txt", "git config x.y z", 'echo > "$COMMON/hooks/post-commit"',
        "git -C libs/sub commit -q --allow-empty -m x", "git worktree add /tmp/w", "git gc", "git tag t",
        "rm .git", "echo evil > .git", "mv libs/sub libs/old", "mv libs old", "rm libs/sub/.git",
    ):  # fmt: skip
        assert bay.sh("ro", attempt)[0] != 0, attempt
    assert git(bay.path, "rev-parse", "HEAD") == head


def test_rw_commits_in_the_bay_and_in_its_submodule(bay: Bay) -> None:
    code, said = bay.sh("rw", "echo b > a.txt && git commit -q -am inside && git log -1 --format=%s")
    assert code == 0, said
    assert git(bay.path, "log", "-1", "--format=%s", "one") == "inside"
    code, said = bay.sh(
        "rw", "git -C libs/sub checkout -q -b work && git -C libs/sub commit -q --allow-empty -m deeper"
    )
    assert code == 0, said
    assert git(bay.path / "libs" / "sub", "log", "-1", "--format=%s", "work") == "deeper"
    code, said = bay.sh(
        "rw", "git checkout -q -b other && git tag t && git stash list && git status --porcelain"
    )
    assert code == 0, said
    assert worktree_state(bay.path, bay.git_dir, bay.submodules).branch == "other"
    assert git(bay.repository.toplevel, "fsck") == ""


def test_rw_leaves_configuration_hooks_and_other_bays_alone(main: Path, bay: Bay) -> None:
    other = bay_of(main, "two")
    listed = git(main, "worktree", "list")
    bay.sh("rw", "git worktree prune -v; git worktree remove --force ../two; git gc --prune=now")
    assert git(main, "worktree", "list") == listed
    assert git(other.path, "status", "--porcelain") == ""
    module = '"$COMMON/modules/libs/sub"'
    for attempt in (
        "git config x.y z", "git -C libs/sub config x.y z", 'echo x >> "$COMMON/config"',
        'echo > "$COMMON/hooks/post-commit"', 'mkdir "$COMMON/hooks2"', 'echo /tmp > "$COMMON/commondir"',
        'echo x > "$COMMON/info/exclude"', 'mv "$COMMON/hooks" "$COMMON/old"', 'rm "$COMMON/HEAD"',
        'rm "$COMMON/index"', 'echo /tmp > "$COMMON/objects/info/alternates"',
        'rm -r "$COMMON/worktrees/two"', 'touch "$COMMON/worktrees/two/locked"', 'mv "$OWN" "$OWN.old"',
        'rm "$OWN/commondir"', 'echo /tmp > "$OWN/commondir"', 'mv "$OWN/gitdir" "$OWN/x"',
        'echo x > "$OWN/config.worktree"', 'mkdir -p "$OWN/modules/x"', 'echo x > "$COMMON/devbay/x.json"',
        'ln -s /tmp "$COMMON/logs2"', f"touch {module}/commondir", f"touch {module}/hooks/x",
        f"echo x >> {module}/config", "rm .git", "mv libs/sub libs/old", "mv libs old",
    ):  # fmt: skip
        assert bay.sh("rw", attempt)[0] != 0, attempt


def test_rw_stays_closed_when_the_host_replaces_the_configuration(main: Path, bay: Bay) -> None:
    """A read-only mount of the file itself would end here: git replaces `config` by a rename."""
    held = subprocess.run(
        [*bay.docker("rw", "--detach"), "sleep", "60"], capture_output=True, text=True, check=True
    ).stdout.strip()
    try:
        git(main, "config", "some.key", "value")
        attempt = 'grep -q value "$COMMON/config" && echo evil >> "$COMMON/config"'
        done = subprocess.run(["docker", "exec", held, "sh", "-c", attempt], capture_output=True, text=True)
        assert done.returncode != 0
        assert "Read-only" in done.stderr
    finally:
        subprocess.run(["docker", "rm", "--force", held], capture_output=True, check=True)
    assert "evil" not in (main / ".git" / "config").read_text()


def test_rw_reflogs_cannot_lead_the_host_elsewhere(main: Path, bay: Bay, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("")
    bay.sh("rw", f'rm -f "$COMMON/logs/HEAD"; ln -s "{victim}" "$COMMON/logs/HEAD"; ls -la "$COMMON/logs"')
    commit(main, "after.txt")
    assert victim.read_text() == ""


@pytest.mark.parametrize("access", ["ro", "rw"])
def test_shallow_clone_works(main: Path, tmp_path: Path, access: GitAccess) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{main}", "shallow")
    clone = tmp_path / "shallow"
    git(clone, "submodule", "--quiet", "update", "--init")
    bay = bay_of(clone)
    code, said = bay.sh(access, "git rev-list --count HEAD && git rev-parse --is-shallow-repository")
    assert (code, said.split()) == (0, ["1", "true"])
    assert (
        bay.sh("rw", "git commit -q --allow-empty -m more && git rev-list --count HEAD")[1].split()[-1] == "2"
    )


def test_borrowed_objects_are_found(main: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--shared", str(main), "borrower")
    git(
        tmp_path / "borrower",
        "submodule",
        "--quiet",
        "update",
        "--init",
        "--reference",
        str(tmp_path / "sub-source"),
    )
    bay = bay_of(tmp_path / "borrower")
    code, said = bay.sh("ro", "git log --format=%s && git -C libs/sub log --format=%s && git fsck")
    assert code == 0, said
    assert "add a.txt" in said


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to another user")
@pytest.mark.parametrize("user", ["0:0", "4242:4242"])
def test_git_accepts_the_worktree_whoever_the_container_runs_as(main: Path, user: str) -> None:
    bay = bay_of(main)
    for path in [main, *main.rglob("*")]:
        os.chown(path, 1000, 1000, follow_symlinks=False)
    for parent in list(main.parents)[:-1]:
        if parent.stat().st_mode & 0o005 != 0o005:
            parent.chmod(parent.stat().st_mode | 0o055)
    code, said = bay.sh("ro", "git status --porcelain && git -C libs/sub status --porcelain", "--user", user)
    assert (code, said) == (0, "")


def test_adopted_main_checkout_shows_no_other_bays_and_keeps_its_configuration(main: Path) -> None:
    other = bay_of(main, "two")
    repository = Repository.discover(main)
    adopted = adopt_worktree(repository, main)
    bay = Bay(repository, main, adopted.git_dir, dict(adopted.submodules))
    code, said = bay.sh("ro", "git log -1 --format=%s && git -C libs/sub log -1 --format=%s && ls -A .devbay")
    assert (code, said.split("\n")) == (0, ["libs", "add s.txt", ""])
    for attempt in (
        "echo x >> .git/config",
        "echo > .git/hooks/post-commit",
        "echo x > .devbay/x",
        "mv .git old",
    ):
        assert bay.sh("ro", attempt)[0] != 0, attempt
    code, said = bay.sh("none", "git status; ls -A .git")
    assert "not a git repository" in said
    assert git(main, "status", "--porcelain") == ""
    assert git(other.path, "status", "--porcelain") == ""
