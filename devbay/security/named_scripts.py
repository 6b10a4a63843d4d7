"""Which files of a worktree a command names and runs as they stand: scripts, recipes, package.json's.

It sees too much rather than too little: where it is unclear in which folder a command starts, or whether a
word is a program, what is there counts. Files given to an interpreter (`python app.py`) do not: they are the
application. Pure, given a look at the files.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from posixpath import basename, dirname, join, normpath
from typing import Literal, Protocol

from devbay.security import recipes, shelltext

MAX_NAMED = 200
MAX_LOOKS = 2000
MAX_WORDS = 50_000
MAX_FOLDERS = 8
MAX_DEPTH = 24
MADE = frozenset({"node_modules", ".venv", "venv", "target", "dist", "_build", "__pycache__", ".tox", ".nox"})
"""Folders whose content an install or a build makes anew."""

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "busybox"})
_SHELL_FILE = (".sh", ".bash", ".zsh", ".ksh", ".ash")
_SHELL_LINE = re.compile(r"#!.*\b(?:sh|bash|dash|ash|zsh|ksh)\b")
_INTERPRETER = re.compile(
    r"(?:python|pypy|node|nodejs|ruby|perl|php|lua|java|deno|tsx|ts-node|nodemon|Rscript)[0-9.]*"
)
_MANAGERS = frozenset({"npm", "pnpm", "yarn", "bun"})
_EVERY_SCRIPT = re.compile(
    r"npm-run-all2?|run-[sp]|concurrently|wireit|turbo|nx|lerna|-ws?|-r|--recursive|--workspaces?(?:=.*)?"
    r"|--filter(?:=.*)?|-F|workspaces?|foreach"
)
_SHORT = {"t": "test", "tst": "test", "run-script": "run", "rum": "run"}
_INSTALLS = frozenset({"ci", "i", "install", "add", "clean-install", "install-clean", "rebuild"})
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_JUSTFILES = ("justfile", "Justfile", ".justfile")
_FOLDER_OPTIONS = ("-C", "--directory", "-d", "--working-directory", "--prefix", "--cwd", "--dir")
_FILE_OPTIONS = ("-f", "--file", "--makefile", "--justfile")
_VARIABLE = re.compile(r"(?:\$\{[^}]*\}|\$\w+)/")


@dataclass(frozen=True)
class File:
    """What stands at a path of a worktree. path: where it really is, links inside the worktree followed.

    text: of a script short enough to be read; digest: of any regular file that is not huge.
    """

    kind: Literal["text", "data", "folder", "missing", "outside", "other"]
    path: str
    text: str = ""
    digest: str = ""
    executable: bool = False


class Files(Protocol):
    """A worktree. Paths are relative to it."""

    def look(self, path: str) -> File: ...

    def names(self, path: str) -> Sequence[str]:
        """The entries of a folder; none where it is no folder of the worktree's own."""


@dataclass(frozen=True)
class Named:
    """label: the path, with what of it is run. digest: changes with what is covered. text: or else a note."""

    label: str
    digest: str
    text: str = ""
    note: str = ""


def named_scripts(
    argvs: Sequence[Sequence[str]], folder: str, files: Files, *, worktree: str = "/workspace"
) -> list[Named]:
    """Everything that the commands name, directly and through each other, sorted by label.

    folder: where they start, relative to the worktree. worktree: its path, as a command may write it.
    """
    finder = _Finder(files, worktree)
    for argv in argvs:
        finder.command(argv, (folder,), 0)
    return sorted(finder.found.values(), key=lambda each: each.label)


def whole_files(path: str, files: Files) -> list[Named]:
    """A file, or every file directly in a folder, whatever is in it."""
    finder = _Finder(files, "/workspace")
    found = files.look(path)
    if found.kind == "folder":
        for name in files.names(path):
            if (inner := files.look(join(path, name))).kind != "folder":
                finder.add(inner, join(path, name))
    else:
        finder.add(found, path)
    return sorted(finder.found.values(), key=lambda each: each.label)


