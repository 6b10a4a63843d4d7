"""The seam between the engine of bays and what runs services.

Frozen data says what is wanted and what is there; `Runtime` is the protocol that every runtime meets.
Nothing here decides: deciding is `devbay.bays.plan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from devbay.jobs import Job
from devbay.manifest.models import Health, Limits

ContainerState = Literal["created", "running", "paused", "restarting", "exited", "dead", "missing"]
GitAccess = Literal["none", "ro", "rw"]


@dataclass(frozen=True)
class BayRef:
    """Who a bay is, as far as a runtime must know. `id` is 8 hex over home, repository and bay."""

    id: str
    home: str
    project: str
    repository: str
    name: str

    @property
    def prefix(self) -> str:
        """The start of the name of every object of this bay: `devbay-<id>`."""
        return f"devbay-{self.id}"

    def labels(self, service: str | None = None) -> dict[str, str]:
        """The labels that every object of this bay carries; teardown queries exactly these."""
        labels = {
            "dev.devbay.managed": "1",
            "dev.devbay.home": self.home,
            "dev.devbay.project": self.project,
            "dev.devbay.repository": self.repository,
            "dev.devbay.bay": self.id,
        }
        if service:
            labels["dev.devbay.service"] = service
        return labels


@dataclass(frozen=True)
class BindMount:
    """A host path in a container. Both paths are absolute; `source` was confined by the caller."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class BuildSpec:
    """An image to be built: absolute, confined context; Dockerfile relative to it."""

    context: Path
    dockerfile: str = "Dockerfile"
    target: str | None = None
    args: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ServiceSpec:
    """One service (or task) of one bay, resolved: nothing in it is left to look up.

    `env` is the container plane with secrets in it (never shown, never stored). `ports` maps a port's name
    (`port` for the primary one) to (port of the service, host port). `volumes` and `caches` are absolute
    paths inside the container. `mounts` are the manifest's own; the worktree, git and run mounts are added
    by the runtime from `worktree`, `git` and `run_dir`; `main_worktree` is the user's own checkout, for
    runtimes in which it would be visible. `peers` are the services that a task may talk to and
    reaches without a proxy. `config_hash` covers everything that makes a running service
    outdated when it changes.
    """

    bay: BayRef
    name: str
    kind: Literal["service", "oneshot", "task"]
    image: str | None = None
    build: BuildSpec | None = None
    platform: str | None = None
    entrypoint: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None
    install: tuple[str, ...] | None = None
    install_inputs: tuple[str, ...] = ()
    install_scripts: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    workdir: str | None = None
    worktree: Path | None = None
    main_worktree: Path | None = None
    git_mounts: tuple[BindMount, ...] = ()
    mounts: tuple[BindMount, ...] = ()
    volumes: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    tmpfs: tuple[str, ...] = ()
    shm_size: int | None = None
    limits: Limits | None = None
    restart: str = "no"
    labels: Mapping[str, str] = field(default_factory=dict)
    docker_socket: bool = False
    ports: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    health: Health | None = None
    peers: tuple[str, ...] = ()
    config_hash: str = ""


@dataclass(frozen=True)
class ObservedService:
    """What the runtime has of one service. `reason`: how it ended, where an exit code does not tell."""

    name: str
    state: ContainerState
    ref: str = ""
    config_hash: str = ""
    exit_code: int | None = None
    restarts: int = 0
    started_at: str = ""
    oom_killed: bool = False
    reason: str = ""


@dataclass(frozen=True)
class ObservedBay:
    """What the runtime has of one bay. `others` names what is labelled but no service (runs, installs)."""

    network: bool = False
    services: Mapping[str, ObservedService] = field(default_factory=dict)
    volumes: frozenset[str] = frozenset()
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exit:
    """How a finite command ended. `timed_out` and `oom_killed` explain the code, they do not replace it."""

    code: int
    timed_out: bool = False
    oom_killed: bool = False
    cancelled: bool = False


Sink = Callable[[bytes], None]
"""Takes raw output as it comes, stdout and stderr merged in order."""


@dataclass(frozen=True)
class LogEntry:
    """One line of a service's output; `at` is RFC 3339 UTC with nanoseconds."""

    service: str
    at: str
    text: str


