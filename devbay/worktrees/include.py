"""Include files: what `.worktreeinclude` lists and git ignores, copied from the main checkout to a bay."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

import pathspec

from devbay.errors import DevbayError
from devbay.worktrees import beneath
from devbay.worktrees.git import Git, split_nul
from devbay.worktrees.repository import Repository

INCLUDE_FILE = ".worktreeinclude"
FILE_LIMIT = 1 << 20
ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*[=:]\s*(.*)$")


def include_patterns(main: Path) -> list[str]:
    """The lines of the main checkout's `.worktreeinclude`, git-ignore syntax; empty if there is none.

    Raises `bad_include` for what would leave the checkout: `..`, `~`, and absolute paths. A leading slash
    anchors a pattern to the checkout, as in `.gitignore`, unless it plainly names a folder of the machine.
    """
    if beneath.kind(main, INCLUDE_FILE) is None:
        return []
    text = beneath.read_text(main, INCLUDE_FILE, limit=FILE_LIMIT)
    if text is None:
        raise DevbayError("bad_include", f"{main / INCLUDE_FILE} is no UTF-8 text file below 1 MiB")
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if problem := _pattern_problem(main, line):
            raise DevbayError(
                "bad_include",
                f"{INCLUDE_FILE}:{number}: {line.strip()[:80]!r} {problem}",
                next="list files inside the repository",
            )
    return lines


def _pattern_problem(main: Path, line: str) -> str | None:
    pattern = line.strip().removeprefix("!")
    if not pattern or pattern.startswith("#"):
        return None
    parts = pattern.split("/")
    if ".." in parts:
        return "leads out of the repository"
    if parts[0].startswith("~") or pattern.startswith("//"):
        return "is not relative to the repository"
    if len(parts) > 2 and parts[0] == "":
        first = parts[1]
        if (Path("/") / first).is_dir() and not os.path.lexists(main / first):
            return "is an absolute path"
    return None


def include_files(main: Path, git_dir: Path) -> list[str]:
    """Regular files of the main checkout that are both ignored by git and listed, sorted."""
    patterns = include_patterns(main)
    if not any(line.strip() and not line.startswith("#") for line in patterns):
        return []
    try:
        spec = pathspec.GitIgnoreSpec.from_lines(patterns)
    except ValueError as error:
        raise DevbayError("bad_include", f"{INCLUDE_FILE}: {error}") from error
    ignored = split_nul(
        Git(git_dir, main).out("ls-files", "--others", "--ignored", "--exclude-standard", "-z")
    )
    return sorted(
        path
        for path in spec.match_files(path for path in ignored if not path.endswith("/"))
        if beneath.kind(main, path) == stat.S_IFREG
    )


def copy_includes(main: Path, worktree: Path, *, git_dir: Path | None = None) -> dict[str, str]:
    """Copy the include files of the main checkout; relative path to sha256 of each that is now there.

    Nothing that is there already is overwritten; a file of the same content counts as copied, so that a
    repeat after a crash yields the same. Modes are kept; links and special files are left out. git_dir:
    the main checkout's, if not found from it. Raises `bad_include` before anything is copied, `disk_failed`.
    """
    files = include_files(main, git_dir or Repository.discover(main).git_dir)
    copied: dict[str, str] = {}
    for path in files:
        wanted = beneath.digest(main, path)
        if wanted is None:
            continue
        with beneath.disk_errors(f"copying {path}"):
            try:
                with (
                    beneath.parent_of(main, path) as (source, name),
                    beneath.parent_of(worktree, path, make=True) as (target, into),
                ):
                    if not beneath.exists(target, into):
                        beneath.copy_file(source, name, target, into)
            except OSError as error:
                if error.errno not in beneath.NOT_THERE:
                    raise
                continue  # the branch has a file or a link where the main checkout has a folder
        if beneath.digest(worktree, path) == wanted:
            copied[path] = wanted
    return copied


def read_includes(worktree: Path, paths: Iterable[str]) -> list[tuple[str, str]]:
    """(key, value) of every `KEY=VALUE` line of the given files (relative paths); others are passed over.

    Quoted values are unquoted and may span lines, as dotenv files allow.
    """
    pairs: list[tuple[str, str]] = []
    for path in paths:
        text = beneath.read_text(worktree, path, limit=FILE_LIMIT)
        if text is not None:
            pairs += key_values(text)
    return pairs


def key_values(text: str) -> list[tuple[str, str]]:
    """The assignments of a dotenv, shell, properties or INI file."""
    pairs: list[tuple[str, str]] = []
    lines = iter(text.splitlines())
    for line in lines:
        found = ASSIGNMENT.match(line)
        if not found or line.lstrip().startswith(("#", ";")):
            continue
        key, rest = found[1], found[2].strip()
        quote = rest[:1]
        if quote in ("'", '"') and quote:
            value = rest[1:]
            while not _closed(value, quote):
                following = next(lines, None)
                if following is None:
                    break
                value += "\n" + following
            value = _unquoted(value, quote)
        else:
            value = re.split(r"\s+#", rest, maxsplit=1)[0].strip()
        if value:
            pairs.append((key, value))
    return pairs


def _closed(value: str, quote: str) -> bool:
    plain = value.replace("\\" + quote, "") if quote == '"' else value
    return quote in plain


def _unquoted(value: str, quote: str) -> str:
    if quote == "'":
        return value.split("'", 1)[0]
    match = re.match(r'((?:[^"\\]|\\.)*)"?', value, re.DOTALL)
    inner = match[1] if match else value
    return re.sub(
        r"\\(.)", lambda m: {"n": "\n", "t": "\t", "r": "\r"}.get(m[1], m[1]), inner, flags=re.DOTALL
    )
