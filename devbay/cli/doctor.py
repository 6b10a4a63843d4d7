"""`devbay doctor`: what this machine has, lacks, and what to do about it."""

from __future__ import annotations

from typing import Any

from devbay.cli import out
from devbay.cli.session import Json, Repo, Session
from devbay.errors import DevbayError

COLOURS = {"ok": "green", "note": "dim", "warning": "yellow", "error": "red"}


def command(repo: Repo = None, json: Json = False) -> int:
    """Check git, the engine, the proxy, disk and memory."""
    try:
        with Session(repo) as session:
            answer = session.private("doctor")
    except DevbayError as error:
        if not error.code.startswith("daemon"):
            raise
        check = {"name": "daemon", "status": "error", "detail": error.message, "next": error.next}
        answer = {"ok": False, "checks": [check]}
    out.emit_json(answer) if json else out.emit(_text(answer))
    return 0 if answer["ok"] else 1


def _text(answer: dict[str, Any]) -> str:
    lines = []
    for check in answer["checks"]:
        status = out.paint(f"{check['status']:<7}", COLOURS.get(check["status"], "yellow"))
        lines.append(f"{status} {check['name']}: {check['detail']}")
        if check.get("next"):
            lines.append(f"        next: {check['next']}")
    return "\n".join(lines)
