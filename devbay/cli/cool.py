"""`devbay cool`: stop a bay's services; data and checkout stay."""

from __future__ import annotations

from devbay.cli import out, render
from devbay.cli.session import Bay, Json, Repo, Session


def command(bay: Bay, repo: Repo = None, json: Json = False) -> int:
    """Stop a bay's services; data and checkout stay."""
    with Session(repo) as session:
        info = session.tool("bay_rest", bay=bay, state="cool")
    out.emit_json(info) if json else out.emit(render.bay(info))
    return 0
