"""From the path that a report names to the path in the repository, or to none: never to a wrong one.

Reports name files as the container saw them, as the machine that ran them saw them, relative to a folder, or
only as a class. What is returned lies below the root, exists there, and no link leads out of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

MAX_INDEXED = 50_000
WORKSPACE = "/workspace"
SOURCE = (
    "py|pyi|pyx|js|jsx|mjs|cjs|ts|tsx|mts|cts|vue|svelte|astro|coffee|java|kt|kts|scala|groovy|go|rs|rb|erb"
    "|rake|php|phpt|cs|fs|vb|c|cc|cpp|cxx|h|hh|hpp|hxx|m|mm|swift|dart|ex|exs|erl|clj|cljs|lua|pl|pm|t|sh|bash"
    "|bats|zig|nim|hs|ml|jl|r|R|sql|feature|robot|md|rst|txt|html|css|scss|less|yaml|yml|json|toml|xml|tf|proto"
    "|gradle|ipynb|cfg|ini|mk|cmake"
)
"""Endings that make a word with a dot a file name, as a regular expression."""

_CLASS_FILES = (".java", ".kt", ".scala", ".groovy", ".py", ".php", ".cs", ".rb", ".ex")
_SKIPPED = frozenset(
    {
        *(".git", ".hg", ".svn", ".devbay", ".idea", ".gradle", ".cache", ".next", ".nuxt", "node_modules"),
        *("site-packages", "dist-packages", "venv", ".venv", ".tox", ".nox"),
        *("__pycache__", ".mypy_cache", ".pytest_cache"),
    }
)
_LIBRARY = re.compile(
    r"(^|/)(site-packages|dist-packages|node_modules|\.venv|\.tox|\.nox|\.cargo/registry|pkg/mod|gems/[^/]+-\d[^/]*"
    r"|\.m2|\.gradle|\.pyenv|\.rbenv|\.nvm|\.rustup)/"
    r"|^(/usr/(lib|share|include|local/(lib|go|share|include))|/lib|/nix/store|/opt/(homebrew|hostedtoolcache))/"
    r"|(^|/)lib/python\d[\d.]*/|(^|/)vendor/(bundle/|autoload\.|[\w-]+/[\w-]+/(src|lib)/)|^/rustc/"
    r"|^(node:|internal/|ext:|deno:|bun:)|^<.*>$"
)
_SYSTEM = re.compile(r"/(usr/(?!src/)|opt|lib\w*|etc|nix|snap|var|proc|sys|dev|s?bin|System|Library)/")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_PATHLIKE = re.compile(rf"\S(.*[/\\].*|.*)\.({SOURCE})", re.DOTALL)


def is_library(path: str) -> bool:
    """Whether a path, as a report spells it, belongs to a library or to the language itself."""
    return bool(_LIBRARY.search(path.replace("\\", "/")))


def looks_like_path(text: str) -> bool:
    """Whether a name in a report is a file's path (rather than a class, a suite or a sentence)."""
    return len(text) < 1000 and "\n" not in text and _PATHLIKE.fullmatch(text.strip()) is not None


def cleaned(raw: str) -> str | None:
    """A path in one spelling: forward slashes, no `file://`, no query, no `.` parts; None if it is none."""
    text = raw.strip().strip("\"'")
    if text.startswith("file:"):
        text = unquote(re.sub(r"^file:(//(localhost)?)?(?=/)", "", text))
        text = text.lstrip("/") if re.match(r"/+[A-Za-z]:", text) else text
    elif "://" in text:
        text = re.sub(
            r"^(webpack(-internal)?|vite|rsc|app|turbopack):/{2,3}(\[project\]/|\./|\([^)]*\)/)*", "", text
        )
        if "://" in text:
            return None
    if _DRIVE.match(text) or "/" not in text:
        text = text.replace("\\", "/")
    text = re.sub(r"[?#][\w=&.-]*$", "", text)
    if not text or len(text) > 1000 or "\0" in text or "\n" in text:
        return None
    if any(len(part.encode(errors="replace")) > 255 for part in text.split("/")):
        return None  # NAME_MAX of every file system there is
    return os.path.normpath(text).replace("//", "/")


def _absolute(path: str) -> bool:
    return path.startswith("/") or bool(_DRIVE.match(path))