class _Finder:
    def __init__(self, files: Files, worktree: str) -> None:
        self._files = files
        self._tops = tuple({f"{worktree.rstrip('/')}/", "/workspace/"})
        self._looks = 0
        self._words = 0
        self.found: dict[str, Named] = {}

    # -- commands --------------------------------------------------------------------------------------

    def command(self, words: Sequence[str], folders: tuple[str, ...], depth: int) -> None:
        """Any word may be where another command begins: behind `env`, `timeout`, `xargs`, `uv run`, ..."""
        if depth > MAX_DEPTH:
            self._more()
            return
        interpreted = False
        for place, word in enumerate(words):
            if self._is_spent(1):
                return
            name = basename(word)
            if place and re.search(r"\s", word):
                self.text(word, folders, depth + 1)
                continue
            if reads := self._reader(name):
                rest = words[place + 1 :]
                if self._is_spent(len(rest)):
                    return
                reads(rest, folders, depth)
            elif _EVERY_SCRIPT.fullmatch(name) and name[0] != "-":
                self._package_scripts(None, folders, depth)
            self._path(word, folders, depth, runs=place == 0, interpreted=interpreted)
            interpreted = interpreted or _INTERPRETER.fullmatch(name) is not None

    def text(self, text: str, folders: tuple[str, ...], depth: int) -> None:
        """A text for a shell; `cd` adds a folder, as it may not have been reached."""
        if depth > MAX_DEPTH:
            self._more()
            return
        for words in shelltext.commands(text):
            if words[0] in ("cd", "pushd") and len(words) > 1:
                entered = [each for folder in folders for each in self._candidates(words[-1], (folder,))]
                folders = tuple(dict.fromkeys((*folders, *entered)))[:MAX_FOLDERS]
            else:
                self.command(words, folders, depth + 1)

    def _reader(self, name: str) -> Callable[[Sequence[str], tuple[str, ...], int], None] | None:
        """What looks at the words after a program that runs files it is told."""
        if name in _SHELLS:
            return self._shell
        if name in _MANAGERS:
            return self._package
        given, make = self._given, self._make
        return {"source": given, ".": given, "make": make, "gmake": make, "just": self._just}.get(name)

    def _is_spent(self, words: int) -> bool:
        """Whether with so many more words it is enough."""
        self._words += words
        if self._words > MAX_WORDS:
            self._more()
        return self._words > MAX_WORDS

    def _shell(self, rest: Sequence[str], folders: tuple[str, ...], depth: int) -> None:
        for place, word in enumerate(rest):
            if re.fullmatch(r"-[a-zA-Z]*c", word):
                if place + 1 < len(rest):
                    self.text(rest[place + 1], folders, depth + 1)
                return
        self._given([word for word in rest if word not in _SHELLS], folders, depth)

    def _given(self, rest: Sequence[str], folders: tuple[str, ...], depth: int) -> None:
        """The file that a shell is to read: the first word that is one."""
        named = [word for word in rest if not word.startswith(("-", "+"))]
        for word in named:
            paths = self._candidates(word, folders)
            there = [found for path in paths if (found := self._look(path)).kind not in ("missing", "folder")]
            for found in there:
                self._script(found, folders, depth, as_shell=True)
            if there:
                return
        if named and "$" not in named[0] and (paths := self._candidates(named[0], folders)):
            self.add(self._look(paths[0]), paths[0])

    # -- files -----------------------------------------------------------------------------------------

    def _path(
        self, word: str, folders: tuple[str, ...], depth: int, *, runs: bool, interpreted: bool
    ) -> None:
        """A word that is a path: a script where it is run, or can be."""
        if "/" not in word and not word.endswith(_SHELL_FILE):
            return
        paths = self._candidates(word, folders)
        there = 0
        for path in paths:
            if set(path.split("/")[:-1]) & MADE:
                if runs:
                    note = "made by an install or a build: what is in it is not covered"
                    self._put(Named(path, "", note=note))
                there += 1
                continue
            found = self._look(path)
            if found.kind in ("missing", "folder"):
                continue
            there += 1
            can_run = found.executable and not interpreted and found.kind == "text"
            if runs or can_run or path.endswith(_SHELL_FILE):
                self._script(found, folders, depth, as_shell=path.endswith(_SHELL_FILE))
        if runs and paths and not there and "$" not in word:
            self.add(self._look(paths[0]), paths[0])

    def _script(self, found: File, folders: tuple[str, ...], depth: int, *, as_shell: bool) -> None:
        known = found.path in self.found
        self.add(found, found.path)
        if found.kind == "text" and not known and (as_shell or _SHELL_LINE.match(found.text)):
            here = dirname(found.path)
            self.text(found.text, tuple(dict.fromkeys((*folders, here)))[:MAX_FOLDERS], depth + 1)

    def add(self, found: File, path: str) -> None:
        """Have a file covered as it is."""
        notes = {
            "missing": "is not there",
            "outside": "leads out of the worktree: what is there is not covered",
            "other": "is no file, or is too large: what is in it is not covered",
            "folder": "is a folder",
            "data": "is covered, but is no text or too long to be shown",
        }
        label = found.path if found.kind in ("text", "data") else path
        self._put(Named(label, found.digest or found.kind, found.text, notes.get(found.kind, "")))

    def _candidates(self, word: str, folders: tuple[str, ...]) -> list[str]:
        """Where in the worktree a word may point, patterns resolved; the likeliest first."""
        word = next((word.removeprefix(top) for top in self._tops if word.startswith(top)), word)
        if word.startswith("/") or "\0" in word or len(word) > 1000:
            return []
        bare = word
        while match := _VARIABLE.match(bare):
            bare = bare[match.end() :]
        bases = folders if bare == word else tuple(dict.fromkeys((*folders, "")))
        found: list[str] = []
        for base in bases:
            path = normpath(join(base, bare))
            if path == ".." or path.startswith(("../", "/")):
                continue
            found += self._matching(path) if re.search(r"[*?\[]", path) else [path]
        return list(dict.fromkeys(found))

    def _matching(self, pattern: str) -> list[str]:
        folder = dirname(pattern)
        if re.search(r"[*?\[]", folder):
            return []
        self._looks += 1
        names = fnmatch.filter(sorted(self._files.names(folder)), basename(pattern))
        return [join(folder, name) for name in names[:MAX_NAMED]]

    def _look(self, path: str) -> File:
        self._looks += 1
        if self._looks > MAX_LOOKS:
            self._more()
            return File("missing", path)
        return self._files.look(path)

    def _put(self, named: Named) -> bool:
        """False if it is known already, or there are too many."""
        if named.label in self.found:
            return False
        if len(self.found) >= MAX_NAMED:
            self._more()
            return False
        self.found[named.label] = named
        return True

    def _more(self) -> None:
        label = "more"
        self.found[label] = Named(label, "", note="scripts than devbay follows: the others are not covered")

    # -- recipes ---------------------------------------------------------------------------------------

    def _options(
        self, rest: Sequence[str], folders: tuple[str, ...]
    ) -> tuple[list[str], list[str], tuple[str, ...]]:
        """(plain words, files named by options, folders) of a recipe runner's arguments."""
        plain: list[str] = []
        named: list[str] = []
        words = list(rest)
        while words:
            word = words.pop(0)
            option, joined, value = word.partition("=")
            if option in _FOLDER_OPTIONS or option in _FILE_OPTIONS:
                value = value if joined else (words.pop(0) if words else "")
                if option in _FOLDER_OPTIONS:
                    entered = self._candidates(value, folders)
                    folders = tuple(dict.fromkeys(entered)) or folders
                else:
                    named.append(value)
            elif not word.startswith("-"):
                plain.append(word)
        return plain, named, folders

    def _make(self, rest: Sequence[str], folders: tuple[str, ...], depth: int) -> None:
        targets, named, folders = self._options(rest, folders)
        targets = [target for target in targets if "=" not in target]
        self._recipe_files(named or _MAKEFILES, bool(named), targets, folders, depth, just=False)

    def _just(self, rest: Sequence[str], folders: tuple[str, ...], depth: int) -> None:
        names, named, folders = self._options(rest, folders)
        self._recipe_files(named or _JUSTFILES, bool(named), names, folders, depth, just=True)

    def _recipe_files(
        self,
        names: Sequence[str],
        every: bool,
        targets: Sequence[str],
        folders: tuple[str, ...],
        depth: int,
        *,
        just: bool,
    ) -> None:
        """Cover what bears on the targets; of the usual names the first that is there is read."""
        if depth > MAX_DEPTH:
            self._more()
            return
        for folder in folders:
            there = False
            for name in names:
                found = [self._look(path) for path in self._candidates(name, (folder,))]
                for file in found:
                    if file.kind not in ("missing", "folder"):
                        there = True
                        self._recipe(file, targets, (folder, *folders), depth, just=just)
                if there and not every:
                    break
            if not there and folder == folders[0]:
                self._put(Named(join(folder, names[-1]), "missing", note="is not there"))

    def _recipe(
        self, file: File, targets: Sequence[str], folders: tuple[str, ...], depth: int, *, just: bool
    ) -> None:
        if file.kind != "text":
            self.add(file, file.path)
            return
        part = recipes.just_part(file.text, targets) if just else recipes.make_part(file.text, targets)
        label = " ".join([f"{file.path}:", *targets])
        if not self._put(Named(label, _digest(part), part)):
            return
        included = recipes.just_includes(part) if just else recipes.make_includes(part)
        if included:
            bases = tuple(dict.fromkeys((*folders, dirname(file.path))))
            for base in bases:
                self._included(included, targets, base, depth + 1, just=just)
        for line in re.sub(r"\{\{[^{}]*\}\}", "$_", _make_calls(part)).split("\n"):
            shown = re.sub(r"^\s*[@+-]*", "", line)
            if line[:1] not in (" ", "\t"):  # names programs perhaps, and runs none by itself
                shown = f"value {shown.replace('=', ' ')}"
            self.text(shown, folders, depth + 1)

    def _included(
        self, names: Sequence[str], targets: Sequence[str], folder: str, depth: int, *, just: bool
    ) -> None:
        if depth > MAX_DEPTH:
            self._more()
            return
        for name in names:
            for path in self._candidates(name, (folder,)):
                if (found := self._look(path)).kind not in ("missing", "folder"):
                    self._recipe(found, targets, (folder,), depth, just=just)

    def _package(self, rest: Sequence[str], folders: tuple[str, ...], depth: int) -> None:
        words, _, folders = self._options(rest, folders)
        if any(_EVERY_SCRIPT.fullmatch(word) for word in rest):
            self._package_scripts(None, folders, depth)
        words = [_SHORT.get(word, word) for word in words]
        if words[:1] == ["run"]:
            words = words[1:]
        if not words or words[0] in _INSTALLS:
            for name in recipes.LIFECYCLE:
                self._package_scripts(name, folders, depth)
        else:
            self._package_scripts(words[0], folders, depth)

    def _package_scripts(self, name: str | None, folders: tuple[str, ...], depth: int) -> None:
        """A script with those that run around it; None: all of the package's."""
        if depth > MAX_DEPTH:
            self._more()
            return
        for folder in folders:
            found = self._look(normpath(join(folder, "package.json")))
            if found.kind != "text":
                continue
            scripts = recipes.package_scripts(found.text)
            wanted = {name, f"pre{name}", f"post{name}"}
            chosen = {each: text for each, text in scripts.items() if name is None or each in wanted}
            if not chosen or (name is not None and name not in scripts):
                continue
            text = json.dumps(chosen, indent=1, ensure_ascii=False)
            if self._put(Named(f"{found.path}: {name or 'scripts'}", _digest(text), text)):
                for script in chosen.values():
                    self.text(script, (dirname(found.path),), depth + 1)


def _make_calls(part: str) -> str:
    """Recipes with make's own words for itself and for a dollar sign as a shell gets them."""
    return re.sub(r"\$[({]MAKE[)}]", "make", part).replace("$$", "$")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
