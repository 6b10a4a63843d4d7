"""What `devbay init` and `repo_init` answer."""

from __future__ import annotations

from typing import Any

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


class InitAnswer(Answer):
    """A proposed manifest. yaml: its text; manifest: the same parsed. diff: against the file that exists.

    written: whether `path` was written by this call.
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
    next: str
