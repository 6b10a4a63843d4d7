"""The tool that proposes a manifest for a repository that has none, or shows what has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from devbay.detect.answers import InitAnswer
from devbay.imports import load
from devbay.tools.fields import Repo
from devbay.tools.registry import Arguments, Call, Tool


class RepoInitArguments(Arguments):
    repo: Repo = None
    write: Annotated[bool, Field(description="Write devbay.yaml if there is none")] = False
    force: Annotated[bool, Field(description="With `write`: replace the one that exists")] = False
    apply: Annotated[
        list[str] | None, Field(description="Parts to take over into the file, such as services/web")
    ] = None


def tools(core: Any) -> list[Tool[Any, Any]]:
    def propose(call: Call, given: RepoInitArguments) -> InitAnswer:
        repository = core.repositories.bays.repository(core.caller(call), given.repo)
        wanted = tuple(given.apply or ())
        init = load("devbay.detect.init").init  # imported at first use, not at the daemon's start
        return init(  # type: ignore[no-any-return]
            Path(repository.toplevel), write=given.write, force=given.force, wanted=wanted
        )

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
    return "\n".join(
        [*lines, answer.diff if answer.diff is not None else answer.yaml, f"next: {answer.next}"]
    )
