"""The host runtime as bays use it: create, start on a given port, probe, log, stop, remove without trace."""

from __future__ import annotations

import dataclasses
import os
import random
import secrets
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.home import Home
from devbay.jobs import Job
from devbay.manifest.models import Health
from devbay.runtimes.base import BayRef, ServiceSpec
from devbay.runtimes.host import place as places
from devbay.runtimes.host.machine import Machine
from devbay.runtimes.host.runtime import HostRuntime
from devbay.runtimes.outbound import Outbound
from devbay.sites.ports import port_is_free

SERVER = ("python3", "-m", "http.server", "8000", "-b", "0.0.0.0")


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostRuntime]:
    monkeypatch.setattr(places, "SYSTEM", tmp_path / "system")
    with tempfile.TemporaryDirectory(prefix="dbrt") as short:
        home = Home(tmp_path / "config", tmp_path / "state", Path(short))
        made = HostRuntime(home, salt="s", outbound=Outbound(), max_bytes=2**30)
        yield made.for_machine(Machine.of(dict(os.environ)))
        made.close()


@pytest.fixture
def spec(runtime: HostRuntime, tmp_path: Path) -> Iterator[ServiceSpec]:
    worktree = tmp_path / "w"
    worktree.mkdir()
    (worktree / "index.html").write_text("here")
    bay = BayRef(secrets.token_hex(4), runtime._home.id, "shop", "r", "left")
    port = next(each for each in random.sample(range(30000, 32000), 200) if port_is_free(each))
    yield ServiceSpec(
        bay=bay, name="web", kind="service", image="python:3", command=SERVER, worktree=worktree,
        workdir=str(worktree), ports={"port": (8000, port)}, health=Health(http="/"), config_hash="c1",
    )  # fmt: skip
    runtime.teardown(bay, Job())


def up(runtime: HostRuntime, spec: ServiceSpec) -> str:
    image = runtime.ensure_image(spec, Job())
    runtime.ensure_volumes(spec, image, Job())
    runtime.create(spec, image, Job())
    runtime.start(spec, Job())
    return runtime.wait_healthy(spec, host="x.localhost", first=True, job=Job())


def test_a_service_goes_from_created_to_healthy_to_stopped_and_leaves_nothing(
    runtime: HostRuntime, spec: ServiceSpec
) -> None:
    runtime.create(spec, "", Job())
    assert runtime.observe(spec.bay).services["web"].state == "created"
    ref = up(runtime, spec)
    found = runtime.observe(spec.bay).services["web"]
    assert (found.state, found.ref, found.config_hash) == ("running", ref, "c1")
    assert runtime.probe_once(spec, host="x.localhost") is None
    assert runtime.memory_mb(spec.bay) > 0
    runtime.pause(spec.bay, "web")
    assert runtime.observe(spec.bay).services["web"].state == "paused"
    runtime.unpause(spec.bay, "web")
    assert "GET /" in " ".join(entry.text for entry in runtime.logs(spec.bay, "web", lines=5))
    runtime.stop(spec.bay, "web", timeout_s=5)
    assert runtime.observe(spec.bay).services["web"].state == "exited"
    assert f"folder {runtime.place.bay(spec.bay.id)}" in runtime.teardown(spec.bay, Job())
    assert runtime.inventory(spec.bay) == []
    assert not runtime.place.bays.exists()


def test_a_port_that_somebody_holds_is_told_before_the_start_and_after_it(
    runtime: HostRuntime, spec: ServiceSpec
) -> None:
    port = spec.ports["port"][1]
    deaf = dataclasses.replace(spec, command=("sleep", "60"))
    with socket.create_server(("127.0.0.1", port)):
        runtime.create(spec, "", Job())
        with pytest.raises(DevbayError) as before:
            runtime.start(spec, Job())
        assert before.value.code == "port_taken"
    up_to_start = dataclasses.replace(deaf, health=Health(tcp=8000, timeout="5s"))
    runtime.ensure_volumes(deaf, "", Job())
    runtime.create(deaf, "", Job())
    runtime.start(deaf, Job())
    with socket.create_server(("127.0.0.1", port)), pytest.raises(DevbayError) as after:
        runtime.wait_healthy(up_to_start, host="x", first=True, job=Job())  # another answers in its place
    assert after.value.code == "port_taken"


def test_a_service_on_the_port_it_declared_is_told_which_one_it_was_given(
    runtime: HostRuntime, spec: ServiceSpec
) -> None:
    own = next(each for each in random.sample(range(30000, 32000), 200) if port_is_free(each))
    server = f"s.TCPServer(('127.0.0.1', {own}), s.BaseRequestHandler)"
    script = f"import socketserver as s; {server}.serve_forever()"
    stubborn = dataclasses.replace(
        spec, command=("python3", "-c", script), health=Health(http="/", timeout="2s")
    )
    with pytest.raises(DevbayError, match=f"listens on {own} and not on") as raised:
        up(runtime, stubborn)
    assert "PORT" in raised.value.next


def test_a_run_is_streamed_ended_in_time_and_tells_a_program_that_is_not_there(
    runtime: HostRuntime, spec: ServiceSpec, tmp_path: Path
) -> None:
    def run(*command: str, timeout_s: float = 30) -> tuple[int, str, bool]:
        task = dataclasses.replace(spec, kind="task", command=command, ports={})
        run_dir = tmp_path / "out"
        run_dir.mkdir(exist_ok=True)
        output = bytearray()
        ended = runtime.run_task(
            task, "", secrets.token_hex(3), run_dir, output.extend, timeout_s=timeout_s, job=Job()
        )
        return ended.code, output.decode(), ended.timed_out

    code, said, _ = run("sh", "-c", "echo begun; pwd; exit 3")
    assert (code, said.split()) == (3, ["begun", str(spec.worktree)])
    assert run("sleep", "60", timeout_s=0.2)[2]
    code, said, _ = run("no-such-program")
    assert (code, "no-such-program" in said) == (127, True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"image": "ghcr.io/acme/thing:1"}, "nothing on this machine stands for"),
        ({"docker_socket": True}, "engine's socket"),
    ],
)
def test_what_this_machine_cannot_meet_is_refused_with_both_ways_out(
    runtime: HostRuntime, spec: ServiceSpec, change: dict[str, object], said: str
) -> None:
    with pytest.raises(DevbayError, match=said) as raised:
        runtime.ensure_image(dataclasses.replace(spec, **change), Job())  # type: ignore[arg-type]
    assert raised.value.code == "image_not_met"
    assert "container engine" in raised.value.next


def test_a_command_enters_the_running_service_with_its_environment(
    runtime: HostRuntime, spec: ServiceSpec, capfd: pytest.CaptureFixture[str]
) -> None:
    up(runtime, dataclasses.replace(spec, env={"GREETING": "hello"}))
    argv = runtime.exec_argv(spec.bay, "web", ["sh", "-c", "echo $GREETING; pwd"], tty=False)
    assert argv[0] == sys.executable
    assert os.spawnv(os.P_WAIT, argv[0], argv) == 0
    assert capfd.readouterr().out.split() == ["hello", str(spec.worktree)]
