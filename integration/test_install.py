"""Installs, their templates and the bays' forks of them on a real engine."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job
from devbay.manifest.models import Limits
from devbay.runtimes.base import BayRef, BindMount, BuildSpec, ServiceSpec
from devbay.runtimes.docker import containers, networks, volumes
from devbay.runtimes.docker.archives import Entry
from devbay.runtimes.docker.assemble import Host
from devbay.runtimes.docker.bayvolumes import BayVolumes, mounts
from devbay.runtimes.docker.builds import ensure_built
from devbay.runtimes.docker.contexts import resolve_endpoint
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.images import ImageInfo, ensure_pulled
from devbay.runtimes.docker.install import Installer, cache_volume
from devbay.runtimes.docker.objects import helper_labels
from devbay.runtimes.docker.runtime import DockerRuntime
from devbay.runtimes.docker.specs import ContainerSpec
from devbay.runtimes.docker.template_store import StoredTemplates
from devbay.runtimes.docker.templates import Template
from devbay.runtimes.docker.users import Accounts, Identity, identity
from devbay.runtimes.mountpoints import make_mount_points
from devbay.runtimes.outbound import Outbound
from devbay.store import Store
from integration.house import docker, wait_for

IMAGE = "busybox:1.37"
PYTHON = "python:3.13-slim"
OWNER = 12345
COUNT = 'echo "$WHAT" > deps/what; cat lock > deps/lock; date +%s%N > deps/when'


class Lab:
    """One home with its store, an installer, and bays of one repository in it."""

    def __init__(self, folder: Path, home: str) -> None:
        self.folder, self.home = folder, home
        self.engine = Engine(resolve_endpoint(os.environ))
        clock = iter(range(10**6))
        self.store = StoredTemplates(
            Store(folder / "home" / "state.db"), lambda: f"{time.time_ns():020}-{next(clock):06}"
        )
        self.outbound = Outbound()
        self.volumes = BayVolumes(self.engine)
        self.messages: list[str] = []

    @property
    def installer(self) -> Installer:
        return Installer(
            self.engine, self.store, self.home, self.folder / "home" / "locks", "salt", self.outbound
        )

    def runtime(self) -> DockerRuntime:
        return DockerRuntime(self.engine, self.installer, Host(0, 0, self.outbound, os.environ))

    def job(self) -> Job:
        return Job(lambda message, _fraction: self.messages.append(message))

    @property
    def installs(self) -> int:
        """How often an install command was begun."""
        return sum(message.startswith("installing ") for message in self.messages)

    def worktree(self, bay: str, **files: str) -> Path:
        folder = self.folder / "bäys of mine" / bay
        for name, text in {"lock": "1\n", **files}.items():
            path = folder / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, OWNER, OWNER)
        return folder

    def spec(self, bay: str = "one", command: str = COUNT, **changes: Any) -> ServiceSpec:
        worktree = self.folder / "bäys of mine" / bay
        if not worktree.exists():
            self.worktree(bay)
        ref = BayRef(f"{secrets.token_hex(2)}{bay[:4]}", self.home, "shop", "r1", bay)
        values: dict[str, Any] = {
            "image": IMAGE,
            "install": ("sh", "-c", command),
            "install_inputs": ("lock",),
            "volumes": (f"{worktree}/deps",),
            "workdir": str(worktree),
            "env": {"WHAT": "x"},
            "worktree": worktree,
        }
        return ServiceSpec(bay=ref, name="web", **{"kind": "service", **values, **changes})

    def image(self, spec: ServiceSpec) -> ImageInfo:
        if spec.build:
            return ensure_built(self.engine, spec, os.environ, self.outbound, Job())
        return ensure_pulled(self.engine, spec.image or IMAGE, None, os.environ, Job())

    def who(self, spec: ServiceSpec) -> Identity:
        accounts = Accounts(b"root:x:0:0:root:/root:/bin/sh\n", b"root:x:0:\n")
        owner = spec.worktree.stat() if spec.worktree else Path("/").stat()
        return identity(accounts, spec, self.engine.info().kind, owner.st_uid, owner.st_gid)

    def ensure(self, spec: ServiceSpec, job: Job | None = None) -> Template:
        return self.installer.ensure(spec, self.image(spec), self.who(spec), job or self.job())

    def ready(self, spec: ServiceSpec) -> Template:
        """Installed, and the bay's volumes made."""
        template = self.ensure(spec)
        self.volumes.ensure(spec, self.image(spec), self.who(spec), template, Job())
        return template

    def run(self, spec: ServiceSpec, template: Template | None, command: str) -> str:
        """What a shell command prints in a container of the service, made as the runtime makes it."""
        image, who = self.image(spec), self.who(spec)
        named = mounts(spec, image, who)
        files = [Entry(path, "file", data, mode=0o644) for path, data in who.files().items()]
        files += [Entry(path, "dir", uid=who.uid or 0, gid=who.gid or 0) for path in who.owned(named)]
        if spec.worktree:
            make_mount_points(spec.worktree, named)
        made = containers.create(
            self.engine,
            ContainerSpec(
                name=f"{spec.bay.prefix}-run-{secrets.token_hex(4)}",
                image=template.image if template else image.id,
                entrypoint=("sh", "-c"),
                command=(command,),
                env={**who.env, **spec.env},
                workdir=spec.workdir,
                user=who.user,
                binds=(BindMount(str(spec.worktree), str(spec.worktree)),) if spec.worktree else (),
                volumes=named,
                labels=spec.bay.labels(spec.name),
                files=tuple(files),
                worktree=str(spec.worktree) if spec.worktree else None,
            ),
        )
        try:
            with containers.attach(self.engine, made) as output:
                containers.start(self.engine, made)
                text = b"".join(output.frames()).decode()
            code = containers.wait(self.engine, made, Job())
            assert code == 0, text
            return text
        finally:
            containers.remove(self.engine, made)

    def objects(self, *labels: str) -> list[str]:
        words = [f"label=dev.devbay.home={self.home}", *(f"label={label}" for label in labels)]
        filters = [word for label in words for word in ("--filter", label)]
        found = docker("ps", "-aq", *filters) + docker("volume", "ls", "-q", *filters)
        return (found + docker("images", "-q", *filters)).split()

    def close(self) -> None:
        for listed in containers.find(self.engine, {"dev.devbay.home": self.home}):
            containers.remove(self.engine, listed.id)
        for network in networks.find(self.engine, {"dev.devbay.home": self.home}):
            networks.remove(self.engine, network.id)
        found = volumes.find(self.engine, {"dev.devbay.home": self.home})
        for volume in sorted(found, key=lambda each: "type" not in each.options):
            volumes.remove(self.engine, volume.name)
        for image in docker("images", "-q", "--filter", f"label=dev.devbay.home={self.home}").split():
            docker("rmi", "-f", image, code=None)
        assert self.objects() == []
        self.engine.close()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path, secrets.token_hex(8))
    yield lab
    lab.close()


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


