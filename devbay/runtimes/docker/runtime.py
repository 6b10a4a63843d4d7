"""The Docker runtime: what bays need of an engine, composed of the primitives beside this module."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import BayRef, BindMount, Exit, LogEntry, ObservedBay, ServiceSpec, Sink
from devbay.runtimes.docker import containers, logs, networks, runs, sockets, teardown
from devbay.runtimes.docker.assemble import Assembler, Host
from devbay.runtimes.docker.bayvolumes import BayVolumes
from devbay.runtimes.docker.buildcontext import context_digest, read_context
from devbay.runtimes.docker.builds import build_tag, ensure_built
from devbay.runtimes.docker.containers import Container
from devbay.runtimes.docker.contexts import client_argv
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.events import Event, Watcher
from devbay.runtimes.docker.images import ImageInfo, ensure_pulled, find_image
from devbay.runtimes.docker.install import Installer
from devbay.runtimes.docker.objects import (
    BAY,
    CONFIG,
    HOME,
    RUN,
    is_of,
    network_name,
    observed,
    service_containers,
)
from devbay.runtimes.docker.targets import ContainerTarget
from devbay.runtimes.docker.templates import Template, read_inputs
from devbay.runtimes.probes import probe_once, wait_healthy

LOOK_S = 10.0
"""Looking at one file in a container takes milliseconds, unless the machine has none to give."""


class _State:
    """What all callers of one engine share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.created: dict[tuple[str, str], str] = {}
        self.templates: dict[tuple[str, str], Template] = {}
        self.watcher: Watcher | None = None
        self.following = False


