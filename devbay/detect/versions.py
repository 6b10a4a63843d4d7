"""Which version of a language a repository asks for, and the official image of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from posixpath import join

from devbay.detect import documents
from devbay.detect.facts import Origin, line_of
from devbay.detect.files import View, normal

DEFAULTS = {
    "python": "3.12", "node": "22", "ruby": "3.3", "go": "1.23", "rust": "1.83", "java": "21", "php": "8.3",
    "elixir": "1.17", "bun": "1",
}  # fmt: skip
"""Current at the time of writing; where one of these is taken, the proposal asks."""
_IMAGES = {
    "python": "python:{}-slim", "node": "node:{}-slim", "ruby": "ruby:{}", "go": "golang:{}",
    "rust": "rust:{}", "java": "eclipse-temurin:{}", "php": "php:{}-cli", "elixir": "elixir:{}",
    "bun": "oven/bun:{}",
}  # fmt: skip
_FILES: dict[str, tuple[str, ...]] = {
    "python": (".python-version", "runtime.txt"),
    "node": (".nvmrc", ".node-version"),
    "ruby": (".ruby-version",),
    "java": (".java-version",),
    "go": (".go-version",),
    "rust": ("rust-toolchain",),
    "elixir": (),
    "php": (".php-version",),
    "bun": (".bun-version",),
}
_ASDF = {"nodejs": "node", "golang": "go"}
_NUMBER = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True)
class Version:
    """A version and where it is asked for; `origin` is None for the default."""

    language: str
    number: str
    origin: Origin | None

    @property
    def image(self) -> str:
        return _IMAGES[self.language].format(self.number)


def version(
    view: View, language: str, folder: str = ".", *, asked: str | None = None, asked_in: Origin | None = None
) -> Version:
    """The version for a language in a folder.

    Its own version files count first, then `.tool-versions` and `mise.toml`, each in the folder and the root,
    then `asked` (a range of a project file, or a version that CI uses), then the default.
    """
    for place in dict.fromkeys((folder, ".")):
        for name in _FILES[language]:
            file = normal(join(place, name))
            written = _from_version_file(view, file)
            if written:
                return Version(language, _short(language, written[0]), Origin(file, written[1]))
        if found := _from_tools(view, place, language):
            return found
    if asked and (number := _from_range(language, asked)):
        return Version(language, number, asked_in)
    return Version(language, DEFAULTS[language], None)


def _from_version_file(view: View, file: str) -> tuple[str, int] | None:
    for line, text in enumerate(view.lines(file), 1):
        match = _NUMBER.search(text.split("#")[0])
        if match:
            return match[0], line
    return None


def _from_tools(view: View, folder: str, language: str) -> Version | None:
    file = normal(join(folder, ".tool-versions"))
    for line, text in enumerate(view.lines(file), 1):
        parts = text.split("#")[0].split()
        if (
            len(parts) > 1
            and _ASDF.get(parts[0], parts[0]) == language
            and (match := _NUMBER.search(parts[1]))
        ):
            return Version(language, _short(language, match[0]), Origin(file, line))
    for name in ("mise.toml", ".mise.toml"):
        file = normal(join(folder, name))
        for tool, given in documents.mapping(documents.toml(view, file).get("tools")).items():
            value = documents.mapping(given).get(
                "version", given[0] if isinstance(given, list) and given else given
            )
            if _ASDF.get(tool, tool) == language and (match := _NUMBER.search(str(value))):
                return Version(
                    language, _short(language, match[0]), Origin(file, line_of(view.text(file) or "", tool))
                )
    return None


def _from_range(language: str, asked: str) -> str | None:
    """The default, where the range allows it; else the range's lowest version."""
    bounds = re.findall(r"(>=|<=|==|~=|\^|~|>|<|!=)?\s*v?(\d+(?:\.\d+)*)(\.[*x])?", asked)
    if not bounds:
        return None
    default = _parts(DEFAULTS[language])
    lowest: tuple[int, ...] | None = None
    allowed = True
    for operator, number, _ in bounds:
        parts = _parts(number)
        size = min(len(parts), len(default))
        if operator in ("<", "<="):
            allowed = allowed and (default < parts if operator == "<" else default[:size] <= parts[:size])
        elif operator == "!=":
            continue
        else:
            lowest = parts if lowest is None else lowest
            exact = operator in ("", "==") or (operator in ("^", "~", "~=") and default[:1] != parts[:1])
            exact = exact or (
                operator in ("~", "~=") and default[: max(1, size - 1)] != parts[: max(1, size - 1)]
            )
            allowed = allowed and (
                default[:size] == parts[:size] if exact else default[:size] >= parts[:size]
            )
    if allowed:
        return DEFAULTS[language]
    return _short(language, ".".join(map(str, lowest))) if lowest else None


def _parts(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in number.split("."))


def _short(language: str, number: str) -> str:
    """As far as official tags go without a patch level."""
    parts = number.split(".")
    return ".".join(parts[: 1 if language in ("node", "java", "bun") else 2])
