"""Containers, files, networks, volumes, logs, events and probes on a real engine."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job
from devbay.manifest.models import Health, Limits
from devbay.runtimes.base import BindMount
from devbay.runtimes.docker import archives, containers, logs, networks, volumes
from devbay.runtimes.docker.archives import Entry
from devbay.runtimes.docker.containers import ContainerSpec
from devbay.runtimes.docker.contexts import resolve_endpoint
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.events import Event, Watcher
from devbay.runtimes.docker.targets import ContainerTarget
from devbay.runtimes.probes import probe_once, wait_healthy

IMAGE = "busybox:1.37"
HOME = f"test{os.getpid():x}"
LABELS = {"dev.devbay.home": HOME, "dev.devbay.bay": "b1"}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine(resolve_endpoint(os.environ))
    engine.check()
    yield engine
    for container in containers.find(engine, {"dev.devbay.home": HOME}):
        containers.remove(engine, container.id)
    for network in networks.find(engine, {"dev.devbay.home": HOME}):
        networks.remove(engine, network.id)
    # a fork is mounted from its -fork volume and its template, so it goes first
    for volume in sorted(
        volumes.find(engine, {"dev.devbay.home": HOME}), key=lambda v: "type" not in v.options
    ):
        volumes.remove(engine, volume.name)
    engine.close()


class Maker:
    """Makes containers of one test, and removes them after it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.made: list[str] = []

    def __call__(self, *command: str, start: bool = True, **fields: object) -> str:
        spec = ContainerSpec(
            **{  # type: ignore[arg-type]
                "name": f"devbay-{HOME}-{time.monotonic_ns():x}",
                "image": IMAGE,
                "labels": LABELS,
                "command": command,
                **fields,
            }
        )
        container = containers.create(self.engine, spec)
        self.made.append(container)
        if start:
            containers.start(self.engine, container)
        return container

    def output(self, *command: str, **fields: object) -> str:
        container = self(*command, **fields)
        containers.wait(self.engine, container, Job())
        return "\n".join(line.text for line in logs.tail(self.engine, container))


@pytest.fixture
def make(engine: Engine) -> Iterator[Maker]:
    maker = Maker(engine)
    yield maker
    for container in maker.made:
        containers.remove(engine, container)


@pytest.fixture
def volume(engine: Engine) -> Iterator[Callable[[str], str]]:
    made: list[str] = []

    def ensure(name: str) -> str:
        full = f"devbay-{HOME}-{name}"
        volumes.ensure(engine, full, LABELS)
        made.append(full)
        return full

    yield ensure
    for name in made:
        for container in containers.find(engine, LABELS):
            containers.remove(engine, container.id)
        volumes.remove_fork(engine, name)


@pytest.fixture(scope="module")
def own_workspace(engine: Engine) -> Iterator[str]:
    """An image with a folder /workspace and a declared volume with content, committed from a container."""
    spec = ContainerSpec(
        name=f"devbay-{HOME}-image", image=IMAGE, labels=LABELS,
        files=(Entry("/workspace", "dir"), Entry("/workspace/own", "file"), Entry("/data", "dir", uid=7),
               Entry("/data/seed", "file", b"s")),
    )  # fmt: skip
    container = containers.create(engine, spec)
    image = engine.call("POST", "/commit", params={"container": container}, body={})["Id"]
    containers.remove(engine, container)
    yield image
    engine.call("DELETE", f"/images/{image}", params={"force": "1"})


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


# Files: what decision 2 and 26 need of the engine


