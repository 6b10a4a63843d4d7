"""A service of this machine as what a probe asks."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import LogEntry
from devbay.runtimes.host.keptstate import KeptState
from devbay.runtimes.host.launch import MARK, Launch
from devbay.runtimes.host.sandbox import ended
from devbay.runtimes.probes import ExecOutcome, ProcessState

LOOPBACK = "127.0.0.1"
OUTPUT = 4096
NO_PROGRAM = 127

Check = Callable[[], str | None]
"""A provider's own way to ask its server; the reason where it is not up."""


@dataclass(frozen=True)
class HostTarget:
    """ports: declared port to the one given on this machine. as_command: how a health command is run here:
    as a process like the service's own, or as a check of the provider's.
    """

    name: str
    ports: Mapping[int, int]
    primary: int | None
    look: Callable[[], KeptState | None]
    as_command: Callable[[Sequence[str]], Launch | Check]
    tail: Callable[[int], Sequence[LogEntry]]
    follow: Callable[[str, Job], Iterator[LogEntry]]
    started_at: str = field(default="")

    def address(self, port: int | None) -> tuple[str, int]:
        wanted = self.primary if port is None else port
        if wanted is None or wanted not in self.ports:
            raise DevbayError("not_published", f"{self.name} has no port {wanted or ''}".rstrip())
        return LOOPBACK, self.ports[wanted]

    def exec(self, argv: Sequence[str], timeout_s: float) -> ExecOutcome:
        how = self.as_command(argv)
        if not isinstance(how, Launch):
            reason = how()
            return ExecOutcome(0 if reason is None else 1, reason or "")
        return run_briefly(how, timeout_s)

    def log_lines(self, job: Job) -> Iterator[str]:
        state = self.look()
        for entry in self.follow(state.started_at if state else "", job):
            yield entry.text

    def log_tail(self, lines: int) -> list[str]:
        return [entry.text for entry in self.tail(lines)]

    def state(self) -> ProcessState:
        found = self.look()
        if found is None:
            return ProcessState(running=False)
        code = exit_code(found, self.log_tail)
        return ProcessState(found.state in {"running", "paused"}, code, found.state == "restarting")


def exit_code(state: KeptState, log_tail: Callable[[int], Sequence[str]]) -> int | None:
    """How a service ended: where a sandbox could not run it, as a shell would say it."""
    return ended(1, "\n".join(log_tail(3)))[0] if state.exit_code == 1 else state.exit_code


def run_briefly(launch: Launch, timeout_s: float) -> ExecOutcome:
    """Run a command to its end beside a service; its whole process group ends with the time."""
    folder = launch.cwd if Path(launch.cwd).is_dir() else "/"
    user = {"user": launch.user[0], "group": launch.user[1], "extra_groups": ()} if launch.user else {}
    try:
        process = subprocess.Popen(
            [*launch.prefix, *launch.argv], env={**launch.env, MARK: launch.mark}, cwd=folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, **user,
        )  # type: ignore[call-overload]  # fmt: skip
    except OSError as error:
        return ExecOutcome(NO_PROGRAM, f"{launch.argv[0]}: {error.strerror}")
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _end_group(process)
        return ExecOutcome(-1, "", timed_out=True)
    text = output[:OUTPUT].decode("utf-8", "replace")
    code, fault = ended(process.returncode, text) if launch.prefix else (process.returncode, "")
    return ExecOutcome(code, fault or text)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)  # its leader is not waited for yet, so the number is its own
    process.communicate()
