"""Real servers in a folder that a dropped user reaches, a runner of finite commands, and templates."""

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

from devbay.jobs import Job
from devbay.runtimes.base import BayRef, BindMount, Exit, ServiceSpec, Sink
from devbay.runtimes.host.launch import Launch
from devbay.runtimes.host.owner import Owner, owner
from devbay.runtimes.host.templates import Templates

PATH = os.environ.get("PATH", "/usr/bin:/bin")


class CountedTemplates(Templates):
    """`made` are the keys that something was made for."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.made: list[str] = []

    def ensure(self, kind: str, key: str, make: Callable[[Path], None], job: Job) -> Path:
        def counted(folder: Path) -> None:
            make(folder)
            self.made.append(key)

        return super().ensure(kind, key, counted, job)


def user_words(user: Owner | None) -> dict[str, object]:
    return {"user": user[0], "group": user[1], "extra_groups": ()} if user else {}


class Runner:
    """Stands in for a keeper's run; `launches` are what was run."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []

    def __call__(self, launch: Launch, sink: Sink, timeout_s: float, job: Job) -> Exit:
        self.launches.append(launch)
        done = subprocess.run(
            [*launch.prefix, *launch.argv], env=dict(launch.env), cwd=launch.cwd, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout_s, check=False,
            start_new_session=True, **user_words(launch.user),
        )  # type: ignore[call-overload]  # fmt: skip
        sink(done.stdout)
        return Exit(done.returncode)


class Servers:
    """Starts launches and ends them with the test."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, launch: Launch, up: Callable[[], str | None]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                launch.argv, env=dict(launch.env), cwd=launch.cwd, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True, **user_words(launch.user),
            )  # type: ignore[call-overload]  # fmt: skip
        self._running.append(process)
        reason = up()
        for _ in range(1000):
            if reason is None:
                return process
            assert process.poll() is None, self._log.read_text("utf-8", "replace")
            time.sleep(0.01)
            reason = up()
        raise AssertionError(f"{reason}: {self._log.read_text('utf-8', 'replace')}")

    def stop(self, process: subprocess.Popen[bytes], how: int = signal.SIGTERM) -> int:
        process.send_signal(how)
        return process.wait(30)

    def end(self) -> None:
        for process in self._running:
            if process.poll() is None:
                process.send_signal(signal.SIGQUIT)  # Postgres takes its children along
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


@pytest.fixture(scope="session")
def reachable() -> Iterator[Path]:
    """pytest's own folders are closed to other users; /tmp may be small."""
    folder = Path(tempfile.mkdtemp(prefix="devbay-providers-", dir="/var/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def templates(reachable: Path) -> CountedTemplates:
    return CountedTemplates(reachable / "templates")


@pytest.fixture
def data(reachable: Path, request: pytest.FixtureRequest) -> Path:
    folder = reachable / "bays" / request.node.name[:60].replace("/", "-")
    folder.mkdir(parents=True)
    return folder / "db"


@pytest.fixture
def run() -> Runner:
    return Runner()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    found = Servers(tmp_path / "log")
    yield found
    found.end()


@pytest.fixture(scope="session")
def who() -> Owner | None:
    return owner("0badcafe")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def make_spec(
    image: str,
    *,
    env: Mapping[str, str] | None = None,
    ports: Mapping[str, int] | None = None,
    command: tuple[str, ...] | None = None,
    mounts: tuple[BindMount, ...] = (),
    kind: str = "service",
) -> ServiceSpec:
    """A service `db` whose ports are free ones of this machine."""
    return ServiceSpec(
        bay=BayRef("0badcafe", "0123456789abcdef", "shop", "/repo", "bay"),
        name="db",
        kind=kind,  # type: ignore[arg-type]
        image=image,
        env=env or {},
        command=command,
        mounts=mounts,
        ports={name: (inner, free_port()) for name, inner in (ports or {}).items()},
    )


@pytest.fixture
def spec_of() -> Callable[..., ServiceSpec]:
    return make_spec
