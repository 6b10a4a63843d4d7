"""Redis as a bay has it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.host.owner import Owner
from devbay.runtimes.host.providers import asks, redis
from devbay.runtimes.host.providers.base import Server
from devbay.runtimes.host.providers.redis import Found, Redis

PATH = os.environ.get("PATH", "")
PROVIDER = Redis()
PING = ("redis-cli", "ping")


@pytest.fixture(scope="module")
def server() -> Server:
    try:
        return PROVIDER.find("redis:7", PATH)
    except DevbayError as error:
        pytest.skip(error.message)


@pytest.fixture
def start(
    server: Server, data: Path, who: Owner | None, run: Any, servers: Any, templates: Any
) -> Callable[[ServiceSpec], subprocess.Popen[bytes]]:
    def begin(spec: ServiceSpec) -> subprocess.Popen[bytes]:
        PROVIDER.prepare(spec, server, data, templates, who, run, Job())
        check = PROVIDER.probe(spec, server, PING)
        assert callable(check)
        process: subprocess.Popen[bytes] = servers.start(PROVIDER.launch(spec, server, data, who), check)
        return process

    return begin


def say(spec: ServiceSpec, *lines: str) -> list[str]:
    """What the server answers to inline commands."""
    with socket.create_connection(("127.0.0.1", spec.ports["port"][1])) as connection:
        connection.sendall("".join(f"{line}\r\n" for line in lines).encode())
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile() as answers:
            return answers.read().splitlines()


def test_the_server_answers_on_the_given_port_and_on_loopback_alone(start: Any, spec_of: Any) -> None:
    spec = spec_of(
        "redis:7", ports={"port": 6379}, command=("redis-server", "--bind", "0.0.0.0", "--port", "7")
    )
    start(spec)
    assert say(spec, "SET a 1", "GET a") == ["+OK", "$1", "1"]
    assert "127.0.0.1" in say(spec, "CONFIG GET bind")


def test_an_append_only_file_keeps_what_was_written_when_the_server_is_killed(
    start: Any, spec_of: Any, servers: Any
) -> None:
    spec = spec_of("redis:7", ports={"port": 6379}, command=("redis-server", "--appendonly", "yes"))
    process = start(spec)
    say(spec, "SET a kept")
    servers.stop(process, signal.SIGKILL)
    start(spec)
    assert say(spec, "GET a")[1] == "kept"


def test_a_stopped_server_writes_its_data_into_the_data_directory(
    start: Any, spec_of: Any, servers: Any, data: Path
) -> None:
    spec = spec_of("redis:7", ports={"port": 6379})
    process = start(spec)
    say(spec, "SET a kept")
    assert servers.stop(process) == 0
    assert [path.name for path in data.iterdir()] == ["dump.rdb"]
    start(spec)
    assert say(spec, "GET a")[1] == "kept"


def test_the_password_of_the_flags_is_asked_for_and_known_to_the_probe(start: Any, spec_of: Any) -> None:
    spec = spec_of("redis:7", ports={"port": 6379}, command=("redis-server", "--requirepass", "s3cret"))
    start(spec)
    assert say(spec, "GET a")[0].startswith("-NOAUTH")
    port = spec.ports["port"][1]
    assert asks.redis(port, "s3cret") is None
    assert asks.redis(port, None) is None
    assert "WRONGPASS" in (asks.redis(port, "guess") or "")


@pytest.mark.parametrize(
    "argv",
    [
        ("redis-cli", "-a", "x", "ping"),
        ("valkey-cli", "PING"),
        ("sh", "-c", 'redis-cli -a "$REDIS_PASSWORD" ping'),
        ("sh", "-c", "redis-cli ping | grep PONG"),
    ],
)
def test_pings_of_the_client_are_met_by_a_check(server: Server, spec_of: Any, argv: tuple[str, ...]) -> None:
    check = PROVIDER.probe(spec_of("redis:7", ports={"port": 6379}), server, argv)
    assert callable(check)
    assert "port" in (check() or "")


def test_other_commands_run_as_they_are(server: Server, spec_of: Any) -> None:
    assert PROVIDER.probe(spec_of("redis:7", ports={"port": 6379}), server, ("redis-cli", "dbsize")) is None


def test_another_program_or_version_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    valkey = Found("valkey", "9.1.2", Path("/x/valkey-server"), "the wheel w", True)
    old = Found("redis", "6.2.0", Path("/y/redis-server"), "/y", False)
    monkeypatch.setattr(redis, "installed", lambda path: [valkey])
    assert PROVIDER.find("redis:7", PATH).note == "redis:7 is met by Valkey 9.1.2 (the wheel w)"
    assert not PROVIDER.find("valkey/valkey:9", PATH).note
    monkeypatch.setattr(redis, "installed", lambda path: [valkey, old])
    assert PROVIDER.find("redis:7", PATH).note == "redis:7 is met by Redis 6.2.0 (/y)"
    assert PROVIDER.find("valkey/valkey:8", PATH).program == valkey.program


@pytest.mark.parametrize("image", ["redis/redis-stack:latest", "bitnami/redis:7"])
def test_images_that_promise_more_are_refused(image: str) -> None:
    with pytest.raises(DevbayError) as refused:
        PROVIDER.find(image, PATH)
    assert refused.value.code == "image_not_met"
