"""`devbay init`: propose `devbay.yaml` from what the repository says; only `--verify` asks the daemon."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from devbay.cli import out, render
from devbay.cli.session import WAIT_S, Json, Repo, Session
from devbay.errors import DevbayError


def command(
    folder: Annotated[
        str | None, typer.Argument(metavar="[DIR]", help="The checkout; default: here.")
    ] = None,
    stdout: Annotated[bool, typer.Option("--stdout", help="Print the proposal and write nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a devbay.yaml that exists.")] = False,
    apply: Annotated[
        list[str] | None,
        typer.Option("--apply", metavar="PATH", help="Take over one part, such as services/web; repeatable."),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Try it in a throwaway bay: boot, probe, run a test task, repair."),
    ] = False,
    repo: Repo = None,
    json: Json = False,
) -> int:
    """Propose devbay.yaml from what the repository says."""
    from devbay.detect.init import init

    if stdout and (force or apply):
        raise DevbayError("bad_arguments", "--stdout writes nothing", next="leave out --force and --apply")
    root = Path(folder) if folder else _root(Path(repo or "."))
    if verify:
        answer = _verified(root.absolute(), write=not stdout, force=force, apply=apply)
    else:
        answer = init(
            root.absolute(), write=not stdout, force=force, wanted=tuple(apply or ()), only_propose=stdout
        ).as_json()
    if json:
        out.emit_json(answer)
    elif stdout:
        out.emit(answer["yaml"].rstrip("\n"))
    else:
        out.emit(_text(answer))
    if "verification" in answer:
        if stdout and not json:
            out.note(render.verification(answer["verification"]))
        return _code(answer["verification"])
    return 0 if answer["valid"] else 1


def _verified(root: Path, **given: Any) -> dict[str, Any]:
    """The daemon's answer once the verification is over; ctrl-c ends it with nothing left."""
    if not (root / ".git").exists():
        raise DevbayError(
            "not_a_checkout",
            f"{root} is not the top of a checkout, and a bay is made of the whole of one",
            next="name the folder that holds .git",
        )
    chosen = {key: value for key, value in given.items() if value}
    with Session(str(root)) as session:
        while True:
            answer = session.tool("repo_init", verify=True, wait_s=WAIT_S, **chosen)
            if answer["verification"]["outcome"] != "running":
                return answer


def _code(verification: dict[str, Any]) -> int:
    """0 for a manifest that was verified, 3 if a person must approve something first, 1 for anything else."""
    return {"verified": 0, "approval_required": 3}.get(verification["outcome"], 1)


def _root(start: Path) -> Path:
    """The checkout that a folder lies in; the folder itself where it lies in none."""
    here = start.absolute()
    return next((each for each in (here, *here.parents) if (each / ".git").exists()), here)


def _text(answer: dict[str, Any]) -> str:
    services = answer["manifest"].get("services", {})
    tasks = answer["manifest"].get("tasks", {})
    size = f"{len(services)} services, {len(tasks)} tasks"
    if "diff" in answer:
        change = f"wrote {answer['path']}" if answer["written"] else f"{answer['path']} is unchanged"
        lines = [answer["diff"] or "the proposal is the file that exists", f"{change} (proposed: {size})"]
    else:
        did = "wrote" if answer["written"] else "did not write"
        lines = [f"{did} {answer['path']} ({size})"]
    if "verification" in answer:
        lines.append(render.verification(answer["verification"]))
    lines += [f"warning: {each}" for each in answer.get("warnings", [])]
    if undecided := answer.get("undecided"):
        lines.append("still to decide:")
        lines += [f"  {each['about']}: {each['question']}" for each in undecided]
    return "\n".join([*lines, f"next: {answer['next']}"])
