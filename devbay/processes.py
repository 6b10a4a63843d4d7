"""Facts about other processes of this machine: from /proc, and from `ps` where there is none."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """One process. `has_terminal`: it has a controlling terminal. `argv` is split only where /proc is."""

    pid: int
    parent: int
    has_terminal: bool
    command: str
    argv: tuple[str, ...]


def process(pid: int, proc: Path = PROC) -> Process | None:
    """The process, or None if there is none (any more)."""
    return _from_proc(pid, proc) if proc.is_dir() else _from_ps(pid)


def ancestry(pid: int, proc: Path = PROC) -> list[Process]:
    """The process, its parent, and so on up to the first one; empty if there is no such process."""
    found: list[Process] = []
    seen: set[int] = set()
    while pid > 0 and pid not in seen and (one := process(pid, proc)) is not None:
        found.append(one)
        seen.add(pid)
        pid = one.parent
    return found


def environment(pid: int, proc: Path = PROC) -> dict[str, str]:
    """The environment the process was started with; empty where this user may not read it.

    Without /proc it is what `ps -E` shows behind the command: values with spaces are cut, names are right.
    """
    if proc.is_dir():
        try:
            raw = (proc / str(pid) / "environ").read_bytes()
        except OSError:
            return {}
        words = raw.decode(errors="replace").split("\0")
    else:
        words = _ps("-E", "-ww", "-o", "command=", "-p", str(pid)).split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def with_arguments(arguments: tuple[str, ...], proc: Path = PROC) -> list[int]:
    """The processes whose command line is one program followed by exactly `arguments`."""
    if proc.is_dir():
        return [
            int(entry.name)
            for entry in proc.iterdir()
            if entry.name.isdigit() and _argv(entry)[1:] == arguments
        ]
    tail = " " + " ".join(arguments)
    lines = (line.split(None, 1) for line in _ps("-A", "-ww", "-o", "pid=,command=").splitlines())
    return [int(words[0]) for words in lines if len(words) == 2 and words[1].endswith(tail)]


def _from_proc(pid: int, proc: Path) -> Process | None:
    folder = proc / str(pid)
    try:
        stat = (folder / "stat").read_text(errors="replace")
    except OSError:
        return None
    # proc(5): the command stands in parentheses and may hold anything; state, ppid, pgrp, session and
    # tty_nr follow it.
    command = stat[stat.index("(") + 1 : stat.rindex(")")]
    fields = stat[stat.rindex(")") + 2 :].split()
    return Process(pid, int(fields[1]), fields[4] != "0", command, _argv(folder))


def _argv(folder: Path) -> tuple[str, ...]:
    try:
        raw = (folder / "cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(raw.decode(errors="replace").removesuffix("\0").split("\0")) if raw else ()


def _from_ps(pid: int) -> Process | None:
    fields = _ps("-ww", "-o", "ppid=,tty=,command=", "-p", str(pid)).split(None, 2)
    if len(fields) < 3:
        return None
    parent, terminal, line = fields
    argv = tuple(line.split())
    return Process(pid, int(parent), terminal not in {"??", "?", "-"}, Path(argv[0]).name, argv)


def _ps(*arguments: str) -> str:
    done = subprocess.run(
        ["ps", *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=10,
        env={**os.environ, "LC_ALL": "C"},
    )
    return done.stdout
