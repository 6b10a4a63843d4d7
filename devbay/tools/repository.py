"""Tools about a repository: what devbay knows of it, and whether its manifest is right."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from devbay.answers import DiagnosticInfo, ManifestAnswer, RepoStatus
from devbay.tools.fields import Repo
from devbay.tools.registry import Annotations, Arguments, Call, Tool


class RepoStatusArguments(Arguments):
    repo: Repo = None


class ManifestValidateArguments(Arguments):
    yaml: Annotated[str | None, Field(description="Text to check (default: the file)")] = None
    repo: Repo = None


def tools(core: Any) -> list[Tool[Any, Any]]:
    def status(call: Call, given: RepoStatusArguments) -> RepoStatus:
        return core.repositories.status(core.caller(call), given.repo)  # type: ignore[no-any-return]

    def validate(call: Call, given: ManifestValidateArguments) -> ManifestAnswer:
        return core.repositories.validate(core.caller(call), given.yaml, given.repo)  # type: ignore[no-any-return]

    return [
        Tool(
            name="repo_status",
            title="Repository status",
            description="Ask this first: is there a valid devbay.yaml, which services and tasks and bays"
            " are there, and what to do next.",
            arguments=RepoStatusArguments,
            answer=RepoStatus,
            run=status,
            text=_status_text,
            annotations=Annotations(read_only=True, idempotent=True),
        ),
        Tool(
            name="manifest_validate",
            title="Validate the manifest",
            description="Check devbay.yaml, or a text meant for it, without starting anything. Each"
            " finding has line, rule and fix.",
            arguments=ManifestValidateArguments,
            answer=ManifestAnswer,
            run=validate,
            text=manifest_text,
            annotations=Annotations(read_only=True, idempotent=True),
        ),
    ]


def diagnostic_line(finding: DiagnosticInfo) -> str:
    """`file:line: severity: message (rule); fix`."""
    where = f"{finding.file or 'devbay.yaml'}:{finding.line or 1}"
    rule = f" ({finding.rule})" if finding.rule else ""
    fix = f"; {finding.fix}" if finding.fix else ""
    return f"{where}: {finding.severity}: {finding.message}{rule}{fix}"


def manifest_text(answer: ManifestAnswer) -> str:
    verdict = "valid" if answer.valid else "not valid" if answer.parses else "not readable"
    return "\n".join([f"manifest {verdict}", *map(diagnostic_line, answer.diagnostics)])


def _status_text(answer: RepoStatus) -> str:
    lines = [f"{answer.project or answer.repository}: {'ready' if answer.ready else 'not ready'}"]
    if answer.services:
        lines.append(f"services: {', '.join(answer.services)}")
    if answer.tasks:
        lines.append(f"tasks: {', '.join(answer.tasks)}")
    if answer.bays:
        lines.append(f"bays: {', '.join(answer.bays)}")
    lines += [diagnostic_line(each) for each in answer.diagnostics if each.severity == "error"]
    lines += [f"waits for approval: {each}" for each in answer.pending_approvals]
    lines += [f"warning: {each}" for each in answer.warnings]
    return "\n".join([*lines, f"next: {answer.next}"])