def test_the_worktree_is_also_at_workspace(make: Maker, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("hello")
    bind = BindMount(str(tmp_path), str(tmp_path))
    said = make.output("cat", "/workspace/f", binds=(bind,), worktree=str(tmp_path))
    assert said == "hello"


def test_the_link_survives_a_restart_of_the_container(make: Maker, engine: Engine, tmp_path: Path) -> None:
    bind = BindMount(str(tmp_path), str(tmp_path))
    container = make("readlink", "/workspace", binds=(bind,), worktree=str(tmp_path))
    containers.wait(engine, container, Job())
    containers.start(engine, container)
    containers.wait(engine, container, Job())
    assert [line.text for line in logs.tail(engine, container)] == [str(tmp_path)] * 2


def test_an_image_with_its_own_workspace_gets_the_worktree_and_its_volumes_there_too(
    make: Maker, volume: Callable[[str], str], own_workspace: str, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text("hello")
    (tmp_path / "node_modules").mkdir()
    said = make.output(
        "sh", "-c", "cd /workspace; cat f /etc/extra; touch node_modules/x; ls $0/*s", str(tmp_path),
        image=own_workspace, binds=(BindMount(str(tmp_path), str(tmp_path)),), worktree=str(tmp_path),
        volumes={f"{tmp_path}/node_modules": volume("nm")}, files=(Entry("/etc/extra", "file", b"!"),),
    )  # fmt: skip
    assert said == "hello!x"
    assert list((tmp_path / "node_modules").iterdir()) == []


def test_a_folder_in_the_way_is_never_deleted_on_this_machine(
    make: Maker, engine: Engine, tmp_path: Path
) -> None:
    (tmp_path / "keep").write_text("k")
    container = make("true", start=False, binds=(BindMount(str(tmp_path), "/workspace/below"),))
    with pytest.raises(DevbayError) as raised:
        archives.put(engine, container, [Entry("/workspace", "link", target="/tmp")])
    assert raised.value.code == "directory_in_the_way"
    assert (tmp_path / "keep").read_text() == "k"


def test_what_stands_before_a_refused_entry_has_been_put_in(
    make: Maker, engine: Engine, own_workspace: str
) -> None:
    container = make("true", start=False, image=own_workspace)
    with pytest.raises(DevbayError):
        archives.put(
            engine, container, [Entry("/etc/a", "file"), Entry("/workspace", "link"), Entry("/etc/b", "file")]
        )
    assert archives.stat(engine, container, "/etc/a") is not None
    assert archives.stat(engine, container, "/etc/b") is None


def test_an_entry_at_a_mount_point_sets_the_owner_of_the_volume_but_not_of_its_content(
    make: Maker, volume: Callable[[str], str], own_workspace: str
) -> None:
    fresh, filled = volume("fresh"), volume("filled")
    mounts = {"/vol": fresh, "/data": filled}
    owned = (Entry("/vol", "dir", uid=1000, gid=1001, mode=0o750), Entry("/data", "dir", uid=1000, gid=1001))
    stat = ("stat", "-c", "%u:%g %a %n", "/vol", "/data", "/data/seed")
    said = make.output(*stat, image=own_workspace, volumes=mounts, files=owned)
    assert said == "1000:1001 750 /vol\n1000:1001 755 /data\n0:0 755 /data/seed"
    assert make.output(*stat, image=own_workspace, volumes=mounts) == said  # it stays with the volume


def test_accounts_put_in_before_the_start_are_known(make: Maker, engine: Engine) -> None:
    passwd = b"root:x:0:0::/root:/bin/sh\ndev:x:1000:1000::/home/dev:/bin/sh\n"
    files = (Entry("/etc/passwd", "file", passwd, mode=0o644), Entry("/home/dev", "dir", uid=1000, gid=1000))
    said = make.output("sh", "-c", "id -un; cd; pwd; touch x && echo ok", user="1000:1000", files=files)
    assert said == "dev\n/home/dev\nok"


def test_files_of_a_container_that_never_ran_are_read(make: Maker, engine: Engine) -> None:
    files = (Entry("/etc/group", "file", b"g:x:5:\n"), Entry("/etc/alias", "link", target="group"),
             Entry("/d", "dir", uid=3, gid=4, mode=0o711))  # fmt: skip
    container = make("true", start=False, files=files)
    assert archives.read_file(engine, container, "/etc/group") == b"g:x:5:\n"
    assert archives.read_file(engine, container, "/etc/alias") == b"g:x:5:\n"
    assert archives.read_file(engine, container, "/etc") is None
    assert archives.read_file(engine, container, "/etc/none") is None
    assert archives.owner(engine, container, "/d") == (3, 4, 0o711)


def test_the_engine_sees_a_mounted_folder_before_the_start_and_not_another(
    make: Maker, engine: Engine, tmp_path: Path
) -> None:
    container = make("true", start=False, binds=(BindMount(str(tmp_path), str(tmp_path), read_only=True),))
    archives.check_visible(engine, container, tmp_path)
    other = tmp_path.parent
    with pytest.raises(DevbayError) as raised:
        archives.check_visible(engine, container, other)
    assert raised.value.code == "path_not_shared"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".devbay")]


