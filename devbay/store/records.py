"""The rows of the store as frozen data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Phase = Literal["creating", "ready", "destroying"]
Rest = Literal["none", "running", "cold", "frozen"]


@dataclass(frozen=True)
class RepositoryRecord:
    """A repository by its git common directory. `shared_name` is its project name, unique on this machine."""

    id: str
    common_dir: str
    main_worktree: str | None
    project: str
    shared_name: str


@dataclass(frozen=True)
class BayRecord:
    """A bay: what was intended (`phase`, `wanted`) and what was made (`created_branch`, `git_dir`, ...).

    submodules: path in the worktree to git dir. includes: copied path to sha256. engine: the pinned
    endpoint. service_notes: last reason per service. setup_done: one-shots that have run in this bay.
    """

    id: str
    repository: str
    name: str
    project: str
    site: str
    worktree: str
    runtime: str
    phase: Phase
    created_at: str
    last_used_at: str
    alias: str | None = None
    branch: str | None = None
    created_branch: bool = False
    base_commit: str = ""
    git_dir: str = ""
    adopted: bool = False
    submodules: dict[str, str] = field(default_factory=dict)
    includes: dict[str, str] = field(default_factory=dict)
    wanted: Rest = "none"
    wanted_services: list[str] = field(default_factory=list)
    engine: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    warnings: list[str] = field(default_factory=list)
    service_notes: dict[str, str] = field(default_factory=dict)
    setup_done: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class PortRecord:
    """A host port given to a service of a bay; `name` is `port` for the primary one."""

    port: int
    bay: str
    service: str
    name: str


@dataclass(frozen=True)
class RunRecord:
    """One execution of a task. `result` is the RunResult as JSON data once it is over.

    tree_commit, tree_dirty: what it ran on; a commit that is not known counts as changed.
    """

    id: str
    bay: str
    task: str
    status: str
    created_at: str
    folder: str
    finished_at: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] | None = None
    tree_commit: str | None = None
    tree_dirty: bool = True


@dataclass(frozen=True)
class RunTestRecord:
    """One test of a run. outcome: `passed`, `failed`, `error` or `skipped`."""

    run: str
    suite: str | None
    name: str
    file: str | None
    outcome: str
    duration_ms: int | None


@dataclass(frozen=True)
class GrantRecord:
    """A capability a person has approved for a repository."""

    repository: str
    key: str
    kind: str
    summary: str
    granted_at: str


@dataclass(frozen=True)
class TemplateRecord:
    """The result of an install, or (`building`) the intent to make it. size: bytes."""

    key: str
    state: Literal["building", "ready"]
    last_used_at: str
    details: dict[str, Any] = field(default_factory=dict)
    size: int = 0