class Runtime(Protocol):
    """What a runtime can do. Every method is idempotent and may be repeated after a crash.

    Methods raise `DevbayError` with the codes `engine_unreachable`, `engine_full`, `image_not_found`,
    `build_failed`, `install_failed`, `port_taken`, `service_exited`; never a library's own exception.
    """

    name: str

    def check(self) -> None:
        """Raise `engine_unreachable` if nothing can be started now."""

    def observe(self, bay: BayRef) -> ObservedBay:
        """What exists of the bay, by label."""

    def observe_all(self, home: str) -> Mapping[str, ObservedBay]:
        """The same for every bay of this home, by bay id, in one query."""

    def ensure_network(self, bay: BayRef, subnet: str, job: Job) -> None:
        """Make the bay's network with this subnet (CIDR); an existing one stays."""

    def has_network(self, bay: BayRef) -> bool: ...

    def remove_network(self, bay: BayRef) -> None: ...

    def networks_in_use(self, bay: BayRef) -> list[str]:
        """Every subnet (CIDR) that networks other than the bay's own use."""

    def detach(self, bay: BayRef) -> None:
        """Take the bay's stopped containers off its network; `start` puts them on again."""

    def fingerprint(self, spec: ServiceSpec) -> str:
        """A hash over what `spec` would be made from now: image reference, build context, install inputs."""

    def ensure_image(self, spec: ServiceSpec, job: Job) -> str:
        """Pull or build what `spec` runs on; returns the image's id."""

    def image_env(self, image: str) -> Mapping[str, str]:
        """The variables that an image sets (an id from `ensure_image` or `ensure_installed`)."""

    def ensure_installed(self, spec: ServiceSpec, image: str, job: Job) -> str:
        """Run `spec.install` once per content of its inputs; returns the image to start from."""

    def notes(self, spec: ServiceSpec) -> tuple[str, ...]:
        """What a person should know of the install that `ensure_installed` found or made for `spec`."""

    def ensure_volumes(self, spec: ServiceSpec, image: str, job: Job) -> None:
        """Make the service's volumes (a fork of the installed template where there is one)."""

    def create(self, spec: ServiceSpec, image: str, job: Job) -> str:
        """Make (do not start) the service's container, replacing one of another configuration."""

    def start(self, spec: ServiceSpec, job: Job) -> None:
        """Start what `create` made, also after a `stop`. Raises `port_taken` if a host port is held."""

    def stop(self, bay: BayRef, service: str, *, timeout_s: float) -> None: ...

    def pause(self, bay: BayRef, service: str) -> None: ...

    def unpause(self, bay: BayRef, service: str) -> None: ...

    def remove(self, bay: BayRef, service: str) -> None:
        """Remove the service's container; its volumes stay."""

    def wait_exit(self, bay: BayRef, service: str, job: Job) -> Exit:
        """Wait for a one-shot to end."""

    def wait_healthy(self, spec: ServiceSpec, *, host: str, first: bool, job: Job) -> str:
        """Probe until healthy; returns the container's id.

        Raises `probe_failed` or `service_exited` with the reason and log lines.

        `host` is the site's name sent as `Host`. `first`: this container never was healthy yet.
        """

    def probe_once(self, spec: ServiceSpec, *, host: str) -> str | None:
        """Probe once; None if healthy, else the reason."""

    def logs(
        self, bay: BayRef, service: str, *, lines: int | None, since: str | None = None
    ) -> Sequence[LogEntry]: ...

    def follow_logs(self, bay: BayRef, service: str, *, lines: int, job: Job) -> Iterator[LogEntry]: ...

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
        """Run one finite command in a container of its own, labelled `dev.devbay.run=<run>`.

        `run_dir` is mounted read-write at its own host path. The container is removed at the end, also on
        timeout and cancellation (the whole process tree is killed); output goes to `sink` until then.
        """

    def end_run(self, bay: BayRef, run: str, sink: Sink) -> Exit | None:
        """After a restart: kill and remove what is left of a run, its output to `sink`; None if nothing."""

    def memory_mb(self, bay: BayRef) -> int:
        """Memory of the bay's running services in MiB."""

    def exec_argv(self, bay: BayRef, service: str, argv: Sequence[str], *, tty: bool) -> list[str]:
        """The argv of the engine's own client that runs a command in a running service."""

    def listening(self, bay: BayRef, service: str) -> list[tuple[str, int]]:
        """The TCP addresses and ports that a service's processes listen on, as they see them.

        Empty where it does not run, and where its container has no program that can tell.
        """

    def teardown(self, bay: BayRef, job: Job) -> list[str]:
        """Remove every object labelled with the bay; returns `<kind> <name>` of each removed.

        Raises `survivors` naming what is still there after a second query.
        """

    def inventory(self, bay: BayRef) -> list[str]:
        """`<kind> <name>` of every object labelled with the bay, without touching it."""

    # -- freshness ---------------------------------------------------------------------------------

    isolation: str
    """What a bay has for itself and what not, for a status; empty where containers keep bays apart."""

    key: str
    """Identifies the engine (or machine) behind this runtime."""

    following: bool
    """Whether events are being received now, so that what was observed is known to be current."""

    def follow(self, home: str, on_event: Callable[[str, str], None]) -> None:
        """Start calling `on_event(bay id, service)` for changes of this home's objects; returns at once.

        Empty ids mean that events may have been missed.
        """
