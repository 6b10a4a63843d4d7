"""`devbay run`: run a task in a bay and wait for its typed result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from devbay.cli import out, render
from devbay.cli.app import wrong
from devbay.cli.session import WAIT_S, Bay, Json, Repo, Session, run_code


def command(
    context: typer.Context,
    bay: Bay,
    task: Annotated[str, typer.Argument(metavar="TASK", help="A task of the manifest.")],
    only_failed: Annotated[
        bool, typer.Option("--only-failed", help="Only what failed in the last run of the task.")
    ] = False,
    compare_to: Annotated[
        str | None,
        typer.Option(
            "--compare-to", metavar="X", help="Compare with the last run in a bay, a run's id, or `base`."
        ),
    ] = None,
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="S", help="Seconds.")] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write the results as JUnit XML too.")
    ] = None,
    repo: Repo = None,
    json: Json = False,
) -> int:
    """Run a task: devbay run BAY TASK [-- ARGS]."""
    if junit is not None and not junit.absolute().parent.is_dir():
        raise wrong(f"--junit: there is no directory {junit.absolute().parent}")
    with Session(repo) as session:
        result = session.tool(
            "bay_run_task", bay=bay, task=task, args=context.obj["rest"] or None,
            only_failed=only_failed or None, compare_to=compare_to, timeout_s=timeout, wait_s=WAIT_S,
        )  # fmt: skip
        result = session.until_over(result)
        if junit is not None and result.get("run"):
            _write_junit(session, result, junit)
    out.emit_json(result) if json else out.emit(render.run(result))
    return run_code(result)


def _write_junit(session: Session, result: dict[str, Any], path: Path) -> None:
    xml = session.private("run.junit", run=result["run"])["xml"]
    path.write_text(xml, encoding="utf-8")
