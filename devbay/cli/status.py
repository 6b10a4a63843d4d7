"""`devbay status`: one bay with the health of its services."""

from __future__ import annotations

from devbay.cli import out, render
from devbay.cli.session import Bay, Json, Repo, Session


def command(bay: Bay, repo: Repo = None, json: Json = False) -> int:
    """Show one bay and its services."""
    with Session(repo) as session:
        info = session.tool("bay_status", bay=bay)
    out.emit_json(info) if json else out.emit(render.bay(info))
    return 0
