"""An engine of the test's own that goes down, comes back, and is not what we can use."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.docker import containers, logs
from devbay.runtimes.docker.containers import ContainerSpec
from devbay.runtimes.docker.contexts import Endpoint
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.events import Event, Watcher

IMAGE = "busybox:1.37"
LABELS = {"dev.devbay.home": "restart", "dev.devbay.bay": "b1", "dev.devbay.service": "web"}

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("dockerd") is None, reason="needs root and dockerd"),
]


class OwnEngine:
    """A dockerd beside the machine's: own data, socket and pid file.

    In namespaces of its own, because a dockerd with `--bridge=none` deletes the machine's `docker0`, and
    one that is killed leaves its data folder mounted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "d.sock"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def engine(self) -> Engine:
        return Engine(Endpoint("default", f"unix://{self.socket}"))

    def start(self) -> None:
        argv = [
            "unshare",
            "--net",
            "--mount",
            "dockerd",
            "--data-root",
            self.folder / "data",
            "--exec-root",
            self.folder / "exec",
        ]
        argv += ["--pidfile", self.folder / "pid", "--host", f"unix://{self.socket}", "--bridge=none"]
        argv += ["--iptables=false", "--ip6tables=false"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        wait_for(self._answers, 30)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(30)
            self.process = None

    def _answers(self) -> bool:
        try:
            self.engine.check()
        except DevbayError:
            return False
        return True


def wait_for(condition: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def own() -> Iterator[OwnEngine]:
    folder = Path(tempfile.mkdtemp(prefix="devbay-own-engine-"))
    own = OwnEngine(folder)
    own.start()
    try:
        saved = subprocess.run(["docker", "save", IMAGE], check=True, capture_output=True).stdout
        client = ["docker", "--host", f"unix://{own.socket}"]
        subprocess.run([*client, "load"], input=saved, check=True, capture_output=True)
        yield own
        for container in containers.find(own.engine, LABELS):
            containers.remove(own.engine, container.id)
    finally:
        own.stop()
        subprocess.run(
            ["umount", "--recursive", "--quiet", folder / "exec"], check=False, capture_output=True
        )
        shutil.rmtree(folder)


def running(engine: Engine, name: str) -> str:
    spec = ContainerSpec(
        name,
        IMAGE,
        command=("sh", "-c", "echo up; exec sleep 600"),
        labels=LABELS,
        network="none",
        stop_timeout_s=1,
    )
    container = containers.create(engine, spec)
    containers.start(engine, container)
    return container


def test_a_restarted_engine_is_listed_again_and_everything_goes_on(own: OwnEngine) -> None:
    engine = own.engine
    container = running(engine, "one")
    heard: list[Event] = []
    relists: list[float] = []
    lost: list[str] = []
    watcher = Watcher(
        engine, "restart", heard.append, lambda: relists.append(1.0), lambda e: lost.append(e.code)
    )
    watcher.start()
    wait_for(lambda: len(relists) == 1)

    outcomes: list[str] = []

    def waiting() -> None:
        try:
            outcomes.append(f"exit {containers.wait(engine, container, Job())}")
        except DevbayError as error:
            outcomes.append(error.code)

    def following() -> None:
        try:
            outcomes.append(f"{len(list(logs.follow(engine, container, job=Job(), lines=None)))} lines")
        except DevbayError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=waiting), threading.Thread(target=following)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    own.stop()
    for thread in threads:
        thread.join(15)
    # a stopping engine stops its containers first, so both may also see a regular end
    assert set(outcomes) <= {"engine_unreachable", "exit 137", "exit 143", "1 lines"} and len(outcomes) == 2
    with pytest.raises(DevbayError) as raised:
        engine.check()
    assert raised.value.code == "engine_unreachable"
    wait_for(lambda: lost == ["engine_unreachable"])

    own.start()
    wait_for(lambda: len(relists) == 2)
    found = containers.observe(engine, LABELS)
    assert [(c.id, c.state) for c in found] == [(container, "exited")]
    containers.start(engine, container)
    wait_for(lambda: any(e.action == "start" and e.container == container for e in heard))
    assert lost == ["engine_unreachable"]
    watcher.close()


def test_an_engine_killed_in_the_middle_of_a_wait_is_an_unreachable_engine(own: OwnEngine) -> None:
    engine = own.engine
    container = running(engine, "two")
    outcomes: list[str] = []

    def waiting() -> None:
        try:
            containers.wait(engine, container, Job())
        except DevbayError as error:
            outcomes.append(error.code)

    thread = threading.Thread(target=waiting)
    thread.start()
    time.sleep(0.2)
    own.stop(signal.SIGKILL)
    thread.join(10)
    assert outcomes == ["engine_unreachable"]
    own.start()
    assert containers.inspect(engine, container) is not None