def _below(folder: str, path: str) -> str:
    return f"{folder}/{path}" if folder else path


class PathMapper:
    """Maps paths of one run.

    root: the checkout on this machine, or None to map by text alone. cwd: the folder the command ran in,
    relative to the root. mounts: folders as the command saw them (`/workspace`) to folders here, absolute, or
    with no root to folders relative to the repository.
    """

    def __init__(
        self, root: Path | None, cwd: str = "", mounts: Mapping[str, str | Path] | None = None
    ) -> None:
        self.root = root
        self._real = os.path.realpath(root) if root is not None else None
        self._cwd = "" if cwd in ("", ".") else os.path.normpath(cwd)
        self._mounts = self._known_folders(mounts or {})
        self.map = lru_cache(maxsize=20_000)(self._map)
        self.own = lru_cache(maxsize=20_000)(self._own)

    @classmethod
    def of_run(cls, root: Path, cwd: str | None, further: Mapping[str, Path] | None = None) -> PathMapper:
        """A mapper for a run in a bay. cwd: absolute, as the container saw it; None if it is not known.

        The worktree is at its own path and at `/workspace` (decision 2); a built image may hold a copy.
        """
        mounts: dict[str, str | Path] = {WORKSPACE: root, **(further or {})}
        for top in (str(root), os.path.realpath(root), WORKSPACE):
            if cwd and f"{cwd}/".startswith(f"{top}/"):
                return cls(root, cwd[len(top) :].strip("/"), mounts)
        named = cls.as_named(root, cwd)
        return cls(root, named._cwd, {seen: root / inner for seen, inner in named._mounts} | mounts)

    @classmethod
    def as_named(cls, root: Path | None, cwd: str | None) -> PathMapper:
        """A mapper for output from elsewhere, where `cwd` is the command's folder as the output names it.

        The end of `cwd` that is a folder of the checkout tells where in it the command ran.
        """
        if not cwd:
            return cls(root)
        parts = PurePosixPath(cleaned(cwd) or "/").parts
        for start in range(1, len(parts)):
            inner = "/".join(parts[start:])
            if root is not None and (root / inner).is_dir():
                top = "/".join(parts[:start]).replace("//", "/")
                return cls(root, inner, {"/".join(parts).replace("//", "/"): root / inner, top: root})
        return cls(root, "", {cwd: root if root is not None else ""})

    def _known_folders(self, mounts: Mapping[str, str | Path]) -> list[tuple[str, str]]:
        """(Folder as the command saw it, folder in the repository), longest first."""
        known: list[tuple[str, str]] = []
        for seen, here in mounts.items():
            inner = str(here)
            if self.root is not None and self._real is not None:
                inner = os.path.relpath(os.path.realpath(self.root / here), self._real)
                if inner.startswith(".."):
                    continue
            known.append((os.path.normpath(seen).rstrip("/"), "" if inner == "." else inner))
        if self.root is not None and self._real is not None:
            known += [(str(self.root), ""), (self._real, "")]
        return sorted(set(known), key=lambda pair: -len(pair[0]))

    def _map(self, raw: str) -> str | None:
        """The path below the repository of a path in a report, with forward slashes; None if unknown."""
        path = cleaned(raw)
        if path is None:
            return None
        if not _absolute(path):
            return None if is_library(path) else self._relative(path)
        for seen, inner in self._mounts:
            if path.startswith(seen + "/"):
                found = self._existing(_below(inner, path[len(seen) + 1 :]))
                if found is not None:
                    return found
        if self.root is None or is_library(path) or _SYSTEM.match(path):
            return None
        parts = path.split("/")[1:]
        for start in range(len(parts) - 1):  # a checkout elsewhere: a folder and a name must agree
            found = self._existing("/".join(parts[start:]))
            if found is not None:
                return found
        return None

    def _relative(self, path: str) -> str | None:
        for candidate in dict.fromkeys((os.path.normpath(_below(self._cwd, path)), path)):
            found = self._existing(candidate)
            if found is not None:
                return found
        if self.root is None or path.startswith(".."):
            return None
        below = [
            known for known in self._by_name.get(path.rsplit("/", 1)[-1], ()) if known.endswith("/" + path)
        ]
        return below[0] if len(below) == 1 else None

    def _own(self, hint: str) -> str | None:
        """The repository's file that a hint means: a path, a dotted module or class name, or `*/Cup.php`.

        That is the one file of this name, wherever in the repository it is; without a repository it is none.
        """
        if hint.startswith("*/"):
            named = self._by_name.get(hint[2:], ())
            return named[0] if len(named) == 1 else None
        return self.map(hint) if looks_like_path(hint) else self._class_file(hint)

    def in_package(self, package: str, file: str) -> str | None:
        """A Go package's file. package: an import path, or (gotestsum) a folder below the command's."""
        if not looks_like_path(file):
            return None
        if module := next((m for m in self._go_modules if f"{package}/".startswith(f"{m}/")), None):
            folder = self._go_folder(module)
            inner = f"{package[len(module) :]}/{file}".lstrip("/")
            return self._existing(_below(folder, inner)) if folder is not None else None
        return self._existing(_below(self._cwd, f"{package}/{file}")) if self.root is not None else None

    def _class_file(self, name: str) -> str | None:
        """`tests.test_cart.TestTax`, `org.example.Kettle$Inner`: the file that holds it, if one alone may."""
        name = re.split(r"[$\[(\s]", name, maxsplit=1)[0].replace("\\", ".").replace("::", ".")
        if not re.fullmatch(r"\w+(\.\w+)+", name):
            return None
        parts = name.split(".")
        for end in range(len(parts), 0, -1):
            stem = "/".join(parts[:end])
            found = {path for ending in _CLASS_FILES if (path := self._class_path(stem + ending, end > 1))}
            if found:
                return found.pop() if len(found) == 1 else None
        return None

    def _class_path(self, path: str, search: bool) -> str | None:
        if self.root is None:
            return None
        if search:
            return self._relative(path)
        return self._existing(_below(self._cwd, path)) or self._existing(path)

    def _existing(self, relative: str) -> str | None:
        """`relative` in one spelling if it is a file of the repository (without checkout: if it may be)."""
        path = os.path.normpath(relative).replace(os.sep, "/")
        if path in (".", "") or _absolute(path) or path == ".." or path.startswith("../") or is_library(path):
            return None
        if self.root is None or self._real is None:
            return path
        real = os.path.realpath(f"{self._real}/{path}")
        if not real.startswith(self._real.rstrip("/") + "/") or not Path(real).is_file():
            return None
        return path

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        """The repository's files by their names; not complete in a repository of more than `MAX_INDEXED`."""
        names: dict[str, list[str]] = {}
        if self._real is None:
            return names
        count = 0
        for folder, folders, files in os.walk(self._real):
            folders[:] = sorted(each for each in folders if each not in _SKIPPED)
            inner = os.path.relpath(folder, self._real)
            for file in files:
                count += 1
                names.setdefault(file, []).append(file if inner == "." else f"{inner}/{file}")
            if count > MAX_INDEXED:
                return {}  # what is unique in a part may not be in the whole
        return names

    def _go_folder(self, module: str) -> str | None:
        """A module's folder; of several modules of one path the one that the command ran in, or none."""
        folders = self._go_modules[module]
        around = [folder for folder in folders if not folder or f"{self._cwd}/".startswith(f"{folder}/")]
        return max(around, key=len) if around else folders[0] if len(folders) == 1 else None

    @cached_property
    def _go_modules(self) -> dict[str, list[str]]:
        """The folders of the repository's Go modules by module path, the longest path first."""
        modules: dict[str, list[str]] = {}
        for path in self._by_name.get("go.mod", ()):
            for line in range(1, 30):
                if match := re.match(r"module\s+\"?([^\s\"]+)", self.source_line(path, line)):
                    modules.setdefault(match[1], []).append(path.rpartition("/")[0])
                    break
        return dict(sorted(modules.items(), key=lambda pair: -len(pair[0])))

    def source_line(self, path: str, line: int) -> str:
        """A line of a file of the repository; empty if there is none. Only what `map` returned is read."""
        if self._real is None:
            return ""
        try:
            with Path(self._real, path).open(encoding="utf-8", errors="replace") as file:
                for number, text in enumerate(file, 1):
                    if number == line:
                        return text[:2000]
        except OSError:
            return ""
        return ""
