"""`devbay report`: read test output that exists already, without a bay."""

from __future__ import annotations

import json as _json
from typing import Annotated

import typer

from devbay.cli import out, render
from devbay.cli.app import wrong
from devbay.cli.session import Json, Repo, run_code


def command(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="Report files; `-` is stdin.")
    ] = None,
    format: Annotated[str, typer.Option("--format", help="Default: found by content.")] = "auto",
    root: Annotated[str | None, typer.Option("--root", help="The checkout that paths belong to.")] = None,
    cwd: Annotated[
        str | None, typer.Option("--cwd", help="Where the command ran, as its output says.")
    ] = None,
    stdout: Annotated[str | None, typer.Option("--stdout", help="A file of what was printed.")] = None,
    stderr: Annotated[str | None, typer.Option("--stderr", help="The same for stderr.")] = None,
    exit_code: Annotated[int | None, typer.Option("--exit-code", help="How the command ended.")] = None,
    timed_out: Annotated[bool, typer.Option("--timed-out", help="It was ended by a time limit.")] = False,
    argv: Annotated[
        str | None, typer.Option("--argv", metavar="JSON", help="The command, as a JSON list.")
    ] = None,
    repo: Repo = None,
    json: Json = False,
) -> int:
    """Turn existing test output into a typed result."""
    from devbay.reports.offline import report

    result = report(
        files or (), format=format, root=root or repo, cwd=cwd, stdout=stdout, stderr=stderr,
        exit_code=exit_code, timed_out=timed_out, argv=_argv(argv),
    ).as_json()  # fmt: skip
    out.emit_json(result) if json else out.emit(render.run(result))
    return run_code(result)


def _argv(text: str | None) -> list[str]:
    if text is None:
        return []
    try:
        words = _json.loads(text)
    except ValueError as error:
        raise wrong(f"--argv is not JSON: {error}", next="""--argv '["pytest", "-q"]'""") from error
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise wrong("--argv must be a JSON list of strings", next="""--argv '["pytest", "-q"]'""")
    return words