# -- once per content ----------------------------------------------------------------------------------


def test_a_second_bay_installs_nothing_and_has_the_same_result(lab):
    one, two = lab.spec("one"), lab.spec("two")
    lab.ready(one)
    template = lab.ready(two)
    assert lab.installs == 1
    for spec in (one, two):
        assert lab.run(spec, template, "cat deps/what deps/lock") == "x\n1\n"


@pytest.mark.full
def test_bays_with_different_lock_files_do_not_disturb_each_other(lab):
    one = lab.spec("one")
    first = lab.ready(one)
    lab.worktree("two", lock="2\n")
    two = lab.spec("two")
    second = lab.ready(two)
    assert lab.installs == 2
    assert lab.run(one, first, "cat deps/lock") == "1\n"
    assert lab.run(two, second, "cat deps/lock") == "2\n"


def test_a_changed_lock_file_gives_the_bay_a_new_fork_and_keeps_its_other_volumes(lab):
    spec = lab.spec(volumes=("deps", "/uploads"))
    first = lab.ready(spec)
    assert lab.run(spec, first, "touch deps/old /uploads/kept; cat deps/lock") == "1\n"
    lab.worktree("one", lock="2\n")
    second = lab.ready(spec)
    assert lab.run(spec, second, "cat deps/lock; ls deps; ls /uploads") == "2\nlock\nwhat\nwhen\nkept\n"


