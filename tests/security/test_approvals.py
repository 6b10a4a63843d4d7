import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.manifest.capabilities import Capability
from devbay.processes import Process, ancestry, process
from devbay.security.approvals import MARKERS, agent_program, may_grant, pending


def capability(key: str) -> Capability:
    return Capability(key, "mount", "services/a/mounts/0", "a", None, "a: /etc", "detail")


def test_what_has_no_grant_is_pending_in_order() -> None:
    asked = [capability("k1"), capability("k2"), capability("k3")]
    assert pending(asked, {"k2": object()}) == [asked[0], asked[2]]
    assert pending(asked, {"k1", "k2", "k3"}) == []


class FakeProc:
    """A folder that looks like /proc."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.add(1, 0, "init")

    def add(
        self, pid: int, parent: int, command: str, *argv: str, tty: int = 0, env: dict[str, str] | None = None
    ) -> None:
        entry = self.folder / str(pid)
        entry.mkdir()
        (entry / "stat").write_text(f"{pid} ({command}) S {parent} {pid} {pid} {tty} -1 0")
        (entry / "cmdline").write_bytes("".join(f"{word}\0" for word in argv or (command,)).encode())
        (entry / "environ").write_bytes("".join(f"{k}={v}\0" for k, v in (env or {}).items()).encode())


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    """init - terminal - zsh - devbay (pid 12, with a terminal)."""
    fake = FakeProc(tmp_path)
    fake.add(10, 1, "terminal")
    fake.add(11, 10, "zsh", "-zsh", tty=34816, env={"CODEX_HOME": "/h/.codex", "CURSOR_TRACE_ID": "x"})
    fake.add(12, 11, "devbay", "python3", "/h/.local/bin/devbay", "approve", tty=34816)
    return fake


def refusal(pid: int | None, proc: FakeProc, env: dict[str, str] | None = None) -> str:
    with pytest.raises(DevbayError) as caught:
        may_grant(pid, env or {}, proc.folder)
    assert caught.value.code == "not_a_person"
    assert caught.value.exit_code == 3
    return caught.value.message


def test_a_person_at_a_terminal_may(proc: FakeProc) -> None:
    may_grant(12, {"PATH": "/bin"}, proc.folder)


def test_a_process_without_a_terminal_may_not(proc: FakeProc) -> None:
    proc.add(13, 11, "devbay")
    assert "terminal" in refusal(13, proc)


@pytest.mark.parametrize("marker", sorted(MARKERS))
def test_an_agents_marker_in_the_process_or_above_it_refuses(proc: FakeProc, marker: str) -> None:
    proc.add(20, 11, "bash", tty=34816, env={marker: "1"})
    proc.add(21, 20, "devbay", tty=34816)
    assert marker in refusal(21, proc)
    assert marker in refusal(20, proc)
    assert marker in refusal(12, proc, {marker: "1"})


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("claude", ("claude",)),
        ("node", ("node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js")),
        ("MainThread", ("/usr/bin/node", "--no-warnings", "/usr/local/bin/gemini")),
        ("aider", ("/venv/bin/python3", "/venv/bin/aider", "--yes")),
        ("python3.12", ("python3.12", "/venv/bin/aider.py")),
        ("cursor-agent", ("/opt/cursor-agent",)),
        ("codex", ("/usr/bin/codex", "exec")),
    ],
)
def test_a_descendant_of_an_agents_program_may_not(
    proc: FakeProc, command: str, argv: tuple[str, ...]
) -> None:
    proc.add(20, 11, command, *argv, tty=34816)
    proc.add(21, 20, "bash", tty=34816)
    proc.add(22, 21, "devbay", tty=34816)
    refusal(22, proc)


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("vim", ("vim", "claude")),
        ("bash", ("bash", "-c", "codex exec")),
        ("python3", ("python3", "manage.py", "aider")),
        ("code", ("/usr/share/code/code", "--type=ptyHost")),
        ("tmux: server", ("tmux", "new", "-s", "claude")),
    ],
)
def test_other_programs_are_not_taken_for_agents(command: str, argv: tuple[str, ...]) -> None:
    assert agent_program(Process(1, 0, True, command, argv)) is None


def test_a_process_that_cannot_be_seen_may_not(proc: FakeProc) -> None:
    for pid in (None, 0, 999):
        assert "cannot be seen" in refusal(pid, proc)


def test_a_command_with_parentheses_in_its_name_is_read(proc: FakeProc) -> None:
    proc.add(30, 11, "a) S 1 (b", tty=1)
    found = process(30, proc.folder)
    assert found is not None
    assert (found.parent, found.has_terminal, found.command) == (11, True, "a) S 1 (b")
    assert [each.pid for each in ancestry(30, proc.folder)] == [30, 11, 10, 1]


def test_real_processes_with_and_without_a_terminal_are_told_apart() -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.execvp("sleep", ["sleep", "30"])
    without = subprocess.Popen(["sleep", "30"], start_new_session=True)
    try:
        deadline = time.monotonic() + 3
        while (
            (found := process(child)) is not None and found.command != "sleep" and time.monotonic() < deadline
        ):
            time.sleep(0.01)
        assert found is not None
        assert found.has_terminal
        other = process(without.pid)
        assert other is not None
        assert not other.has_terminal
        assert os.getpid() in [each.pid for each in ancestry(without.pid)]
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(terminal)
        without.kill()
        without.wait()


def test_a_real_process_with_a_marker_is_refused() -> None:
    program = "import time; print(flush=True); time.sleep(30)"
    env = {**os.environ, "CLAUDECODE": "1"}
    child = subprocess.Popen([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(DevbayError, match="CLAUDECODE"):
            may_grant(child.pid, {})
    finally:
        child.kill()
        child.communicate()
