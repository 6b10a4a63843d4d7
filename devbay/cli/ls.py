"""`devbay ls`: the bays there are."""

from __future__ import annotations

from typing import Annotated

import typer

from devbay.cli import out, render
from devbay.cli.session import Json, Repo, Session


def command(
    every: Annotated[bool, typer.Option("--all", "-a", help="Bays of all repositories.")] = False,
    repo: Repo = None,
    json: Json = False,
) -> int:
    """List bays."""
    with Session(repo) as session:
        answer = session.tool("bay_list", all=every or None)
    if json:
        out.emit_json(answer)
    elif answer["bays"]:
        out.emit(render.bays(answer["bays"]))
    else:
        out.emit("no bays; make one with `devbay new NAME`")
    return 0