def test_threads_that_ask_at_once_install_once(lab):
    specs = [lab.spec(f"bay{n}", command=f"sleep 0.5; {COUNT}") for n in range(3)]
    keys = []
    threads = [threading.Thread(target=lambda s=spec: keys.append(lab.ensure(s).key)) for spec in specs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(keys)) == 1
    assert lab.installs == 1


def test_what_a_bay_writes_stays_in_the_bay(lab):
    one, two = lab.spec("one"), lab.spec("two")
    template = lab.ready(one)
    lab.ready(two)
    lab.run(one, template, "echo changed > deps/what; rm deps/lock; touch deps/mine")
    assert lab.run(two, template, "ls deps; cat deps/what") == "lock\nwhat\nwhen\nx\n"
    original = template.volumes["/workspace/deps"]
    assert docker("run", "--rm", "-v", f"{original}:/t", IMAGE, "ls", "/t").split() == [
        "lock",
        "what",
        "when",
    ]


def test_where_overlays_are_impossible_a_copy_serves(lab):
    lab.volumes._can_fork = False
    one, two = lab.spec("one"), lab.spec("two")
    template = lab.ready(one)
    lab.ready(two)
    lab.run(one, template, "echo changed > deps/what")
    lab.ready(one)  # again: the copy is not made anew
    assert lab.run(one, template, "cat deps/what") == "changed\n"
    assert lab.run(two, template, "cat deps/what; stat -c %u deps/what") == f"x\n{OWNER}\n"
    original = template.volumes["/workspace/deps"]
    half = mounts(two, lab.image(two), lab.who(two))[f"{two.worktree}/deps"]
    volumes.remove(lab.engine, half + volumes.SCRATCH_SUFFIX)  # as a copy that was cut off looks
    docker("run", "--rm", "-v", f"{half}:/t", IMAGE, "rm", "/t/what")
    lab.ready(two)
    assert lab.run(two, template, "cat deps/what") == "x\n"
    assert docker("run", "--rm", "-v", f"{original}:/t", IMAGE, "cat", "/t/what") == "x\n"


def test_a_cache_in_the_worktree_is_shared_by_bays_and_installs(lab):
    paths = {bay: f"{lab.worktree(bay)}/.cache" for bay in ("one", "two")}
    one = lab.spec("one", command=f"echo from-install > .cache/a; {COUNT}", caches=(paths["one"],))
    template = lab.ready(one)
    two = lab.spec("two", command=f"cat .cache/a > deps/cached; {COUNT}", caches=(paths["two"],))
    lab.ready(two)
    assert lab.run(one, template, "cat .cache/a; echo from-one > /workspace/.cache/b") == "from-install\n"
    assert lab.run(two, None, "cat .cache/b deps/cached") == "from-one\nfrom-install\n"


def test_an_install_has_the_services_limits(lab):
    group = "cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null > deps/what || true"
    spec = lab.spec(command=group, limits=Limits(pids=77))
    template = lab.ready(spec)
    assert lab.run(spec, template, "cat deps/what") == "77\n"


# -- what an install sees and leaves -------------------------------------------------------------------


def test_an_install_sees_its_inputs_only_in_a_real_folder(lab):
    lab.worktree("one", secret="s", web__package="{}")
    find = "find /workspace -type f -not -path '*/deps/*' | sort"
    spec = lab.spec(command=f"pwd -P > deps/seen; {find} >> deps/seen; id -u >> deps/seen")
    template = lab.ready(spec)
    assert lab.run(spec, template, "cat deps/seen") == "/workspace\n/workspace/lock\n0\n"


def test_absolute_paths_an_install_writes_hold_in_the_bay(lab):
    spec = lab.spec(command="echo hello > deps/target; ln -s /workspace/deps/target deps/link")
    template = lab.ready(spec)
    assert lab.run(spec, template, "cat deps/link /workspace/deps/link") == "hello\nhello\n"


