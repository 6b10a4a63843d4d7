"""`devbay up`: start a bay, or bring it to what its manifest says now."""

from __future__ import annotations

from devbay.cli import out, render
from devbay.cli.session import WAIT_S, Bay, Json, Repo, Session, boot_code


def command(bay: Bay, repo: Repo = None, json: Json = False) -> int:
    """Start a bay, or apply its edited manifest."""
    with Session(repo) as session:
        info = session.until_booted(session.tool("bay_up", bay=bay, wait_s=WAIT_S))
    out.emit_json(info) if json else out.emit(render.bay(info))
    return boot_code(info)
