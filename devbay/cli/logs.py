"""`devbay logs`: what a service or a run printed."""

from __future__ import annotations

import json as _json
from typing import Annotated, Any

import typer

from devbay.cli import out
from devbay.cli.session import Bay, Json, Repo, Session


def command(
    bay: Bay,
    service: Annotated[str | None, typer.Argument(metavar="[SERVICE]", help="Default: the primary.")] = None,
    lines: Annotated[int, typer.Option("-n", "--lines", min=1, help="How many of the last lines.")] = 100,
    run: Annotated[str | None, typer.Option("--run", metavar="ID", help="A run's log instead.")] = None,
    since: Annotated[str | None, typer.Option("--since", help="Only lines after this time.")] = None,
    grep: Annotated[str | None, typer.Option("--grep", help="Only lines that match.")] = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until ctrl-c.")] = False,
    repo: Repo = None,
    json: Json = False,
) -> int:
    """Show logs; with --json -f one JSON object per line."""
    with Session(repo) as session:
        if follow:

            def show(line: dict[str, Any]) -> None:
                out.emit(_json.dumps(line, ensure_ascii=False) if json else _text(line, named=not service))

            session.private("logs.follow", on_item=show, bay=bay, service=service, run=run, lines=lines)
            return 0
        answer = session.tool(
            "bay_logs", bay=bay, service=service, run=run, lines=lines, since=since, grep=grep
        )
    if json:
        out.emit_json(answer)
        return 0
    several = len({line.get("service") for line in answer["lines"]}) > 1
    if answer["lines"]:
        out.emit("\n".join(_text(line, named=several) for line in answer["lines"]))
    if answer.get("dropped"):
        out.note(f"{answer['dropped']} earlier lines are not shown")
    return 0


def _text(line: dict[str, Any], *, named: bool) -> str:
    return f"{line['service']} | {line['text']}" if named and line.get("service") else str(line["text"])
