"""`devbay freeze`: pause a bay's services; memory stays in use."""

from __future__ import annotations

from devbay.cli import out, render
from devbay.cli.session import Bay, Json, Repo, Session


def command(bay: Bay, repo: Repo = None, json: Json = False) -> int:
    """Pause a bay's services; memory stays in use."""
    with Session(repo) as session:
        info = session.tool("bay_rest", bay=bay, state="freeze")
    out.emit_json(info) if json else out.emit(render.bay(info))
    return 0