def test_a_folder_that_is_not_there_is_an_error_and_is_not_made(make: Maker, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(DevbayError) as raised:
        make("true", binds=(BindMount(str(gone), "/x"),))
    assert raised.value.code == "folder_missing" and not gone.exists()


# Containers


def test_a_one_shot_from_attach_to_exit_code(make: Maker, engine: Engine) -> None:
    container = make("sh", "-c", "echo out; echo err >&2; exit 3", start=False)
    with containers.attach(engine, container) as stream:
        containers.start(engine, container)
        assert sorted(b"".join(stream.frames()).split()) == [b"err", b"out"]
    assert containers.wait(engine, container, Job()) == 3
    found = containers.inspect(engine, container)
    assert found is not None and (found.state, found.exit_code, found.oom_killed) == ("exited", 3, False)
    assert [c.exit_code for c in containers.find(engine, LABELS) if c.id == container] == [3]


def test_attaching_before_the_start_misses_nothing(make: Maker, engine: Engine) -> None:
    for _ in range(5):
        container = make("seq", "20000", start=False)
        with containers.attach(engine, container) as stream:
            containers.start(engine, container)
            assert b"".join(stream.frames()).split()[-1] == b"20000"


def test_memory_beyond_the_limit_is_seen_as_such(make: Maker, engine: Engine) -> None:
    eat = "x=0123456789abcdef; while true; do x=$x$x; done"
    container = make("sh", "-c", eat, limits=Limits(memory="16m"))
    assert containers.wait(engine, container, Job()) == 137
    found = containers.inspect(engine, container)
    assert found is not None and found.oom_killed


def test_a_cancelled_job_ends_waiting_attaching_and_following(make: Maker, engine: Engine) -> None:
    container = make("sleep", "60")

    def wait(job: Job) -> None:
        containers.wait(engine, container, job)

    def attach(job: Job) -> None:
        with containers.attach(engine, container, job=job) as stream:
            list(stream.frames())

    def follow(job: Job) -> None:
        list(logs.follow(engine, container, job=job))

    for act in (wait, attach, follow):
        job = Job()
        threading.Timer(0.1, job.cancel).start()
        with pytest.raises(Cancelled):
            act(job)
    found = containers.inspect(engine, container)
    assert found is not None and found.state == "running", "what was waited for had ended"


def test_a_container_removed_under_a_wait_ends_it(make: Maker, engine: Engine) -> None:
    container = make("sleep", "60")
    removal = threading.Timer(0.1, containers.remove, (engine, container))
    removal.start()
    assert containers.wait(engine, container, Job()) == 137
    removal.join()
    assert containers.inspect(engine, container) is None
    containers.remove(engine, container)
    with pytest.raises(DevbayError) as raised:
        containers.start(engine, container)
    assert raised.value.code == "not_found"


def test_two_removals_at_once_both_end_when_it_is_gone(make: Maker, engine: Engine) -> None:
    container = make("sleep", "60")
    failures: list[BaseException] = []

    def remove() -> None:
        try:
            containers.remove(engine, container)
            assert containers.inspect(engine, container) is None
        except (DevbayError, AssertionError) as error:
            failures.append(error)

    threads = [threading.Thread(target=remove) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_commands_in_a_container(make: Maker, engine: Engine) -> None:
    container = make("sleep", "60")
    ok = containers.exec_(engine, container, ["sh", "-c", "echo hi; echo no >&2; exit 4"], timeout_s=10)
    assert ok.exit_code == 4 and sorted(ok.output.split()) == [b"hi", b"no"]
    assert containers.exec_(engine, container, ["nosuch"], timeout_s=10).exit_code == 127
    slow = containers.exec_(engine, container, ["sh", "-c", "echo begun; sleep 30"], timeout_s=1)
    assert slow.timed_out and slow.output == b"begun\n"
    flood = containers.exec_(engine, container, ["seq", "100000"], timeout_s=10)
    assert flood.exit_code == 0 and len(flood.output) == containers.OUTPUT_LIMIT
    containers.pause(engine, container)
    containers.pause(engine, container)
    with pytest.raises(DevbayError) as raised:
        containers.exec_(engine, container, ["true"], timeout_s=1)
    assert raised.value.code == "paused"
    containers.unpause(engine, container)
    containers.unpause(engine, container)
    containers.kill(engine, container)
    containers.wait(engine, container, Job())
    containers.kill(engine, container)
    with pytest.raises(DevbayError) as raised:
        containers.exec_(engine, container, ["true"], timeout_s=1)
    assert raised.value.code == "not_running"


def test_what_the_engine_refuses_has_a_code_and_the_facts(make: Maker, engine: Engine) -> None:
    with pytest.raises(DevbayError, match="nope/nope:1") as raised:
        make("true", image="nope/nope:1")
    assert raised.value.code == "image_not_found"
    with pytest.raises(DevbayError, match="'nosuch' is not in the image") as raised:
        make("nosuch")
    assert raised.value.code == "command_not_found"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DevbayError, match=str(port)) as raised:
            make("sleep", "60", ports={80: port})
    assert raised.value.code == "port_taken" and raised.value.data["port"] == port
    held = free_port()
    make("sleep", "60", ports={80: held})
    with pytest.raises(DevbayError) as raised:
        make("sleep", "60", ports={80: held})
    assert raised.value.code == "port_taken" and raised.value.data["port"] == held
    make("true", start=False, name=f"devbay-{HOME}-twice")
    with pytest.raises(DevbayError) as raised:
        make("true", start=False, name=f"devbay-{HOME}-twice")
    assert raised.value.code == "name_conflict"


def test_memory_in_use_is_read_and_nothing_of_a_container_that_is_gone(make: Maker, engine: Engine) -> None:
    container = make("sleep", "60")
    assert 0 < containers.memory_bytes(engine, container) < 64 << 20
    containers.remove(engine, container)
    assert containers.memory_bytes(engine, container) == 0


# Networks and volumes


def test_a_network_is_made_once_by_many_and_removed_with_what_is_on_it(make: Maker, engine: Engine) -> None:
    name, made = f"devbay-{HOME}-net", []
    threads = [
        threading.Thread(target=lambda: made.append(networks.ensure(engine, name, "10.213.255.0/27", LABELS)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4 and len(set(made)) == 1
    assert "10.213.255.0/27" in networks.subnets(engine)
    make("sleep", "60", network=name, aliases=("db",))
    assert make.output("nslookup", "db", network=name).count("10.213.255.") >= 1
    with pytest.raises(DevbayError) as raised:
        networks.ensure(engine, name + "2", "10.213.255.0/28", LABELS)
    assert raised.value.code == "network_overlap"
    networks.remove(engine, name)
    networks.remove(engine, name)
    assert networks.inspect(engine, name) is None


def test_a_container_at_rest_starts_on_a_network_made_again_with_its_names_and_ports(
    make: Maker, engine: Engine
) -> None:
    name, port = f"devbay-{HOME}-again", free_port()
    networks.ensure(engine, name, "10.213.255.64/27", LABELS)
    container = make("nc", "-ll", "-p", "80", "-e", "cat", network=name, aliases=("web",), ports={80: port})
    containers.stop(engine, container, timeout_s=0)
    networks.remove(engine, name)
    networks.ensure(engine, name, "10.213.255.96/27", LABELS)
    networks.connect(engine, name, container, aliases=("web",))  # else it looks for the old network's id
    containers.start(engine, container)
    assert "10.213.255." in make.output("nslookup", "web", network=name)
    target = ContainerTarget(engine, container, "web", {80: port}, 80)
    wait_healthy(Health(tcp=80), target, host_header="h", first=True, job=Job())


def test_an_internal_network_has_no_way_out(make: Maker, engine: Engine) -> None:
    name = f"devbay-{HOME}-inside"
    networks.ensure(engine, name, "10.213.255.32/27", LABELS, internal=True)
    assert "default" not in make.output("ip", "route", network=name)


def test_forks_see_their_template_and_not_each_other(
    make: Maker, engine: Engine, volume: Callable[[str], str]
) -> None:
    template, one, two = volume("template"), f"devbay-{HOME}-one", f"devbay-{HOME}-two"
    fill = "echo base > /v/f; chown 5:6 /v; chmod 700 /v"
    make.output("sh", "-c", fill, volumes={"/v": template})
    for name in (one, two):
        volumes.fork(engine, name, template, LABELS, helper_image=IMAGE)
    assert make.output("sh", "-c", "stat -c '%u:%g %a' /v; cat /v/f; echo 1 > /v/f", volumes={"/v": one}) == (
        "5:6 700\nbase"
    )
    assert make.output("cat", "/v/f", volumes={"/v": one}) == "1"
    assert make.output("cat", "/v/f", volumes={"/v": two}) == "base"
    assert make.output("cat", "/v/f", volumes={"/v": template}) == "base"
    volumes.fork(engine, one, template, LABELS, helper_image=IMAGE)  # it exists: it stays
    assert make.output("cat", "/v/f", volumes={"/v": one}) == "1"
    for container in make.made:
        containers.remove(engine, container)
    volumes.remove(engine, one)  # a crash in the middle of a removal: the data is still there
    volumes.fork(engine, one, template, LABELS, helper_image=IMAGE)
    assert make.output("cat", "/v/f", volumes={"/v": one}) == "1"
    for container in make.made:
        containers.remove(engine, container)
    for name in (one, two):
        volumes.remove_fork(engine, name)
        volumes.remove_fork(engine, name)
    assert {v.name for v in volumes.find(engine, LABELS)} == {template}


def test_this_engine_can_fork_and_the_trial_leaves_nothing(engine: Engine) -> None:
    before = {v.name for v in volumes.find(engine, LABELS)}
    assert volumes.can_fork(engine, LABELS, helper_image=IMAGE)
    assert {v.name for v in volumes.find(engine, LABELS)} == before


def test_a_volume_in_use_says_so(make: Maker, engine: Engine, volume: Callable[[str], str]) -> None:
    name = volume("used")
    make("true", start=False, volumes={"/v": name})
    with pytest.raises(DevbayError) as raised:
        volumes.remove(engine, name)
    assert raised.value.code == "volume_in_use"
    assert volumes.sizes(engine)[name] == 0


# Logs and events


def test_long_bad_and_unfinished_lines(make: Maker, engine: Engine) -> None:
    script = r"head -c 100000 /dev/zero | tr '\0' x; echo; printf '\377\n\033[1mb\033[0m\nno end'"
    container = make("sh", "-c", script)
    containers.wait(engine, container, Job())
    lines = logs.tail(engine, container)
    assert [line.text for line in lines] == ["x" * logs.LINE_LIMIT, "�", "\x1b[1mb\x1b[0m", "no end"]
    assert [line.text for line in logs.tail(engine, container, lines=2)] == ["\x1b[1mb\x1b[0m", "no end"]
    assert [line.text for line in logs.tail(engine, container, since=lines[1].at)] == [
        "\x1b[1mb\x1b[0m",
        "no end",
    ]


def test_following_gives_lines_as_they_come_and_ends_with_the_container(make: Maker, engine: Engine) -> None:
    container = make("sh", "-c", "echo a; sleep 0.4; echo b")
    seen = [(line.text, time.monotonic()) for line in logs.follow(engine, container, job=Job(), lines=None)]
    assert [text for text, _ in seen] == ["a", "b"] and seen[1][1] - seen[0][1] > 0.2


def test_lines_of_a_former_run_are_not_of_this_one(make: Maker, engine: Engine) -> None:
    container = make("sh", "-c", "echo $(cat /n)ready; echo again > /n")
    for expected in ("ready", "againready", "againready"):
        containers.wait(engine, container, Job())
        found = containers.inspect(engine, container)
        assert found is not None
        before_this = logs.tail(engine, container)[:-1]
        containers.start(engine, container)
        containers.wait(engine, container, Job())
        again = containers.inspect(engine, container)
        assert again is not None
        since = logs.start_of_run(found)  # the end of the run before: what a running container reports
        assert [line.text for line in logs.tail(engine, container, since=since)] == ["againready"]
        assert expected and len(before_this) < 4


def test_events_tell_start_and_exit_code(make: Maker, engine: Engine) -> None:
    heard: list[Event] = []
    listed = threading.Event()
    watcher = Watcher(engine, HOME, heard.append, listed.set, lambda error: None)
    watcher.start()
    assert listed.wait(5)
    container = make("sh", "-c", "exit 5", labels={**LABELS, "dev.devbay.service": "web"})
    containers.wait(engine, container, Job())
    containers.remove(engine, container)
    deadline = time.monotonic() + 5
    while not any(e.action == "destroy" for e in heard) and time.monotonic() < deadline:
        time.sleep(0.01)
    watcher.close()
    mine = [e for e in heard if e.container == container]
    assert [(e.action, e.bay, e.service, e.exit_code) for e in mine] == [
        ("create", "b1", "web", None),
        ("start", "b1", "web", None),
        ("die", "b1", "web", 5),
        ("destroy", "b1", "web", None),
    ]


# Probes through the port that the engine publishes


def test_tcp_is_not_up_until_the_service_listens_behind_the_published_port(
    make: Maker, engine: Engine
) -> None:
    port = free_port()
    container = make("sh", "-c", "sleep 0.8; exec nc -ll -p 80 -e cat", ports={80: port})
    target = ContainerTarget(engine, container, "web", {80: port}, 80)
    health = Health.model_validate({"tcp": 80, "timeout": "10s"})
    assert probe_once(health, target, host_header="h") is not None
    before = time.monotonic()
    wait_healthy(health, target, host_header="h", first=True, job=Job())
    assert time.monotonic() - before > 0.3


def test_http_through_the_published_port(make: Maker, engine: Engine) -> None:
    port = free_port()
    script = "mkdir /w && echo ok > /w/up && sleep 0.3 && exec httpd -f -p 80 -h /w"
    container = make("sh", "-c", script, ports={80: port})
    target = ContainerTarget(engine, container, "web", {80: port}, 80)
    wait_healthy(Health(http="/up"), target, host_header="a--b.localhost", first=True, job=Job())
    assert probe_once(Health(http="/none"), target, host_header="h") == "HTTP 404"


def test_a_service_that_exits_at_once_fails_with_its_lines(make: Maker, engine: Engine) -> None:
    port = free_port()
    container = make("sh", "-c", "echo no database; exit 7", ports={80: port})
    target = ContainerTarget(engine, container, "web", {80: port}, 80)
    with pytest.raises(DevbayError, match="exit code 7") as raised:
        wait_healthy(Health(http="/"), target, host_header="h", first=True, job=Job())
    assert raised.value.code == "service_exited" and raised.value.data["log"] == ["no database"]


def test_a_log_probe_of_a_restarted_service_does_not_match_its_former_life(
    make: Maker, engine: Engine
) -> None:
    script = "if [ -e /again ]; then sleep 1; else touch /again; fi; echo ready; exec sleep 60"
    container = make("sh", "-c", script)
    target = ContainerTarget(engine, container, "web", {})
    wait_healthy(Health(log="ready"), target, host_header="h", first=True, job=Job())
    containers.stop(engine, container, timeout_s=0)
    containers.start(engine, container)
    before = time.monotonic()
    wait_healthy(Health(log="ready"), target, host_header="h", first=False, job=Job())
    assert time.monotonic() - before > 0.5


def test_a_command_probe_says_what_is_missing(make: Maker, engine: Engine) -> None:
    target = ContainerTarget(engine, make("sleep", "60"), "web", {})
    assert probe_once(Health(cmd=("curl", "x")), target, host_header="h") == (
        "exit code 127: curl is not in the image"
    )
    wait_healthy(Health(cmd=("true",)), target, host_header="h", first=True, job=Job())


def test_a_service_that_the_engine_brings_back_is_waited_for(make: Maker, engine: Engine) -> None:
    script = "if [ -e /again ]; then exec sleep 60; fi; touch /again; exit 1"
    container = make("sh", "-c", script, restart="on-failure")
    target = ContainerTarget(engine, container, "web", {})
    wait_healthy(Health(cmd=("test", "-e", "/again")), target, host_header="h", first=True, job=Job())
