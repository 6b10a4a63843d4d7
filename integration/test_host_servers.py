"""Servers that no wheel ships, kept by real keepers; skipped with the reason where the machine has none."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import BayRef, BindMount, ServiceSpec
from devbay.runtimes.host.keepers import Keepers
from devbay.runtimes.host.owner import owner
from devbay.runtimes.host.place import Place
from devbay.runtimes.host.providers import Provider, Server, provider
from devbay.runtimes.host.templates import Templates

PATH = os.environ.get("PATH", "")
BAY = BayRef("0badcafe", "0123456789abcdef", "shop", "/repo", "bay")


class Machine:
    """One home's keepers and templates; services are started and stopped as the runtime does it."""

    def __init__(self, root: Path) -> None:
        self.place = Place(root / "host", root / "sockets")
        self.place.root.mkdir(mode=0o711)
        self.keepers = Keepers(self.place, BAY.home)
        self.templates = Templates(self.place.templates)
        self.who = owner(BAY.id)
        self.started: set[str] = set()

    def up(self, spec: ServiceSpec, met: Provider, server: Server, probe: tuple[str, ...]) -> Path:
        data = self.place.data(BAY.id, spec.name)
        met.prepare(spec, server, data, self.templates, self.who, self.keepers.run, Job())
        self.started.add(spec.name)
        self.keepers.start(*self._where(spec.name), met.launch(spec, server, data, self.who), "config")
        check = met.probe(spec, server, probe)
        assert callable(check)
        for _ in range(600):
            if check() is None:
                return data
            time.sleep(0.05)
        log = (self._where(spec.name)[0] / "log").read_text("utf-8", "replace")
        raise AssertionError(f"{check()}: {log}")

    def stop(self, name: str) -> None:
        self.keepers.stop(*self._where(name), 20)

    def kill(self, name: str) -> None:
        found = self.keepers.state(self._where(name)[0])
        assert found is not None and found.pid
        os.kill(found.pid, signal.SIGKILL)
        self.stop(name)

    def _where(self, name: str) -> tuple[Path, Path]:
        return self.place.service(BAY.id, name), self.place.socket(BAY.id, name)


@pytest.fixture
def machine() -> Iterator[Machine]:
    root = Path(tempfile.mkdtemp(prefix="devbay-servers-"))
    root.chmod(0o711)
    found = Machine(root)
    try:
        yield found
    finally:
        for name in found.started:
            found.stop(name)
        shutil.rmtree(root)


def met(image: str) -> tuple[Provider, Server]:
    found = provider(image)
    assert found is not None
    try:
        return found, found.find(image, PATH)
    except DevbayError as error:
        pytest.skip(error.message)


def spec_of(name: str, image: str, port: int, **further: object) -> ServiceSpec:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        free = int(listener.getsockname()[1])
    ports = {"port": (port, free)}
    return ServiceSpec(BAY, name, "service", image=image, ports=ports, **further)  # type: ignore[arg-type]


def client(env: Mapping[str, str], password: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    program = shutil.which("mariadb") or shutil.which("mysql")
    if program is None:
        pytest.skip("no client program: mariadb or mysql")

    def ask(user: str, sql: str, guess: str = password) -> subprocess.CompletedProcess[str]:
        argv = [program, "--no-defaults", "--protocol=tcp", f"-u{user}", "-BNe", sql]
        values = {**env, "MYSQL_PWD": guess, "PATH": PATH}
        return subprocess.run(argv, env=values, capture_output=True, text=True, check=False)

    return ask


ENV = {
    "MYSQL_ROOT_PASSWORD": "r00t's",
    "MYSQL_DATABASE": "shop_1",
    "MYSQL_USER": "ann",
    "MYSQL_PASSWORD": "r00t's",
}


def test_mariadb_has_the_environments_users_and_database_and_survives_being_killed(machine: Machine) -> None:
    found, server = met("mariadb:10.11")
    spec = spec_of("db", "mariadb:10.11", 3306, env=ENV)
    machine.up(spec, found, server, ("mysqladmin", "ping"))
    ask = client(found.client_env(spec, server), "r00t's")
    made = ask("ann", "create table shop_1.t(n int); insert into shop_1.t values (7)")
    assert made.returncode == 0, made.stderr
    assert "Access denied" in ask("ann", "select 1", "guess").stderr
    assert "Access denied" in ask("root", "select 1", "").stderr
    assert "Access denied" in ask("nobody", "select 1", "").stderr
    assert ask("ann", "select user from mysql.user").returncode != 0
    assert ask(
        "root", "select @@character_set_database, convert_tz('2026-07-01', 'UTC', 'Europe/Berlin')"
    ).stdout
    machine.kill("db")
    machine.up(spec, found, server, ("mysqladmin", "ping"))
    assert ask("ann", "select n from shop_1.t").stdout == "7\n"


def test_mariadb_runs_the_repositorys_scripts_once_per_bay(machine: Machine, tmp_path: Path) -> None:
    found, server = met("mariadb:10.11")
    (tmp_path / "1.sql").write_text("create table t(word varchar(9));\n")
    (tmp_path / "2.sh").write_text("echo \"insert into t values ('$WORD')\" | docker_process_sql\n")
    mounts = (BindMount(str(tmp_path), "/docker-entrypoint-initdb.d", True),)
    spec = spec_of("db", "mysql:8.0", 3306, env={**ENV, "WORD": "hello"}, mounts=mounts)
    machine.up(spec, found, server, ("healthcheck.sh", "--connect"))
    machine.stop("db")
    machine.up(spec, found, server, ("healthcheck.sh", "--connect"))
    ask = client(found.client_env(spec, server), "r00t's")
    assert ask("root", "select word from shop_1.t").stdout == "hello\n"


def test_memcached_answers_on_the_given_port(machine: Machine) -> None:
    found, server = met("memcached:1.6")
    machine.up(spec_of("cache", "memcached:1.6", 11211), found, server, ("sh", "-c", "echo version"))


def test_a_kept_postgres_leaves_nothing_when_it_is_killed(machine: Machine) -> None:
    found, server = met("postgres:17")
    spec = spec_of("db", "postgres:17", 5432, env={"POSTGRES_PASSWORD": "x"})
    data = machine.up(spec, found, server, ("pg_isready",))
    segment = (data / "postmaster.pid").read_text().splitlines()[6].split()[1]
    assert segment in segments()
    machine.kill("db")
    found.clean(data)
    assert segment not in segments()
    machine.up(spec, found, server, ("pg_isready",))


def segments() -> set[str]:
    """The ids of this machine's shared memory."""
    return {line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}
