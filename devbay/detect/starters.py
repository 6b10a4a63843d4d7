"""Starter manifests for a repository that names no container and no command: chosen by its sources alone.

The files are in `templates/starters`. What one brings is no fact of the repository, so the proposal asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML

from devbay.detect.apps import App, toolchain
from devbay.detect.draft import Draft
from devbay.detect.facts import Origin, line_of
from devbay.detect.facts_of import Facts
from devbay.detect.files import View
from devbay.templates import template

_PYTHON = ("app.py", "main.py", "server.py", "wsgi.py", "asgi.py")
_NODE = ("server.js", "server.mjs", "app.js", "index.js", "index.mjs", "main.js")
_PAGES = (".", "public", "www", "site", "html", "static")
_FLASK = re.compile(r"^\w+\s*=\s*Flask\(|^def (create|make)_app\(", re.MULTILINE)
_ASGI = re.compile(r"^(\w+)\s*(?::\s*\w+\s*)?=\s*(?:FastAPI|Starlette)\(", re.MULTILINE)
_PYTHON_PORT = re.compile(
    r"(?:HTTPServer|TCPServer|make_server|\brun|run_app|run_simple|serve|listen)\(.*?\b(\d{4,5})\b"
)
_NODE_PORT = re.compile(
    r"\.listen\(\s*(?:\{\s*port:\s*)?(?:process\.env\.PORT\s*(?:\|\||\?\?)\s*)?(\d{2,5})\b"
    r"|\bPORT\b\s*=\s*(?:Number\()?\s*process\.env\.PORT\s*(?:\|\||\?\?)\s*(\d{2,5})"
)


@dataclass(frozen=True)
class Choice:
    """A starter and why.

    words: words of its commands to what stands there instead. port: where the program listens. loopback:
    where it listens on localhost alone.
    """

    name: str
    origin: Origin
    language: str | None = None
    words: dict[str, str] = field(default_factory=dict)
    port: int | None = None
    loopback: Origin | None = None


def choose(facts: Facts) -> Choice | None:
    """The starter that the sources at the root call for; None where they call for none."""
    view = facts.view
    project = facts.project(".")
    if project is not None and project.manage == "manage.py":
        return Choice("django", Origin("manage.py"), "python")
    return next(_python(view), None) or next(_node(view), None) or next(_pages(view), None)


def place(facts: Facts, draft: Draft) -> list[App]:
    """Put the services of the chosen starter, each line with the starter's own reason."""
    choice = choose(facts)
    if choice is None:
        return []
    text = template(f"starters/{choice.name}.yaml").read_text("utf-8")
    services = YAML().load(text)["services"]
    for name, given in services.items():
        draft.services[name] = {}
        draft.say(("services", name), f"the starter {choice.name}, for {choice.origin}")
        for key, value in given.items():
            draft.put(("services", name, key), _with(_plain(value), choice), _reason(given, key))
        if choice.language is not None:
            toolchain(facts, draft, ("services", name), choice.language, ".")
        if choice.port is not None:
            draft.put(("services", name, "port"), choice.port, choice.origin)
            draft.put(("services", name, "health"), {"tcp": choice.port, "timeout": "60s"}, choice.origin)
    if choice.loopback is not None:
        text = "web listens on localhost, where only its own container reaches it: let it listen on all"
        draft.ask("services/web/port", text, origin=choice.loopback)
    text = f"nothing says how this repository runs, so the starter `{choice.name}` is taken: is it right?"
    draft.ask("services/web", text, origin=choice.origin)
    return [App(name, ".", {}, choice.origin) for name in services]


def _python(view: View) -> Iterator[Choice]:
    for file in _PYTHON:
        text, stem = view.text(file) or "", file.removesuffix(".py")
        if "flask" in text and (match := _FLASK.search(text)):
            yield Choice("flask", _at(file, text, match), "python", {"app": stem})
        elif match := _ASGI.search(text):
            yield Choice("fastapi", _at(file, text, match), "python", {"app:app": f"{stem}:{match[1]}"})
        elif match := _PYTHON_PORT.search(text):
            at = _at(file, text, match)
            yield Choice("python-web", at, "python", {"app.py": file}, int(match[1]), _loopback(view, at))


def _node(view: View) -> Iterator[Choice]:
    for file in _NODE:
        text = view.text(file) or ""
        if match := _NODE_PORT.search(text):
            at, port = _at(file, text, match), int(match[1] or match[2])
            yield Choice("node-web", at, "node", {"server.js": file}, port, _loopback(view, at))


def _pages(view: View) -> Iterator[Choice]:
    for folder in _PAGES:
        file = "index.html" if folder == "." else f"{folder}/index.html"
        if view.exists(file) and not view.exists("package.json"):
            yield Choice("static-site", Origin(file), None, {".": folder})


def _at(file: str, text: str, match: re.Match[str]) -> Origin:
    return Origin(file, line_of(text, match[0]))


def _loopback(view: View, at: Origin) -> Origin | None:
    """The line that says where a program listens, if that is localhost alone."""
    return at if re.search(r"[\"'](localhost|127\.0\.0\.1)[\"']", view.lines(at.file)[at.line - 1]) else None


def _with(value: Any, choice: Choice) -> Any:
    """A value of the starter with the repository's own words in it."""
    if isinstance(value, list):
        return [_with(each, choice) for each in value]
    if isinstance(value, dict):
        return {key: _with(each, choice) for key, each in value.items()}
    return choice.words.get(value, value) if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    """A value of ruamel's as plain data."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, str) else value


def _reason(given: Any, key: str) -> str | None:
    """The comment at the end of a key's line."""
    comment = (given.ca.items.get(key) or (None, None, None))[2]
    return str(comment.value).splitlines()[0].lstrip("# ") if comment is not None else None
