"""A person at a terminal: `devbay approve` on a pseudo-terminal, outside of an agent's environment."""

from __future__ import annotations

import os
import pty
import select
import time
from pathlib import Path

import pytest

from devbay.security.approvals import MARKERS
from integration.house import COMMAND, House


def approve(house: House, repository: Path, answers: str, *, marked: bool = False) -> tuple[int, str]:
    """Give the answers at the terminal; the exit code and what was shown. marked: as an agent's command."""
    env = {key: value for key, value in house.env.items() if key not in MARKERS}
    if marked:
        env["CLAUDECODE"] = "1"
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            os.chdir(repository)
            os.execve(COMMAND[0], [*COMMAND, "approve"], env)
        finally:
            os._exit(127)
    shown, deadline = b"", time.monotonic() + 30
    os.write(terminal, answers.encode())
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 0.5)[0]:
            continue
        try:
            chunk = os.read(terminal, 65536)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode(errors="replace")


def approve_all(house: House, repository: Path) -> str:
    """Say yes to everything; what was shown. Skips where an agent runs these tests: it may not approve."""
    code, shown = approve(house, repository, "y\n" * 30)
    if code == 3 and "not_a_person" in shown:
        pytest.skip("an agent runs these tests, and devbay lets none approve")
    assert code == 0, shown
    return shown
