"""The daemon's side of kept processes: start, ask, stop, wait and run, whoever started them."""

from __future__ import annotations

import json
import os
import select
import socket as sockets
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import Exit, Sink
from devbay.runtimes.host import cgroups, keeperlink, strays, tree
from devbay.runtimes.host.cgroups import Cgroup
from devbay.runtimes.host.keptstate import KILLED, KeptState, holder, read_state
from devbay.runtimes.host.keptwatch import KeptWatch
from devbay.runtimes.host.launch import Launch
from devbay.runtimes.host.place import Place

KILL_PATIENCE_S = 15.0
"""How long processes that were killed may take to be gone, beyond the time given to end by themselves."""

TOLD_S = 2.0
"""How long to wait until services are followed: it costs milliseconds, but on a busy machine."""


class Keepers:
    """Every kept process of one home. Threads may share one; nothing is known only in memory."""

    def __init__(self, place: Place, home_id: str) -> None:
        self.place, self.home_id = place, home_id
        self._watch: KeptWatch | None = None

    def start(self, folder: Path, socket: Path, launch: Launch, config: str) -> str:
        """Start a service, or find it started with the same `config`; returns the ref of its state.

        Raises `not_executable`, `no_workdir`, `machine_full`, `not_started`; `service_running` if it runs
        with another `config`.
        """
        with keeperlink.told_when_full(launch.argv[0]):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for _ in range(300):
            if ref := self._running(folder, config):
                return ref
            if not holder(folder):
                word, _, rest = self._try_start(folder, socket, launch, config).partition(" ")
                if word == "ok":
                    if self._watch is not None:
                        # what is told of the start must not come after what a probe finds
                        self._watch.follow(folder, socket).wait(TOLD_S)
                    return rest
                if word == "failed":
                    stage, _, number = rest.partition(" ")
                    raise keeperlink.failed(launch, stage, int(number))
            time.sleep(0.02)  # another keeper holds the folder: one that ends, or one that begins
        raise DevbayError(
            "keeper_silent",
            f"{folder.name} is held by the process {holder(folder)}, which neither runs nor ends it",
            next="`devbay daemon stop`, end that process, then repeat",
            exit_code=WORK_FAILED,
        )

    def _running(self, folder: Path, config: str) -> str:
        found = self.state(folder)
        if found is None or not found.alive or found.state in ("exited", "created"):
            return ""
        if found.config == config:
            return found.ref
        raise DevbayError(
            "service_running",
            f"{found.name} runs with another configuration",
            next=f"stop {found.name} first",
            exit_code=WORK_FAILED,
        )

    def _try_start(self, folder: Path, socket: Path, launch: Launch, config: str) -> str:
        found = self.state(folder)
        if found is not None and found.reason == KILLED:
            self.end_strays(launch.mark)
        group = self._cgroup(launch)
        more = {"folder": str(folder), "socket": str(socket), "config": config}
        with _removed_unless_kept(group):
            return keeperlink.start(launch, keeperlink.order(launch, group, mode="service", **more))

    def _cgroup(self, launch: Launch) -> Cgroup | None:
        group = cgroups.parent().group(group_name(launch.mark))
        if group is None:
            return None
        try:
            with keeperlink.told_when_full(launch.argv[0]):
                group.make(launch.limits)
        except OSError as error:
            group.remove()
            raise DevbayError(
                "limits_refused",
                f"{launch.argv[0]}: {error.filename or 'control group'}: {error.strerror}",
                next="correct `limits` in devbay.yaml",
                exit_code=WORK_FAILED,
            ) from error
        return group

    def state(self, folder: Path) -> KeptState | None:
        """The service's state; None if none was ever started in `folder`."""
        return read_state(folder)

    def stop(self, folder: Path, socket: Path, timeout_s: float) -> None:
        """Ask the service to end, kill it after `timeout_s`; returns when all its processes are gone.

        Raises `survivors` naming processes that even that did not end.
        """
        try:
            self._ask(folder, socket, f"stop {timeout_s}", timeout_s + KILL_PATIENCE_S, to_end=True)
        except TimeoutError as error:
            left = [one.pid for one in tree.descendants([holder(folder)], tree.processes())]
            raise _survivors(left) from error
        found = self.state(folder)
        if found is not None and not found.alive and found.reason == KILLED:
            self.end_strays(found.mark)

    def pause(self, folder: Path, socket: Path) -> None:
        """Stop every process of the service where it is."""
        self._ask(folder, socket, "pause", KILL_PATIENCE_S)

    def resume(self, folder: Path, socket: Path) -> None:
        """Let a paused service go on."""
        self._ask(folder, socket, "resume", KILL_PATIENCE_S)

    def _ask(
        self, folder: Path, socket: Path, request: str, timeout_s: float, *, to_end: bool = False
    ) -> None:
        """Send a request and wait for its answer, or with `to_end` for the end; raises `TimeoutError`."""
        connection = keeperlink.connect(folder, socket)
        if connection is None:
            return
        deadline = time.monotonic() + timeout_s
        with connection:
            connection.sendall(f"{request}\n".encode())
            while True:
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                data = b""
                with suppress(ConnectionResetError):
                    data = connection.recv(65536)
                if not data or not to_end:
                    return

    def wait(self, folder: Path, socket: Path, job: Job) -> KeptState:
        """Wait until the service is over. Raises `Cancelled`, which leaves it running, and `not_started`."""
        while not job.cancelled and (connection := keeperlink.connect(folder, socket)) is not None:
            with connection, job.when_cancelled(lambda: _wake(connection)), suppress(ConnectionError):
                connection.sendall(b"watch\n")
                while connection.recv(65536):
                    pass
        job.check()
        found = self.state(folder)
        if found is None:
            raise DevbayError("not_started", f"{folder.name} was never started", exit_code=WORK_FAILED)
        return found

    def run(self, launch: Launch, sink: Sink, timeout_s: float, job: Job) -> Exit:
        """Run a finite command; its output goes to `sink` as it comes.

        Everything it started is dead when this returns, also after `timeout_s`, cancellation (which is told
        by `Exit.cancelled`) and an error of `sink`; and if this process is killed. Raises as `start` does.
        """
        group = self._cgroup(launch)
        with _removed_unless_kept(group):
            with keeperlink.told_when_full(launch.argv[0]):
                reader, writer = os.pipe()
            try:
                keeper = keeperlink.spawn(launch, writer)
            except BaseException:
                os.close(reader)
                raise
            finally:
                os.close(writer)
        content = keeperlink.order(launch, group, mode="run", output=writer, timeout=timeout_s)
        with keeper, open(reader, "rb", buffering=0) as output:  # noqa: PTH123
            assert keeper.stdin and keeper.stdout and keeper.stderr
            try:
                with suppress(BrokenPipeError):  # its last words say why
                    keeper.stdin.write(content)
                    keeper.stdin.flush()
                with job.when_cancelled(lambda: _cancel(keeper)):
                    said = _relay(output.fileno(), keeper.stdout, sink)
                if not said:  # it was killed, and what it kept may still write
                    self.end_strays(launch.mark)
                _drain(output.fileno(), sink)
            finally:
                _cancel(keeper)
            fault = keeper.stderr.read()
        return self._exit(launch, said, fault, job)

    def _exit(self, launch: Launch, said: bytes, fault: bytes, job: Job) -> Exit:
        word, _, rest = said.decode().strip().partition(" ")
        if word == "failed":
            stage, _, number = rest.partition(" ")
            raise keeperlink.failed(launch, stage, int(number))
        if not word:
            if job.cancelled:
                return Exit(137, cancelled=True)
            raise keeperlink.broken(launch, fault)
        found = json.loads(said)
        return Exit(found["code"], found["timed_out"], found["oom_killed"], job.cancelled)

    def end_strays(self, mark: str) -> list[int]:
        """Kill every process of a mark that no live keeper owns; returns their ids.

        What a live keeper started, and what joined that since, is its own. Raises `survivors`.
        """
        try:
            return strays.end(mark, self._groups(mark))
        except tree.Survivors as error:
            raise _survivors(error.pids) from error

    def _groups(self, mark: str) -> list[Cgroup]:
        """Where the processes of a mark may be: the group it has now, and the one that its keeper noted."""
        _, bay, name = mark.split("/")
        found = self.state(self.place.service(bay, name))
        noted = Cgroup.of_text(found.cgroup) if found is not None and found.cgroup else None
        return [group for group in (cgroups.parent().group(group_name(mark)), noted) if group is not None]

    def watch(self, on_change: Callable[[str, str], None]) -> None:
        """Call `on_change(bay id, service)` from a thread when a service's state changes or its keeper ends.

        Follows the keepers that live now, whose present states are no changes, and those that `start`
        starts. Returns when the former are followed, so that what is read afterwards is as new as can be.
        """
        watch = self._watch = KeptWatch(self.home_id, on_change)
        folders = self.place.bays.glob("*/services/*")
        followed = [
            watch.follow(folder, self.place.socket(folder.parent.parent.name, folder.name), is_known=True)
            for folder in folders
        ]
        until = time.monotonic() + TOLD_S
        for one in followed:
            one.wait(max(0.0, until - time.monotonic()))

    def close(self) -> None:
        """End the watching; what is kept stays kept."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None


@contextmanager
def _removed_unless_kept(group: Cgroup | None) -> Iterator[None]:
    """Take the group away if no keeper came to do it. One that lives has processes in it, and stays."""
    try:
        yield
    except BaseException:
        if group is not None:
            group.remove()
        raise


def group_name(mark: str) -> str:
    """The name of the control group of a mark: `devbay-<bay>-<name>`."""
    _, bay, name = mark.split("/")
    return f"devbay-{bay}-{name}"


def _survivors(pids: list[int]) -> DevbayError:
    return DevbayError(
        "survivors",
        f"processes that do not end although they were killed: {', '.join(map(str, pids))}",
        next="they wait for a device or a network disk; end what they wait for, then repeat",
        exit_code=WORK_FAILED,
        pids=pids,
    )


def _wake(connection: sockets.socket) -> None:
    """End another thread's wait for this connection."""
    with suppress(OSError):  # it ended by itself in the same moment
        connection.shutdown(sockets.SHUT_RDWR)


def _relay(output: int, words: IO[bytes], sink: Sink) -> bytes:
    """Give output to `sink` until the keeper ends; returns its words. A command may close its output."""
    poll = select.poll()
    poll.register(output, select.POLLIN)
    poll.register(words, select.POLLIN)
    while True:
        ready = {handle for handle, _ in poll.poll()}
        if output not in ready:
            return words.read()
        if data := os.read(output, 65536):
            sink(data)
        else:
            poll.unregister(output)


def _drain(output: int, sink: Sink) -> None:
    """Give what is left in the pipe to `sink`."""
    os.set_blocking(output, False)
    with suppress(BlockingIOError):
        while data := os.read(output, 65536):
            sink(data)


def _cancel(keeper: subprocess.Popen[bytes]) -> None:
    """A closed stdin is a run's order to end everything."""
    assert keeper.stdin
    with suppress(BrokenPipeError):  # it ended by itself in the same moment
        keeper.stdin.close()
