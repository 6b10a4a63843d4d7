"""What compose files say, in one form: services and all that is not in them, frozen, each with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from devbay.detect.compose.ports import Port
from devbay.detect.facts import Origin
from devbay.detect.files import Skipped


@dataclass(frozen=True)
class Value:
    """A variable of a service. text: None where only a name is given. unset: names it lacks a value of."""

    text: str | None
    unset: tuple[str, ...] = field(default=(), compare=False)
    origin: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Build:
    """How an image is built. context: from the root of the view, or a URL. dockerfile: relative to it.

    inline: a Dockerfile in the file itself. args: None where the shell gives them. secrets: their names.
    """

    context: str
    dockerfile: str = "Dockerfile"
    target: str | None = None
    args: Mapping[str, Value] = field(default_factory=dict)
    inline: str | None = None
    contexts: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    network: str | None = None
    unset: tuple[str, ...] = field(default=(), compare=False)
    is_remote: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Dependency:
    """condition: service_started, service_healthy or service_completed_successfully."""

    condition: str = "service_started"
    required: bool = True
    restart: bool = False


@dataclass(frozen=True)
class Health:
    """A check. test: with `CMD`, `CMD-SHELL` or `NONE` first; empty if none is given. Seconds."""

    test: tuple[str, ...] = ()
    interval: float | None = None
    timeout: float | None = None
    start_period: float | None = None
    start_interval: float | None = None
    retries: int | None = None
    disabled: bool = False


@dataclass(frozen=True)
class Volume:
    """A mount. type: bind, volume, tmpfs, image, cluster or npipe. source: blank for an anonymous volume.

    A bind's source is relative to the root of the view; `../...`, `/...` and `~...` lie outside it.
    """

    type: str
    target: str
    source: str = ""
    read_only: bool = False
    subpath: str | None = None
    unset: tuple[str, ...] = field(default=(), compare=False)
    origin: Origin | None = field(default=None, compare=False)

    @property
    def is_inside(self) -> bool:
        """Whether a bind's source is in the repository by its spelling; links are the view's to follow."""
        return not self.source.startswith(("../", "/", "~", "\\")) and self.source != ".."


@dataclass(frozen=True)
class EnvFile:
    """A file of variables: where it is said to be, and the names in it if it is there; never a value."""

    path: str
    required: bool = True
    exists: bool = field(default=False, compare=False)
    names: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Mount:
    """A secret or config in a service. target: the path in the container."""

    source: str
    target: str


@dataclass(frozen=True)
class Watch:
    """One rule of `develop.watch`. path: from the root of the view."""

    path: str
    action: str
    target: str | None = None
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True)
class Hook:
    """A command run in the container after its start or before its stop."""

    command: tuple[str, ...]
    user: str | None = None
    working_dir: str | None = None
    privileged: bool = False
    environment: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Service:
    """One service. command, entrypoint: None where the image decides, () where its own is cleared.

    networks: name to aliases. links: (service, name it is reached by). ulimits: (soft, hard). Times are
    seconds, sizes bytes. lines: key to where it stands. unset: key to the variables missing in it.
    """

    name: str
    origin: Origin = field(compare=False)
    image: str | None = None
    build: Build | None = None
    command: tuple[str, ...] | None = None
    entrypoint: tuple[str, ...] | None = None
    environment: Mapping[str, Value] = field(default_factory=dict)
    env_files: tuple[EnvFile, ...] = ()
    ports: tuple[Port, ...] = ()
    expose: tuple[Port, ...] = ()
    depends_on: Mapping[str, Dependency] = field(default_factory=dict)
    healthcheck: Health | None = None
    volumes: tuple[Volume, ...] = ()
    volumes_from: tuple[str, ...] = ()
    tmpfs: tuple[str, ...] = ()
    networks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    network_mode: str | None = None
    links: tuple[tuple[str, str], ...] = ()
    external_links: tuple[str, ...] = ()
    extra_hosts: tuple[tuple[str, str], ...] = ()
    hostname: str | None = None
    domainname: str | None = None
    container_name: str | None = None
    profiles: tuple[str, ...] = ()
    secrets: tuple[Mount, ...] = ()
    configs: tuple[Mount, ...] = ()
    user: str | None = None
    working_dir: str | None = None
    platform: str | None = None
    restart: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    scale: int | None = None
    pull_policy: str | None = None
    stop_signal: str | None = None
    stop_grace_period: float | None = None
    shm_size: int | None = None
    mem_limit: int | None = None
    ulimits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    sysctls: Mapping[str, str] = field(default_factory=dict)
    dns: tuple[str, ...] = ()
    cap_add: tuple[str, ...] = ()
    cap_drop: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    security_opt: tuple[str, ...] = ()
    group_add: tuple[str, ...] = ()
    privileged: bool = False
    read_only: bool = False
    init: bool | None = None
    tty: bool = False
    stdin_open: bool = False
    pid: str | None = None
    ipc: str | None = None
    watch: tuple[Watch, ...] = ()
    post_start: tuple[Hook, ...] = ()
    pre_stop: tuple[Hook, ...] = ()
    deploy: Mapping[str, Any] = field(default_factory=dict, compare=False)
    lines: Mapping[str, Origin] = field(default_factory=dict, compare=False)
    unset: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)

    def at(self, key: str) -> Origin:
        """Where a key of the service stands; the service's own place if it has none."""
        place = self.lines.get(key, self.origin)
        return Origin(place.file, place.line, f"services.{self.name}.{key}")


@dataclass(frozen=True)
class Resource:
    """A declared volume or network. name: given in the file. external: made by somebody else."""

    name: str | None = None
    external: bool = False
    driver: str | None = None
    device: str | None = None
    internal: bool = False
    origin: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True)
class FileObject:
    """A declared secret or config: a file (from the root of the view), a variable's name, or a text."""

    file: str | None = None
    environment: str | None = None
    content: str | None = None
    external: bool = False
    origin: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Variable:
    """A variable that the files ask the shell for. place: where, such as `services.web.image`.

    default: the text that stands in for it; None where there is none. required: compose refuses without it.
    """

    name: str
    place: str
    origin: Origin
    required: bool = False
    message: str = ""
    default: str | None = None


@dataclass(frozen=True)
class Refusal:
    """Why compose would not take the files."""

    text: str
    origin: Origin | None = None

    def __str__(self) -> str:
        return f"{self.text} [{self.origin}]" if self.origin else self.text


@dataclass(frozen=True)
class ComposeResult:
    """A stack. name: of the project, where a file gives it. files: read, in that order; empty: no stack.

    chosen: those of `files` that compose merges; the others are included or extended. variables: those with
    a default too. alternatives: other stacks of the view, which are not merged. asked: the real compose was
    asked and answered.
    """

    services: tuple[Service, ...] = ()
    name: str | None = None
    files: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    volumes: Mapping[str, Resource] = field(default_factory=dict)
    networks: Mapping[str, Resource] = field(default_factory=dict)
    secrets: Mapping[str, FileObject] = field(default_factory=dict)
    configs: Mapping[str, FileObject] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    alternatives: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    asked: bool = False

    @property
    def missing(self) -> tuple[Variable, ...]:
        """The variables without a value or a default, the required ones among them."""
        return tuple(each for each in self.variables if each.default is None)
