"""The host runtime: what bays need of this machine, composed of the primitives beside this module."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from devbay.errors import WORK_FAILED, DevbayError
from devbay.home import Home, write_private
from devbay.jobs import Job
from devbay.runtimes.base import BayRef, Exit, LogEntry, ObservedBay, ObservedService, ServiceSpec, Sink
from devbay.runtimes.host import cgroups, logfile, tree
from devbay.runtimes.host.assemble import Assembler
from devbay.runtimes.host.installs import Installs
from devbay.runtimes.host.keepers import Keepers
from devbay.runtimes.host.keptstate import KeptState
from devbay.runtimes.host.launch import MARK, Launch
from devbay.runtimes.host.machine import Machine
from devbay.runtimes.host.meet import Met, meet
from devbay.runtimes.host.owner import owner, owner_of
from devbay.runtimes.host.place import Place
from devbay.runtimes.host.providers import PROVIDERS
from devbay.runtimes.host.providers.reach import within_reach
from devbay.runtimes.host.removing import remove_tree
from devbay.runtimes.host.sandbox import ended, probe
from devbay.runtimes.host.target import Check, HostTarget, exit_code
from devbay.runtimes.host.templates import Templates
from devbay.runtimes.outbound import Outbound
from devbay.runtimes.probes import probe_once, wait_healthy
from devbay.sites.ports import port_is_free

STOP_TIMEOUT_S = 10.0
TAIL_BYTES = 4096
RELEASE_S = 2.0
"""How long a port may stay taken by what was just stopped."""


class HostRuntime:
    """Bays of one machine. `devbay.runtimes.base.Runtime` documents every method."""

    name = "host"
    key = "host"

    def __init__(self, home: Home, *, salt: str, outbound: Outbound, max_bytes: int) -> None:
        self.place = Place.of(home)
        self._home = home
        self._max_bytes = max_bytes
        self._salt = salt
        self._keepers = Keepers(self.place, home.id)
        self._templates = Templates(self.place.templates)
        self._outbound = outbound
        self._following = [False]
        self._for(Machine.of(dict(os.environ)))

    def _for(self, machine: Machine) -> None:
        self.machine = machine
        self._assembler = Assembler(self._home, self.place, self._outbound, machine)
        home = self._home
        self._installs = Installs(
            self.place, self._templates, self._keepers.run, machine, self._outbound, salt=self._salt,
            closed=(home.state_dir, home.config_dir, home.runtime_parent, home.machine_dir),
        )  # fmt: skip

    def for_machine(self, machine: Machine) -> HostRuntime:
        """The same for a bay that was made on this machine as it was described then."""
        twin = object.__new__(HostRuntime)
        twin.__dict__ = dict(self.__dict__)
        twin._for(machine)
        return twin

    # -- the machine -----------------------------------------------------------------------------------

    def check(self) -> None:
        """A machine that runs devbay can start processes."""

    @property
    def isolation(self) -> str:
        found = probe(self.machine.path)
        return dataclasses.replace(found, limits=cgroups.kind()).sentence()

    def networks_in_use(self, bay: BayRef) -> list[str]:
        return []

    def has_network(self, bay: BayRef) -> bool:
        return True  # the machine's own

    def ensure_network(self, bay: BayRef, subnet: str, job: Job) -> None: ...

    def remove_network(self, bay: BayRef) -> None: ...

    def detach(self, bay: BayRef) -> None: ...

    # -- observing -------------------------------------------------------------------------------------

    def observe(self, bay: BayRef) -> ObservedBay:
        return self._observed(bay.id)

    def observe_all(self, home: str) -> Mapping[str, ObservedBay]:
        return {bay: self._observed(bay) for bay in sorted(self.bays_with_objects(home))}

    def _observed(self, bay: str) -> ObservedBay:
        folder = self.place.bay(bay) / "services"
        found: dict[str, ObservedService] = {}
        for service in sorted(folder.iterdir()) if folder.is_dir() else ():
            state = self._keepers.state(service)
            if state is None:
                config = self._created(service)
                if config is not None:
                    found[service.name] = ObservedService(service.name, "created", config_hash=config)
                continue
            found[service.name] = ObservedService(
                service.name,
                state.state,
                ref=state.ref,
                config_hash=state.config,
                exit_code=exit_code(state, functools.partial(_log_tail, service)),
                restarts=state.restarts,
                started_at=state.started_at,
                oom_killed=state.oom_killed,
                reason=state.reason,
            )
        return ObservedBay(network=True, services=found)

    def _created(self, folder: Path) -> str | None:
        try:
            return (folder / "created").read_text()
        except FileNotFoundError:
            return None

    @property
    def following(self) -> bool:
        return self._following[0]

    def follow(self, home: str, on_event: Callable[[str, str], None]) -> None:
        if self._following[0]:
            return
        self._following[0] = True
        self._keepers.watch(on_event)

    def close(self) -> None:
        """Stop following; what runs goes on."""
        self._keepers.close()

    # -- what a service runs on ------------------------------------------------------------------------

    def fingerprint(self, spec: ServiceSpec) -> str:
        met = self._find(spec)
        parts = [spec.image or "", met.identity]
        if spec.install:
            parts.append(self._installs.digest(spec, met.toolchain))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def ensure_image(self, spec: ServiceSpec, job: Job) -> str:
        return self._meet(spec).image

    def image_env(self, image: str) -> Mapping[str, str]:
        return {}

    def ensure_installed(self, spec: ServiceSpec, image: str, job: Job) -> str:
        self.place.make()
        self._installs.ensure(spec, self._meet(spec).toolchain, job)
        return image

    def notes(self, spec: ServiceSpec) -> tuple[str, ...]:
        installed = self._installs.notes(spec) if spec.install else ()
        return (*self._meet(spec).notes, *installed)

    def ensure_volumes(self, spec: ServiceSpec, image: str, job: Job) -> None:
        self.place.make()
        met = self._meet(spec)
        if met.provider is not None and met.server is not None:
            if spec.kind == "service":
                data = self.place.data(spec.bay.id, spec.name)
                data.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
                met.provider.prepare(
                    spec, met.server, data, self._templates, owner(spec.bay.id), self._keepers.run, job
                )
            return
        volumes = self._assembler.volumes(spec)
        self._installs.give(spec, met.toolchain, volumes, running=self._is_running(spec), job=job)
        for folder in volumes.values():
            folder.mkdir(parents=True, exist_ok=True)

    # -- services --------------------------------------------------------------------------------------

    def create(self, spec: ServiceSpec, image: str, job: Job) -> str:
        """A service that never ran is a note of what it will be; nothing of its environment is written."""
        self.remove(spec.bay, spec.name)
        folder = self._folder(spec.bay, spec.name)
        folder.mkdir(mode=0o700, parents=True)
        write_private(folder / "created", spec.config_hash)
        return secrets.token_hex(8)

    def start(self, spec: ServiceSpec, job: Job) -> None:
        self._free_ports(spec, job)
        folder, socket = self._folder(spec.bay, spec.name), self._socket(spec.bay, spec.name)
        self._keepers.start(folder, socket, self._launch(spec), spec.config_hash)

    def _launch(self, spec: ServiceSpec) -> Launch:
        met = self._meet(spec)
        if met.provider is None or met.server is None or spec.kind != "service":
            return self._assembler.launch(spec, met, name=spec.name)
        data = self.place.data(spec.bay.id, spec.name)
        if not self._is_running(spec):
            met.provider.clean(data)
        launch = met.provider.launch(spec, met.server, data, owner_of(data, owner(spec.bay.id)))
        return dataclasses.replace(launch, restart=spec.restart, limits=spec.limits)

    def _free_ports(self, spec: ServiceSpec, job: Job) -> None:
        """Raise `port_taken` if somebody listens where the service will; what was just stopped may still."""
        until = time.monotonic() + RELEASE_S
        for _, port in spec.ports.values():
            while not port_is_free(port):
                if time.monotonic() > until:
                    raise _taken(spec.name, port)
                job.sleep(0.02)

    def stop(self, bay: BayRef, service: str, *, timeout_s: float) -> None:
        folder = self._folder(bay, service)
        if folder.is_dir():
            self._keepers.stop(folder, self._socket(bay, service), timeout_s)

    def pause(self, bay: BayRef, service: str) -> None:
        self._keepers.pause(self._folder(bay, service), self._socket(bay, service))

    def unpause(self, bay: BayRef, service: str) -> None:
        self._keepers.resume(self._folder(bay, service), self._socket(bay, service))

    def remove(self, bay: BayRef, service: str) -> None:
        folder = self._folder(bay, service)
        if folder.is_dir():
            self._keepers.stop(folder, self._socket(bay, service), STOP_TIMEOUT_S)
            self._keepers.end_strays(self._mark(bay, service))
            shutil.rmtree(folder)

    def wait_exit(self, bay: BayRef, service: str, job: Job) -> Exit:
        folder = self._folder(bay, service)
        state = self._keepers.wait(folder, self._socket(bay, service), job)
        code = exit_code(state, functools.partial(_log_tail, folder))
        return Exit(137 if code is None else code, oom_killed=state.oom_killed)

    # -- health ----------------------------------------------------------------------------------------

    def wait_healthy(self, spec: ServiceSpec, *, host: str, first: bool, job: Job) -> str:
        if spec.health is not None:
            target = self._target(spec)
            try:
                # a port of this machine has no forwarder before it that answers too early
                wait_healthy(spec.health, target, host_header=host, first=False, job=job)
            except DevbayError as error:
                if error.code in {"probe_failed", "service_exited"}:
                    self._explain(spec, error)
                raise
            self._own_ports(spec)
        state = self._state(spec.bay, spec.name)
        return state.ref if state else ""

    def probe_once(self, spec: ServiceSpec, *, host: str) -> str | None:
        if spec.health is None:
            return None
        return probe_once(spec.health, self._target(spec), host_header=host)

    def _own_ports(self, spec: ServiceSpec) -> None:
        """Who answered must be the service: another process on its port would be tested in its place."""
        state = self._state(spec.bay, spec.name)
        for _, port in spec.ports.values():
            found = tree.listeners(port)
            if found and state is not None and not found & self._pids(spec.bay, spec.name):
                raise _taken(spec.name, port)

    def _explain(self, spec: ServiceSpec, error: DevbayError) -> None:
        """A service that did not come up may have lost its port, or listen on the one it declared."""
        for declared, port in spec.ports.values():
            found = tree.listeners(port)
            if found and not found & self._pids(spec.bay, spec.name):
                raise _taken(spec.name, port) from error
            heard = {number for _, number in tree.listening(self._pids(spec.bay, spec.name))}
            if not found and heard:
                where = f"{spec.name} listens on {', '.join(map(str, sorted(heard)))} and not on {port}"
                error.message = f"{error.message}; {where}, which devbay gave it in the variable PORT"
                error.args = (error.message,)
                error.next = f"let {spec.name} listen on PORT, or name the port {declared} in its `start`"

    def listening(self, bay: BayRef, service: str) -> list[tuple[str, int]]:
        return tree.listening(self._pids(bay, service))

    def _pids(self, bay: BayRef, service: str) -> set[int]:
        state = self._state(bay, service)
        if state is None or not state.alive:
            return set()
        return {one.pid for one in tree.descendants([state.keeper], tree.processes())}

    def _target(self, spec: ServiceSpec) -> HostTarget:
        folder = self._folder(spec.bay, spec.name)
        return HostTarget(
            name=spec.name,
            ports=dict(spec.ports.values()),
            primary=spec.ports["port"][0] if "port" in spec.ports else None,
            look=lambda: self._keepers.state(folder),
            as_command=lambda argv: self._as_command(spec, argv),
            tail=lambda lines: self.logs(spec.bay, spec.name, lines=lines),
            follow=lambda since, job: self._follow_since(spec.bay, spec.name, since, job),
        )

    def _as_command(self, spec: ServiceSpec, argv: Sequence[str]) -> Launch | Check:
        """How a health command is met: by the provider's own way, or as a process like the service's."""
        met = self._meet(spec)
        if met.provider is None or met.server is None:
            return self._assembler.launch(spec, met, name=spec.name, words=argv)
        how = met.provider.probe(spec, met.server, argv)
        if how is not None and not isinstance(how, tuple):
            return how
        data = self.place.data(spec.bay.id, spec.name)
        base = met.provider.launch(spec, met.server, data, owner_of(data, owner(spec.bay.id)))
        env = {**base.env, **met.provider.client_env(spec, met.server)}
        return dataclasses.replace(base, argv=tuple(how or argv), env=env)

    # -- logs ------------------------------------------------------------------------------------------

    def logs(
        self, bay: BayRef, service: str, *, lines: int | None, since: str | None = None
    ) -> Sequence[LogEntry]:
        return logfile.tail(self._folder(bay, service), service, lines=lines, since=since)

    def follow_logs(self, bay: BayRef, service: str, *, lines: int, job: Job) -> Iterator[LogEntry]:
        folder = self._folder(bay, service)
        return logfile.follow(folder, service, lines=lines, job=job, is_over=lambda: self._is_over(folder))

    def _follow_since(self, bay: BayRef, service: str, since: str, job: Job) -> Iterator[LogEntry]:
        """The lines of the present start and those to come."""
        found = self.follow_logs(bay, service, lines=sys.maxsize, job=job)
        return (entry for entry in found if entry.at >= since)

    def _is_over(self, folder: Path) -> bool:
        state = self._keepers.state(folder)
        return state is None or not state.alive

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
        self.place.make()
        met = self._meet(spec)
        name = f"run-{run}"
        try:
            launch = self._assembler.launch(spec, met, name=name, writable=(run_dir,))
            tail = bytearray()

            def keep(data: bytes) -> None:
                tail[:] = (tail + data)[-TAIL_BYTES:]
                sink(data)

            found = self._keepers.run(launch, keep, timeout_s, job)
            if not launch.prefix:
                return found
            code, fault = ended(found.code, tail.decode("utf-8", "replace"))
            if fault:
                sink(f"{fault}\n".encode())
            return dataclasses.replace(found, code=code)
        finally:
            shutil.rmtree(self.place.own(spec.bay.id, name, "tmp").parent, ignore_errors=True)

    def end_run(self, bay: BayRef, run: str, sink: Sink) -> Exit | None:
        if not self.place.bay(bay.id).is_dir():
            return None
        ended = self._keepers.end_strays(self._mark(bay, f"run-{run}"))
        shutil.rmtree(self.place.own(bay.id, f"run-{run}", "tmp").parent, ignore_errors=True)
        return Exit(137) if ended else None

    def memory_mb(self, bay: BayRef) -> int:
        pids: set[int] = set()
        for service in self._observed(bay.id).services:
            pids |= self._pids(bay, service)
        return round(tree.memory_bytes(pids) / 2**20)

    def exec_argv(self, bay: BayRef, service: str, argv: Sequence[str], *, tty: bool) -> list[str]:
        state = self._state(bay, service)
        if state is None or state.pid is None:
            raise DevbayError(
                "not_started",
                f"service {service!r} of bay {bay.name!r} does not run",
                next=f"bay_up(bay={bay.name!r})",
                exit_code=WORK_FAILED,
            )
        enter = Path(__file__).with_name("enter.py")
        return [sys.executable, "-I", "-S", str(enter), str(state.pid), str(state.started), *argv]

    # -- the end ---------------------------------------------------------------------------------------

    def inventory(self, bay: BayRef) -> list[str]:
        folder = self.place.bay(bay.id)
        services = self._observed(bay.id).services.values()
        found = [f"process {bay.prefix}-{each.name}" for each in services if each.state != "created"]
        for kind in ("data", "volumes"):
            below = folder / kind
            if below.is_dir():
                found += [f"{kind} {bay.prefix}-{each.name}" for each in sorted(below.iterdir())]
        return [*found, *([f"folder {folder}"] if folder.is_dir() else [])]

    def teardown(self, bay: BayRef, job: Job) -> list[str]:
        folder = self.place.bay(bay.id)
        if not folder.is_dir():
            return []
        removed = self.inventory(bay)
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(lambda name: self._end(bay, name), self._observed(bay.id).services))
        self._end_all(bay)
        self._remove_folder(folder)
        self.place.remove_if_empty()
        return removed

    def _end(self, bay: BayRef, service: str) -> None:
        self._keepers.stop(self._folder(bay, service), self._socket(bay, service), STOP_TIMEOUT_S)
        self._keepers.end_strays(self._mark(bay, service))
        self._socket(bay, service).unlink(missing_ok=True)

    def _end_all(self, bay: BayRef) -> None:
        """Runs that nobody waits for any more, and what servers leave in the kernel."""
        for mark in tree.marks(MARK, f"{self._home.id}/{bay.id}/"):
            self._keepers.end_strays(mark)
        data = self.place.bay(bay.id) / "data"
        for folder in data.iterdir() if data.is_dir() else ():
            for provider in PROVIDERS.values():
                provider.clean(folder)

    def _remove_folder(self, folder: Path) -> None:
        """Remove what the bay's processes wrote, also what they closed against their own user."""
        doomed = folder.with_name(f".gone-{folder.name}-{secrets.token_hex(4)}")
        folder.rename(doomed)  # from now on it is no bay, whenever this process dies
        remove_tree(doomed)

    def bays_with_objects(self, home: str) -> set[str]:
        if not self.place.bays.is_dir():
            return set()
        return {each.name for each in self.place.bays.iterdir() if not each.name.startswith(".")}

    def collect(self, home: str, job: Job, *, everything: bool) -> list[str]:
        """Remove half-made folders and, beyond the bound, templates; with `everything` all of them."""
        removed: list[str] = []
        for folder in self.place.bays.glob(".gone-*"):
            remove_tree(folder)
            removed.append(f"folder {folder.name}")
        removed += self._templates.clear() if everything else self._templates.sweep(self._max_bytes)
        if everything:
            for folder in (self.place.caches, self.place.servers):
                if folder.is_dir() and not self.bays_with_objects(home):
                    remove_tree(folder)
                    removed.append(f"folder {folder.name}")
        self.place.remove_if_empty()
        return removed

    # -- inside ----------------------------------------------------------------------------------------

    def _find(self, spec: ServiceSpec) -> Met:
        return meet(spec, self.machine, self.place.data(spec.bay.id, spec.name))

    def _meet(self, spec: ServiceSpec) -> Met:
        """What the service runs on; a server of the bay's own user where that user can reach it."""
        met = self._find(spec)
        if met.server is None:
            return met
        return dataclasses.replace(
            met, server=within_reach(met.server, owner(spec.bay.id), self.place.servers)
        )

    def _folder(self, bay: BayRef, service: str) -> Path:
        return self.place.service(bay.id, service)

    def _socket(self, bay: BayRef, service: str) -> Path:
        return self.place.socket(bay.id, service)

    def _mark(self, bay: BayRef, name: str) -> str:
        return f"{self._home.id}/{bay.id}/{name}"

    def _state(self, bay: BayRef, service: str) -> KeptState | None:
        return self._keepers.state(self._folder(bay, service))

    def _is_running(self, spec: ServiceSpec) -> bool:
        state = self._state(spec.bay, spec.name)
        return state is not None and state.alive


def _log_tail(folder: Path, lines: int) -> list[str]:
    return [entry.text for entry in logfile.tail(folder, folder.name, lines=lines)]


def _taken(service: str, port: int) -> DevbayError:
    return DevbayError(
        "port_taken",
        f"port {port}, which devbay gave to {service}, is held by another process of this machine",
        next="repeat: another port is taken",
        exit_code=WORK_FAILED,
    )
