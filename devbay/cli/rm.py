"""`devbay rm`: destroy a bay, unless it holds work of its own."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from devbay.cli import out
from devbay.cli.session import Bay, Json, Repo, Session, lines


def command(
    bay: Bay,
    force: Annotated[
        bool, typer.Option("--force", help="Also with work in it; it goes to the trash.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    repo: Repo = None,
    json: Json = False,
) -> int:
    """Destroy a bay: containers, volumes, network and worktree."""
    with Session(repo) as session:
        answer = session.tool("bay_destroy", bay=bay, force=force or None, dry_run=dry_run or None)
    out.emit_json(answer) if json else out.emit(_text(answer))
    return 0


def _text(answer: dict[str, Any]) -> str:
    if answer.get("dry_run"):
        parts = [f"would remove {answer['bay']}:", lines(answer.get("removed", []))]
    else:
        parts = [f"removed {answer['bay']} ({len(answer.get('removed', []))} things)"]
    parts += [f"kept: {text}" for text in answer.get("kept", [])]
    if answer.get("blockers"):
        parts += ["refused without --force because of:", lines(answer["blockers"])]
    if answer.get("trash"):
        parts.append(f"trash: {answer['trash']} (kept seven days)")
    return "\n".join(part for part in parts if part)