class DockerRuntime:
    """Bays on one Docker engine. `devbay.runtimes.base.Runtime` documents every method."""

    name = "docker"
    isolation = ""

    def __init__(self, engine: Engine, installer: Installer, host: Host) -> None:
        self.engine = engine
        self._installer = installer
        self._host = host
        self._state = _State()
        self._volumes = BayVolumes(engine)
        self._assembler = Assembler(engine, installer.home, host)
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
        return networks.subnets(self.engine, besides=network_name(bay))

    # -- observing -------------------------------------------------------------------------------------

    def observe(self, bay: BayRef) -> ObservedBay:
        found = containers.observe(self.engine, {HOME: bay.home, BAY: bay.id})
        return observed(found, network=self.has_network(bay))

    def observe_all(self, home: str) -> Mapping[str, ObservedBay]:
        by_bay: dict[str, list[Container]] = {}
        for brief in containers.find(self.engine, {HOME: home}):
            full = brief if brief.state == "running" else containers.inspect(self.engine, brief.id)
            if full is not None and BAY in full.labels:
                by_bay.setdefault(full.labels[BAY], []).append(full)
        return {bay: observed(found, network=True) for bay, found in by_bay.items()}

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
        return networks.inspect(self.engine, network_name(bay)) is not None

    def ensure_network(self, bay: BayRef, subnet: str, job: Job) -> None:
        networks.ensure(self.engine, network_name(bay), subnet, bay.labels())

    def remove_network(self, bay: BayRef) -> None:
        found = networks.inspect(self.engine, network_name(bay))
        if found is not None and is_of(found.labels, bay):
            networks.remove(self.engine, found.id)

    def detach(self, bay: BayRef) -> None:
        for container in service_containers(self.engine, bay):
            networks.disconnect(self.engine, network_name(bay), container.id)

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
        return self._assembler.know(image)

    def image_env(self, image: str) -> Mapping[str, str]:
        return self._assembler.image(image).env

    def ensure_installed(self, spec: ServiceSpec, image: str, job: Job) -> str:
        info = self._assembler.image(image)
        template = self._installer.ensure(spec, info, self._assembler.identity(spec, info), job)
        self._state.templates[spec.bay.id, spec.name] = template
        return template.image

    def notes(self, spec: ServiceSpec) -> tuple[str, ...]:
        known = self._state.templates.get((spec.bay.id, spec.name))
        return known.notes if known and spec.install else ()

    def ensure_volumes(self, spec: ServiceSpec, image: str, job: Job) -> None:
        template = self._template(spec, image, job) if spec.install else None
        info = self._assembler.image(image)
        self._volumes.ensure(spec, info, self._assembler.identity(spec, info), template, job)
        self._installer.release_older(spec, template)

    # -- containers --------------------------------------------------------------------------------------

    def create(self, spec: ServiceSpec, image: str, job: Job) -> str:
        name = f"{spec.bay.prefix}-{spec.name}"
        labels = {**spec.labels, **spec.bay.labels(spec.name), CONFIG: spec.config_hash}
        wanted = self._assembler.container_spec(
            spec,
            image,
            name=name,
            labels=labels,
            ports=dict(spec.ports.values()),
            restart=spec.restart,
            aliases=(spec.name,),
        )
        made = self._assembler.make(wanted, spec)
        self._state.created[spec.bay.id, spec.name] = made
        return made

    def start(self, spec: ServiceSpec, job: Job) -> None:
        bay, service = spec.bay, spec.name
        fresh = self._state.created.pop((bay.id, service), None)
        container = fresh or self._container(bay, service).id
        if fresh is None:  # it may have been taken off the network when the bay was cooled
            networks.connect(self.engine, network_name(bay), container, aliases=(service,))
        containers.start(self.engine, container, doing=f"start {service}")

    def stop(self, bay: BayRef, service: str, *, timeout_s: float) -> None:
        for container in service_containers(self.engine, bay, service):
            if container.state == "paused":
                containers.unpause(self.engine, container.id)
            containers.stop(self.engine, container.id, timeout_s=timeout_s)

    def pause(self, bay: BayRef, service: str) -> None:
        containers.pause(self.engine, self._container(bay, service).id)

    def unpause(self, bay: BayRef, service: str) -> None:
        containers.unpause(self.engine, self._container(bay, service).id)

    def remove(self, bay: BayRef, service: str) -> None:
        for container in service_containers(self.engine, bay, service):
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
        found = service_containers(self.engine, bay, service)
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
        wanted = self._assembler.container_spec(
            spec,
            image,
            name=f"{spec.bay.prefix}-run-{run}",
            labels=labels,
            binds=(BindMount(str(run_dir), str(run_dir)),),
            env=self._host.outbound.env(direct=spec.peers),
        )
        container = self._assembler.make(wanted, spec)
        return runs.run_to_end(self.engine, container, spec.name, sink, timeout_s=timeout_s, job=job)

    def end_run(self, bay: BayRef, run: str, sink: Sink) -> Exit | None:
        return runs.end_run(self.engine, bay, run, sink)

    def memory_mb(self, bay: BayRef) -> int:
        used = [
            containers.memory_bytes(self.engine, container.id)
            for container in service_containers(self.engine, bay)
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

    def listening(self, bay: BayRef, service: str) -> list[tuple[str, int]]:
        try:
            container = self._container(bay, service).id
            told = containers.exec_(self.engine, container, sockets.COMMAND, timeout_s=LOOK_S)
        except DevbayError as error:
            if error.code in ("not_started", "not_running", "not_found", "paused"):
                return []
            raise
        return sockets.listening(told.output.decode("ascii", "replace"))

    # -- the end ---------------------------------------------------------------------------------------

    def inventory(self, bay: BayRef) -> list[str]:
        return teardown.inventory(self.engine, bay)

    def teardown(self, bay: BayRef, job: Job) -> list[str]:
        return teardown.teardown(self.engine, self._installer, bay)

    def bays_with_objects(self, home: str) -> set[str]:
        return teardown.bays_with_objects(self.engine, home)

    def collect(self, home: str, job: Job, *, everything: bool) -> list[str]:
        """Remove half-made templates and what killed daemons left; with `everything` also unused templates,
        caches and built images.
        """
        removed = teardown.remove_stale_helpers(self.engine, home)
        removed += self._installer.gc(job, all=everything)
        if everything:
            for image, tags in teardown.remove_built_images(self.engine, home).items():
                self._assembler.forget(image)
                removed += [f"image {tag}" for tag in tags]
        return removed

    # -- inside ----------------------------------------------------------------------------------------

    def _template(self, spec: ServiceSpec, image: str, job: Job) -> Template:
        """What `image` was installed as: known since `ensure_installed`, else found again by its inputs."""
        known = self._state.templates.get((spec.bay.id, spec.name))
        if known is None or known.image != image:
            self.ensure_installed(spec, self.ensure_image(spec, job), job)
            known = self._state.templates[spec.bay.id, spec.name]
        return known

    def _target(self, spec: ServiceSpec, container: Container) -> ContainerTarget:
        ports = dict(spec.ports.values())
        primary = spec.ports["port"][0] if "port" in spec.ports else None
        return ContainerTarget(self.engine, container.id, spec.name, ports, primary)

    def _container(self, bay: BayRef, service: str) -> Container:
        found = service_containers(self.engine, bay, service)
        if not found:
            raise DevbayError(
                "not_started",
                f"service {service!r} of bay {bay.name!r} has no container",
                next=f"bay_up(bay={bay.name!r})",
                exit_code=WORK_FAILED,
            )
        return found[0]
