from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job
from devbay.manifest.models import Health
from devbay.runtimes.probes import ExecOutcome, ProcessState, probe_once, wait_healthy

RUNNING = ProcessState(running=True)


class FakeTarget:
    """The one fake of a service: what it answers is given as data or functions."""

    name = "web"

    def __init__(self, port: int | None = None, **given: Any) -> None:
        self.port = port
        self.state_now: ProcessState = given.get("state", RUNNING)
        self.outcomes: list[ExecOutcome] = given.get("outcomes", [])
        self.lines: Callable[[Job], Iterator[str]] = given.get("lines", lambda job: iter(()))
        self.execs: list[float] = []

    def address(self, port: int | None) -> tuple[str, int]:
        if self.port is None:
            raise DevbayError("not_published", "web publishes no port")
        return "127.0.0.1", self.port

    def exec(self, argv: Sequence[str], timeout_s: float) -> ExecOutcome:
        self.execs.append(time.monotonic())
        return self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]

    def log_lines(self, job: Job) -> Iterator[str]:
        return self.lines(job)

    def log_tail(self, lines: int) -> list[str]:
        return [f"line {number}" for number in range(100)][-lines:]

    def state(self) -> ProcessState:
        return self.state_now


def health(**keys: Any) -> Health:
    return Health.model_validate({"timeout": "1s", "interval": "50ms"} | keys)


@contextmanager
def server(answer: Callable[[socket.socket, int], None]) -> Iterator[tuple[int, list[bytes]]]:
    """A TCP service on loopback; `answer(connection, number)`. Yields its port and what it was sent."""
    listener = socket.create_server(("127.0.0.1", 0))
    received: list[bytes] = []

    def serve(connection: socket.socket, number: int) -> None:
        with connection:
            answer(connection, number)

    def accept() -> None:
        number = 0
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            number += 1
            received.append(b"")
            threading.Thread(target=serve, args=(connection, number), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], received
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(2)


def stay(connection: socket.socket, _number: int) -> None:
    connection.settimeout(2)
    try:
        connection.recv(1)
    except OSError:
        return


def http(
    status: str, headers: str = "", seen: list[bytes] | None = None
) -> Callable[[socket.socket, int], None]:
    def answer(connection: socket.socket, _number: int) -> None:
        request = connection.recv(4096)
        if seen is not None:
            seen.append(request)
        connection.sendall(f"HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\n\r\n".encode())

    return answer


def check(health: Health, target: FakeTarget, *, first: bool = True, job: Job | None = None) -> None:
    wait_healthy(health, target, host_header="a--b.localhost", first=first, job=job or Job())


def test_http_asks_with_the_sites_name_three_times_at_the_first_start() -> None:
    seen: list[bytes] = []
    with server(http("200 OK", seen=seen)) as (port, _):
        check(health(http="/up?x=1"), FakeTarget(port))
    assert len(seen) == 3
    assert seen[0].startswith(b"GET /up?x=1 HTTP/1.1\r\nHost: a--b.localhost\r\n")


def test_one_success_is_enough_later() -> None:
    with server(http("200 OK")) as (port, received):
        check(health(http="/"), FakeTarget(port), first=False)
        assert len(received) == 1


def test_redirects_count_and_are_not_followed() -> None:
    with server(http("302 Found", "Location: /login\r\n")) as (port, received):
        assert probe_once(health(http="/"), FakeTarget(port), host_header="h") is None
        assert len(received) == 1


@pytest.mark.parametrize(("accept", "reason"), [(None, "HTTP 401"), (["200-399", "401"], None)])
def test_accept_says_which_statuses_count(accept: Any, reason: str | None) -> None:
    given = health(http="/", **({"accept": accept} if accept else {}))
    with server(http("401 Unauthorized")) as (port, _):
        assert probe_once(given, FakeTarget(port), host_header="h") == reason


def test_no_http_at_all_is_a_reason() -> None:
    def nonsense(connection: socket.socket, _number: int) -> None:
        connection.recv(100)
        connection.sendall(b"220 mail ready\r\n")

    with server(nonsense) as (port, _):
        reason = probe_once(health(http="/"), FakeTarget(port), host_header="h")
    assert reason == "no HTTP answer (BadStatusLine)"


