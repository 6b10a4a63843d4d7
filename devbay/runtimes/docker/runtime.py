"""The Docker runtime: what bays need of an engine, composed of the primitives beside this module."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.manifest import confined
from devbay.runtimes.base import (
    BayRef,
    BindMount,
    Exit,
    LogEntry,
    ObservedBay,
    ObservedService,
    ServiceSpec,
    Sink,
)
from devbay.runtimes.docker import archives, bayvolumes, containers, logs, networks, volumes
from devbay.runtimes.docker.archives import Entry
from devbay.runtimes.docker.bayvolumes import BayVolumes
from devbay.runtimes.docker.buildcontext import context_digest, read_context
from devbay.runtimes.docker.builds import build_tag, built_images, ensure_built
from devbay.runtimes.docker.containers import Container
from devbay.runtimes.docker.contexts import client_argv
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.events import Event, Watcher
from devbay.runtimes.docker.images import ImageInfo, ensure_pulled, find_image
from devbay.runtimes.docker.install import Installer
from devbay.runtimes.docker.outbound import Outbound
from devbay.runtimes.docker.specs import ContainerSpec
from devbay.runtimes.docker.targets import ContainerTarget
from devbay.runtimes.docker.templates import Template, read_inputs
from devbay.runtimes.docker.users import Accounts, Identity, identity, make_mount_points
from devbay.runtimes.probes import probe_once, wait_healthy

BAY, SERVICE, HOME, CONFIG, RUN = (
    f"dev.devbay.{name}" for name in ("bay", "service", "home", "config", "run")
)
ENGINE_SOCKET = "/var/run/docker.sock"
KILL_AFTER_S = 1.0
OOM_CODE = 137


@dataclasses.dataclass(frozen=True)
class Host:
    """Of this machine: whose worktrees they are, and how containers reach the outside."""

    uid: int
    gid: int
    outbound: Outbound
    env: Mapping[str, str]


class _State:
    """What all callers of one engine share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.accounts: dict[str, Accounts] = {}
        self.images: dict[str, ImageInfo] = {}
        self.visible: set[Path] = set()
        self.created: dict[tuple[str, str], str] = {}
        self.templates: dict[tuple[str, str], Template] = {}
        self.watcher: Watcher | None = None
        self.following = False


