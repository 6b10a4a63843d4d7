"""`devbay restart`: stop and start services of a bay."""

from __future__ import annotations

from typing import Annotated

import typer

from devbay.cli import out, render
from devbay.cli.session import WAIT_S, Bay, Json, Repo, Session, boot_code


def command(
    bay: Bay,
    services: Annotated[
        list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Default: all.")
    ] = None,
    repo: Repo = None,
    json: Json = False,
) -> int:
    """Restart services of a bay."""
    with Session(repo) as session:
        info = session.tool("bay_up", bay=bay, services=services or None, restart=True, wait_s=WAIT_S)
        info = session.until_booted(info)
    out.emit_json(info) if json else out.emit(render.bay(info))
    return boot_code(info)
