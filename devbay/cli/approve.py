"""`devbay approve`: a person allows what reaches beyond a bay's containers, item by item."""

from __future__ import annotations

import sys
from typing import Any

from devbay.cli import out
from devbay.cli.session import Json, Repo, Session
from devbay.errors import PERSON_NEEDED, DevbayError


def command(repo: Repo = None, json: Json = False) -> int:
    """Show what waits for approval and ask, item by item."""
    with Session(repo) as session:
        items = session.private("approve.list")["items"]
        if not items:
            out.emit_json({"items": [], "granted": []}) if json else out.emit("nothing waits for approval")
            return 0
        if not _at_terminal():
            raise DevbayError(
                "no_terminal",
                f"{len(items)} items wait for approval by a person at a terminal",
                next="run `devbay approve` in a terminal",
                exit_code=PERSON_NEEDED,
                items=items if json else [f"{item['path']}: {item['summary']}" for item in items],
            )
        granted = []
        for number, item in enumerate(items, 1):
            answer = _ask(item, f"[{number}/{len(items)}]")
            if answer is None:
                break
            if answer:
                session.private("approve.grant", key=item["key"], bay=item.get("bay"))
                granted.append(item["key"])
    if json:
        out.emit_json({"items": items, "granted": granted})
    else:
        out.emit(f"approved {len(granted)} of {len(items)}")
    return 0 if len(granted) == len(items) else PERSON_NEEDED


def _at_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()


def _ask(item: dict[str, Any], place: str) -> bool | None:
    """True for yes, False for no (also for an empty line), None for `q` and at the end of input."""
    where = f" in bay {item['bay']}" if item.get("bay") else ""
    out.note(f"{place} {item['path']}{where}: {item['summary']}")
    out.note("\n".join(f"    {line}" for line in str(item.get("detail", "")).splitlines()) or "    -")
    sys.stderr.write("approve? [y/N/q] ")
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        out.note("")
    answer = line.strip().lower()
    return None if not line or answer in ("q", "quit") else answer in ("y", "yes")
