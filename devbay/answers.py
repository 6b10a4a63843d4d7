"""What the tools answer: BayInfo, RunResult and their parts, as fixed by the public contracts.

Fields may be added; none is renamed. Every field left at its default is omitted from JSON unless the
contract promises it, so that a passing run is a few lines.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

ServiceKind = Literal["service", "oneshot"]
BayState = Literal[
    "creating", "starting", "running", "degraded", "cold", "frozen", "failed", "destroying", "unknown"
]
RunStatus = Literal["queued", "running", "passed", "failed", "error", "timeout", "cancelled", "lost"]
RunReason = Literal[
    "tests_failed", "findings", "collection_error", "crash", "no_tests", "timeout", "out_of_memory",
    "unreported", "no_report", "report_truncated", "report_stale", "services_failed",
    "approval_required", "daemon_restarted", "cancelled",
]  # fmt: skip


class Answer(BaseModel):
    """Base of every answer: unknown fields are refused, JSON carries only what was set or promised."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def as_json(self) -> dict[str, Any]:
        """The structured result as JSON data (no unset defaults)."""
        return self.model_dump(mode="json", exclude_unset=True, by_alias=True)


class Failure(Answer):
    """One failed test, broken set-up, finding, or whatever else stopped a run.

    file: relative to the repository root, and only if it exists there. line: 1-based.
    message: at most 600 characters. frames: `file:line` of the user's own code, deepest first.
    flaky: the same test passed in another run on this commit without local changes.
    """

    suite: str | None = None
    name: str
    kind: Literal["failure", "error", "timeout", "crash"] = "failure"
    scope: Literal["test", "suite", "run", "finding"] = "test"
    phase: Literal["setup", "teardown"] | None = None
    file: str | None = None
    line: int | None = None
    message: str = ""
    expected: str | None = None
    actual: str | None = None
    frames: list[str] = Field(default_factory=list)
    output: str | None = None
    flaky: bool = False


class Counts(Answer):
    """How many tests (for a checker: findings) there were. total = passed + failed + errors + skipped."""

    total: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0


class ReportSource(Answer):
    """Which format was read, and from where: a path, `stdout` or `output`.

    asked: what was asked of the runner, where a report was.
    """

    format: str
    source: str
    asked: str | None = None


class Tree(Answer):
    """The state of the worktree that was run."""

    commit: str
    dirty: bool


class Comparison(Answer):
    """The failures of a run against those of another run, by the names of tests.

    with: which run. new: they fail here only. fixed: they fail there and pass here. shared: they fail in
    both. more_...: how many names are left out.
    """

    with_: str = Field(alias="with")
    new: list[str] = Field(default_factory=list)
    fixed: list[str] = Field(default_factory=list)
    shared: list[str] = Field(default_factory=list)
    more_new: int = 0
    more_fixed: int = 0
    more_shared: int = 0


class RunResult(Answer):
    """One execution of a task. `failures` may be cut; `more_failures` says by how many.

    runtime: where it ran: `docker` or `host`.
    """

    run: str | None = None
    bay: str | None = None
    task: str | None = None
    runtime: str | None = None
    status: RunStatus
    reason: RunReason | None = None
    detail: str | None = None
    position: int | None = None
    exit_code: int | None = None
    duration_ms: int | None = None
    tree: Tree | None = None
    started_services: list[str] = Field(default_factory=list)
    parsed: bool = False
    report: ReportSource | None = None
    counts: Counts | None = None
    failures: list[Failure] = Field(default_factory=list)
    more_failures: int = 0
    comparison: Comparison | None = None
    pending_approvals: list[str] = Field(default_factory=list)
    output: str | None = None
    log: str | None = None
    next: str | None = None


Health = Literal["healthy", "unhealthy", "starting", "unknown", "none"]


class ServiceInfo(Answer):
    """One service of a bay.

    state: created, running, exited, paused, missing, waiting, starting, failed, done (a finished one-shot).
    url: for code on this machine; public_url: for a browser; ports: name to host port.
    """

    name: str
    kind: ServiceKind = "service"
    state: str
    health: Health = "none"
    reason: str | None = None
    url: str | None = None
    public_url: str | None = None
    ports: dict[str, int] = Field(default_factory=dict)
    exit_code: int | None = None
    restarts: int = 0


class BayInfo(Answer):
    """One bay as it is now (`as_of`, ISO 8601 UTC).

    runtime: `docker` or `host`. isolation: on `host`, what the bay has for itself on this machine.
    """

    id: str
    name: str
    project: str
    repository: str
    alias: str | None = None
    branch: str | None = None
    commit: str | None = None
    dirty: bool | None = None
    worktree: str
    adopted: bool = False
    runtime: str = "docker"
    isolation: str | None = None
    manifest: Literal["own", "inherited", "missing", "invalid"] = "own"
    state: BayState
    partial: bool = False
    reason: str | None = None
    public_url: str | None = None
    services: list[ServiceInfo] = Field(default_factory=list)
    runs: list[str] = Field(default_factory=list)
    memory_mb: int | None = None
    warnings: list[str] = Field(default_factory=list)
    pending_approvals: list[str] = Field(default_factory=list)
    created_at: str
    last_used_at: str
    as_of: str
    next: str | None = None


class BayList(Answer):
    bays: list[BayInfo]


class DiagnosticInfo(Answer):
    """One finding about a manifest. path: slash-separated keys, such as `services/api/env/X`."""

    severity: Literal["error", "warning", "approval", "notice"]
    rule: str | None = None
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: str = ""
    fix: str | None = None


class ManifestAnswer(Answer):
    """The verdict on a manifest; a parse failure is a result (`parses: false`), not an error."""

    valid: bool
    parses: bool
    source: str | None = None
    diagnostics: list[DiagnosticInfo] = Field(default_factory=list)


class RepoStatus(Answer):
    """What devbay knows of a repository, and the next step."""

    repository: str
    project: str | None = None
    manifest: str | None = None
    has_manifest: bool
    valid: bool = False
    ready: bool = False
    next: str
    services: list[str] = Field(default_factory=list)
    tasks: list[str] = Field(default_factory=list)
    diagnostics: list[DiagnosticInfo] = Field(default_factory=list)
    pending_approvals: list[str] = Field(default_factory=list)
    bays: list[str] = Field(default_factory=list)
    engine: str | None = None
    warnings: list[str] = Field(default_factory=list)


class LogLine(Answer):
    """One line; `at` is ISO 8601 UTC where the source knows it."""

    service: str | None = None
    at: str | None = None
    text: str


class LogsAnswer(Answer):
    """Lines, oldest first, and the cursor that goes on from them."""

    bay: str
    runtime: str | None = None
    lines: list[LogLine]
    cursor: str | None = None
    dropped: int = 0


class UrlAnswer(Answer):
    """`url` is for code on this machine, `public_url` for a browser."""

    bay: str
    runtime: str | None = None
    service: str
    url: str | None = None
    public_url: str | None = None
    note: str = "url: for code on this machine; public_url: for a browser"


Removal = Annotated[str, Field(description="`<kind> <name>`, such as `volume devbay-1a2b3c4d-db-0`")]


class DestroyAnswer(Answer):
    """What was (or with `dry_run` would be) removed, what was kept and why, and where the trash is."""

    bay: str
    runtime: str | None = None
    destroyed: bool
    dry_run: bool = False
    removed: list[Removal] = Field(default_factory=list)
    kept: list[str] = Field(default_factory=list)
    blockers: list[str] = Field(default_factory=list)
    trash: str | None = None
