"""`devbay thaw`: bring a cooled or frozen bay back."""

from __future__ import annotations

from devbay.cli import out, render
from devbay.cli.session import Bay, Json, Repo, Session, boot_code


def command(bay: Bay, repo: Repo = None, json: Json = False) -> int:
    """Bring a cooled or frozen bay back."""
    with Session(repo) as session:
        info = session.tool("bay_rest", bay=bay, state="thaw")
        info = session.until_booted(info)
    out.emit_json(info) if json else out.emit(render.bay(info))
    return boot_code(info)
