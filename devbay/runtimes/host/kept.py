"""What keepers of services and of runs have in common: a main process and everything that it started."""

from __future__ import annotations

import _json
import _signal  # type: ignore[import-not-found]  # `signal` adds an enum's 0.9 MB to every keeper
import os
import time

from devbay.runtimes.host import spawn, tree
from devbay.runtimes.host.cgroups import Cgroup
from devbay.runtimes.host.ipc import Leftovers, present
from devbay.runtimes.host.loop import Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Keeper:
    """A main process and everything it started, from the start to the last of them."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.loop = Loop()
        self.main = 0
        self.ended: int | None = None
        version, folders = order["cgroup"]
        self.cgroup = Cgroup(version, folders) if folders else None
        self.leftovers = Leftovers(present())
        self.foreign: list[int] = []
        self.loop.on_signal(_signal.SIGCHLD, self.on_child)
        for number in (_signal.SIGINT, _signal.SIGHUP):
            _signal.signal(number, _signal.SIG_IGN)

    def start(self, output: int) -> None:
        """Raises `SpawnFailed` or `OSError`."""
        self.ended = None
        self.main = spawn.spawn(self.order, output, self.cgroup)

    def on_child(self) -> None:
        self.reap()
        if self.ended is not None:
            self.main_ended()

    def main_ended(self) -> None:
        raise NotImplementedError

    def reap(self) -> None:
        """Collect every child that is dead, also those that were left to us."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.main:
                code = os.waitstatus_to_exitcode(status)
                self.ended, self.main = (code if code >= 0 else 128 - code), 0

    def members(self) -> list[tree.Process]:
        """Every living process of this service, by descent; if there is none, by mark and group."""
        table = tree.processes()
        found = [one for one in tree.descendants([os.getpid()], table) if one.state not in tree.DEAD]
        if not found:
            name, _, value = self.order["mark"].partition("=")
            found = tree.marked(name, value)
            if self.cgroup is not None:
                found += [table[pid] for pid in self.cgroup.pids() if pid in table]
        return found

    def end_all(self) -> None:
        """Kill what is left, until nothing is."""
        self.leftovers.note(self.members())
        if self.cgroup is not None:
            self.cgroup.kill()
        _, self.foreign = tree.end(self.members, reap=self.reap)

    def clear(self) -> None:
        """Remove what processes leave behind. They are dead."""
        self.leftovers.remove()
        if self.cgroup is not None:
            for _ in range(50):  # a killed process leaves its group a moment later
                if not self.cgroup.remove():
                    break
                self.reap()
                time.sleep(0.01)


def to_json(fields: Mapping[str, str | int | None]) -> bytes:
    """One line of JSON. The `json` module would cost every keeper 1.1 MB."""
    quote = _json.encode_basestring_ascii
    words = {None: "null", True: "true", False: "false"}
    parts = []
    for key, value in fields.items():
        if isinstance(value, str):
            word = quote(value)
        else:
            word = words[value] if value is None or isinstance(value, bool) else str(value)
        parts.append(f"{quote(key)}: {word}")
    return ("{" + ", ".join(parts) + "}\n").encode()


def say(line: bytes) -> None:
    """Tell the daemon, unless it is gone."""
    try:
        os.write(1, line)
    except BrokenPipeError:
        return
