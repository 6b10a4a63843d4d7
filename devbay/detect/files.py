"""A repository as detection sees it: a bounded listing and texts, nothing from outside it."""

from __future__ import annotations

import os
import posixpath
import stat
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

from devbay.manifest.paths import escape_problem

MAX_FILES = 60_000
MAX_DEPTH = 24
MAX_TEXT = 1024 * 1024
"""Bytes of one file that are read; lock files may be longer and nobody needs their text."""

LEFT_OUT = frozenset({
    ".bundle", ".cache", ".devbay", ".direnv", ".git", ".gradle", ".hg", ".idea", ".mypy_cache",
    ".next", ".nox", ".nuxt", ".pnpm-store", ".pytest_cache", ".ruff_cache", ".svelte-kit", ".svn",
    ".terraform", ".tox", ".turbo", ".venv", ".yarn", "Pods", "__pycache__", "_build",
    "bower_components", "coverage", "deps", "dist", "node_modules", "site-packages", "target", "vendor",
    "venv",
})  # fmt: skip
"""Folders that tools fill: dependencies, builds and caches, none of them the project's own words."""


@dataclass(frozen=True, order=True)
class Skipped:
    """A file or an evidence source that could not be used, and why."""

    file: str
    why: str


class View:
    """One folder of a repository, read once.

    Paths are relative to `root`, with `/`. Links to files inside are read, links to folders are not entered,
    links that leave are listed in `skipped`, as are unreadable, too large and undecodable files once they
    were asked for.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._skipped: set[Skipped] = set()
        self._texts: dict[str, str | None] = {}
        self._files = tuple(sorted(self._walk()))
        self._known = frozenset(self._files)
        self._folders = frozenset(_folders(self._files))
        self._by_name: dict[str, list[str]] = {}
        for file in self._files:
            self._by_name.setdefault(file.rsplit("/", 1)[-1], []).append(file)

    def files(self) -> tuple[str, ...]:
        """Every file, sorted; those in `LEFT_OUT` folders and those with unprintable names are not there."""
        return self._files

    def exists(self, path: str) -> bool:
        """Whether `path` is a file of the listing."""
        return normal(path) in self._known

    def is_folder(self, path: str) -> bool:
        """Whether `path` holds a file of the listing; the root always counts."""
        return normal(path) in self._folders

    def inside(self, path: str) -> bool:
        """Whether `path` (relative to the root) stays in the repository, links included."""
        return not normal(path).startswith("../") and escape_problem(self.root, normal(path)) is None

    def named(self, *names: str) -> tuple[str, ...]:
        """The files with one of these base names, the shallowest first."""
        found = (file for name in frozenset(names) for file in self._by_name.get(name, ()))
        return tuple(sorted(found, key=lambda file: (file.count("/"), file)))

    def below(self, folder: str) -> tuple[str, ...]:
        """The files in a folder and below it, sorted; all of them for the root."""
        if normal(folder) == ".":
            return self._files
        prefix = f"{normal(folder)}/"
        start = bisect_left(self._files, prefix)
        return self._files[start : bisect_left(self._files, f"{prefix[:-1]}0", start)]  # `0` follows `/`

    def text(self, path: str) -> str | None:
        """The file's text (UTF-8, a byte order mark taken away, newlines as they are), or None."""
        path = normal(path)
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def lines(self, path: str) -> tuple[str, ...]:
        """The text's lines without their ends; none if there is no text."""
        return tuple((self.text(path) or "").splitlines())

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return tuple(sorted(self._skipped))

    def skip(self, file: str, why: str) -> None:
        """Record that `file` could not be used."""
        self._skipped.add(Skipped(file, why))

    def _read(self, path: str) -> str | None:
        if path.startswith(("../", "/")):
            return None
        if problem := escape_problem(self.root, path):
            self.skip(path, problem)
            return None
        try:
            descriptor = os.open(self.root / path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.skip(path, f"cannot be read: {error.strerror}")
            return None
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            return None
        with os.fdopen(descriptor, "rb") as file:
            if status.st_size > MAX_TEXT:
                self.skip(path, f"has {status.st_size} bytes; at most {MAX_TEXT} are read")
                return None
            content = file.read(MAX_TEXT + 1)
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            self.skip(path, "is not UTF-8 text")
            return None

    def _walk(self) -> list[str]:
        found: list[str] = []
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            try:
                entries = sorted(os.scandir(self.root / folder), key=lambda entry: entry.name)
            except OSError as error:
                self.skip(folder or ".", f"cannot be listed: {error.strerror}")
                continue
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if not entry.name.isprintable():
                    self.skip(ascii(path)[1:-1], "has a name that cannot be printed")
                elif entry.is_dir(follow_symlinks=False):
                    if entry.name not in LEFT_OUT and path.count("/") < MAX_DEPTH:
                        waiting.append(path)
                elif self._counts(entry, path):
                    found.append(path)
                    if len(found) >= MAX_FILES:
                        self.skip(
                            folder or ".", f"only the first {MAX_FILES} files of the repository are looked at"
                        )
                        return found
        return found

    def _counts(self, entry: os.DirEntry[str], path: str) -> bool:
        if not entry.is_symlink():
            return entry.is_file(follow_symlinks=False)
        if problem := escape_problem(self.root, path):
            self.skip(path, problem)
            return False
        return entry.is_file()


def normal(path: str) -> str:
    """`./a//b/../c` as `a/c`; the root is `.`."""
    return posixpath.normpath(path) if path else "."


def folder_of(path: str) -> str:
    """The folder a file lies in; `.` for the root."""
    return posixpath.dirname(path) or "."


def _folders(files: tuple[str, ...]) -> set[str]:
    found = {"."}
    for file in files:
        folder = posixpath.dirname(file)
        while folder and folder not in found:
            found.add(folder)
            folder = posixpath.dirname(folder)
    return found
