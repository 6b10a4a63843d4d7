"""`devbay new`: make a bay on a branch and wait until it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from devbay.cli import out, render
from devbay.cli.app import wrong
from devbay.cli.session import WAIT_S, Json, Repo, Session, boot_code


def command(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Default: from the branch.")] = None,
    branch: Annotated[str | None, typer.Option("--branch", "-b", help="Default: the name.")] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="REF", help="Where a new branch starts; default: HEAD.")
    ] = None,
    alias: Annotated[str | None, typer.Option("--alias", help="A second, short name.")] = None,
    adopt: Annotated[bool, typer.Option("--adopt", help="Use the branch's existing checkout.")] = False,
    no_boot: Annotated[bool, typer.Option("--no-boot", help="Only the checkout; start nothing.")] = False,
    repo: Repo = None,
    json: Json = False,
) -> int:
    """Make a bay: a worktree on a branch with its own services."""
    if not name and not branch:
        raise wrong("a name or --branch is needed", next="devbay new NAME")
    with Session(repo) as session:
        info = session.tool(
            "bay_create", name=name, branch=branch, from_branch=start, alias=alias, adopt=adopt or None,
            boot=False if no_boot else None, wait_s=WAIT_S,
        )  # fmt: skip
        info = session.until_booted(info)
    out.emit_json(info) if json else out.emit(render.bay(info))
    return boot_code(info)
