"""Who holds a port: the words for an error that a person can act on."""

from __future__ import annotations

import subprocess
from pathlib import Path

from devbay.processes import PROC, process

_LISTEN = "0A"  # state column of /proc/net/tcp (include/net/tcp_states.h)


def port_holder(port: int, proc: Path = PROC) -> str:
    """`nginx (pid 812)`, or `another process` where this user may not see it."""
    pids = _from_proc(port, proc) if proc.is_dir() else _from_lsof(port)
    names = [f"{found.command} (pid {pid})" for pid in pids if (found := process(pid, proc))]
    return ", ".join(names) or "another process"


def _from_proc(port: int, proc: Path) -> list[int]:
    wanted: set[str] = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in (line.split() for line in lines):
            if int(fields[1].rpartition(":")[2], 16) == port and fields[3] == _LISTEN:
                wanted.add(f"socket:[{fields[9]}]")
    return [
        int(entry.name)
        for entry in proc.iterdir()
        if wanted and entry.name.isdigit() and wanted & _links(entry / "fd")
    ]


def _links(folder: Path) -> set[str]:
    found: set[str] = set()
    try:
        for entry in folder.iterdir():
            found.add(str(entry.readlink()))
    except OSError:  # another user's process, or one that has just ended
        return found
    return found


def _from_lsof(port: int) -> list[int]:
    try:
        done = subprocess.run(
            ["lsof", "-nP", "-t", f"-iTCP:{port}", "-sTCP:LISTEN"],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [int(line) for line in done.stdout.split()]
