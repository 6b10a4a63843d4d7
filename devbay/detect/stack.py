"""The containers that a repository declares, in one form for compose, devcontainers and CI services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from devbay.detect.facts import Origin


@dataclass(frozen=True)
class Value:
    """A variable's value. text: None where only a name is given. unset: the names it lacks a value of."""

    text: str | None
    unset: tuple[str, ...] = ()
    origin: Origin | None = None


@dataclass(frozen=True)
class BuildFact:
    """context: folder of the repository. dockerfile: relative to it. args: None where the shell gives one."""

    context: str
    dockerfile: str = "Dockerfile"
    target: str | None = None
    args: Mapping[str, str | None] = field(default_factory=dict)
    inline: bool = False
    remote: bool = False
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True)
class PortFact:
    target: int
    protocol: str = "tcp"
    published: int | None = None
    name: str | None = None


@dataclass(frozen=True)
class VolumeFact:
    """kind: bind, volume, tmpfs or anonymous. source: of a bind, relative to the root where `inside`."""

    kind: str
    target: str
    source: str = ""
    inside: bool = True
    unset: tuple[str, ...] = ()


@dataclass(frozen=True)
class HealthFact:
    """argv: with a shell around a shell's text; empty where the check is switched off. Seconds."""

    argv: tuple[str, ...]
    interval: float | None = None
    timeout: float | None = None
    start_period: float | None = None
    retries: int | None = None


@dataclass(frozen=True)
class Part:
    """One service. entrypoint: () clears the image's. needs: service to condition. aliases: host names.

    env_files: as written, with whether each is there. secrets: (file in the repository or None, target).
    lines: key to the line that it stands on.
    """

    name: str
    origin: Origin
    image: str | None = None
    build: BuildFact | None = None
    command: tuple[str, ...] | None = None
    entrypoint: tuple[str, ...] | None = None
    env: Mapping[str, Value] = field(default_factory=dict)
    env_files: tuple[tuple[str, bool], ...] = ()
    ports: tuple[PortFact, ...] = ()
    expose: tuple[PortFact, ...] = ()
    needs: Mapping[str, str] = field(default_factory=dict)
    health: HealthFact | None = None
    volumes: tuple[VolumeFact, ...] = ()
    aliases: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    profiles: tuple[str, ...] = ()
    secrets: tuple[tuple[str | None, str], ...] = ()
    user: str | None = None
    workdir: str | None = None
    platform: str | None = None
    restart: str | None = None
    network_mode: str | None = None
    shm_size: int | None = None
    tmpfs: tuple[str, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)

    def at(self, key: str) -> Origin:
        """Where a key of it stands."""
        line = self.lines.get(key, self.origin.line)
        return Origin(self.origin.file, line, f"{self.origin.key}.{key}" if self.origin.key else key)


@dataclass(frozen=True)
class Stack:
    """Services that are started together. files: what was read. name: of the project, if a file gives it."""

    parts: tuple[Part, ...] = ()
    files: tuple[str, ...] = ()
    name: str | None = None
