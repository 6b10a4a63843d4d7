import os
import subprocess
import sys
from pathlib import Path

import pytest

from devbay.processes import PROC, ancestry, environment, process, with_arguments

PS_ONLY = Path("/no/such/proc")  # as on macOS
SOURCES = [pytest.param(PROC, id="proc"), pytest.param(PS_ONLY, id="ps")]


@pytest.mark.parametrize("proc", SOURCES)
def test_a_process_and_its_parents_are_described(proc: Path) -> None:
    found = process(os.getpid(), proc)
    assert found is not None
    assert found.parent == os.getppid()
    assert "python" in " ".join(found.argv)  # `ps` splits a path with a space
    line = [each.pid for each in ancestry(os.getpid(), proc)]
    assert line[:2] == [os.getpid(), os.getppid()]
    assert line == [each.pid for each in ancestry(os.getpid())]


@pytest.mark.parametrize("proc", SOURCES)
def test_a_process_without_a_terminal_is_seen_as_such(proc: Path) -> None:
    child = subprocess.Popen(["sleep", "30"], start_new_session=True)
    try:
        found = process(child.pid, proc)
        assert found is not None
        assert not found.has_terminal
    finally:
        child.kill()
        child.wait()
    assert process(child.pid, proc) is None
    assert ancestry(child.pid, proc) == []


@pytest.mark.parametrize("proc", SOURCES)
def test_a_process_is_found_by_exactly_its_arguments(proc: Path, tmp_path: Path) -> None:
    program = "import sys; print(flush=True); sys.stdin.read()"
    arguments = ("-c", program.replace(" ", "  "), "run", str(tmp_path))
    with subprocess.Popen(
        [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert with_arguments(arguments, proc) == [child.pid]
        assert with_arguments(("run", f"{tmp_path}/other"), proc) == []


def test_the_environment_a_process_started_with_is_read() -> None:
    env = {**os.environ, "DEVBAY_TEST_MARK": "a=b c"}
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert environment(child.pid)["DEVBAY_TEST_MARK"] == "a=b c"
    assert environment(child.pid) == {}
