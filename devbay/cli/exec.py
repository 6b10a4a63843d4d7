"""`devbay exec`: a command in a running service, with this terminal."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from devbay.cli.app import wrong
from devbay.cli.session import Bay, Json, Repo, Session
from devbay.errors import WORK_FAILED, DevbayError


def command(
    context: typer.Context,
    bay: Bay,
    service: Annotated[str | None, typer.Argument(metavar="[SERVICE]", help="Default: the primary.")] = None,
    repo: Repo = None,
    json: Json = False,
) -> int:
    """Run a command in a service: devbay exec BAY [SERVICE] -- ARGV. --json is for errors only."""
    argv = context.obj["rest"]
    if not argv:
        raise wrong("the command is missing", next="devbay exec BAY [SERVICE] -- ARGV")
    tty = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    with Session(repo) as session:
        target = session.private("exec", bay=bay, service=service, argv=argv, tty=tty)
    client = target["argv"]
    try:
        os.execvpe(client[0], client, {**os.environ, **target.get("env", {})})  # noqa: S606
    except OSError as error:
        raise DevbayError(
            "no_client", f"cannot run {client[0]}: {error.strerror}", next=f"install {client[0]}",
            exit_code=WORK_FAILED,
        ) from error  # fmt: skip
