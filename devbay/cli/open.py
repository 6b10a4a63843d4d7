"""`devbay open`: a bay's site in a browser."""

from __future__ import annotations

import os
import sys

from devbay.cli import out
from devbay.cli.session import Bay, Json, Repo, Session
from devbay.errors import WORK_FAILED, DevbayError


def command(bay: Bay, repo: Repo = None, json: Json = False) -> int:
    """Open a bay's site in a browser."""
    with Session(repo) as session:
        answer = session.tool("bay_url", bay=bay)
    url = answer.get("public_url")
    if not url:
        raise DevbayError(
            "no_site", f"{answer['service']} has no site", next=f"devbay url {bay}", exit_code=WORK_FAILED
        )
    if reason := _no_browser():
        out.note(f"no browser opened: {reason}")
    else:
        import webbrowser

        if not webbrowser.open(url):
            out.note("no browser was found")
    out.emit_json(answer) if json else out.emit(url)
    return 0


def _no_browser() -> str | None:
    if "CI" in os.environ:
        return "CI is set"
    display = sys.platform == "darwin" or any(os.environ.get(key) for key in ("DISPLAY", "WAYLAND_DISPLAY"))
    return None if display or os.environ.get("BROWSER") else "there is no display"
