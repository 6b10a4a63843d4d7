"""The tool that proposes a manifest for a repository that has none, or shows what has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from devbay.answers import RunResult
from devbay.detect.answers import InitAnswer, Verification
from devbay.imports import load
from devbay.reports import dense_text
from devbay.tools.fields import DEFAULT_WAIT_S, Repo, WaitS
from devbay.tools.registry import Arguments, Call, Tool


class RepoInitArguments(Arguments):
    repo: Repo = None
    write: Annotated[bool, Field(description="Write devbay.yaml if there is none")] = False
    force: Annotated[bool, Field(description="With `write`: replace the one that exists")] = False
    apply: Annotated[
        list[str] | None, Field(description="Parts to take over into the file, such as services/web")
    ] = None
    verify: Annotated[
        bool, Field(description="Boot it in a throwaway bay, run a test task, repair what is known")
    ] = False
    wait_s: WaitS = DEFAULT_WAIT_S


def tools(core: Any) -> list[Tool[Any, Any]]:
    def propose(call: Call, given: RepoInitArguments) -> InitAnswer:
        caller = core.caller(call)
        repository = core.repositories.bays.repository(caller, given.repo)

        def verify(text: str) -> Any:
            return core.verifications.verify(caller, repository, text, wait_s=given.wait_s)

        wanted = tuple(given.apply or ())
        init = load("devbay.detect.init").init  # imported at first use, not at the daemon's start
        return init(  # type: ignore[no-any-return]
            Path(repository.toplevel), write=given.write, force=given.force, wanted=wanted,
            verify=verify if given.verify else None,
        )  # fmt: skip

    return [
        Tool(
            name="repo_init",
            title="Propose a manifest",
            description="Read what the repository says (compose, CI, package files) and propose devbay.yaml,"
            " with the source of each line and what is undecided.",
            arguments=RepoInitArguments,
            answer=InitAnswer,
            run=propose,
            text=text,
        )
    ]


def text(answer: InitAnswer) -> str:
    """The proposal, and what is left to decide is in its first lines."""
    verdict = "valid" if answer.valid else "not valid"
    wrote = f"wrote {answer.path}" if answer.written else "nothing was written"
    lines = [f"proposal {verdict}; {wrote}", *(f"warning: {each}" for each in answer.warnings)]
    if answer.verification is not None:
        lines.append(verification_text(answer.verification))
    return "\n".join(
        [*lines, answer.diff if answer.diff is not None else answer.yaml, f"next: {answer.next}"]
    )


def verification_text(found: Verification) -> str:
    """Every try with what was changed before it and how it ended, then the run."""
    lines = [f"verification: {found.outcome}" + (f": {found.reason}" if found.reason else "")]
    for number, each in enumerate(found.tries, 1):
        lines += [f"  changed: {change}" for change in each.changes]
        lines.append(f"  try {number}: {each.outcome}")
        for failure in each.failures:
            lines.append(f"    {failure.reason}")
            lines += [f"      {line}" for line in failure.log[-10:]]
    lines += [f"  waits for approval: {each}" for each in found.pending_approvals]
    if found.result is not None:
        lines.append(dense_text(RunResult.model_validate(found.result)))
        lines += [f"    {line}" for line in found.log[-10:] if not found.result.get("failures")]
    return "\n".join([*lines, *(f"  note: {each}" for each in found.notes)])
