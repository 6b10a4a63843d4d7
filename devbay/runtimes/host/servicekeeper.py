"""Keeping one service: its log, its restarts, its state on disk, and those who ask for it."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` adds an enum's 0.9 MB to every keeper
import os
import sys
import time

from devbay.runtimes.host import spawn, tree
from devbay.runtimes.host.control import Control
from devbay.runtimes.host.kept import Keeper, to_json
from devbay.runtimes.host.logwriter import LogWriter, timestamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

FIRST_WAIT_S, LONGEST_WAIT_S, STEADY_S = 0.1, 10.0, 10.0
TERM_TIMEOUT_S = 10.0
PIPE_READS = 17
"""Reads of 64 KiB that empty the largest pipe an ordinary user can have (1 MiB), and one for its end."""
NOTED_AFTER_S = (1.0, 30.0)
"""When shared memory is noted, so that it is known of a process that dies by itself."""


class ServiceKeeper(Keeper):
    """Keeps one service: its log, its restarts, its control socket and its state on disk."""

    def __init__(self, order: dict[str, Any], lock: int) -> None:
        super().__init__(order)
        self.lock = lock
        self.log = LogWriter(order["folder"])
        sys.excepthook = self.on_fault
        self.output = -1
        self.wait_s = FIRST_WAIT_S
        self.started = 0.0
        self.stopping = False
        self.oom_seen = 0
        self.state: dict[str, str | int | bool | None] = {
            "mark": order["mark"].partition("=")[2],
            "ref": os.urandom(16).hex(),
            "state": "created",
            "pid": None,
            "started": None,
            "keeper": os.getpid(),
            "boot": tree.boot_id(),
            "started_at": "",
            "exit_code": None,
            "restarts": 0,
            "oom_killed": False,
            "config": order["config"],
            "cgroup": self.cgroup.text() if self.cgroup else "",
            "reason": "",
        }
        self.loop.on_signal(_signal.SIGTERM, lambda: self.stop(TERM_TIMEOUT_S))
        self.control = Control(self.loop, order["socket"], self.on_request, lambda: to_json(self.state))
        self.loop.on_signal(_signal.SIGHUP, self.control.listen_again)

    # -- the service -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the service; raises `SpawnFailed` or `OSError`."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        try:
            self.start(writer)
        except (spawn.SpawnFailed, OSError):
            os.close(reader)
            raise
        finally:
            os.close(writer)
        self.output = reader
        self.loop.when_readable(reader, self.take_output)
        self.started = time.monotonic()
        main = tree.process(self.main)
        if main is not None:
            self.leftovers.begin(main)
        self.change(
            state="running",
            pid=self.main,
            started=main.started if main else None,
            started_at=timestamp(time.time_ns()),
            exit_code=None,
            oom_killed=False,
            reason="",
        )
        for seconds in NOTED_AFTER_S:
            self.loop.after(f"note {seconds}", seconds, lambda: self.leftovers.note(self.members()))

    def take_output(self) -> None:
        """Take over some of what was printed."""
        try:
            data = os.read(self.output, 65536)
        except BlockingIOError:
            return
        if data:
            self.log.feed(data)
        else:  # closed by the service, which may go on without
            self.close_output()

    def close_output(self) -> None:
        self.loop.forget(self.output)
        os.close(self.output)
        self.output = -1
        self.log.flush()

    def main_ended(self) -> None:
        code = self.ended if self.ended is not None else 0
        self.end_all()
        if self.output >= 0:
            # All writers are dead: what they wrote is at most what a pipe holds, or was never theirs.
            for _ in range(PIPE_READS):
                self.take_output()
                if self.output < 0:
                    break
            else:
                self.close_output()
        kills = self.cgroup.oom_kills() if self.cgroup else 0
        oom, self.oom_seen = kills > self.oom_seen, kills
        self.after_end(code, oom, "")

    def after_end(self, code: int, oom: bool, reason: str) -> None:
        """Start again or be over, as the service's policy says."""
        self.ended = None
        self.loop.cancel("kill")
        policy = self.order["restart"]
        again = policy in ("always", "unless-stopped") or (policy == "on-failure" and code != 0)
        if self.stopping or not again:
            self.finish(code, oom, reason)
            return
        if time.monotonic() - self.started >= STEADY_S:
            self.wait_s = FIRST_WAIT_S
        self.change(state="restarting", pid=None, started=None, exit_code=code, oom_killed=oom, reason=reason)
        self.loop.after("restart", self.wait_s, self.restart)
        self.wait_s = min(self.wait_s * 2, LONGEST_WAIT_S)

    def restart(self) -> None:
        self.state["restarts"] = int(self.state["restarts"] or 0) + 1
        try:
            self.begin()
        except (spawn.SpawnFailed, OSError) as error:
            self.started = time.monotonic()
            self.after_end(127, False, f"could not be started again: {error}")

    def finish(self, code: int, oom: bool, reason: str) -> None:
        """Say how it ended, let go of folder and socket, and only then answer those who wait."""
        if self.foreign:
            reason = f"processes of another user could not be ended: {self.foreign}"
        self.clear()
        self.control.unlisten()
        self.state.update(
            state="exited", pid=None, started=None, exit_code=code, oom_killed=oom, reason=reason
        )
        self.save()
        os.close(self.lock)
        self.control.finish()
        self.loop.over = True

    def stop(self, timeout_s: float) -> None:
        """Ask the service to end, and kill what is there after the timeout."""
        self.stopping = True
        if not self.main:
            self.loop.cancel("restart")
            self.finish(int(self.state["exit_code"] or 0), bool(self.state["oom_killed"]), "")
            return
        if self.state["state"] == "paused":
            self.pause(False)
        self.leftovers.note(self.members())
        for one in self.asked():
            tree.send(one, self.order["stop_signal"])
        self.loop.after("kill", timeout_s, self.kill)

    def kill(self) -> None:
        self.end_all()
        self.on_child()

    def asked(self) -> list[tree.Process]:
        """Who gets the stop signal: the main process's group, or inside a sandbox the application's.

        A sandbox's own process would die of the signal, and everything in the sandbox with it, unasked.
        """
        table = tree.processes()
        below = tree.descendants([self.main], table)
        main = table.get(self.main)
        if main is None:
            return []
        if main.command == self.order["sandbox"]:
            inside = [one for one in below if one.command != main.command]
            if inside:
                return [one for one in inside if one.group == inside[0].group]
        return [one for one in table.values() if one.group == self.main]

    def pause(self, paused: bool) -> None:
        if not self.main or (self.state["state"] == "paused") == paused:
            return
        if self.cgroup is None or not self.cgroup.freeze(paused):
            for one in self.members():
                try:
                    tree.send(one, _signal.SIGSTOP if paused else _signal.SIGCONT)
                except PermissionError:
                    self.foreign = [one.pid]
        self.change(state="paused" if paused else "running")

    # -- the state ---------------------------------------------------------------------------------

    def change(self, **fields: str | int | bool | None) -> None:
        self.state.update(fields)
        self.save()
        self.control.tell_watchers()

    def save(self) -> None:
        path = f"{self.order['folder']}/state.json"
        try:
            handle = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                os.write(handle, to_json(self.state))
            finally:
                os.close(handle)
            os.replace(f"{path}.new", path)  # noqa: PTH105
        except OSError:  # a full disk: the service goes on, and so does the wish to say so
            if self.state["state"] != "exited":
                self.loop.after("save", 5.0, self.save)

    def on_request(self, words: list[str]) -> bool:
        """Do what a client asks; False if the answer comes at the end."""
        match words:
            case ["stop", seconds]:
                self.stop(float(seconds))
                return False
            case ["pause" | "resume" as verb]:
                self.pause(verb == "pause")
        return True

    def on_fault(self, kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        """A fault of the keeper itself goes into the log of the service, where it is looked for."""
        where = ""
        while trace:
            where = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
            trace = trace.tb_next
        self.log.flush()
        self.log.feed(f"[devbay's keeper failed: {kind.__name__}: {value} at {where}]\n".encode())
