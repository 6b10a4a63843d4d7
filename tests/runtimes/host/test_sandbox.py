"""The sandbox, tried: what a command in it can do to this machine, as root and as another user."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from devbay.runtimes.base import BindMount
from devbay.runtimes.host import sandbox as sandboxes
from devbay.runtimes.host.hidden import hiding
from devbay.runtimes.host.sandbox import Disk, bwrap_argv, ended, probe, trial
from devbay.runtimes.host.view import View

OTHER = 61999
ROOT = os.geteuid() == 0


@dataclass
class Box:
    """A bay's folders, and who its commands run as."""

    base: Path
    uid: int

    def __post_init__(self) -> None:
        for folder in ("wt", "home", "tmp", "volume", "outside"):
            self.folder(self.base / folder)

    def folder(self, path: Path) -> Path:
        path.mkdir(parents=True, exist_ok=True)
        self.give(path)
        return path

    def give(self, path: Path) -> None:
        if ROOT:
            os.chown(path, self.uid, self.uid)

    def view(self, **changes: object) -> View:
        at = self.base
        plain = View(at / "wt", at / "home", at / "tmp", str(at / "wt"))
        return replace(plain, **changes)  # type: ignore[arg-type]

    def argv(self, view: View) -> tuple[str, ...]:
        sandbox = trial(os.environ["PATH"]).sandbox
        assert sandbox is not None
        return bwrap_argv(view, replace(sandbox, root=self.uid == 0), Disk())

    def start(self, view: View, *command: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        as_other = (
            {"user": self.uid, "group": self.uid, "extra_groups": []} if self.uid != os.geteuid() else {}
        )
        return subprocess.Popen(
            [*self.argv(view), *command],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={"PATH": "/usr/bin:/bin", **(env or {})},
            **as_other,  # type: ignore[call-overload]
        )

    def run(self, view: View, *command: str) -> tuple[int, str]:
        process = self.start(view, *command)
        output, _ = process.communicate(timeout=20)
        return process.returncode, output

    def sh(self, script: str, **changes: object) -> str:
        return self.run(self.view(**changes), "/bin/sh", "-c", script)[1]


@pytest.fixture(params=["this user", "another user"])
def box(request: pytest.FixtureRequest) -> Iterator[Box]:
    isolation = probe(os.environ["PATH"])
    if "pid" not in isolation.namespaces:
        pytest.skip(f"no sandbox here: {isolation.why or isolation.namespaces}")
    uid = os.geteuid() if request.param == "this user" else OTHER
    sandbox = trial(os.environ["PATH"]).sandbox
    assert sandbox is not None
    if uid != os.geteuid() and not ROOT:
        pytest.skip("only root can become another user")
    if uid == OTHER and subprocess.run([sandbox.program, "--version"], user=OTHER, check=False).returncode:
        pytest.skip("another user cannot reach bubblewrap here")
    # Where another user gets to, and not below `/tmp`, which is another one in the sandbox.
    base = Path(tempfile.mkdtemp(prefix="devbay-sandbox-", dir="/srv" if ROOT else None))
    base.chmod(0o755)
    try:
        yield Box(base, uid)
    finally:
        shutil.rmtree(base)


def test_it_writes_in_the_worktree_and_its_own_folders(box: Box) -> None:
    at = box.base
    box.sh(f"for f in /workspace/a {at}/wt/b {at}/home/c /tmp/d /var/tmp/e; do echo 1 > $f; done")
    assert sorted(path.name for path in at.glob("*/?")) == ["a", "b", "c", "d", "e"]
    assert {path.stat().st_uid for path in at.glob("*/?")} == {box.uid}


def test_it_writes_nowhere_else(box: Box) -> None:
    places = f"/ /etc /usr /var /var/lib /run /opt /srv /sys /proc/sys/kernel {box.base}/outside"
    said = box.sh(f"for p in {places}; do touch $p/devbay-test && echo wrote $p; done; mkdir /x && echo made")
    assert "wrote" not in said
    assert "made" not in said
    assert list((box.base / "outside").iterdir()) == []
    assert not [place for place in ("/", "/etc", "/usr", "/run") if Path(place, "devbay-test").exists()]


def test_it_cannot_change_the_machines_settings(box: Box) -> None:
    said = box.sh(
        "for f in /proc/sys/kernel/core_pattern /proc/sys/vm/swappiness /proc/sysrq-trigger"
        " $(find /sys/fs/cgroup -maxdepth 2 -name release_agent 2>/dev/null) /sys/kernel/uevent_helper;"
        " do test -w $f && echo writable $f; done; echo done"
    )
    assert said == "done\n"


def test_root_is_known_for_root() -> None:
    sandbox = trial(os.environ["PATH"]).sandbox
    assert sandbox is None or sandbox.root == ROOT


def test_it_cannot_mount_the_machine_writable_again(box: Box) -> None:
    said = box.sh(
        "mount -o remount,rw,bind /usr 2>&1 && echo remounted; umount /tmp 2>/dev/null && echo unmounted;"
        " unshare -rm sh -c 'mount -o remount,rw,bind /usr && echo remounted' 2>/dev/null; echo done"
    )
    assert "remounted" not in said
    assert "unmounted" not in said
    assert said.endswith("done\n")


def test_hidden_places_are_empty_and_stay_so_when_written_below(box: Box) -> None:
    secret = box.folder(box.base / "wt/secret")
    (secret / "key").write_text("key")
    file = box.base / "wt/file"
    file.write_text("token")
    file.chmod(0o644)
    said = box.sh(
        f"cat {secret}/key /workspace/secret/key; ls -A {secret}; cat {file} && echo read;"
        f" echo x > {secret}/y; echo x > {file}",
        hidden=(secret, file, box.base / "outside/none"),
    )
    assert "token" not in said
    assert "read\n" in said
    assert (secret / "key").read_text() == "key"
    assert not (secret / "y").exists()
    assert file.read_text() == "token"


def test_the_users_home_is_hidden_and_its_toolchains_are_not(box: Box) -> None:
    home = box.folder(box.base / "ana")
    for name in (".ssh", ".pyenv", ".aws", "papers", ".local/bin"):
        box.folder(home / name)
    found = hiding(home, f"/usr/bin:{home}/go/bin")
    listed = box.sh(f"cd {home}; ls -A . .local", hidden=found.hidden, visible=found.visible)
    assert listed.split() == [".:", ".local", ".pyenv", ".local:", "bin"]


def test_it_sees_and_signals_only_its_own_processes(box: Box) -> None:
    as_other = {"user": box.uid} if ROOT else {}
    with subprocess.Popen(["sleep", "60"], **as_other) as sleeper:  # type: ignore[call-overload]
        said = box.sh(f"kill -9 {sleeper.pid}; ls /proc | grep -c '^[0-9]'")
        assert sleeper.poll() is None
        sleeper.kill()
    count = box.sh("ls -d /proc/[0-9]* | wc -l")
    assert int(count) <= 5, said


def test_shared_memory_is_its_own(box: Box) -> None:
    name = f"devbay-test-{os.getpid()}"
    outside = Path("/dev/shm", name)
    outside.touch()
    try:
        said = box.sh(f"ls -A /dev/shm; touch /dev/shm/{name}-own && echo made; wc -l < /proc/sysvipc/shm")
        space = box.sh("readlink /proc/self/ns/ipc").strip()
    finally:
        outside.unlink()
    assert said.split() == ["made", "1"]
    assert space != str(Path("/proc/self/ns/ipc").readlink())
    assert not Path("/dev/shm", f"{name}-own").exists()


def test_it_uses_the_network(box: Box) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        port = server.getsockname()[1]
        process = box.start(box.view(), "bash", "-c", f"echo hello > /dev/tcp/127.0.0.1/{port}")
        peer, _ = server.accept()
        with peer:
            assert peer.recv(20) == b"hello\n"
        process.communicate(timeout=10)


def test_the_worktrees_git_file_is_not_to_be_changed(box: Box) -> None:
    link = box.base / "wt/.git"
    link.write_text("gitdir: /repo/.git/worktrees/a\n")
    box.give(link)
    mounts = (BindMount(str(link), str(link), read_only=True),)
    box.sh(
        "echo gitdir: /evil > .git; rm -f .git; mv .git x; echo g > y; mv y .git; ln -sf y .git;"
        f" echo evil > /workspace/.git; mv {box.base}/wt {box.base}/gone",
        git_mounts=mounts,
    )
    assert link.read_text() == "gitdir: /repo/.git/worktrees/a\n"


def test_volumes_are_mounted_where_the_machine_has_no_such_folder(box: Box) -> None:
    volume = str(box.base / "volume")
    targets = ("/var/lib/app", "/app/data", "/usr/share/app/deep/er", f"{box.base}/wt/node_modules")
    for target in targets:
        said = box.sh(
            f"touch {target}/hello && ls {target} && ls -d /var/lib/dpkg /usr/share/doc /usr/bin/env",
            binds=(BindMount(volume, target),),
        )
        assert said.split() == ["hello", "/usr/bin/env", "/usr/share/doc", "/var/lib/dpkg"]
    assert (box.base / "volume/hello").exists()
    assert not Path("/var/lib/app").exists()


def test_tmpfs_and_the_size_of_shared_memory(box: Box) -> None:
    said = box.sh(
        "df -k /scratch /dev/shm | tail -n +2; echo x > /scratch/x", tmpfs=("/scratch",), shm_size=1 << 20
    )
    scratch, shm = said.splitlines()
    assert scratch.split()[0] == "tmpfs"
    assert shm.split()[1] == "1024"


def test_killing_bubblewrap_ends_everything(box: Box) -> None:
    mark = f"DEVBAY_TEST_MARK={os.getpid()}"
    process = box.start(
        box.view(), "sh", "-c", "(setsid sh -c 'sleep 300 & sleep 300' &) ; echo up; sleep 300",
        env={"DEVBAY_TEST_MARK": str(os.getpid())},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    assert len(marked(mark)) > 3
    process.kill()
    process.communicate(timeout=10)
    deadline = time.monotonic() + 10
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert marked(mark) == []


def marked(mark: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


@pytest.mark.parametrize(
    "name", ["a b", "line\nbreak", "--", "ünïcødé", "$(x)`y`", "'\"\\", "-", "a,b:c=d", "[x]*"]
)
def test_a_worktree_of_any_name_works(box: Box, name: str) -> None:
    worktree = box.folder(box.base / name / "--")
    assert (
        box.sh('echo "$PWD" > here; cat /workspace/here', worktree=worktree, cwd=str(worktree))
        == f"{worktree}\n"
    )


@pytest.mark.parametrize("parent", ["/tmp", "/run", "/root", "/dev/shm", "/opt"])
def test_a_worktree_works_wherever_it_lies(box: Box, parent: str) -> None:
    if not os.access(parent, os.W_OK) or (parent == "/root" and box.uid):
        pytest.skip(f"{parent} is closed to this user")
    base = Path(tempfile.mkdtemp(prefix="devbay-sandbox-", dir=parent))
    try:
        box.give(base)
        (base / "secret").write_text("secret")
        worktree = box.folder(base / "repo/wt")
        said = box.sh(
            "echo 1 > file; ls -A .. ../..", worktree=worktree, cwd=str(worktree), hidden=(Path(parent),)
        )
        assert (worktree / "file").read_text() == "1\n"
        assert "secret" not in said
    finally:
        shutil.rmtree(base)


def test_exit_codes_are_a_shells(box: Box) -> None:
    assert box.run(box.view(), "sh", "-c", "exit 7")[0] == 7
    assert box.run(box.view(), "sh", "-c", "kill -TERM $$")[0] == 128 + signal.SIGTERM
    assert ended(*box.run(box.view(), "no-such-program")) == (
        127,
        "no-such-program: not found (or the interpreter that its first line names is not)",
    )
    assert ended(*box.run(box.view(), "/etc"))[0] == 126
    assert ended(*box.run(box.view(cwd="/nowhere"), "true"))[0] == 125


def test_a_commands_own_failure_is_not_taken_for_the_sandboxs() -> None:
    assert ended(1, "sh: I said bwrap: execvp x: No such file or directory") == (1, "")
    assert ended(2, "bwrap: execvp x: No such file or directory\n") == (2, "")
    assert ended(0, "") == (0, "")
    assert ended(1, "\nbwrap: execvp a: b: No such file or directory\n")[0] == 127


@pytest.mark.skipif(not ROOT, reason="needs root")
def test_root_gives_its_files_away_and_becomes_another_user(tmp_path: Path) -> None:
    if not probe(os.environ["PATH"]).namespaces:
        pytest.skip("no sandbox here")
    box = Box(tmp_path, 0)
    said = box.sh(
        f"chown {OTHER} . && setpriv --reuid={OTHER} --clear-groups sh -c 'id -u; echo 1 > /workspace/x'"
    )
    assert said == f"{OTHER}\n"
    assert (tmp_path / "wt/x").stat().st_uid == OTHER


def test_without_bubblewrap_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes.importlib.util, "find_spec", lambda name: None)
    trial.cache_clear()
    try:
        found = trial("/nowhere")
    finally:
        trial.cache_clear()
    assert found.sandbox is None
    assert "devbay[host]" in found.isolation.why
    assert "no namespaces" in found.isolation.sentence()


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_a_bubblewrap_that_is_forbidden_to_work_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(sandboxes.importlib.util, "find_spec", lambda name: None)
    settings = {"kernel/unprivileged_userns_clone": "0"}
    monkeypatch.setattr(sandboxes.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(
        sandboxes,
        "_text",
        lambda path: settings.get(str(path.relative_to("/proc/sys")), "") if "sys" in path.parts else "",
    )
    trial.cache_clear()
    try:
        assert "unprivileged_userns_clone is 0" in trial(str(tmp_path)).isolation.why
        settings.clear()
        trial.cache_clear()
        assert "No permissions" in trial(str(tmp_path)).isolation.why
    finally:
        trial.cache_clear()
