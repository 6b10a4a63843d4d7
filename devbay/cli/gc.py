"""`devbay gc`: remove what belongs to no bay."""

from __future__ import annotations

from typing import Annotated

import typer

from devbay.cli import out
from devbay.cli.session import Json, Repo, Session, lines


def command(
    every: Annotated[bool, typer.Option("--all", help="Also caches and templates that no bay uses.")] = False,
    repo: Repo = None,
    json: Json = False,
) -> int:
    """Remove leftovers; never a bay or its data."""
    with Session(repo) as session:
        answer = session.private("gc", all=every)
    if json:
        out.emit_json(answer)
    elif answer.get("removed"):
        out.emit(f"removed:\n{lines(answer['removed'])}")
    else:
        out.emit("nothing to remove")
    return 0
