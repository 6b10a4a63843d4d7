"""`devbay demo`: two bays of a small shop, side by side."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from devbay.cli import out
from devbay.cli.session import Json
from devbay.client import Client
from devbay.errors import WORK_FAILED
from devbay.home import Home


def command(
    keep: Annotated[bool, typer.Option("--keep", help="Leave the bays, and say how to remove them.")] = False,
    json: Json = False,
) -> int:
    """Show what devbay does on a repository of its own, and clean up."""
    from devbay import demo

    def connect(folder: Path, env: Mapping[str, str]) -> Client:
        return Client(Home.from_environment(os.environ), {**os.environ, **env}, str(folder))

    with out.Progress() as progress:

        def say(text: str) -> None:
            progress.__exit__()
            out.note(text) if json else out.emit(text)

        wanted = os.environ.get("DEVBAY_RUNTIME", "")
        summary = demo.run(connect, say, wanted=wanted, progress=progress, keep=keep)
    if json:
        out.emit_json(summary)
    elif not summary["ok"]:
        failed = [name for name, passed in summary["checks"].items() if not passed]
        out.note(
            "\n".join(["not as it must be:", *(f"  {each}" for each in failed + summary.get("left", []))])
        )
    return 0 if summary["ok"] else WORK_FAILED