def test_the_failure_says_the_last_reason_and_the_last_lines() -> None:
    with server(http("500 Oops")) as (port, _), pytest.raises(DevbayError) as raised:
        check(health(http="/", timeout="200ms"), FakeTarget(port))
    error = raised.value
    assert error.code == "probe_failed" and error.exit_code == 1
    assert error.message == "web was not up after 0.2 s (http probe): HTTP 500"
    assert (
        error.data["reason"] == "HTTP 500"
        and error.data["log"][0] == "line 60"
        and len(error.data["log"]) == 40
    )


def test_nothing_listening_is_connection_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    for given in (health(tcp=1), health(http="/")):
        assert probe_once(given, FakeTarget(port), host_header="h") == "connection refused"


def test_tcp_counts_three_connections_that_stay_open_in_overlapping_waits() -> None:
    with server(stay) as (port, received):
        check(health(tcp=1), FakeTarget(port))
        assert len(received) == 3


def test_tcp_counts_a_service_that_speaks_first() -> None:
    def banner(connection: socket.socket, _number: int) -> None:
        connection.sendall(b"220 ready\r\n")

    with server(banner) as (port, _):
        assert probe_once(health(tcp=1), FakeTarget(port), host_header="h") is None


def test_tcp_does_not_count_a_forwarder_that_closes_again() -> None:
    with server(lambda connection, number: None) as (port, _):
        reason = probe_once(health(tcp=1), FakeTarget(port), host_header="h")
    assert reason is not None and "closed at once" in reason


def test_tcp_starts_over_when_one_of_the_three_is_ended() -> None:
    def second_fails(connection: socket.socket, number: int) -> None:
        if number != 2:
            stay(connection, number)

    with server(second_fails) as (port, received):
        check(health(tcp=1), FakeTarget(port))
        assert len(received) == 6


def test_a_command_passes_with_exit_code_0_and_is_polled_fast_at_first() -> None:
    target = FakeTarget(outcomes=[ExecOutcome(1)] * 3 + [ExecOutcome(0)])
    check(health(cmd=["pg_isready"]), target)
    assert len(target.execs) == 4
    assert target.execs[-1] - target.execs[0] < 5


def test_a_command_waits_for_its_services_port_but_no_longer_than_a_second() -> None:
    with server(stay) as (port, received):
        target = FakeTarget(port, outcomes=[ExecOutcome(0)])
        check(health(cmd=["pg_isready"]), target)
        assert len(received) == 1
    silent = FakeTarget(1, outcomes=[ExecOutcome(0)])
    before = time.monotonic()
    check(health(cmd=["ready"], timeout="20s"), silent)
    assert 0.9 < time.monotonic() - before < 15
    assert len(silent.execs) == 1


def test_polling_grows_slower_up_to_the_interval() -> None:
    target = FakeTarget(outcomes=[ExecOutcome(1)])
    with pytest.raises(DevbayError):
        check(health(cmd=["false"], interval="100ms"), target)
    assert 3 <= len(target.execs) <= 20


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (ExecOutcome(2, "\x1b[31mno\nresponse\x1b[0m\n"), "exit code 2: response"),
        (ExecOutcome(1), "exit code 1"),
        (ExecOutcome(127, "OCI runtime exec failed"), "exit code 127: curl is not in the image"),
        (ExecOutcome(-1, "", timed_out=True), "curl did not end within 30 s"),
    ],
)
def test_why_a_command_failed(outcome: ExecOutcome, reason: str) -> None:
    target = FakeTarget(outcomes=[outcome])
    assert probe_once(health(cmd=["curl"]), target, host_header="h") == reason


def test_a_service_that_ends_fails_at_once() -> None:
    target = FakeTarget(outcomes=[ExecOutcome(1)], state=ProcessState(False, 3))
    before = time.monotonic()
    with pytest.raises(DevbayError, match="web ended with exit code 3 before it was up") as raised:
        check(health(cmd=["x"], timeout="20s"), target)
    assert raised.value.code == "service_exited" and len(raised.value.data["log"]) == 40
    assert time.monotonic() - before < 15


