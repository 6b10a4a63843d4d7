"""What a sandboxed process sees of this machine, as arguments of bubblewrap. Pure, given a look at the disk.

The root is a new tmpfs with the machine's top-level entries bound read-only. Everything else is put on top of
it in the order of depth, so that what is hidden stays hidden when a folder above it is bound, and a worktree
below a hidden folder is still there.

Three facts about bubblewrap 0.11 shape this, each read in its source and tried:

* A mount point is made below `/newroot` while the machine still is at `/oldroot`, and links on the way are
  followed. So a link that a service left in its own worktree could have a folder made anywhere: such a
  target is refused, and links of the machine are followed here.
* A mount point cannot be made in what is bound read-only. There the folder above becomes a tmpfs in which its
  entries are bound again.
* `--proc` covers `/proc/sys` only if that folder is writable, which it never is, while the files in it are
  root's to write: a command as root wrote `kernel.core_pattern`, which is a way out. So it is covered here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import basename, dirname
from typing import Literal, Protocol

from devbay.errors import WORK_FAILED, DevbayError
from devbay.runtimes.base import BindMount

WORKSPACE = "/workspace"
MOST_ENTRIES = 1500
"""bubblewrap takes 9,000 arguments, and binding a folder's entry takes three."""

_ROOT_PROC = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi")
_HOPS = 40

Kind = Literal["folder", "file", "link"]


class Files(Protocol):
    """A look at the machine's files. Paths are absolute; what cannot be read is not there."""

    def kind(self, path: str) -> Kind | None: ...

    def link(self, path: str) -> str:
        """What a link says."""

    def names(self, path: str) -> Sequence[str]:
        """The entries of a folder."""


@dataclass(frozen=True)
class View:
    """What one process may see and write; every path is absolute.

    writable: own folders and caches, at their own paths. binds: the manifest's mounts and volumes; a target
    that does not exist is made. tmpfs: empty folders of the process's own; shm_size: bytes of `/dev/shm`.
    hidden: files and folders that are not there; visible: what of them is there after all, read-only.
    tmp: becomes `/tmp` and `/var/tmp`. workspace: `/workspace` is wanted, see `has_workspace`.
    """

    worktree: Path | None
    home: Path
    tmp: Path
    cwd: str
    writable: tuple[Path, ...] = ()
    binds: tuple[BindMount, ...] = ()
    tmpfs: tuple[str, ...] = ()
    shm_size: int | None = None
    hidden: tuple[Path, ...] = ()
    visible: tuple[Path, ...] = ()
    git_mounts: tuple[BindMount, ...] = ()
    workspace: bool = True


@dataclass(frozen=True)
class _Mount:
    """do: `try` is `ro` if it is still there, `empty` a tmpfs that is read-only in the end, `masked` a file
    that reads as empty, `dir` a folder above a mount, which bubblewrap itself makes for its user alone.
    """

    do: Literal["ro", "rw", "try", "empty", "tmpfs", "masked", "link", "proc", "dev", "dir"]
    source: str = ""
    size: int | None = None


def mounts_argv(view: View, files: Files, *, root: bool) -> list[str]:
    """The mounts of `view`, in order, for a process of root's or of another user's.

    Raises `unsafe_mount` for a target that leads out of the worktree.
    """
    return _Layout(view, files, root).argv()


def has_workspace(view: View) -> bool:
    """Whether `/workspace` leads to the worktree: not where something of this bay really lies below it.

    (Machines for agents often keep the repository itself there.) Words are rewritten instead then.
    """
    own = [*_own(view), *(mount.target for mount in view.git_mounts)]
    return view.workspace and view.worktree is not None and not any(_below(place, WORKSPACE) for place in own)


def _own(view: View) -> list[str]:
    return [str(place) for place in (view.worktree, view.home, view.tmp, *view.writable) if place is not None]


