"""What processes cost: processor time and memory of devbay's own and of the engine's, from /proc."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def engine_pids(path: str, containers: Iterable[str]) -> set[int]:
    """dockerd behind the socket `path`, its containerd and port proxies, and these containers' shims."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(path)
        asked = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    listener = struct.unpack("3i", asked)[0]
    known = _commands()
    dockerd = {listener} if known[listener][1].startswith("dockerd") else _named(known, "dockerd")
    children = {pid for pid, (parent, _, _) in known.items() if parent in dockerd}
    containerd = {pid for pid in children if known[pid][1] == "containerd"} or _named(known, "containerd")
    shims = {
        pid
        for pid, (_, name, line) in known.items()
        if name.startswith("containerd-shim") and any(each in line for each in containers)
    }
    return dockerd | children | containerd | shims


def cores(groups: Mapping[str, set[int]], seconds: float) -> dict[str, float]:
    """The share of one core that each group of processes uses over the next `seconds`."""
    before, begin = {name: _cpu_seconds(pids) for name, pids in groups.items()}, time.monotonic()
    time.sleep(seconds)
    taken = time.monotonic() - begin
    return {name: (_cpu_seconds(pids) - before[name]) / taken for name, pids in groups.items()}


def _cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time used so far. All of these processes outlive the measurement."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICK


def resident_mb(pid: int) -> float:
    """Resident memory in MB (10^6 bytes)."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 1e6


def _commands() -> dict[int, tuple[int, str, str]]:
    """Parent, name and command line of every process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text()
                name = stat.partition("(")[2].rpartition(")")[0]
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                found[int(entry.name)] = (int(stat.rpartition(")")[2].split()[1]), name, line)
    return found


def _named(known: dict[int, tuple[int, str, str]], name: str) -> set[int]:
    return {pid for pid, (_, each, _) in known.items() if each == name}