def test_what_an_install_changes_elsewhere_becomes_an_image_without_its_workspace(lab):
    spec = lab.spec(command=f"echo tool > /bin/tool; {COUNT}", env={"WHAT": "hidden-value"})
    template = lab.ready(spec)
    assert template.committed
    assert lab.run(spec, template, "cat /bin/tool; readlink /workspace") == f"tool\n{spec.worktree}\n"
    assert docker("run", "--rm", template.image, "readlink", "/workspace") == "/.devbay/no-worktree\n"
    config = json.loads(docker("image", "inspect", template.image))[0]["Config"]
    base = json.loads(docker("image", "inspect", IMAGE))[0]["Config"]
    for field in ("Env", "Cmd", "Entrypoint", "User", "WorkingDir", "Volumes"):
        assert (config.get(field) or None) == (base.get(field) or None), field
    assert "hidden-value" not in docker("image", "inspect", template.image)
    assert "hidden-value" not in docker("history", "--no-trunc", template.image)


def test_an_install_that_changes_only_volumes_leaves_the_image_as_it_is(lab):
    spec = lab.spec()
    template = lab.ready(spec)
    assert not template.committed
    assert template.image == lab.image(spec).id
    assert template.notes == ()
    assert list(template.volumes) == ["/workspace/deps"]
    assert template.size > 0


@pytest.mark.full
def test_an_image_with_its_own_workspace_keeps_it(lab):
    worktree = lab.worktree("one", Dockerfile=f"FROM {IMAGE}\nRUN mkdir /workspace && touch /workspace/own\n")
    spec = lab.spec(image=None, build=BuildSpec(worktree), command=f"touch /bin/tool; {COUNT}")
    template = lab.ready(spec)
    assert docker("run", "--rm", template.image, "ls", "/bin/tool", "/workspace/own").split()
    assert lab.run(spec, template, "cat deps/what /workspace/deps/what") == "x\nx\n"


def test_the_home_of_an_install_is_the_home_of_the_bay(lab):
    spec = lab.spec(command=f"mkdir -p $HOME/venvs; echo v > $HOME/venvs/one; {COUNT}")
    template = lab.ready(spec)
    assert lab.run(spec, template, "cat ~/venvs/one; touch ~/mine; whoami") == "v\ndevbay\n"


@pytest.mark.full
def test_downloads_in_the_home_are_no_result_so_that_a_bay_keeps_its_home(lab):
    command = f"mkdir -p ~/.npm/_cacache ~/.cache/pip; echo x > ~/.npm/_cacache/a; {COUNT}"
    spec = lab.spec(command=command)
    first = lab.ready(spec)
    assert list(first.volumes) == ["/workspace/deps"]
    lab.run(spec, first, "echo mine > ~/mine")
    lab.worktree("one", lock="2\n")
    second = lab.ready(spec)
    assert lab.run(spec, second, "cat ~/mine deps/lock") == "mine\n2\n"


def test_a_result_that_no_volume_keeps_is_said(lab):
    template = lab.ensure(lab.spec(command="mkdir out; touch out/a out/b", volumes=()))
    assert len(template.notes) == 1
    assert "wrote out, which no volume keeps" in template.notes[0]


def test_caches_are_shared_by_bays_and_installs(lab):
    one = lab.spec("one", command=f"echo from-install > /cache/a; {COUNT}", caches=("/cache",))
    template = lab.ready(one)
    two = lab.spec("two", command=f"cat /cache/a > deps/cached; {COUNT}", caches=("/cache",))
    lab.ready(two)
    assert lab.run(one, template, "cat /cache/a; echo from-one > /cache/b") == "from-install\n"
    assert lab.run(two, None, "cat /cache/b deps/cached") == "from-one\nfrom-install\n"
    labels = volumes.inspect(lab.engine, cache_volume(one, "/cache")).labels
    assert labels["dev.devbay.cache"] == "/cache"
    assert "dev.devbay.bay" not in labels


@pytest.mark.full
def test_a_ca_bundle_and_proxies_reach_the_install_and_leave_no_trace(lab, tmp_path):
    (tmp_path / "ca.pem").write_text("bundle")
    lab.outbound = Outbound(tmp_path / "ca.pem", (("http", "http://proxy.example:1"),))
    spec = lab.spec(command=f"cat $SSL_CERT_FILE > deps/ca; echo $HTTP_PROXY >> deps/ca; {COUNT}")
    template = lab.ready(spec)
    assert not template.committed
    assert lab.run(spec, template, "cat deps/ca; echo $HTTP_PROXY") == "bundlehttp://proxy.example:1\n\n"