class DockerRuntime:
    """Bays on one Docker engine. `devbay.runtimes.base.Runtime` documents every method."""

    name = "docker"

    def __init__(self, engine: Engine, installer: Installer, host: Host) -> None:
        self.engine = engine
        self._installer = installer
        self._host = host
        self._state = _State()
        self._volumes = BayVolumes(engine)
        self.key = hashlib.sha256(json.dumps(engine.endpoint.to_json(), sort_keys=True).encode()).hexdigest()

    def for_caller(self, env: Mapping[str, str]) -> DockerRuntime:
        """The same engine for another caller: pulls and builds use that caller's environment."""
        twin = object.__new__(DockerRuntime)
        twin.__dict__ = self.__dict__ | {"_host": dataclasses.replace(self._host, env=env)}
        return twin

    @property
    def following(self) -> bool:
        return self._state.following

    # -- the engine ------------------------------------------------------------------------------------

    def check(self) -> None:
        self.engine.check()

    def networks_in_use(self, bay: BayRef) -> list[str]:
        return networks.subnets(self.engine, besides=_network(bay))

    # -- observing -------------------------------------------------------------------------------------

    def observe(self, bay: BayRef) -> ObservedBay:
        found = containers.observe(self.engine, {HOME: bay.home, BAY: bay.id})
        return _observed(found, network=self.has_network(bay))

    def observe_all(self, home: str) -> Mapping[str, ObservedBay]:
        by_bay: dict[str, list[Container]] = {}
        for brief in containers.find(self.engine, {HOME: home}):
            full = brief if brief.state == "running" else containers.inspect(self.engine, brief.id)
            if full is not None and BAY in full.labels:
                by_bay.setdefault(full.labels[BAY], []).append(full)
        return {bay: _observed(found, network=True) for bay, found in by_bay.items()}

    def follow(self, home: str, on_event: Callable[[str, str], None]) -> None:
        with self._state.lock:
            if self._state.watcher is not None:
                return

            def happened(event: Event) -> None:
                on_event(event.bay, event.service)

            def opened() -> None:
                self._state.following = True
                on_event("", "")

            def lost(error: DevbayError) -> None:
                self._state.following = False
                on_event("", "")

            self._state.watcher = Watcher(self.engine, home, happened, opened, lost)
            self._state.watcher.start()

    def close(self) -> None:
        """Stop following events and let the engine's connections go."""
        if self._state.watcher is not None:
            self._state.watcher.close()
        self.engine.close()

    # -- networks --------------------------------------------------------------------------------------

    def has_network(self, bay: BayRef) -> bool:
        return networks.inspect(self.engine, _network(bay)) is not None

    def ensure_network(self, bay: BayRef, subnet: str, job: Job) -> None:
        networks.ensure(self.engine, _network(bay), subnet, bay.labels())

    def remove_network(self, bay: BayRef) -> None:
        found = networks.inspect(self.engine, _network(bay))
        if found is not None and _ours(found.labels, bay):
            networks.remove(self.engine, found.id)

    def detach(self, bay: BayRef) -> None:
        for container in self._containers(bay):
            networks.disconnect(self.engine, _network(bay), container.id)

    # -- images ----------------------------------------------------------------------------------------

    def fingerprint(self, spec: ServiceSpec) -> str:
        parts: list[str] = [spec.image or ""]
        image = ImageInfo(id="")
        if spec.build is not None and spec.worktree is not None:
            context = read_context(spec.build, spec.worktree)
            digest = context_digest(context, spec.build, spec.platform, Job())
            parts.append(digest)
            image = find_image(self.engine, build_tag(spec, digest)) or image
        if spec.install:
            files, _ = read_inputs(spec, image)
            for file in files:
                content = hashlib.sha256(file.data).hexdigest()
                parts.append(f"{file.path} {file.executable} {content}")
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def ensure_image(self, spec: ServiceSpec, job: Job) -> str:
        if spec.build is not None:
            image = ensure_built(self.engine, spec, self._host.env, self._host.outbound, job)
        else:
            assert spec.image is not None
            image = ensure_pulled(self.engine, spec.image, spec.platform, self._host.env, job)
        self._state.images[image.id] = image
        return image.id

    def ensure_installed(self, spec: ServiceSpec, image: str, job: Job) -> str:
        info = self._image(image)
        template = self._installer.ensure(spec, info, self._identity(spec, info), job)
        self._state.templates[spec.bay.id, spec.name] = template
        return template.image

    def notes(self, spec: ServiceSpec) -> tuple[str, ...]:
        known = self._state.templates.get((spec.bay.id, spec.name))
        return known.notes if known and spec.install else ()

    def ensure_volumes(self, spec: ServiceSpec, image: str, job: Job) -> None:
        template = self._template(spec, image, job) if spec.install else None
        info = self._image(image)
        self._volumes.ensure(spec, info, self._identity(spec, info), template, job)
        self._installer.release_older(spec, template)

    # -- containers --------------------------------------------------------------------------------------

    def create(self, spec: ServiceSpec, image: str, job: Job) -> str:
        name = f"{spec.bay.prefix}-{spec.name}"
        labels = {**spec.labels, **spec.bay.labels(spec.name), CONFIG: spec.config_hash}
        wanted = self._container_spec(
            spec,
            image,
            name=name,
            labels=labels,
            ports=dict(spec.ports.values()),
            restart=spec.restart,
            aliases=(spec.name,),
        )
        made = self._make(wanted, spec)
        self._state.created[spec.bay.id, spec.name] = made
        return made

    def start(self, bay: BayRef, service: str, job: Job) -> None:
        fresh = self._state.created.pop((bay.id, service), None)
        container = fresh or self._container(bay, service).id
        if fresh is None:  # it may have been taken off the network when the bay was cooled
            networks.connect(self.engine, _network(bay), container, aliases=(service,))
        containers.start(self.engine, container, doing=f"start {service}")

    def stop(self, bay: BayRef, service: str, *, timeout_s: float) -> None:
        for container in self._containers(bay, service):
            if container.state == "paused":
                containers.unpause(self.engine, container.id)
            containers.stop(self.engine, container.id, timeout_s=timeout_s)

    def pause(self, bay: BayRef, service: str) -> None:
        containers.pause(self.engine, self._container(bay, service).id)

    def unpause(self, bay: BayRef, service: str) -> None:
        containers.unpause(self.engine, self._container(bay, service).id)

    def remove(self, bay: BayRef, service: str) -> None:
        for container in self._containers(bay, service):
            containers.remove(self.engine, container.id)

    def wait_exit(self, bay: BayRef, service: str, job: Job) -> Exit:
        container = self._container(bay, service)
        code = containers.wait(self.engine, container.id, job)
        found = containers.inspect(self.engine, container.id)
        return Exit(code, oom_killed=bool(found and found.oom_killed))

    def wait_healthy(self, spec: ServiceSpec, *, host: str, first: bool, job: Job) -> str:
        container = self._container(spec.bay, spec.name)
        if spec.health is not None:
            wait_healthy(spec.health, self._target(spec, container), host_header=host, first=first, job=job)
        return container.id

    def probe_once(self, spec: ServiceSpec, *, host: str) -> str | None:
        container = self._container(spec.bay, spec.name)
        if spec.health is None:
            return None
        return probe_once(spec.health, self._target(spec, container), host_header=host)

    def logs(
        self, bay: BayRef, service: str, *, lines: int | None, since: str | None = None
    ) -> Sequence[LogEntry]:
        found = self._containers(bay, service)
        if not found:
            return []
        read = logs.tail(self.engine, found[0].id, lines=lines, since=since)
        return [LogEntry(service, line.at, line.text) for line in read]

    def follow_logs(self, bay: BayRef, service: str, *, lines: int, job: Job) -> Iterator[LogEntry]:
        container = self._container(bay, service)
        for line in logs.follow(self.engine, container.id, job=job, lines=lines):
            yield LogEntry(service, line.at, line.text)

    # -- runs ------------------------------------------------------------------------------------------

    def run_task(
        self,
        spec: ServiceSpec,
        image: str,
        run: str,
        run_dir: Path,
        sink: Sink,
        *,
        timeout_s: float,
        job: Job,
    ) -> Exit:
        labels = {**spec.bay.labels(), RUN: run}
        wanted = self._container_spec(
            spec,
            image,
            name=f"{spec.bay.prefix}-run-{run}",
            labels=labels,
            binds=(BindMount(str(run_dir), str(run_dir)),),
            env=self._host.outbound.env(direct=spec.peers),
        )
        container = self._make(wanted, spec)
        timed_out = threading.Event()

        def end() -> None:
            timed_out.set()
            containers.kill(self.engine, container)

        timer = threading.Timer(timeout_s, end)
        try:
            with job.when_cancelled(lambda: containers.kill(self.engine, container)):
                with containers.attach(self.engine, container) as output:
                    job.check()
                    containers.start(self.engine, container, doing=f"run {spec.name}")
                    if job.cancelled:  # a signal sent between the two lines above reached nothing
                        containers.kill(self.engine, container)
                    timer.start()
                    for frame in output.frames():
                        sink(frame)
                code = containers.wait(self.engine, container, Job())
            found = containers.inspect(self.engine, container)
            oom = bool(found and found.oom_killed) and code == OOM_CODE
            return Exit(code, timed_out.is_set(), oom and not timed_out.is_set(), job.cancelled)
        finally:
            timer.cancel()
            containers.remove(self.engine, container)

    def end_run(self, bay: BayRef, run: str, sink: Sink) -> Exit | None:
        found = containers.find(self.engine, {HOME: bay.home, BAY: bay.id, RUN: run})
        if not found:
            return None
        container = found[0].id
        containers.kill(self.engine, container)
        code = containers.wait(self.engine, container, Job())
        for line in logs.tail(self.engine, container):
            sink(line.text.encode() + b"\n")
        containers.remove(self.engine, container)
        return Exit(code)

    def memory_mb(self, bay: BayRef) -> int:
        used = [
            containers.memory_bytes(self.engine, container.id)
            for container in self._containers(bay)
            if container.state in ("running", "paused")
        ]
        return round(sum(used) / 2**20)

    def exec_argv(self, bay: BayRef, service: str, argv: Sequence[str], *, tty: bool) -> list[str]:
        container = self._container(bay, service)
        client = client_argv(self.engine.endpoint)
        if shutil.which(client[0], path=self._host.env.get("PATH")) is None:
            raise DevbayError(
                "docker_client_missing",
                "devbay exec needs the `docker` command, which is not on the PATH",
                next="install the Docker client",
                exit_code=WORK_FAILED,
            )
        return [*client, "exec", "-it" if tty else "-i", container.id, *argv]

    # -- the end ---------------------------------------------------------------------------------------

    def inventory(self, bay: BayRef) -> list[str]:
        labels = {HOME: bay.home, BAY: bay.id}
        return [
            *(f"container {each.name}" for each in containers.find(self.engine, labels)),
            *(f"volume {each.name}" for each in volumes.find(self.engine, labels)),
            *(f"network {each.name}" for each in networks.find(self.engine, labels)),
        ]

    def teardown(self, bay: BayRef, job: Job) -> list[str]:
        labels = {HOME: bay.home, BAY: bay.id}
        removed = self.inventory(bay)
        found = containers.find(self.engine, labels)
        _at_once([partial(containers.remove, self.engine, each.id) for each in found])
        named = volumes.find(self.engine, labels)
        forks = [each for each in named if each.options.get("type") == "overlay"]
        _at_once([partial(volumes.remove, self.engine, each.name) for each in forks])
        rest = [partial(volumes.remove, self.engine, each.name) for each in named if each not in forks]
        nets = networks.find(self.engine, labels)
        _at_once([*rest, *(partial(networks.remove, self.engine, each.id) for each in nets)])
        self._installer.release(bay.id)
        left = self.inventory(bay)
        if left:
            raise DevbayError(
                "survivors",
                f"still there after removing: {', '.join(left)}",
                next="stop what uses them, then devbay rm again",
                exit_code=WORK_FAILED,
                survivors=left,
            )
        return removed

    def bays_with_objects(self, home: str) -> set[str]:
        """The ids of all bays that have anything on the engine."""
        found = [
            *(each.labels for each in containers.find(self.engine, {HOME: home})),
            *(each.labels for each in volumes.find(self.engine, {HOME: home})),
            *(each.labels for each in networks.find(self.engine, {HOME: home})),
        ]
        return {labels[BAY] for labels in found if BAY in labels}

    def collect(self, home: str, job: Job, *, everything: bool) -> list[str]:
        """Remove half-made templates; with `everything` also unused templates, caches and built images."""
        removed = self._installer.gc(job, all=everything)
        if not everything:
            return removed
        for image, tags in built_images(self.engine, home).items():
            try:
                for tag in tags:
                    self.engine.call("DELETE", f"/images/{tag}", doing=f"remove {tag}")
            except DevbayError as error:
                if error.code == "engine_unreachable":
                    raise
                continue  # a container uses it
            self._state.images.pop(image, None)
            removed += [f"image {tag}" for tag in tags]
        return removed

    # -- inside ----------------------------------------------------------------------------------------

    def _container_spec(
        self,
        spec: ServiceSpec,
        image: str,
        *,
        name: str,
        labels: Mapping[str, str],
        ports: Mapping[int, int] | None = None,
        restart: str = "no",
        aliases: tuple[str, ...] = (),
        binds: tuple[BindMount, ...] = (),
        env: Mapping[str, str] | None = None,
    ) -> ContainerSpec:
        info = self._image(image)
        who = self._identity(spec, info)
        named = bayvolumes.mounts(spec, info, who)
        mounts: list[BindMount] = []
        if spec.worktree is not None:
            mounts.append(BindMount(str(spec.worktree), str(spec.worktree)))
            mounts += spec.git_mounts
        mounts += [*with_git_kept(spec), *binds]
        if env:
            mounts += self._host.outbound.mounts()
        if spec.docker_socket:
            socket = self.engine.endpoint.socket
            mounts.append(BindMount(str(socket) if socket else ENGINE_SOCKET, ENGINE_SOCKET))
        files = [Entry(path, "file", data, mode=0o644) for path, data in who.files().items()]
        if who.uid is not None:
            uid, gid = who.uid, who.gid or 0
            files += [
                Entry(path, "dir", mode=0o755, uid=uid, gid=gid) for path in dict.fromkeys(who.owned(named))
            ]
        if spec.worktree is not None:
            files_below = [m.target for m in mounts if Path(m.source).is_file()]
            folders = [*named, *(m.target for m in mounts if m.target not in files_below), *spec.tmpfs]
            make_mount_points(spec.worktree, folders, files_below)
        return ContainerSpec(
            name=name,
            image=image,
            command=spec.command,
            entrypoint=spec.entrypoint,
            env={**(env or {}), **who.env, **spec.env},
            workdir=spec.workdir,
            user=who.user,
            binds=tuple(mounts),
            volumes=named,
            tmpfs=spec.tmpfs,
            shm_size=spec.shm_size,
            limits=spec.limits,
            restart=restart,
            ports=ports or {},
            network=_network(spec.bay),
            aliases=aliases,
            labels=labels,
            platform=spec.platform,
            init=spec.worktree is not None,  # the user's own programs rarely expect to be process 1
            files=tuple(files),
            worktree=str(spec.worktree) if spec.worktree else None,
        )

    def _make(self, wanted: ContainerSpec, spec: ServiceSpec) -> str:
        """Create the container; one of that name left by a crash is replaced if it is this bay's."""
        try:
            made = containers.create(self.engine, wanted)
        except DevbayError as error:
            if error.code != "name_conflict":
                raise
            old = containers.inspect(self.engine, wanted.name)
            if old is None or not _ours(old.labels, spec.bay):
                raise
            containers.remove(self.engine, old.id)
            made = containers.create(self.engine, wanted)
        if spec.worktree is not None and spec.worktree not in self._state.visible:
            try:
                archives.check_visible(self.engine, made, spec.worktree)
            except DevbayError:
                containers.remove(self.engine, made)
                raise
            self._state.visible.add(spec.worktree)
        return made

    def _template(self, spec: ServiceSpec, image: str, job: Job) -> Template:
        """What `image` was installed as: known since `ensure_installed`, else found again by its inputs."""
        known = self._state.templates.get((spec.bay.id, spec.name))
        if known is None or known.image != image:
            self.ensure_installed(spec, self.ensure_image(spec, job), job)
            known = self._state.templates[spec.bay.id, spec.name]
        return known

    def _image(self, image: str) -> ImageInfo:
        known = self._state.images.get(image) or find_image(self.engine, image)
        if known is None:
            raise DevbayError(
                "image_not_found", f"the image {image} is gone from the engine", exit_code=WORK_FAILED
            )
        self._state.images[image] = known
        return known

    def _identity(self, spec: ServiceSpec, image: ImageInfo) -> Identity:
        needed = spec.worktree is not None and spec.user is None
        accounts = self._image_accounts(image.id) if needed else Accounts()
        owner = spec.worktree.stat() if spec.worktree is not None else None
        uid, gid = (owner.st_uid, owner.st_gid) if owner else (self._host.uid, self._host.gid)
        return identity(accounts, spec, self.engine.info().kind, uid, gid)

    def _image_accounts(self, image: str) -> Accounts:
        """The image's account files, read once per image through a container that is never started."""
        with self._state.lock:
            known = self._state.accounts.get(image)
        if known is not None:
            return known
        helper = containers.create(
            self.engine,
            ContainerSpec(
                name=f"devbay-accounts-{os.urandom(6).hex()}",
                image=image,
                command=("true",),
                labels={"dev.devbay.managed": "1", HOME: self._installer.home},
            ),
        )
        try:
            found = Accounts(
                archives.read_file(self.engine, helper, "/etc/passwd"),
                archives.read_file(self.engine, helper, "/etc/group"),
            )
        finally:
            containers.remove(self.engine, helper)
        with self._state.lock:
            self._state.accounts[image] = found
        return found

    def _target(self, spec: ServiceSpec, container: Container) -> ContainerTarget:
        ports = dict(spec.ports.values())
        primary = spec.ports["port"][0] if "port" in spec.ports else None
        return ContainerTarget(self.engine, container.id, spec.name, ports, primary)

    def _containers(self, bay: BayRef, service: str | None = None) -> list[Container]:
        labels = {HOME: bay.home, BAY: bay.id} | ({SERVICE: service} if service else {})
        return [each for each in containers.find(self.engine, labels) if _is_service(each.labels)]

    def _container(self, bay: BayRef, service: str) -> Container:
        found = self._containers(bay, service)
        if not found:
            raise DevbayError(
                "not_started",
                f"service {service!r} of bay {bay.name!r} has no container",
                next=f"bay_up(bay={bay.name!r})",
                exit_code=WORK_FAILED,
            )
        return found[0]


