"""Which compose files a folder has: those that compose reads by itself, and the repository's other stacks."""

from __future__ import annotations

import posixpath
import re

from devbay.detect.files import View, normal

# The order of compose 2.26, checked there and in compose-go's cli/options.go.
BASES = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")
OVERRIDES = (
    "compose.override.yml", "compose.override.yaml", "docker-compose.override.yml",
    "docker-compose.override.yaml",
)  # fmt: skip
MAX_ALTERNATIVES = 50
_NAMED = re.compile(r"compose[^/]*\.ya?ml$", re.IGNORECASE)
_SERVICES = re.compile(r"^services[ \t]*:", re.MULTILINE)


def default_files(view: View, folder: str = "") -> tuple[str, ...]:
    """The file that compose reads in `folder`, and the override it merges; empty if there is none."""
    found = []
    for names in (BASES, OVERRIDES):
        paths = (normal(posixpath.join(folder, name)) for name in names)
        file = next((path for path in paths if view.exists(path)), None)
        if file is not None:
            found.append(file)
        elif names is BASES:
            return ()
    return tuple(found)


def alternatives(view: View, read: tuple[str, ...]) -> tuple[str, ...]:
    """Further files that declare services, the shallowest first, at most `MAX_ALTERNATIVES`."""
    others = sorted(
        (file for file in view.files() if _NAMED.search(file) and file not in read),
        key=lambda file: (file.count("/"), file),
    )
    if len(others) > MAX_ALTERNATIVES:
        view.skip(
            others[MAX_ALTERNATIVES],
            f"is one of {len(others)} more compose files; {MAX_ALTERNATIVES} are named",
        )
    return tuple(file for file in others[:MAX_ALTERNATIVES] if _SERVICES.search(view.text(file) or ""))
