"""What is said about a manifest: findings with file, line, path, rule and what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from devbay.answers import DiagnosticInfo
from devbay.manifest import models
from devbay.manifest.conditions import Part

Severity = Literal["error", "warning", "approval", "notice"]
Path = tuple[str | int, ...]

_PARTS: Mapping[str, type[Part]] = {
    "health": models.Health,
    "build": models.Build,
    "limits": models.Limits,
    "mounts": models.Mount,
    "report": models.Report,
}
_COMPOSE_KEYS = {
    "command": "start",
    "depends_on": "needs",
    "environment": "env",
    "healthcheck": "health",
    "working_dir": "workdir",
    "test": "cmd",
    "start_interval": "interval",
    "mem_limit": "limits",
    "cpus": "limits",
    "pids_limit": "limits",
    "expose": "port",
    "source_path": "source",
    "args": "run",
    "cmd": "run",
    "service": "in",
}
_TYPES = {
    "string_type": ("a text", "put it in quotes"),
    "int_type": ("a whole number", "write the number without quotes"),
    "float_type": ("a number", "write the number without quotes"),
    "bool_type": ("true or false", "write `true` or `false` without quotes"),
    "tuple_type": ("a list", "write a list, such as `[a, b]`"),
    "dict_type": ("a mapping", "write `name: value` lines"),
    "model_type": ("a mapping", "write `key: value` lines"),
    "model_attributes_type": ("a mapping", "write `key: value` lines"),
    "finite_number": ("a finite number", "write a number such as `1.5`"),
}
_SHAPES_OF_KEYS = {
    "ports": "write `port: 80` for the primary port and `ports: {metrics: 9100}` for others",
    "env": "write `NAME: value` lines instead of a list",
    "args": "write `NAME: value` lines instead of a list",
    "labels": "write `name: value` lines instead of a list",
    "mounts": "write a list of `{source: ./backend, target: /srv/app}`",
    "needs": "write a list of service names, such as `[db]`, or `[]`",
    "health": "write a form of probe, such as `{tcp: 5432}` or `{http: /healthz}`",
}


@dataclass(frozen=True)
class Finding:
    """Something about the manifest, at a path of keys, before it is known where that stands in the file."""

    severity: Severity
    rule: str
    path: Path
    message: str
    fix: str


@dataclass(frozen=True)
class Diagnostic:
    """A finding with its place. line, column: 1-based, of the key or list item; path: slash-separated."""

    severity: Severity
    rule: str
    message: str
    file: str
    line: int
    column: int
    path: str
    fix: str

    def __str__(self) -> str:
        where = f"`{self.path}`: " if self.path else ""
        return f"{self.file}:{self.line}: {where}{self.message} ({self.rule}) {self.fix}"

    def info(self) -> DiagnosticInfo:
        """The same as the tools answer it."""
        return DiagnosticInfo(
            severity=self.severity,
            rule=self.rule,
            message=self.message,
            file=self.file,
            line=self.line,
            column=self.column,
            path=self.path,
            fix=self.fix,
        )


def near(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` most likely stands for."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)), None)


def from_validation(error: ValidationError) -> list[Finding]:
    """The findings of a failed validation of a whole manifest."""
    found: dict[Finding, None] = {}
    for each in error.errors(include_url=False):
        path = tuple(part for part in each["loc"] if part != "[key]")
        found[_finding(each, path)] = None
    return list(found)


def _finding(each: ErrorDetails, path: Path) -> Finding:
    kind, context = each["type"], each.get("ctx", {})
    if path[:1] == ("tasks",) and path[2:] == ("needs",) and kind in {"missing", "empty"}:
        fix = "write `needs: []`, or list the services it needs"
        return Finding("error", "R6", path, "a task must say what it needs", fix)
    if "fix" in context:
        return Finding("error", kind, path, each["msg"], context["fix"])
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if kind == "missing":
        key = path[-1]
        return Finding("error", "missing", path, f"`{key}` is missing", f"add `{key}: ...`")
    if kind in _TYPES and each["input"] is None:
        return Finding("error", "empty", path, "has no value", 'give it a value (`""` is the empty text)')
    if kind in _TYPES:
        wanted, fix = _TYPES[kind]
        key = next((part for part in reversed(path) if isinstance(part, str)), "")
        message = f"must be {wanted}, not {_what(each['input'])}"
        if not path:
            message = f"a manifest must be a mapping, not {_what(each['input'])}"
        return Finding("error", "type", path, message, _SHAPES_OF_KEYS.get(key, fix))
    if kind == "literal_error":
        message = f"{_shown(each['input'])} is not one of {context['expected']}"
        guess = near(str(each["input"]), [word.strip("' ") for word in _words(context["expected"])])
        fix = f"write `{guess}`" if guess else f"write one of {context['expected']}"
        return Finding("error", "value", path, message, fix)
    bounds = {"greater_than_equal": "ge", "greater_than": "gt", "less_than_equal": "le"}
    if kind in bounds:
        limit = context[bounds[kind]]
        words = {"ge": "at least", "gt": "more than", "le": "at most"}[bounds[kind]]
        return Finding(
            "error", "value", path, f"must be {words} {limit}", f"write a number of {words} {limit}"
        )
    if kind in {"string_too_short", "too_short"}:
        return Finding("error", "empty", path, "must not be empty", "give it a value or remove the key")
    if kind == "string_too_long":
        message = f"has more than {context['max_length']} characters"
        return Finding("error", "value", path, message, "make it shorter")
    return Finding("error", "value", path, each["msg"], "correct the value; `devbay schema` shows its type")


def _unknown_key(path: Path) -> Finding:
    model, key = model_at(path[:-1]), str(path[-1])
    if key in model.NOT_YET:
        message = f"`{key}` is not yet supported"
        return Finding("error", "not-yet", path, message, f"remove it; {model.NOT_YET[key]}")
    known = [field.alias or name for name, field in model.model_fields.items()]
    synonym = _COMPOSE_KEYS.get(key)
    guess = synonym if synonym in known else near(key, known)
    fix = f"write `{guess}`" if guess else f"remove it; known keys: {', '.join(known)}"
    return Finding("error", "unknown-key", path, f"`{key[:60]}` is no key here", fix)


def model_at(path: Path) -> type[Part]:
    """The model that a mapping at `path` is read into."""
    if len(path) == 2:
        return models.Service if path[0] == "services" else models.Task
    keys = [part for part in path[2:] if isinstance(part, str)]
    return _PARTS[keys[-1]] if keys else models.Manifest


def _words(expected: str) -> list[str]:
    return expected.replace(" or ", ", ").split(", ")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:56]}..."


def _what(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return f"`{str(value).lower()}`"
        case int() | float():
            return f"the number {_shown(getattr(value, 'written', value))}"
        case str():
            return f"the text {_shown(value)}"
        case Mapping():
            return "a mapping"
        case _:
            return "a list"