# -- whose files they are ------------------------------------------------------------------------------


def test_no_file_of_the_worktree_belongs_to_root(lab):
    spec = lab.spec(volumes=("deps", "made/by/devbay"), caches=("/cache",))
    template = lab.ready(spec)
    lab.run(spec, template, "touch service deps/a made/by/devbay/b /cache/c ~/d; mkdir -p new/folder")
    lab.run(dataclasses.replace(spec, kind="task"), template, "touch task; rm service")
    assert owners(spec.worktree) == {OWNER}
    assert (spec.worktree / "task").exists()


def test_no_file_of_the_worktree_belongs_to_root_when_the_runtime_does_it_all(lab, tmp_path):
    lab.worktree("one", conf__dev="v\n")
    spec = lab.spec(command=f"touch /bin/tool; {COUNT}")
    worktree = str(spec.worktree)
    spec = dataclasses.replace(
        spec,
        volumes=(f"{worktree}/deps", f"{worktree}/made/by/devbay"),
        mounts=(BindMount(f"{worktree}/conf/dev", f"{worktree}/laid/file"),),
        tmpfs=(f"{worktree}/tmp",),
        command=("sh", "-c", "touch by-service deps/a made/by/devbay/b ~/c tmp/d && exec sleep 60"),
    )
    runtime = lab.runtime()
    runtime.ensure_network(spec.bay, f"10.214.{secrets.randbelow(256)}.32/27", Job())
    image = runtime.ensure_installed(spec, runtime.ensure_image(spec, Job()), Job())
    runtime.ensure_volumes(spec, image, Job())
    runtime.create(spec, image, Job())
    runtime.start(spec, Job())
    (tmp_path / "run").mkdir()
    said: list[bytes] = []
    seen: list[Any] = []

    def sink(output: bytes) -> None:
        said.append(output)
        seen.append(runtime.observe(spec.bay))

    task = dataclasses.replace(
        spec, kind="task", command=("sh", "-c", "cat laid/file; touch by-task; id -un")
    )
    done = runtime.run_task(task, image, "r1", tmp_path / "run", sink, timeout_s=30, job=Job())
    assert (done.code, b"".join(said)) == (0, b"v\ndevbay\n")
    assert seen[0].services["web"].state == "running"  # its image's labels make no service of the run
    assert seen[0].others == (f"{spec.bay.prefix}-run-r1",)
    wait_for(lambda: (spec.worktree / "by-service").exists(), "the service's file")
    assert owners(spec.worktree) == {OWNER}
    assert (spec.worktree / "by-task").exists()
    runtime.teardown(spec.bay, Job())
    assert runtime.inventory(spec.bay) == []


@pytest.mark.full
def test_volumes_are_made_without_the_process_that_installed_and_old_templates_let_go(lab):
    spec = lab.spec(command=f"touch /bin/tool; {COUNT}")
    first = lab.runtime()
    image = first.ensure_installed(spec, first.ensure_image(spec, Job()), Job())
    (template,) = lab.store.templates()
    later = lab.runtime()
    later.ensure_volumes(spec, image, lab.job())
    assert lab.installs == 0
    assert lab.run(spec, template, "cat deps/what") == "x\n"
    assert lab.store.held(template.key) == 1
    plain = dataclasses.replace(spec, install=None)
    later.ensure_volumes(plain, later.ensure_image(plain, Job()), Job())
    assert lab.store.held(template.key) == 0
    assert lab.run(plain, None, "ls deps") == ""


def test_what_an_install_could_not_keep_is_told_of_its_service(lab):
    spec = lab.spec(command=f"touch lost; {COUNT}", env={"WHAT": "x", "HOST": "one--shop.localhost"})
    runtime = lab.runtime()
    runtime.ensure_installed(spec, runtime.ensure_image(spec, Job()), Job())
    kept, withheld = runtime.notes(spec)
    assert "wrote lost" in kept
    assert "ran without HOST" in withheld
    assert runtime.notes(dataclasses.replace(spec, install=None)) == ()


