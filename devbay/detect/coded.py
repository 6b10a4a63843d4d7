"""Addresses of this machine in the code itself: what variables fall back on, what development proxies ask.

In a bay each program has a container of its own, so `localhost:4000` of another one is nobody there. What a
variable can change becomes a reference; what is fixed in the code is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from devbay.detect.apps import App
from devbay.detect.draft import Draft
from devbay.detect.envfiles import Variable
from devbay.detect.facts import Origin, is_secret
from devbay.detect.files import View

MAX_FILES = 400
"""Sources read for all programs together, each program's outermost first."""
_SOURCE = re.compile(r"\.(jsx?|tsx?|mjs|cjs|mts|vue|svelte|py)$")
_ASIDE = re.compile(
    r"(^|/)(tests?|__tests__|e2e|dist|build|migrations)/|[._](test|spec)\.\w+$|(^|/)test_\w+\.py$"
)
_ADDRESS = r"""(?P<scheme>[a-z][a-z0-9+]*)://(?:[^@/\s"'`]*@)?(?:localhost|127\.0\.0\.1)(?::(?P<port>\d{2,5}))?(?P<path>/[^\s"'`]*)?"""
_JS = re.compile(
    r"""(?P<of>process|import\.meta|Bun)\.env(?:\.(?P<name>\w+)|\[["'](?P<quoted>\w+)["']\])\s*(?:\|\||\?\?)\s*["'`]"""
    + _ADDRESS + r"""["'`]"""
)  # fmt: skip
_PY = re.compile(
    r"""(?P<of>environ\.get|getenv|env(?:\.\w+)?|config)\(\s*["'](?P<name>\w+)["']\s*,\s*(?:default\s*=\s*)?["']"""
    + _ADDRESS + r"""["']"""
)  # fmt: skip
_FIXED = re.compile(r"""["'`]https?://(?:localhost|127\.0\.0\.1):(?P<port>\d{2,5})""")
_PROXIES = re.compile(
    r"(^|/)((vite|nuxt|next|svelte|astro|webpack|vue)\.config\.\w+|setupProxy\.js|proxy\.conf\.\w+|package\.json)$"
)
_PUBLIC = ("VITE_", "NEXT_PUBLIC_", "REACT_APP_", "NUXT_PUBLIC_", "PUBLIC_", "GATSBY_", "EXPO_PUBLIC_")


@dataclass(frozen=True)
class Fallback:
    """A variable and the address that it falls back on. path: of that address. browser: who opens it."""

    variable: Variable
    path: str
    browser: bool


def fallbacks(view: View, app: App, apps: list[App]) -> tuple[Fallback, ...]:
    """Those of the sources in a program's folder, but for the folders of the others; each variable once."""
    found: dict[str, Fallback] = {}
    for file in _sources(view, app.folder, _others(app, apps))[: MAX_FILES // len(apps)]:
        text = view.text(file) or ""
        for match in (
            (_PY if file.endswith(".py") else _JS).finditer(text)
            if "localhost" in text or "127.0" in text
            else ()
        ):
            name = match["name"] or match.groupdict().get("quoted") or ""
            origin = Origin(file, text.count("\n", 0, match.start()) + 1, name)
            port = int(match["port"]) if match["port"] else None
            variable = Variable(name, origin, match["scheme"], "localhost", port, local=True)
            browser = match["of"] == "import.meta" or name.startswith(_PUBLIC)
            found.setdefault(name, Fallback(variable, match["path"] or "", browser))
    return tuple(found.values())


def stores(view: View, app: App, apps: list[App]) -> dict[str, Variable]:
    """The variables of a program that fall back on a datastore's address, by name."""
    found = fallbacks(view, app, apps)
    return {
        each.variable.name: each.variable for each in found
        if each.variable.scheme not in ("http", "https") and not is_secret(each.variable.name)
    }  # fmt: skip


def put(view: View, apps: list[App], draft: Draft) -> None:
    """Point the variables of each program at the other programs that they fall back on."""
    at = _programs_by_port(draft.services, apps)
    for app in apps:
        env = draft.services[app.name].get("env", {})
        for each in fallbacks(view, app, apps):
            other = at.get(each.variable.port or 80)
            name = each.variable.name
            if (
                other in (None, app.name)
                or each.variable.scheme not in ("http", "https")
                or "${" in env.get(name, "")
            ):
                continue
            reference = f"${{bay.{other}.{'public_url' if each.browser else 'url'}}}"
            path = each.path.replace("${", "$${")
            draft.put(("services", app.name, "env", name), f"{reference}{path}", each.variable.origin)
        _fixed(view, app, apps, at, draft)


def _fixed(view: View, app: App, apps: list[App], at: Mapping[int, str], draft: Draft) -> None:
    """Proxies of development servers that no variable can point elsewhere."""
    for file in view.below(app.folder):
        if not _PROXIES.search(file) or _under(file, _others(app, apps)):
            continue
        for number, line in enumerate(view.lines(file), 1):
            match = _FIXED.search(line)
            other = at.get(int(match["port"])) if match else None
            if match and other not in (None, app.name) and not _JS.search(line):
                text = f"it asks localhost:{match['port']}, where a bay has no {other}: use a variable"
                draft.ask(f"services/{app.name}", text, f"${{bay.{other}.url}}", origin=Origin(file, number))


def _programs_by_port(services: Mapping[str, Any], apps: list[App]) -> dict[int, str]:
    """Ports that exactly one program has."""
    names: dict[int, list[str]] = {}
    for app in apps:
        if isinstance(port := services[app.name].get("port"), int):
            names.setdefault(port, []).append(app.name)
    return {port: each[0] for port, each in names.items() if len(each) == 1}


def _others(app: App, apps: list[App]) -> tuple[str, ...]:
    return tuple(each.folder for each in apps if each.folder != app.folder and each.folder != ".")


def _sources(view: View, folder: str, others: tuple[str, ...]) -> list[str]:
    found = (
        file for file in view.below(folder)
        if _SOURCE.search(file) and not _ASIDE.search(file) and not _under(file, others)
    )  # fmt: skip
    return sorted(found, key=lambda file: (file.count("/"), file))


def _under(file: str, folders: tuple[str, ...]) -> bool:
    return any(file.startswith(f"{folder}/") for folder in folders)
