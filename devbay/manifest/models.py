"""`devbay.yaml` as frozen data: every key, its type, its default and what excludes what.

The JSON Schema is generated from these models (`devbay.manifest.schema`), so the two cannot differ. What
needs a look across services, at the file system or at judgement is in `devbay.manifest.rules`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, PlainValidator, Strict

from devbay.manifest import graph, images
from devbay.manifest.conditions import Condition, Part, fault
from devbay.manifest.shapes import Exactly, NotEmpty, NotYet
from devbay.manifest.types import (
    Argv,
    ContainerPath,
    EgressHost,
    EnvName,
    Glob,
    HttpPath,
    ImageRef,
    LabelName,
    LogPattern,
    MountSource,
    Name,
    Plain,
    Platform,
    Port,
    RepoPath,
    ReportPath,
    Seconds,
    ServiceName,
    Size,
    SomeSeconds,
    StatusRange,
    Text,
    User,
    VolumePath,
)

Flag = Annotated[bool, Strict()]
HealthKind = Literal["http", "tcp", "cmd", "log", "process"]
HOST = "host"
"""Where a task runs that needs no container; no service can have this name."""
HEALTH_FORMS: tuple[HealthKind, ...] = ("http", "tcp", "cmd", "log", "process")


def _without(*keys: str) -> dict[str, Any]:
    return {"not": {"anyOf": [{"required": [key]} for key in keys]}}


_ONESHOT: dict[str, Any] = {"required": ["kind"], "properties": {"kind": {"const": "oneshot"}}}
_LONG_RUNNING: dict[str, Any] = {"not": _ONESHOT}
_ONE_SOURCE = Condition(
    "image",
    "`image` and `build` exclude each other",
    "keep one of `image` and `build`",
    {"required": ["image"]},
    forbids=("build",),
)


class Build(Part):
    """How to build an image from the worktree. Paths are relative: `dockerfile` to `context`."""

    context: RepoPath = Field(".", description="Folder of the repository that the build may read")
    dockerfile: RepoPath = Field("Dockerfile", description="Dockerfile, relative to the context")
    target: Annotated[Text, Field(min_length=1)] | None = Field(None, description="Stage to build")
    args: dict[EnvName, Plain] = Field(default_factory=dict, description="Build arguments; never secrets")


class Mount(Part):
    """A file or folder laid over a path in the container. An absolute `source` waits for approval."""

    source: MountSource = Field(description="Path in the repository, or an absolute one of this machine")
    target: ContainerPath = Field(description="Absolute path in the container")


class Limits(Part):
    """What a container may use. memory: bytes; cpus: cores; pids: processes and threads."""

    memory: Size | None = Field(None, description="Memory, such as 512m")
    cpus: Annotated[float, Strict(), Field(gt=0, le=1024, allow_inf_nan=False)] | None = Field(
        None, description="Processor cores, such as 1.5"
    )
    pids: Annotated[int, Strict(), Field(ge=1, le=4194304)] | None = Field(
        None, description="Processes and threads"
    )


class Health(Part):
    """When a service counts as up: exactly one form. The total wait is `start_period` plus `timeout`."""

    http: HttpPath | None = Field(None, description="Path that must answer on the primary port")
    tcp: Port | None = Field(None, description="Port of the service that must accept a connection")
    cmd: Argv | None = Field(None, description="Command that must exit 0 inside the container")
    log: LogPattern | None = Field(None, description="Regular expression that a line of output must match")
    process: Annotated[Literal[True], Exactly(True, "R5")] | None = Field(
        None, description="Up as soon as the process has run for `start_period`"
    )
    accept: Annotated[tuple[StatusRange, ...], NotEmpty()] = Field(
        ((200, 399),), description="HTTP status codes and ranges that count as up"
    )
    timeout_s: SomeSeconds = Field(30.0, alias="timeout", description="How long to wait (30s)")
    interval_s: SomeSeconds = Field(0.5, alias="interval", description="Pause between two probes (500ms)")
    start_period_s: Seconds = Field(0.0, alias="start_period", description="Time before the first probe")

    CONDITIONS: ClassVar = (
        Condition(
            "R5",
            "`health` says nothing that can be probed",
            "add one of `http`, `tcp`, `cmd`, `log` or `process: true`",
            {},
            requires=HEALTH_FORMS,
        ),
        *(
            Condition(
                "R5",
                f"`health` has both `{form}` and `{{key}}`",
                "keep exactly one of `http`, `tcp`, `cmd`, `log`, `process`",
                {"required": [form]},
                forbids=HEALTH_FORMS[place + 1 :],
            )
            for place, form in enumerate(HEALTH_FORMS[:-1])
        ),
        Condition(
            "R5",
            "`accept` belongs to an `http` probe",
            "remove `accept` or probe with `http`",
            _without("http"),
            forbids=("accept",),
        ),
    )

    @property
    def kind(self) -> HealthKind:
        return next(form for form in HEALTH_FORMS if getattr(self, form) is not None)


_OWN_IMAGE = (
    "install", "install_inputs", "install_scripts", "mounts", "volumes", "caches", "tmpfs",
    "shm_size", "user", "platform",
)  # fmt: skip


def _build(value: Any) -> Any:
    return {"context": value} if isinstance(value, str) else value


class Container(Part):
    """What services and tasks with an image of their own have in common."""

    image: ImageRef | None = Field(None, description="Image to pull")
    build: Annotated[Build, BeforeValidator(_build, json_schema_input_type=RepoPath | Build)] | None = Field(
        None, description="Image to build from the repository; a text is the context"
    )
    platform: Platform | None = Field(None, description="Platform of the image, such as linux/amd64")
    workdir: ContainerPath | None = Field(None, description="Working directory in the container")
    user: User | None = Field(
        None, description='"uid[:gid]", or `image` for the image\'s own user without mapping'
    )
    install: Argv | None = Field(None, description="Installs dependencies, once per content of its inputs")
    install_inputs: Annotated[tuple[Glob, ...], NotEmpty()] = Field(
        (), description="Files that decide whether `install` runs again (default: lock files)"
    )
    install_scripts: Flag = Field(False, description="Let packages run scripts when installed (approval)")
    env: dict[EnvName, Plain] = Field(
        default_factory=dict,
        description="Environment; ${bay.<service>.<field>}, ${secret:<ref>} and ${run.dir} are filled in",
    )
    mounts: tuple[Mount, ...] = Field((), description="Paths laid over paths in the container")
    volumes: tuple[VolumePath, ...] = Field(
        (), description="Container paths with a volume per bay; relative ones are below `workdir`"
    )
    caches: tuple[ContainerPath, ...] = Field((), description="Container paths shared by all bays")
    tmpfs: tuple[ContainerPath, ...] = Field((), description="Container paths kept in memory")
    shm_size: Size | None = Field(None, description="Size of /dev/shm, such as 256m")
    limits: Limits | None = Field(None, description="Memory, processor and process limits")
    egress: tuple[EgressHost, ...] = Field(
        (), description="Host names the container may reach; not enforced yet"
    )


class Service(Container):
    """A long-running process (`service`) or one that runs to its end (`oneshot`)."""

    kind: Literal["service", "oneshot"] = Field("service", description="Long-running, or run to the end")
    scope: Annotated[
        Literal["bay"], NotYet(("shared",), "every bay has its own services until data forks exist")
    ] = Field("bay", description="Whose the service is")
    entrypoint: Argv | None = Field(None, description="Replaces the image's entrypoint")
    start: Argv | None = Field(
        None, description="The command of a long-running service (default: the image's)"
    )
    run: Argv | None = Field(None, description="The command of a one-shot")
    restart: Literal["no", "on-failure", "always", "unless-stopped"] = Field(
        "no", description="What the engine does when the process ends"
    )
    labels: dict[LabelName, Plain] = Field(default_factory=dict, description="Further container labels")
    docker_socket: Flag = Field(False, description="Give it the engine's socket (approval)")
    port: Port | None = Field(None, description="Primary port; has the service's host name")
    ports: dict[Name, Port] = Field(default_factory=dict, description="Further ports by name")
    primary: Flag = Field(False, description="Owns the bay's bare host name")
    needs: tuple[Text, ...] = Field((), description="Services that must be healthy or done first")
    setup: tuple[Text, ...] = Field(
        (), description="One-shots run once per bay; what needs this service waits for them"
    )
    health: Health | None = Field(None, description="When the service counts as up")

    NOT_YET: ClassVar = {
        "watch": "use `devbay restart` after an edit",
        "watch_action": "use `devbay restart` after an edit",
        "seed": "list the one-shots that prepare data under `setup`",
        "fork": "data is prepared anew per bay",
    }
    CONDITIONS: ClassVar = (
        Condition(
            "image",
            "the service has neither `image` nor `build`",
            "add `image: <name:tag>` or `build: <folder>`",
            {},
            requires=("image", "build"),
        ),
        _ONE_SOURCE,
        Condition(
            "R5",
            "a long-running service needs a `health` probe",
            "add one, such as `health: {tcp: <port>}` or `health: {http: /}`",
            _LONG_RUNNING,
            requires=("health",),
        ),
        Condition("oneshot", "a one-shot needs `run`", "add `run: [...]`", _ONESHOT, requires=("run",)),
        Condition(
            "R5", "a one-shot has no `health`: it is done when it exits 0", "remove `health`", _ONESHOT,
            forbids=("health",),
        ),
        Condition(
            "oneshot",
            "a one-shot cannot have `{key}`",
            "remove `{key}`, or set `kind: service`",
            _ONESHOT,
            forbids=("start", "port", "ports", "primary", "setup"),
        ),
        Condition(
            "oneshot",
            "a one-shot cannot be restarted for ever",
            "write `restart: on-failure` or remove it",
            {
                **_ONESHOT,
                "required": ["kind", "restart"],
                "properties": {
                    **_ONESHOT["properties"],
                    "restart": {"anyOf": [{"const": "always"}, {"const": "unless-stopped"}]},
                },
            },
            forbids=("restart",),
        ),
        Condition(
            "oneshot",
            "a long-running service has `start`, not `run`",
            "rename `run` to `start`, or set `kind: oneshot`",
            _LONG_RUNNING,
            forbids=("run",),
        ),
        Condition(
            "R5",
            "an `http` probe needs the service's `port`",
            "add `port: <number>`",
            {"required": ["health"], "properties": {"health": {"type": "object", "required": ["http"]}}},
            requires=("port",),
        ),
        Condition(
            "primary",
            "the primary service needs a `port`",
            "add `port: <number>` or remove `primary`",
            {"required": ["primary"], "properties": {"primary": {"const": True}}, **_LONG_RUNNING},
            requires=("port",),
        ),
        Condition(
            "install",
            "`{key}` says something about an `install` that is not there",
            "add `install: [...]` or remove `{key}`",
            _without("install"),
            forbids=("install_inputs", "install_scripts"),
        ),
    )  # fmt: skip

    def port_map(self) -> dict[str, int]:
        """Every port by name; the primary one is called `port`."""
        return {**({"port": self.port} if self.port is not None else {}), **self.ports}


ReportFormat = Literal[
    "ava", "bats", "boost", "boost-xml", "bun", "catch2", "catch2-json", "catch2-xml", "check",
    "checkstyle", "cmocka", "ctest", "ctrf", "deno", "doctest", "dotnet", "exunit", "gojson", "gotest",
    "gtest", "gtest-json", "jest", "jest-json", "junit", "libtest", "lint-json", "lint-text", "maven",
    "meson", "minitest", "mocha", "mocha-json", "nextest", "node-test", "phpunit", "playwright",
    "playwright-json", "prove", "pytest", "rspec", "rspec-json", "sarif", "sonar", "tap", "teamcity",
    "test-unit", "trx", "unittest", "vitest",
]  # fmt: skip
"""The formats of `devbay.reports.registry`; a test holds the two together."""


class Report(Part):
    """Where a task's results are. `path` is relative to the repository, or starts with `${run.dir}/`.

    It may be a pattern (`build/**/TEST-*.xml`) or a folder: all reports that a run wrote are read as one.
    """

    format: ReportFormat = Field(description="Format of the report")
    path: ReportPath = Field(description="File that the command writes; a pattern or a folder for several")


def _report(value: Any) -> Report | Literal["auto"]:
    if value == "auto":
        return "auto"
    if isinstance(value, str):
        raise fault("report", f"`report: {value[:60]}` names no report", "write `auto` or {format, path}")
    return Report.model_validate(value)


class Task(Container):
    """A finite command with declared needs: in a service's image or on this machine (`in`), or in its own."""

    run: Argv = Field(description="The command")
    needs: tuple[Text, ...] = Field(description="Services to start first; [] starts none")
    in_: Text | None = Field(
        None,
        alias="in",
        description="Service whose image it runs in (default: the primary one), or `host`: this machine"
        " itself, beside the bay (approval)",
    )
    report: (
        Annotated[
            Report | Literal["auto"], PlainValidator(_report, json_schema_input_type=Report | Literal["auto"])
        ]
        | None
    ) = Field(None, description="Where the results are; by default, as with `auto`, the runner is recognised")
    timeout_s: SomeSeconds = Field(600.0, alias="timeout", description="Time limit of the command (10m)")

    CONDITIONS: ClassVar = (
        _ONE_SOURCE,
        Condition(
            "task-image",
            "`in` and `{key}` exclude each other",
            "keep `in`, or `image`/`build`",
            {"required": ["in"]},
            forbids=("image", "build"),
        ),
        Condition(
            "task-image",
            "`{key}` needs an `image` or `build` of the task's own",
            "set `{key}` on the service, or give the task an `image`",
            _without("image", "build"),
            forbids=_OWN_IMAGE,
        ),
        Service.CONDITIONS[-1],
    )


