"""`devbay demo`: two bays of a small shop, side by side."""

from __future__ import annotations

from typing import Any

from devbay.cli import out
from devbay.cli.session import Json, Repo


def command(repo: Repo = None, json: Json = False) -> int:
    """Show what devbay does on a repository of its own, and clean up."""
    from devbay import demo

    result: Any = demo.run(json=json)
    out.flush()
    return int(result or 0)