def test_a_task_reaches_the_bays_services_without_the_proxy(lab, tmp_path):
    lab.outbound = Outbound(None, (("http", "http://proxy.example:1"), ("no_proxy", "intra.example")))
    runtime = lab.runtime()
    spec = lab.spec(install=None, volumes=(), kind="task", peers=("db", "web"))
    spec = dataclasses.replace(spec, command=("sh", "-c", "echo $NO_PROXY"))
    runtime.ensure_network(spec.bay, f"10.214.{secrets.randbelow(256)}.64/27", Job())
    image = runtime.ensure_image(spec, Job())
    runtime.ensure_volumes(spec, image, Job())
    (tmp_path / "run").mkdir()
    said: list[bytes] = []
    runtime.run_task(spec, image, "r1", tmp_path / "run", said.append, timeout_s=30, job=Job())
    assert b"".join(said) == b"intra.example,localhost,127.0.0.1,::1,db,web\n"


def test_gc_removes_the_helpers_that_killed_processes_left_and_no_other(lab):
    runtime = lab.runtime()
    for name, labels in (
        ("stale", {**helper_labels(lab.home), "dev.devbay.helper": "another"}),
        ("fresh", helper_labels(lab.home)),
    ):
        wanted = ContainerSpec(name=f"devbay-{name}-{lab.home[:8]}", image=IMAGE, labels=labels)
        containers.create(lab.engine, wanted)
    assert runtime.collect(lab.home, Job(), everything=False) == [f"container devbay-stale-{lab.home[:8]}"]
    assert [each.name for each in containers.find(lab.engine, {"dev.devbay.home": lab.home})] == [
        f"devbay-fresh-{lab.home[:8]}"
    ]


def test_a_named_user_owns_what_it_installs(lab):
    spec = lab.spec(user="777:778", command=f"id -u > deps/id; {COUNT}")
    template = lab.ready(spec)
    assert lab.run(spec, template, "cat deps/id; stat -c %u:%g deps deps/what") == "777\n777:778\n777:778\n"


def test_what_an_image_has_at_a_fresh_volume_is_given_to_the_user(lab):
    dockerfile = f"FROM {IMAGE}\nRUN mkdir -p /app/deps/sub && touch /app/deps/sub/file\nVOLUME /data\n"
    worktree = lab.worktree("one", Dockerfile=dockerfile)
    spec = lab.spec(image=None, build=BuildSpec(worktree), install=None, volumes=("/app/deps",))
    lab.volumes.ensure(spec, lab.image(spec), lab.who(spec), None, Job())
    said = lab.run(spec, None, "touch /app/deps/sub/new /data/new ~/new; stat -c %u /app/deps/sub/file")
    assert said == f"{OWNER}\n"


def test_a_plain_volume_is_never_touched_again(lab):
    spec = lab.spec(install=None, volumes=("/uploads",))
    for _ in range(2):
        lab.volumes.ensure(spec, lab.image(spec), lab.who(spec), None, Job())
        lab.run(spec, None, "echo x >> /uploads/file")
    assert lab.run(spec, None, "cat /uploads/file") == "x\nx\n"


# -- failing, cancelling, dying ------------------------------------------------------------------------


def test_a_failing_install_says_what_it_printed_and_what_it_saw_and_leaves_nothing(lab):
    spec = lab.spec(command="echo the-reason >&2; exit 3")
    with pytest.raises(DevbayError, match="the-reason") as raised:
        lab.ensure(spec)
    assert raised.value.code == "install_failed"
    assert raised.value.data["status"] == 3
    assert "of the worktree only: lock" in raised.value.message
    assert lab.objects("dev.devbay.template") == []
    assert lab.store.templates() == []


def test_an_image_that_cannot_wait_is_named(lab):
    worktree = lab.worktree("one", Dockerfile=f"FROM {IMAGE}\nRUN rm /bin/sleep\n")
    with pytest.raises(DevbayError, match="no `sleep`"):
        lab.ensure(lab.spec(image=None, build=BuildSpec(worktree)))


