"""Whether a service is up: probes from the host, polled fast at first, the same for every runtime."""

from __future__ import annotations

import http.client
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.manifest.models import Health

FIRST_PAUSE_S = 0.01
GROWTH = 1.4
FIRST_SUCCESSES = 3
SUCCESS_GAP_S = 0.01
TCP_SETTLE_S = 0.05
"""A forwarder (docker-proxy) accepts for a service that does not listen, and then ends the connection."""
PROCESS_SETTLE_S = 0.25
"""A process that fails at once has ended by then."""
ATTEMPT_S = 5.0
PORT_WAIT_S, PORT_PAUSE_S = 1.0, 0.02
COMMAND_S = 30.0
"""Broker clients take seconds to start; a command that runs longer cannot be ended from outside."""
TAIL_LINES = 40
ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


@dataclass(frozen=True)
class ProcessState:
    """exit_code is of the last end, if any; will_restart: the runtime brings it back by itself."""

    running: bool
    exit_code: int | None = None
    will_restart: bool = False


@dataclass(frozen=True)
class ExecOutcome:
    """How a command in a service ended; exit_code 127: there is no such program. output: its start."""

    exit_code: int
    output: str = ""
    timed_out: bool = False


class Target(Protocol):
    """What a runtime lets a probe do with one service."""

    @property
    def name(self) -> str: ...

    def address(self, port: int | None) -> tuple[str, int]:
        """Where a port of the service (None: its primary one) answers on this machine."""

    def exec(self, argv: Sequence[str], timeout_s: float) -> ExecOutcome: ...

    def log_lines(self, job: Job) -> Iterator[str]:
        """The lines since the present start, then those to come; ends with the process or the job."""

    def log_tail(self, lines: int) -> list[str]: ...

    def state(self) -> ProcessState: ...


def wait_healthy(health: Health, target: Target, *, host_header: str, first: bool, job: Job) -> None:
    """Probe until the service is up.

    `first`: it was never up in this container yet, so http and tcp must succeed three times in a row.
    Nothing is probed during `start_period`; the limit is that plus `timeout`. Raises `probe_failed` with the
    last reason, `service_exited` where the process ended for good (both with `reason` and the last 40 `log`
    lines), and `Cancelled`.
    """
    deadline = time.monotonic() + health.start_period_s + health.timeout_s
    settle = PROCESS_SETTLE_S if health.kind == "process" else 0.0
    _sleep_while_alive(target, max(health.start_period_s, settle), job)
    if health.kind == "log":
        _wait_for_line(health, target, deadline, job)
        return
    wanted = FIRST_SUCCESSES if first and health.kind in ("http", "tcp") else 1
    pause = FIRST_PAUSE_S
    if health.kind == "cmd":
        _until_port_answers(target, deadline, job)
    while True:
        job.check()
        begun = time.monotonic()
        failure = _attempts(health, target, host_header, wanted, deadline, job)
        if failure is None:
            return
        reason = _alive(target) or failure
        left = deadline - time.monotonic()
        if left <= 0:
            raise _failed(target, health, reason)
        # no more than half of the time: a command in a container costs as much as a small start
        job.sleep(min(max(pause, time.monotonic() - begun), health.interval_s, left))
        pause = min(pause * GROWTH, health.interval_s)
        if health.kind == "cmd":
            _until_port_answers(target, deadline, job)


def _until_port_answers(target: Target, deadline: float, job: Job) -> None:
    """Before a command is run: wait, at most a second, until the service's port answers, if it has one.

    Looking at a port costs nothing; a command in a container slows down the start that it asks about.
    """
    try:
        address = target.address(None)
    except DevbayError:
        return
    until = min(deadline, time.monotonic() + PORT_WAIT_S)
    while time.monotonic() < until:
        if tcp_reason(address, successes=1, timeout_s=PORT_WAIT_S) is None:
            return
        _alive(target)
        job.sleep(PORT_PAUSE_S)


def probe_once(health: Health, target: Target, *, host_header: str) -> str | None:
    """Probe a service that was up before; None if it still is, else the reason. No waiting, no raising."""
    state = target.state()
    if not state.running:
        return _ended(state)
    if health.kind in ("log", "process"):
        return None
    return _attempt(health, target, host_header, 1, COMMAND_S if health.kind == "cmd" else ATTEMPT_S)


def tcp_reason(address: tuple[str, int], *, successes: int, timeout_s: float) -> str | None:
    """Connect `successes` times, 10 ms apart; None if no connection is ended within 50 ms.

    The waits overlap: three connections take 70 ms.
    """
    connections: list[tuple[socket.socket, float]] = []
    try:
        for number in range(successes):
            if number:
                time.sleep(SUCCESS_GAP_S)
            connection = socket.create_connection(address, timeout=timeout_s)
            connections.append((connection, time.monotonic() + TCP_SETTLE_S))
        for connection, until in connections:
            if _ends_before(connection, until):
                return "accepted and closed at once (nothing listens behind the published port yet)"
    except OSError as error:
        return _network_reason(error, timeout_s)
    finally:
        for connection, _until in connections:
            connection.close()
    return None


