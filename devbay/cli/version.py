"""`devbay version`: of devbay and of Python."""

from __future__ import annotations

import platform

import devbay
from devbay.cli import out
from devbay.cli.session import Json, Repo


def command(repo: Repo = None, json: Json = False) -> int:
    """Show the version."""
    found = {
        "version": devbay.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    if json:
        out.emit_json(found)
    else:
        out.emit(f"devbay {found['version']} (Python {found['python']}, {found['platform']})")
    return 0
