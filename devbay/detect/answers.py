"""What `devbay init` and `repo_init` answer."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from devbay.answers import Answer, DiagnosticInfo


class EvidenceInfo(Answer):
    """One conclusion. path: of the manifest; source: file, line and key that it was taken from."""

    path: str
    source: str


class Undecided(Answer):
    """A question that no file answers. candidates: what files offer, never a secret's value."""

    about: str
    question: str
    candidates: list[str] = Field(default_factory=list)
    source: str | None = None


class VerifyFailure(Answer):
    """What did not come up. service: empty where none is meant. log: its last lines."""

    service: str = ""
    code: str
    reason: str
    log: list[str] = Field(default_factory=list)


class VerifyTry(Answer):
    """One boot. changes: what was repaired before it, with the reason of each; failures: what it ended in."""

    changes: list[str] = Field(default_factory=list)
    outcome: Literal["booted", "boot_failed", "task_failed", "verified"]
    failures: list[VerifyFailure] = Field(default_factory=list)


class Verification(Answer):
    """What a throwaway bay said of a manifest: at most three tries, each repaired by what the last one said.

    running: it goes on, and the same call waits for it. commit: what the bay was made of, without what is not
    committed. services: those that were up and probed. task, result: the test task that was run, and its
    RunResult as `bay_run_task` gives it; log: the end of its output where it did not pass.
    """

    outcome: Literal[
        "running", "verified", "boot_failed", "task_failed", "approval_required", "nothing_to_verify", "error"
    ]
    reason: str | None = None
    runtime: str | None = None
    commit: str | None = None
    services: list[str] = Field(default_factory=list)
    tries: list[VerifyTry] = Field(default_factory=list)
    task: str | None = None
    result: dict[str, Any] | None = None
    log: list[str] = Field(default_factory=list)
    pending_approvals: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)


class InitAnswer(Answer):
    """A proposed manifest. yaml: its text; manifest: the same parsed. diff: against the file that exists.

    written: whether `path` was written by this call. verified: whether a bay of it came up and its test task
    passed; `yaml` is then that text, with a line at its top that says so.
    """

    yaml: str
    manifest: dict[str, Any]
    evidence: list[EvidenceInfo] = Field(default_factory=list)
    undecided: list[Undecided] = Field(default_factory=list)
    diagnostics: list[DiagnosticInfo] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    valid: bool
    written: bool
    path: str
    diff: str | None = None
    verified: bool | None = None
    verification: Verification | None = None
    next: str
