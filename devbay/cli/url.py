"""`devbay url`: where a bay's service answers."""

from __future__ import annotations

from typing import Annotated

import typer

from devbay.cli import out
from devbay.cli.session import Bay, Json, Repo, Session


def command(
    bay: Bay,
    service: Annotated[str | None, typer.Argument(metavar="[SERVICE]", help="Default: the primary.")] = None,
    repo: Repo = None,
    json: Json = False,
) -> int:
    """Show the URLs of a service: one for code, one for a browser."""
    with Session(repo) as session:
        answer = session.tool("bay_url", bay=bay, service=service)
    if json:
        out.emit_json(answer)
    else:
        rows = [["url", answer.get("url") or "-", "for code on this machine"]]
        if answer.get("public_url"):
            rows.append(["public_url", answer["public_url"], "for a browser"])
        out.emit(out.table(rows))
    return 0