def test_a_cancelled_install_ends_and_leaves_nothing(lab):
    begun = threading.Event()
    job = Job(lambda message, _fraction: begun.set() if message == "begun" else None)
    threading.Thread(target=lambda: (begun.wait(30), job.cancel())).start()
    with pytest.raises(Cancelled):
        lab.ensure(lab.spec(command="echo begun; sleep 60"), job)
    assert lab.objects("dev.devbay.template") == []
    assert lab.store.templates() == []


CHILD = """
import sys
from pathlib import Path
from integration.test_install import Lab
lab = Lab(Path(sys.argv[1]), sys.argv[2])
lab.ensure(lab.spec(command="echo half > deps/half; sleep 2; echo whole > deps/whole"))
print("done", flush=True)
"""


def test_a_killed_install_leaves_no_half_template_and_is_made_again(lab):
    spec = lab.spec(command="echo half > deps/half; sleep 2; echo whole > deps/whole")
    with subprocess.Popen([sys.executable, "-c", CHILD, str(lab.folder), lab.home]) as child:
        deadline = time.monotonic() + 20
        while not docker("ps", "-q", "--filter", f"label=dev.devbay.home={lab.home}"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(0.3)
        child.send_signal(signal.SIGKILL)
        child.wait()
    (left,) = lab.store.templates()
    assert left.state == "building"
    template = lab.ready(spec)
    assert template.key == left.key
    assert lab.run(spec, template, "cat deps/whole") == "whole\n"
    assert docker("ps", "-aq", "--filter", f"label=dev.devbay.home={lab.home}") == ""


def test_two_processes_install_once(lab):
    spec = lab.spec(command="echo half > deps/half; sleep 2; echo whole > deps/whole")
    with subprocess.Popen([sys.executable, "-c", CHILD, str(lab.folder), lab.home]) as child:
        while not docker("ps", "-q", "--filter", f"label=dev.devbay.home={lab.home}"):
            time.sleep(0.1)
        lab.ensure(spec)
        assert child.wait(20) == 0
    assert lab.installs == 0


def test_collecting_removes_what_a_killed_install_left(lab):
    with subprocess.Popen([sys.executable, "-c", CHILD, str(lab.folder), lab.home]) as child:
        while not docker("ps", "-q", "--filter", f"label=dev.devbay.home={lab.home}"):
            time.sleep(0.1)
        assert lab.installer.gc(lab.job()) == []  # it lives
        child.send_signal(signal.SIGKILL)
        child.wait()
    removed = lab.installer.gc(lab.job())
    assert [item.split()[0] for item in removed] == ["container", "volume", "volume"]
    assert lab.objects() == []
    assert lab.store.templates() == []


# -- keeping and evicting ------------------------------------------------------------------------------


def test_a_held_template_stays_until_its_bay_is_gone(lab):
    spec = lab.spec()
    template = lab.ready(spec)
    assert lab.installer.gc(lab.job(), all=True) == []
    for name in mounts(spec, lab.image(spec), lab.who(spec)).values():
        volumes.remove_fork(lab.engine, name)
    lab.installer.release(spec.bay.id)
    assert lab.installer.gc(lab.job()) == []
    removed = lab.installer.gc(lab.job(), all=True)
    assert f"volume {template.volumes['/workspace/deps']}" in removed
    assert lab.objects("dev.devbay.template") == []


def test_a_bays_container_is_never_taken_for_what_an_install_left(lab):
    spec = lab.spec(command=f"touch /bin/tool; {COUNT}")
    template = lab.ready(spec)
    name = f"{spec.bay.prefix}-web"
    made = ContainerSpec(name, template.image, command=("sleep", "60"), labels=spec.bay.labels("web"))
    container = containers.create(lab.engine, made)
    containers.start(lab.engine, container)
    lab.installer.release(spec.bay.id)
    lab.store.forget_template(template.key)  # as if the store had been lost
    with contextlib.suppress(DevbayError):
        lab.installer.gc(lab.job(), all=True)
    assert containers.inspect(lab.engine, container).state == "running"


@pytest.mark.full
def test_the_least_recently_used_templates_make_room(lab):
    keys = []
    for number in range(3):
        lab.worktree(f"bay{number}", lock=f"{number}\n")
        spec = lab.spec(f"bay{number}")
        keys.append(lab.ensure(spec).key)
        if number != 1:
            lab.installer.release(spec.bay.id)
    size = lab.store.template(keys[0]).size
    small = dataclasses.replace(lab.installer, max_bytes=2 * size)
    small.evict(lab.job())
    assert [template.key for template in lab.store.templates()] == keys[1:]
    dataclasses.replace(small, max_bytes=0).evict(lab.job())
    assert [template.key for template in lab.store.templates()] == [keys[1]]  # a bay holds it


@pytest.mark.full
def test_a_pruned_template_is_installed_again(lab):
    spec = lab.spec()
    template = lab.ensure(spec)
    lab.installer.release(spec.bay.id)
    docker("volume", "rm", template.volumes["/workspace/deps"])
    again = lab.ready(spec)
    assert lab.installs == 2
    assert lab.run(spec, again, "cat deps/what") == "x\n"


@pytest.mark.full
def test_what_is_left_of_a_pruned_template_is_not_touched_while_a_bay_has_forks_of_it(lab):
    one = lab.spec("one", command=f"touch /bin/tool; {COUNT}")
    first = lab.ready(one)
    assert first.committed
    docker("rmi", "-f", first.image)
    two = lab.spec("two", command=f"touch /bin/tool; {COUNT}")
    second = lab.ready(two)
    assert second.key != first.key
    assert volumes.inspect(lab.engine, first.volumes["/workspace/deps"]) is not None
    assert lab.run(two, second, "cat deps/what; ls /bin/tool") == "x\n/bin/tool\n"


# -- with real package managers ------------------------------------------------------------------------


@pytest.mark.full
def test_pip_installs_a_package_of_the_repository_into_the_image_once(lab):
    files = {
        "pkg__pyproject.toml": PYPROJECT,
        "pkg__backend.py": BACKEND,
    }
    for bay in ("one", "two"):
        lab.worktree(bay, **files)
    changes = {
        "image": PYTHON,
        "install": ("pip", "install", "--no-index", "--break-system-packages", "./pkg"),
        "install_inputs": ("pkg",),
        "volumes": (),
    }
    one, two = lab.spec("one", **changes), lab.spec("two", **changes)
    lab.ready(one)
    template = lab.ready(two)
    assert lab.installs == 1
    assert template.committed
    assert lab.run(two, template, "python -c 'import tiny; print(tiny.VALUE)'") == "42\n"
    assert owners(two.worktree) == {OWNER}


PYPROJECT = """[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = """
import zipfile
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(f"{wheel_directory}/{name}", "w") as wheel:
        wheel.writestr("tiny.py", "VALUE = 42\\n")
        wheel.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n")
        tags = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr("tiny-1.dist-info/WHEEL", tags)
        wheel.writestr("tiny-1.dist-info/RECORD", "")
    return name
"""


@pytest.mark.full
def test_npm_installs_a_workspace_without_running_its_scripts(lab):
    root = {
        "name": "shop",
        "version": "1.0.0",
        "workspaces": ["packages/*"],
        "dependencies": {"tiny": "1.0.0"},
    }
    tiny = {
        "name": "tiny",
        "version": "1.0.0",
        "scripts": {
            "postinstall": "touch /workspace/node_modules/ran",
            "prepare": "touch /workspace/node_modules/ran",
        },
    }
    files = {
        "package.json": json.dumps(root),
        "packages__tiny__package.json": json.dumps(tiny),
        "packages__tiny__index.js": "module.exports = 42;",
    }
    for bay in ("one", "two"):
        lab.worktree(bay, **files)
    changes = {"image": "node:20", "install": ("npm", "install", "--offline"), "install_inputs": ()}
    specs = [
        lab.spec(bay, **changes, volumes=(f"{lab.folder}/bäys of mine/{bay}/node_modules",))
        for bay in ("one", "two")
    ]
    lab.ready(specs[0])
    template = lab.ready(specs[1])
    assert lab.installs == 1
    assert lab.run(specs[1], template, "node -p 'require(\"tiny\")'; ls node_modules") == "42\ntiny\n"
    assert owners(specs[1].worktree) == {OWNER}
