"""Where the files are that devbay gives away: starter manifests, rules text, the demo repository."""

from __future__ import annotations

from pathlib import Path

from devbay.errors import WORK_FAILED, DevbayError

_PACKAGE = Path(__file__).resolve().parent
PLACES = (_PACKAGE / "_templates", _PACKAGE.parent / "templates")
"""In an installed wheel and in a checkout (`pyproject.toml` maps one to the other)."""


def template(name: str, places: tuple[Path, ...] = PLACES) -> Path:
    """The file or folder `name` of the templates; raises `broken_installation` if it is not there."""
    for place in places:
        if (place / name).exists():
            return place / name
    raise DevbayError(
        "broken_installation",
        f"devbay's template {name!r} is missing; looked in {', '.join(map(str, places))}",
        next="install devbay again",
        exit_code=WORK_FAILED,
    )
