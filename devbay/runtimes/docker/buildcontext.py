"""What a build reads: the context as it is sent, confined to the worktree, and a digest of its content."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import BuildSpec
from devbay.runtimes.docker.globs import Patterns

_FORMAT = 1  # counted up when the digest covers something else, so that no old image is taken for a new one


@dataclass(frozen=True)
class BuildContext:
    """A context ready to be sent. `ignore` is the text of the ignore file that the builder is given."""

    root: Path
    dockerfile_name: str
    dockerfile: bytes
    ignore: str


def read_context(build: BuildSpec, worktree: Path) -> BuildContext:
    """Find and read what a build starts from. Raises `build_context` for what is missing, is no folder or
    file, cannot be read, or leads out of the worktree.

    `.git` is left out unless the Dockerfile names it (in a worktree it is only a pointer to a folder of this
    machine), and `.devbay`, which holds the other bays, always: so bays with the same files send the same.
    """
    top = worktree.resolve()
    root = _confined(build.context, top, "context")
    path = _confined(build.context / build.dockerfile, top, "dockerfile")
    if not root.is_dir():
        raise _unusable(f"the build context {build.context} is no folder")
    if not path.is_file():
        raise _unusable(f"there is no Dockerfile {build.context / build.dockerfile}")
    dockerfile = _read(path)
    own = path.with_name(f"{path.name}.dockerignore")
    ignore = own if own.is_file() else root / ".dockerignore"
    text = _read(_confined(ignore, top, "ignore file")).decode("utf-8", "replace") if ignore.is_file() else ""
    added = [".devbay"]
    if not re.search(rb"(?<![\w.-])\.git(?![\w.-])", dockerfile):
        added += [".git", "**/.git"]
    return BuildContext(root, path.name, dockerfile, "\n".join([text.rstrip("\n"), *added, ""]))


def context_digest(context: BuildContext, build: BuildSpec, platform: str | None, job: Job) -> str:
    """12 hex over everything that decides the image: sent files with their modes, links as links, the
    Dockerfile, target, arguments and platform.
    """
    try:
        patterns = Patterns.from_ignore_file(context.ignore)
    except ValueError as error:
        raise _unusable(f"the ignore file of {context.root} is wrong: {error}") from error
    digest = hashlib.blake2b(digest_size=32)
    settings = [_FORMAT, context.dockerfile_name, build.target, sorted(build.args.items()), platform]
    digest.update(json.dumps(settings).encode() + b"\0" + context.dockerfile + b"\0")
    for line in _entries(context.root, "", patterns, job):
        digest.update(line)
    return digest.hexdigest()[:12]


def _entries(root: Path, folder: str, patterns: Patterns, job: Job) -> Iterator[bytes]:
    """A line per sent path, in order of names. A folder that is ignored is sent for what is in it."""
    job.check()
    try:
        with os.scandir(root / folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise _unreadable(error) from error
    for entry in entries:
        path = f"{folder}/{entry.name}" if folder else entry.name
        ignored = patterns.match(path)
        if entry.is_dir(follow_symlinks=False):
            if ignored and not patterns.may_take_back_below(path):
                continue
            below = _entries(root, path, patterns, job)
            first = next(below, None)
            if first is not None or not ignored:
                yield _line(path, entry, b"")
            if first is not None:
                yield first
                yield from below
        elif not ignored:
            yield _line(path, entry, _content(entry))


def _line(path: str, entry: os.DirEntry[str], content: bytes) -> bytes:
    mode = entry.stat(follow_symlinks=False).st_mode
    return b"\0".join([os.fsencode(path), b"%o" % mode, content]) + b"\n"


def _content(entry: os.DirEntry[str]) -> bytes:
    try:
        if entry.is_symlink():
            return os.fsencode(os.readlink(entry.path))  # noqa: PTH115 - DirEntry.path is a str
        if not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
            return b""
        with open(entry.path, "rb", buffering=0) as file:  # noqa: PTH123 - as above, and 2,000 times faster
            return hashlib.file_digest(file, "blake2b").digest()
    except OSError as error:
        raise _unreadable(error) from error


def _confined(path: Path, top: Path, what: str) -> Path:
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise _unusable(f"the build's {what} {path} does not exist") from error
    if not real.is_relative_to(top):
        raise _unusable(f"the build's {what} {path} leads out of the worktree, to {real}")
    return real


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(error) from error


def _unusable(problem: str) -> DevbayError:
    return DevbayError("build_context", problem, next="correct `build` in devbay.yaml", exit_code=WORK_FAILED)


def _unreadable(error: OSError) -> DevbayError:
    return DevbayError(
        "build_context",
        f"a file of the build context cannot be read: {error}",
        next="make it readable, or add it to .dockerignore",
        exit_code=WORK_FAILED,
    )