def with_git_kept(spec: ServiceSpec) -> list[BindMount]:
    """The manifest's mounts, and on top of each what protects git inside it (decision 1).

    A folder of the worktree that is mounted at a second place shows its `.git` there too. The sources are
    checked once more, because the worktree belongs to programs that may have put links in since.
    """
    mounts: list[BindMount] = []
    for mount in spec.mounts:
        mounts.append(mount)
        source = PurePosixPath(mount.source)
        if spec.worktree is None or not source.is_relative_to(spec.worktree):
            continue
        confined(spec.worktree, str(source.relative_to(spec.worktree)))
        for guard in spec.git_mounts:
            inner = PurePosixPath(guard.target)
            if inner.is_relative_to(source):
                target = str(PurePosixPath(mount.target) / inner.relative_to(source))
                mounts.append(dataclasses.replace(guard, target=target))
    return mounts


def _network(bay: BayRef) -> str:
    return bay.prefix


def _is_service(labels: Mapping[str, str]) -> bool:
    """Whether a container is a service's own. Containers of runs, and helpers, inherit `.service` from images
    that were built or committed for a service, but never `.config`.
    """
    return SERVICE in labels and CONFIG in labels


def _ours(labels: Mapping[str, str], bay: BayRef) -> bool:
    return labels.get(HOME) == bay.home and labels.get(BAY) == bay.id


def _observed(found: Sequence[Container], *, network: bool) -> ObservedBay:
    services = {
        each.labels[SERVICE]: ObservedService(
            name=each.labels[SERVICE],
            state=each.state,
            ref=each.id,
            config_hash=each.labels.get(CONFIG, ""),
            exit_code=each.exit_code,
            restarts=each.restarts or 0,
            started_at=each.started_at,
            oom_killed=bool(each.oom_killed),
        )
        for each in found
        if _is_service(each.labels)
    }
    others = tuple(each.name for each in found if not _is_service(each.labels))
    return ObservedBay(network, services, others=others)


def _at_once(calls: Sequence[Callable[[], None]]) -> None:
    """Make the calls at the same time; the first error is raised once all are done."""
    threads: list[threading.Thread] = []
    errors: list[BaseException] = []

    def guarded(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001  # raised below
            errors.append(error)

    for call in calls:
        thread = threading.Thread(target=guarded, args=(call,), daemon=True)
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
