"""Templates on this machine: folders made once per key, which bays get copies of."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.runtimes.host.copying import Owner, copy_tree
from devbay.runtimes.host.removing import remove_tree
from devbay.runtimes.locks import file_lock, remove_lock, try_file_lock

JUST_USED_S = 600
"""Who was given a template less than this ago may be about to copy it."""

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True)
class _Kept:
    """One template: its folder, what it takes (bytes) and when it was last used (seconds)."""

    folder: Path
    size: int
    used_at: float


class Templates:
    """The templates below `root`: `<kind>/<key>`, with `<key>.used` beside it, which holds its size and whose
    time is that of its last use. `drafts` holds what is being made or removed, `locks` one file per key.
    """

    def __init__(self, root: Path, clock: Callable[[], float] = time.time) -> None:
        self._root = root
        self._clock = clock

    def ensure(self, kind: str, key: str, make: Callable[[Path], None], job: Job) -> Path:
        """The template's folder, never to be written to, made by `make(draft)` if there is none: once among
        all threads and processes, whole or not at all.

        `make` gets an empty folder of mode 0700, which is renamed afterwards. Raises what it raises, and
        `Cancelled`.
        """
        if not (_WORD.fullmatch(kind) and _WORD.fullmatch(key)) or kind in ("drafts", "locks"):
            raise ValueError(f"no template can be called {kind}/{key}")
        folder = self._root / kind / key
        if self._touch(folder):
            return folder
        with file_lock(self._locks, f"{kind}-{key}", job):
            if self._touch(folder):
                return folder
            with self._draft(job) as draft:
                make(draft)
                job.check()
                size = _size(draft)
                _flush(draft)
                self._folder(folder.parent)
                _record(folder).write_text(str(size))
                draft.rename(folder)
                self._touch(folder)
        return folder

    def copy(
        self,
        template: Path,
        to: Path,
        *,
        owner: Owner | None = None,
        adjust: Callable[[Path], None] | None = None,
        job: Job | None = None,
    ) -> None:
        """Put a copy of a template, or of a folder in it, at `to`, replacing what is there.

        It is copied beside and renamed, so that `to` is never half a copy; `adjust(draft)` changes the copy
        before that. `owner`: (uid, gid) that it is given to, where devbay is root. One caller at a time per
        `to`. Raises `template_gone` if the template is not there (any more): ensure it again.
        """
        job = job or Job()
        new, old = (to.with_name(f".{to.name}.{word}") for word in ("new", "old"))
        with self._held(template, job):
            if not template.is_dir():
                raise DevbayError(
                    "template_gone", f"{template.name} was removed", next="try again", exit_code=WORK_FAILED
                )
            to.parent.mkdir(parents=True, exist_ok=True)
            remove_tree(new)
            try:
                copy_tree(template, new, owner=owner, check=job.check)
            except BaseException:
                remove_tree(new)
                raise
        if adjust is not None:
            adjust(new)
        remove_tree(old)
        with contextlib.suppress(FileNotFoundError):
            to.rename(old)
        new.rename(to)
        remove_tree(old)

    def sweep(self, max_bytes: int) -> list[str]:
        """Remove what killed makers left, and templates, least recently used first, until the rest fits.

        Returns `template <kind>/<key>` of each. One that is being copied or was just given out stays.
        """
        self._sweep_leftovers()
        kept = self._all()
        excess = sum(one.size for one in kept) - max_bytes
        removed: list[str] = []
        for one in sorted(kept, key=lambda one: one.used_at):
            if excess <= 0:
                break
            if self._clock() - one.used_at > JUST_USED_S and self._drop(one.folder):
                removed.append(self._name(one.folder))
                excess -= one.size
        return removed

    def clear(self) -> list[str]:
        """Remove every template that nobody is copying or making right now, also one just used."""
        self._sweep_leftovers()
        removed = [self._name(one.folder) for one in self._all() if self._drop(one.folder)]
        for folder in (*self._root.glob("*"), self._root):
            with contextlib.suppress(OSError):  # what is left is in use
                folder.rmdir()
        return removed

    @property
    def _locks(self) -> Path:
        self._folder(self._root)
        return self._root / "locks"

    def _folder(self, folder: Path) -> Path:
        """Closed, but for root's, which servers that prepare their data as other users must pass through."""
        folder.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
        return folder

    @contextmanager
    def _draft(self, job: Job) -> Iterator[Path]:
        """A folder that is removed at the end, or by a later sweep if this process is killed."""
        name = secrets.token_hex(6)
        draft = self._folder(self._root / "drafts") / name
        with file_lock(self._locks, f"draft-{name}", job):
            try:
                draft.mkdir(mode=0o700)
                yield draft
            finally:
                remove_tree(draft)
                remove_lock(self._locks, f"draft-{name}")

    @contextmanager
    def _held(self, template: Path, job: Job) -> Iterator[None]:
        """Keep a template of ours from being removed."""
        if not template.is_relative_to(self._root):
            yield
            return
        kind, key, *_ = template.relative_to(self._root).parts
        with file_lock(self._locks, f"{kind}-{key}", job, shared=True):
            yield

    def _touch(self, folder: Path) -> bool:
        """Whether there is one, marked as used now."""
        record = _record(folder)
        try:
            os.utime(record, (self._clock(), self._clock()))
        except FileNotFoundError:
            if folder.is_dir():
                record.write_text(str(_size(folder)))
        return folder.is_dir()

    def _folders(self) -> list[Path]:
        return [
            folder
            for folder in self._root.glob("*/*")
            if folder.parent.name not in ("drafts", "locks") and folder.is_dir()
        ]

    def _all(self) -> list[_Kept]:
        found: list[_Kept] = []
        for folder in self._folders():
            record = _record(folder)
            try:
                found.append(_Kept(folder, int(record.read_text()), record.stat().st_mtime))
            except (FileNotFoundError, ValueError):
                found.append(_Kept(folder, _size(folder), 0.0))
        return found

    def _drop(self, folder: Path) -> bool:
        key = f"{folder.parent.name}-{folder.name}"
        with self._draft(Job()) as trash, try_file_lock(self._locks, key) as free:
            if free:
                folder.rename(trash)
                _record(folder).unlink(missing_ok=True)
                remove_lock(self._locks, key)
            return free

    def _sweep_leftovers(self) -> None:
        """Remove drafts of makers that live no more, and locks of what is not there."""
        folder = self._root / "locks"
        drafts = {f"draft-{draft.name}": draft for draft in self._root.glob("drafts/*")}
        templates = {f"{one.parent.name}-{one.name}" for one in self._folders()}
        for name in {*drafts, *(lock.stem for lock in folder.glob("*.lock"))} - templates:
            with try_file_lock(folder, name) as free:
                if free:
                    if name in drafts:
                        remove_tree(drafts[name])
                    remove_lock(folder, name)

    def _name(self, folder: Path) -> str:
        return f"template {folder.relative_to(self._root)}"


def _record(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.used")


def _size(folder: str | Path) -> int:
    """What a folder takes on the disk, in bytes."""
    with os.scandir(folder) as entries:
        return sum(
            _size(entry.path)
            if entry.is_dir(follow_symlinks=False)
            else entry.stat(follow_symlinks=False).st_blocks * 512
            for entry in entries
        )


def _flush(folder: Path) -> None:
    """Write a folder's file system out: after a power cut, a template must not have empty files for good."""
    if not sys.platform.startswith("linux"):
        os.sync()
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        ctypes.CDLL(None).syncfs(descriptor)
    finally:
        os.close(descriptor)
