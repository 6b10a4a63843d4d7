"""`devbay validate`: check manifests, without the daemon."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from devbay.cli import out, render
from devbay.cli.session import Json, Repo
from devbay.errors import DevbayError

if TYPE_CHECKING:
    from devbay.manifest.load import Loaded

NAMES = ("devbay.yaml", "devbay.yml")


def command(
    files: Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", help="`-` reads stdin.")] = None,
    repo: Repo = None,
    json: Json = False,
) -> int:
    """Check the repository's manifest, or the files given."""
    loaded = [_load_file(name) for name in files] if files else [_load_repository(Path(repo or "."))]
    answers = [_answer(each) for each in loaded]
    valid = all(answer["valid"] for answer in answers)
    if not json:
        out.emit("\n".join(render.diagnostics(answer) for answer in answers))
    else:
        out.emit_json(answers[0] if len(answers) == 1 else {"valid": valid, "results": answers})
    return 0 if valid else 1


def _answer(loaded: Loaded) -> dict[str, Any]:
    from devbay.answers import ManifestAnswer

    return ManifestAnswer(
        valid=loaded.valid,
        parses=loaded.parses,
        source=loaded.source,
        diagnostics=[diagnostic.info() for diagnostic in loaded.diagnostics],
    ).as_json()


def _load_file(name: str) -> Loaded:
    from devbay.manifest.load import parse

    if name == "-":
        return parse(sys.stdin.buffer.read(), source="-")
    path = Path(name)
    if path.is_dir():
        return _load_repository(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DevbayError("no_manifest", f"{name}: {error.strerror}", next="devbay validate FILE") from error
    return parse(content, source=name, root=path.absolute().parent)


def _load_repository(start: Path) -> Loaded:
    """The manifest of `start` or of the nearest folder above it, up to the repository's root."""
    from devbay.manifest.load import load

    folder = start.absolute()
    for candidate in (folder, *folder.parents):
        if any((candidate / name).exists() for name in NAMES):
            return load(candidate)
        if (candidate / ".git").exists():
            break
    return load(folder)
