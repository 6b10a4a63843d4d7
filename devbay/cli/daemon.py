"""`devbay daemon`: is it there, and stop it."""

from __future__ import annotations

from typing import Annotated

import typer

from devbay.cli import out
from devbay.cli.app import wrong
from devbay.cli.session import Json, Repo, Session
from devbay.errors import DevbayError


def command(
    action: Annotated[str, typer.Argument(metavar="[status|stop]")] = "status",
    repo: Repo = None,
    json: Json = False,
) -> int:
    """Show the daemon, or stop it together with the proxy. It starts by itself when needed."""
    if action not in ("status", "stop"):
        raise wrong(f"{action!r} is neither status nor stop", next="devbay daemon status")
    try:
        with Session(repo, start=False) as session:
            answer = session.private(action)
            if action == "stop":
                session.until_gone()
    except DevbayError as error:
        if error.code != "daemon_not_running":
            raise
        answer = {"running": False}
    if json:
        out.emit_json(answer)
    elif answer.get("stopped"):
        going = ", ".join(answer.get("interrupted", []))
        out.emit(f"stopped process {answer['pid']}" + (f"; interrupted: {going}" if going else ""))
    elif answer["running"]:
        rows = [
            [key, ", ".join(value) if isinstance(value, list) else str(value)]
            for key, value in answer.items()
        ]
        out.emit(out.table(rows))
    else:
        out.emit("not running")
    return 0