@dataclass
class _Layout:
    """Mounts by target, and what is below them."""

    view: View
    files: Files
    root: bool
    placed: dict[str, _Mount] = field(default_factory=dict)
    owned: dict[str, str] = field(default_factory=dict)

    def argv(self) -> list[str]:
        view = self.view
        self.placed["/"] = _Mount("empty", "/")
        self._entries("/", "/")
        self.owned = {self._real(place): place for place in _own(view)}
        for folder in ("/tmp", "/var/tmp"):  # noqa: S108 - the process's own
            self.owned.setdefault(self._real(folder), str(view.tmp))
        for target, mount in sorted(self._wanted(), key=lambda pair: _depth(pair[0])):
            self._place(target, mount)
        words: list[str] = []
        for target in sorted(self.placed, key=lambda path: (_depth(path), path)):
            words += _words(target, self.placed[target])
        # Afterwards, since mount points are made in them.
        closed = (path for path, mount in self.placed.items() if mount.do == "empty")
        return words + [word for path in sorted(closed, key=_depth) for word in ("--remount-ro", path)]

    def _wanted(self) -> Iterator[tuple[str, _Mount]]:
        """Targets without links, later ones replacing earlier ones of the same path."""
        view = self.view
        yield "/proc", _Mount("proc")
        yield "/dev", _Mount("dev")
        if self.root:
            for name in _ROOT_PROC:
                if self.files.kind(f"/proc/{name}"):
                    yield f"/proc/{name}", _Mount("ro", f"/proc/{name}")
        if view.shm_size is not None:
            yield "/dev/shm", _Mount("tmpfs", size=view.shm_size)  # noqa: S108
        for hidden in view.hidden:
            target = self._real(str(hidden))
            if (kind := self.files.kind(target)) and target != "/":
                yield target, _Mount("empty") if kind == "folder" else _Mount("masked")
        for visible in view.visible:
            yield from self._shown(str(visible))
        for target, source in self.owned.items():
            yield target, _Mount("rw", source)
        for target in view.tmpfs:
            yield self._target(target), _Mount("tmpfs")
        for mount in (*view.binds, *view.git_mounts):
            yield self._target(mount.target), _Mount("ro" if mount.read_only else "rw", mount.source)
        if has_workspace(view):
            yield WORKSPACE, _Mount("link", str(view.worktree))

    def _shown(self, path: str) -> Iterator[tuple[str, _Mount]]:
        if self.files.kind(path) == "link":
            place = _join(self._real(dirname(path)), basename(path))
            yield place, _Mount("link", self.files.link(path))
        target = self._real(path)
        if self.files.kind(target):
            yield target, _Mount("try", target)

    def _place(self, target: str, mount: _Mount) -> None:
        at, now = self._nearest(target)
        there = at == target or self._there(target, at, now)
        if mount.do in ("empty", "masked") and (now.do == "empty" or not there):
            return  # it is not there anyway
        if now.do in ("ro", "try") and not there:
            at, now = self._open(dirname(target), at, now)
        self.placed[target] = mount
        while (target := dirname(target)) not in self.placed and not self._there(target, at, now):
            self.placed[target] = _Mount("dir")

    def _there(self, path: str, at: str, now: _Mount) -> bool:
        return bool(now.source) and self.files.kind(_moved(path, at, now.source)) is not None

    def _open(self, folder: str, at: str, now: _Mount) -> tuple[str, _Mount]:
        """Make the deepest folder that there is on the way to `folder` one in which can be made."""
        while folder != at and not self._there(folder, at, now):
            folder = dirname(folder)
        opened = _Mount("empty", _moved(folder, at, now.source))
        self.placed[folder] = opened
        self._entries(folder, opened.source)
        return folder, opened

    def _entries(self, folder: str, source: str) -> None:
        names = self.files.names(source)
        if len(names) > MOST_ENTRIES:
            raise DevbayError(
                "unsafe_mount",
                f"nothing can be mounted below {folder}, which has {len(names)} entries",
                next="choose another path",
                exit_code=WORK_FAILED,
            )
        for name in names:
            target, of = _join(folder, name), _join(source, name)
            kind = self.files.kind(of)
            if kind == "link":
                self.placed.setdefault(target, _Mount("link", self.files.link(of)))
            elif kind:
                self.placed.setdefault(target, _Mount("try", of))

    def _nearest(self, target: str) -> tuple[str, _Mount]:
        path = target
        while path not in self.placed:
            path = dirname(path)
        return path, self.placed[path]

    def _real(self, path: str) -> str:
        """`path` with the machine's links followed."""
        return self._walk(path, {})

    def _target(self, path: str) -> str:
        if has_workspace(self.view) and _below(path, WORKSPACE):
            path = _moved(path, WORKSPACE, str(self.view.worktree))
        return self._walk(path, self.owned)

    def _walk(self, path: str, owned: dict[str, str]) -> str:
        """Follow links, but refuse those below what the process itself can write."""
        rest = [part for part in path.split("/") if part not in ("", ".")][::-1]
        done, source, hops, own = "/", "/", 0, False
        while rest:
            part = rest.pop()
            if part == "..":
                done = source = dirname(done)
                continue
            here = _join(done, part)
            if here in owned:
                done, source, own = here, owned[here], True
                continue
            of = _join(source, part)
            if self.files.kind(of) != "link":
                done, source = here, of
                continue
            if own or hops == _HOPS:
                raise DevbayError(
                    "unsafe_mount",
                    f"{path} cannot be mounted: {of} is a link",
                    next=f"remove {of}",
                    exit_code=WORK_FAILED,
                )
            hops += 1
            said = self.files.link(of)
            rest += [word for word in said.split("/") if word not in ("", ".")][::-1]
            if said.startswith("/"):
                done = source = "/"
        return done


def _words(target: str, mount: _Mount) -> list[str]:
    if target == "/":
        return []
    if mount.do in ("ro", "rw", "try"):
        option = {"ro": "--ro-bind", "rw": "--bind", "try": "--ro-bind-try"}[mount.do]
        return [option, mount.source, target]
    if mount.do == "masked":
        return ["--dev-bind", "/dev/null", target]
    if mount.do == "link":
        return ["--symlink", mount.source, target]
    if mount.do == "tmpfs":
        size = ["--size", str(mount.size)] if mount.size is not None else []
        return ["--perms", "1777", *size, "--tmpfs", target]
    if mount.do == "dir":
        return ["--perms", "0755", "--dir", target]
    return [{"proc": "--proc", "dev": "--dev", "empty": "--tmpfs"}[mount.do], target]


def _depth(path: str) -> int:
    return 0 if path == "/" else path.count("/")


def _join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


def _moved(path: str, above: str, to: str) -> str:
    """`path`, which is `above` or below it, as it is below `to`."""
    return to if path == above else _join(to, path[len(above.rstrip("/")) + 1 :])


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