class Manifest(Part):
    """A whole `devbay.yaml`."""

    version: Annotated[Literal[1], Exactly(1, "version")] = Field(description="Version of this format")
    project: Name = Field(description="Name of the project; part of every host name")
    git: Literal["none", "ro", "rw"] = Field(
        "ro", description="What containers may do with git; `rw` waits for approval"
    )
    runtime: Literal["auto", "docker", "host"] = Field(
        "auto",
        description="Where services run: in containers, or as processes of this machine (approval); `auto`"
        " takes containers wherever an engine is configured",
    )
    services: dict[ServiceName, Service] = Field(default_factory=dict, description="Containers by name")
    tasks: dict[Name, Task] = Field(default_factory=dict, description="Finite commands by name")

    NOT_YET: ClassVar = {
        "externals": "declare the stand-in as a service with its image",
        "supervision": "nothing is injected into pages",
    }

    def primary(self) -> str | None:
        """The service that owns the bay's bare host name: the declared one, else the only one with a port."""
        declared = [name for name, service in self.services.items() if service.primary]
        ported = [name for name, service in self.services.items() if service.port is not None]
        candidates = declared or ported
        return candidates[0] if len(candidates) == 1 else None

    def task_service(self, task: str) -> str | None:
        """The service whose image a task runs in; None if it runs elsewhere or there is none to take.

        `in`, else the primary service, else the first long-running one by name; datastores, brokers and
        proxies are only taken by `in`.
        """
        wanted = self.tasks[task]
        if wanted.in_ == HOST:
            return None
        if wanted.in_ is not None or wanted.image or wanted.build:
            return wanted.in_
        usable = sorted(
            name
            for name, service in self.services.items()
            if service.kind == "service" and images.family(service.image) is None
        )
        primary = self.primary()
        return primary if primary in usable else next(iter(usable), None)

    def dependencies(self, service: str) -> tuple[str, ...]:
        """What must be up or done before `service` starts, set-up one-shots included."""
        return graph.dependencies(self._edges())[service]

    def subgraph(self, names: Iterable[str]) -> list[str]:
        """`names` and all that they need, set-up one-shots included, each after what it depends on."""
        return graph.order(self._edges(), names)

    def _edges(self) -> graph.Edges:
        return {name: (service.needs, service.setup) for name, service in self.services.items()}