def test_a_service_that_is_brought_back_is_waited_for() -> None:
    target = FakeTarget(outcomes=[ExecOutcome(1)], state=ProcessState(False, 3, will_restart=True))
    with pytest.raises(DevbayError, match="ended with exit code 3, and is being restarted") as raised:
        check(health(cmd=["x"], timeout="100ms"), target)
    assert raised.value.code == "probe_failed"


def test_nothing_is_probed_during_the_start_period_and_an_exit_in_it_is_seen() -> None:
    target = FakeTarget(outcomes=[ExecOutcome(0)])
    before = time.monotonic()
    check(health(cmd=["x"], start_period="200ms"), target)
    assert target.execs[0] - before >= 0.2 and len(target.execs) == 1
    with pytest.raises(DevbayError) as raised:
        check(health(cmd=["x"], start_period="20s"), FakeTarget(state=ProcessState(False, 1)))
    assert raised.value.code == "service_exited"


def test_the_limit_is_the_start_period_and_the_timeout() -> None:
    target = FakeTarget(outcomes=[ExecOutcome(1)])
    before = time.monotonic()
    with pytest.raises(DevbayError, match=r"after 0\.4 s"):
        check(health(cmd=["x"], start_period="200ms", timeout="200ms"), target)
    assert 0.38 < time.monotonic() - before < 10


def test_a_process_must_run_for_a_moment() -> None:
    check(health(process=True), FakeTarget())
    with pytest.raises(DevbayError) as raised:
        check(health(process=True), FakeTarget(state=ProcessState(False, 1)))
    assert raised.value.code == "service_exited"


def test_a_log_line_is_matched_without_its_colours_as_it_comes() -> None:
    def lines(job: Job) -> Iterator[str]:
        yield "starting"
        time.sleep(0.1)
        yield "\x1b[32mready\x1b[39m in \x1b[1m300\x1b[22m ms"
        raise AssertionError("read past the match")

    check(health(log=r"^ready in \d+"), FakeTarget(lines=lines))


def test_a_log_that_never_matches_ends_at_the_limit() -> None:
    def lines(job: Job) -> Iterator[str]:
        yield "starting"
        job.sleep(60)

    before = time.monotonic()
    with pytest.raises(DevbayError, match="no line matches 'ready'") as raised:
        check(health(log="ready", timeout="200ms"), FakeTarget(lines=lines))
    assert raised.value.code == "probe_failed" and time.monotonic() - before < 15


def test_a_log_that_ends_with_the_service_fails_at_once() -> None:
    target = FakeTarget(lines=lambda job: iter(["boom"]), state=ProcessState(False, 1))
    with pytest.raises(DevbayError) as raised:
        check(health(log="ready", timeout="20s"), target)
    assert raised.value.code == "service_exited"


def test_each_start_is_read_anew() -> None:
    runs = [["boom"], ["boom"], ["ready"]]
    target = FakeTarget(lines=lambda job: iter(runs.pop(0)), state=ProcessState(False, 1, will_restart=True))
    check(health(log="ready"), target)
    assert runs == []


@pytest.mark.parametrize("form", [{"log": "ready"}, {"cmd": ["x"]}, {"tcp": 1}, {"process": True}])
def test_a_cancelled_job_ends_every_wait(form: dict[str, Any]) -> None:
    def lines(job: Job) -> Iterator[str]:
        job.sleep(60)
        yield ""

    job = Job()
    target = FakeTarget(1, outcomes=[ExecOutcome(1)], lines=lines)
    threading.Timer(0.1, job.cancel).start()
    before = time.monotonic()
    with pytest.raises(Cancelled):
        check(
            health(timeout="60s", start_period="50s" if "process" in form else "0s", **form), target, job=job
        )
    assert time.monotonic() - before < 40


def test_what_was_up_by_its_log_is_up_while_it_runs() -> None:
    assert probe_once(health(log="x"), FakeTarget(), host_header="h") is None
    ended = FakeTarget(state=ProcessState(False, 9))
    assert probe_once(health(log="x"), ended, host_header="h") == "ended with exit code 9"