def _ends_before(connection: socket.socket, until: float) -> bool:
    """Whether the other side ends the connection by then, without a byte. Raises `ConnectionResetError`."""
    connection.settimeout(max(0.001, until - time.monotonic()))
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False


def http_reason(
    address: tuple[str, int], path: str, accept: Sequence[tuple[int, int]], *, host: str, timeout_s: float
) -> str | None:
    """One GET without following redirects; None if the status is accepted."""
    connection = http.client.HTTPConnection(*address, timeout=timeout_s)
    try:
        connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
        for name, value in (("Host", host), ("User-Agent", "devbay-probe"), ("Accept", "*/*")):
            connection.putheader(name, value)
        connection.putheader("Connection", "close")
        connection.endheaders()
        status = connection.getresponse().status
    except OSError as error:  # http.client's RemoteDisconnected among them
        return _network_reason(error, timeout_s)
    except http.client.HTTPException as error:
        return f"no HTTP answer ({type(error).__name__})"
    finally:
        connection.close()
    return None if any(low <= status <= high for low, high in accept) else f"HTTP {status}"


def _attempts(
    health: Health, target: Target, host: str, wanted: int, deadline: float, job: Job
) -> str | None:
    """The wanted number of successes in a row, or the reason of the first failure."""
    rounds, at_once = (1, wanted) if health.kind == "tcp" else (wanted, 1)
    for number in range(rounds):
        if number:
            job.sleep(SUCCESS_GAP_S)
        limit = COMMAND_S if health.kind == "cmd" else ATTEMPT_S
        timeout_s = min(limit, max(0.2, deadline - time.monotonic()))
        if reason := _attempt(health, target, host, at_once, timeout_s):
            return reason
    return None


def _attempt(health: Health, target: Target, host: str, successes: int, timeout_s: float) -> str | None:
    if health.http is not None:
        address = target.address(None)
        return http_reason(address, health.http, health.accept, host=host, timeout_s=timeout_s)
    if health.tcp is not None:
        return tcp_reason(target.address(health.tcp), successes=successes, timeout_s=timeout_s)
    if health.cmd is not None:
        return _command_reason(health.cmd, target, timeout_s)
    return _alive(target)


def _command_reason(argv: Sequence[str], target: Target, timeout_s: float) -> str | None:
    try:
        outcome = target.exec(argv, timeout_s)
    except DevbayError as error:
        if error.code in ("not_running", "paused", "not_found"):
            return error.message
        raise
    if outcome.timed_out:
        return f"{argv[0]} did not end within {timeout_s:g} s"
    if outcome.exit_code == 0:
        return None
    if outcome.exit_code == 127:
        return f"exit code 127: {argv[0]} is not in the image"
    said = ANSI.sub("", outcome.output).strip().splitlines()
    return f"exit code {outcome.exit_code}" + (f": {said[-1][:300]}" if said else "")


def _wait_for_line(health: Health, target: Target, deadline: float, job: Job) -> None:
    """Follow the output of each start until a line matches."""
    pattern = re.compile(health.log or "")
    while True:
        if _line_matches(pattern, target, deadline - time.monotonic(), job):
            return
        job.check()
        reason = _alive(target) or f"no line matches {pattern.pattern!r}"
        if deadline - time.monotonic() <= 0:
            raise _failed(target, health, reason)
        job.sleep(min(0.1, max(0.0, deadline - time.monotonic())))


def _line_matches(pattern: re.Pattern[str], target: Target, seconds: float, job: Job) -> bool:
    reading = Job()
    timer = threading.Timer(max(0.0, seconds), reading.cancel)
    timer.start()
    try:
        with job.when_cancelled(reading.cancel):
            return any(pattern.search(ANSI.sub("", line)) for line in target.log_lines(reading))
    except DevbayError:
        if reading.cancelled:
            return False
        raise
    finally:
        timer.cancel()


def _sleep_while_alive(target: Target, seconds: float, job: Job) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        job.sleep(min(left, 0.1))
        _alive(target)


def _alive(target: Target) -> str | None:
    """None if the process runs, a reason if it is being restarted; raises `service_exited` else."""
    state = target.state()
    if state.running:
        return None
    reason = _ended(state)
    if state.will_restart:
        return f"{reason}, and is being restarted"
    raise DevbayError(
        "service_exited",
        f"{target.name} {reason} before it was up",
        next="read the log lines in this error, then `devbay logs`",
        exit_code=WORK_FAILED,
        reason=reason,
        log=target.log_tail(TAIL_LINES),
    )


def _ended(state: ProcessState) -> str:
    return "does not run" if state.exit_code is None else f"ended with exit code {state.exit_code}"


def _failed(target: Target, health: Health, reason: str) -> DevbayError:
    limit = health.start_period_s + health.timeout_s
    return DevbayError(
        "probe_failed",
        f"{target.name} was not up after {limit:g} s ({health.kind} probe): {reason}",
        next="read the log lines in this error; raise `health.timeout` if it only needs longer",
        exit_code=WORK_FAILED,
        reason=reason,
        log=target.log_tail(TAIL_LINES),
    )


def _network_reason(error: OSError, timeout_s: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout_s:g} s"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, (ConnectionResetError, BrokenPipeError)):
        return "connection closed without an answer"
    return error.strerror or str(error)
