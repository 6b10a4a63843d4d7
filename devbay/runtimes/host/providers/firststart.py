"""The first start of a database: made as a template, copied into the bay, with the repository's scripts."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.host.owner import Owner, give, somebody
from devbay.runtimes.host.providers import base
from devbay.runtimes.host.providers.base import Server
from devbay.runtimes.host.templates import Templates

INIT_FOLDER = "/docker-entrypoint-initdb.d"
MAX_PLAIN = 16 * 1024**2

LOOP = r"""
for file; do
  case "$file" in
  *.sh) if [ -x "$file" ]; then "$file"; else (. "$file"); fi ;;
  *.sql) docker_process_sql < "$file" ;;
  *.sql.gz) gunzip -c "$file" | docker_process_sql ;;
  *.sql.xz) xz -dc "$file" | docker_process_sql ;;
  *.sql.zst) zstd -dc "$file" | docker_process_sql ;;
  *) echo "ignored: $file" ;;
  esac
done
"""
"""As the images do it: scripts that may be executed are, others are read by the shell; SQL on stdin."""

Initialise = Callable[[Path, Owner | None], None]
"""Make a data directory (its folder is there) as a user."""

RunScripts = Callable[[Path, list[Path], Owner | None], None]
"""Start the server on a data directory as a user, run copied scripts against it, and stop it."""


@dataclass(frozen=True)
class FirstStart:
    """How one family makes its data. settings: all that decides the outcome besides server and scripts.

    reaches_out: matches SQL whose effect depends on more than its text.
    """

    settings: object
    reaches_out: re.Pattern[bytes]
    initialise: Initialise
    run_scripts: RunScripts


def provide(
    spec: ServiceSpec,
    server: Server,
    data: Path,
    first: FirstStart,
    templates: Templates,
    owner: Owner | None,
    job: Job,
) -> None:
    """Make `data` from a template; plain SQL is part of the template, other scripts run for every bay.

    Cut off at any moment it leaves no `data`, only a draft that the next call removes.
    """
    scripts = tuple(init_files(spec))
    plain = all(_is_plain(path, first.reaches_out) for _, path in scripts)
    digests = [(name, hashlib.sha256(path.read_bytes()).hexdigest()) for name, path in scripts if plain]
    maker = somebody() if os.geteuid() == 0 else None

    def make(folder: Path) -> None:
        give(folder, maker)
        first.initialise(folder / "data", maker)
        if scripts and plain:
            _run_copies(first, scripts, folder / "data", folder / "init", maker)
        give(folder, (0, 0) if maker else None)  # a template must be no server's to change

    key = base.template_key(spec, server, [first.settings, digests])
    template = templates.ensure(server.family, key, make, job) / "data"
    base.above(data)
    if not scripts or plain:
        templates.copy(template, data, owner=owner)
        return
    draft = data.with_name(f".{data.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)  # of a preparation that was cut off
    draft.mkdir(mode=0o700)
    give(draft, owner)
    try:
        templates.copy(template, draft / "data", owner=owner)
        _run_copies(first, scripts, draft / "data", draft / "init", owner)
        (draft / "data").rename(data)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def init_files(spec: ServiceSpec) -> Iterator[tuple[str, Path]]:
    """(name, path) of what is mounted in the images' folder for first starts, in the images' order."""
    found: dict[str, Path] = {}
    for mount in spec.mounts:
        target, source = mount.target.rstrip("/"), Path(mount.source)
        if target == INIT_FOLDER and source.is_dir():
            found |= {path.name: _confined(path, source) for path in source.iterdir() if path.is_file()}
        elif target.startswith(f"{INIT_FOLDER}/") and source.is_file():
            found[target.removeprefix(f"{INIT_FOLDER}/")] = source
    for name in sorted(found):
        if "/" not in name:
            yield name, found[name]


def _confined(path: Path, folder: Path) -> Path:
    """The scripts are copied with devbay's rights, which must not be lent to a link that leads elsewhere."""
    real = path.resolve()
    if not real.is_relative_to(folder.resolve()):
        raise DevbayError(
            "path_escapes",
            f"{path} is a link to {real}, outside {folder}",
            next="put the file itself there",
            exit_code=WORK_FAILED,
        )
    return real


def _is_plain(path: Path, reaches_out: re.Pattern[bytes]) -> bool:
    """Whether a script is SQL whose effect its text alone decides, and small enough to be read for that."""
    small = path.stat().st_size <= MAX_PLAIN
    return path.suffix == ".sql" and small and not reaches_out.search(path.read_bytes())


def missing(spec: ServiceSpec, data: Path, made: Path) -> bool:
    """Whether the data is still to be made; `made` is the file that only whole data has.

    Raises `data_unusable` for a folder that holds something else.
    """
    if made.exists():
        return False
    if not data.exists():
        return True
    if any(data.iterdir()):
        raise DevbayError(
            "data_unusable",
            f"{data} holds something that {spec.name} did not make",
            next="move it away, or remove the bay and make it anew",
            exit_code=WORK_FAILED,
        )
    data.rmdir()
    return True


def _run_copies(
    first: FirstStart, scripts: tuple[tuple[str, Path], ...], data: Path, folder: Path, user: Owner | None
) -> None:
    """The scripts' copies belong to the server's user, who may not reach the worktree."""
    folder.mkdir(mode=0o700)
    copies = [Path(shutil.copy2(path, folder / name)) for name, path in scripts]
    give(folder, user)
    first.run_scripts(data, copies, user)
    shutil.rmtree(folder)
