"""One install in its throwaway container, from nothing to volumes and an image.

The container's own process only waits; the command runs as an `exec`, so that neither its environment (with
secrets in it) nor its argv stands in the image that is committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.docker import archives, containers, volumes
from devbay.runtimes.docker.archives import Entry
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.images import ImageInfo
from devbay.runtimes.docker.specs import ContainerSpec
from devbay.runtimes.docker.templates import WORKSPACE, InstallPlan, Template, lost_paths, worth_keeping
from devbay.runtimes.outbound import Outbound

TIME_LIMIT_S = 7200
COMMIT_TIMEOUT_S = 900
NO_WORKTREE = "/.devbay/no-worktree"
DOWNLOADS = (
    ".npm", ".cache/pip", ".cache/uv", ".cache/yarn", ".cache/node", ".cache/go-build", ".cache/composer",
    ".local/share/pnpm/store",
)  # fmt: skip
_SHOWN_LINES = 40
_LINE_LIMIT = 2000


@dataclass(frozen=True)
class Names:
    """What the engine's objects of one install are called, and the labels they all carry."""

    container: str
    image: str
    volumes: Mapping[str, str]
    caches: Mapping[str, str]
    labels: Mapping[str, str]
    cache_labels: Mapping[str, Mapping[str, str]]


def run_install(
    engine: Engine,
    plan: InstallPlan,
    names: Names,
    spec: ServiceSpec,
    image: ImageInfo,
    outbound: Outbound,
    job: Job,
) -> Template:
    """Run the install and keep its result. Raises `install_failed` (with `log`, `exit_code`), `Cancelled`.

    What it made so far stays behind if it fails; the caller removes it by label.
    """
    for name in names.volumes.values():
        volumes.ensure(engine, name, names.labels)
    for path, name in names.caches.items():
        volumes.ensure(engine, name, names.cache_labels[path])
    container = containers.create(engine, _container(plan, names, spec, image, outbound))
    try:
        with job.when_cancelled(lambda: containers.kill(engine, container)):
            job.check()
            kept, size = _installed(engine, container, plan, spec, outbound, job)
            job.check()
        containers.kill(engine, container)
        changes = engine.call("GET", f"/containers/{container}/changes", timeout_s=COMMIT_TIMEOUT_S) or []
        result = image.id
        if worth_keeping(changes, (*names.volumes, *names.caches, *(m.target for m in outbound.mounts()))):
            ours = any(change["Path"] == WORKSPACE and change["Kind"] == 1 for change in changes)
            result = _commit(engine, container, names, image, replace_workspace=ours)
    except DevbayError:
        job.check()  # a cancelled job killed the container, and all else follows from that
        raise
    finally:
        containers.remove(engine, container)
    for path in names.volumes.keys() - kept:
        volumes.remove(engine, names.volumes[path])  # no result lies there: each bay gets a volume of its own
    return Template(
        key=plan.key,
        state="ready",
        image=result,
        committed=result != image.id,
        volumes={path: name for path, name in names.volumes.items() if path in kept},
        notes=_notes(plan, changes),
        size=size + (_added_size(engine, result, image) if result != image.id else 0),
    )


def _container(
    plan: InstallPlan, names: Names, spec: ServiceSpec, image: ImageInfo, outbound: Outbound
) -> ContainerSpec:
    inside = plan.workdir == WORKSPACE or plan.workdir.startswith(WORKSPACE + "/")
    folders = [Entry(WORKSPACE, "dir"), *([Entry(plan.workdir, "dir")] if inside else [])]
    files = [
        Entry(path, "file", data=file.data, mode=0o755 if file.executable else 0o644)
        for path, file in plan.files.items()
    ]
    return ContainerSpec(
        name=names.container,
        image=image.id,
        entrypoint=("",),
        command=("sleep", str(TIME_LIMIT_S)),
        workdir=None if inside else plan.workdir,
        binds=outbound.mounts(),
        volumes={**names.caches, **names.volumes},
        labels=names.labels,
        platform=spec.platform,
        limits=spec.limits,
        files=(*folders, *files),
    )


def _installed(
    engine: Engine, container: str, plan: InstallPlan, spec: ServiceSpec, outbound: Outbound, job: Job
) -> tuple[set[str], int]:
    """Start, run the command, give its result to the user; the volumes worth keeping, and their bytes."""
    try:
        containers.start(engine, container, doing=f"install {spec.name}")
    except DevbayError as error:
        if error.code != "command_not_found":
            raise
        raise _failed(spec, "the image has no `sleep`, which an install needs", []) from error
    if plan.user != "0:0":
        _as_root(engine, container, ["chown", "-hR", plan.user, WORKSPACE, *plan.volumes, *plan.caches], spec)
    before = _states(engine, container, plan.volumes)
    job.progress(f"installing {spec.name}: {' '.join(plan.argv)}")
    env = {**outbound.env(), **plan.env}
    code, lines = run_in(engine, container, plan.argv, env, plan.user, plan.workdir, job)
    if code != 0:
        killed = " (killed, often for lack of memory)" if code == 137 else ""
        raise _failed(spec, f"exit code {code}{killed}", lines, plan=plan, code=code)
    _drop_downloads(engine, container, plan)
    after = _states(engine, container, plan.volumes)
    given = (*plan.volumes, *plan.caches)
    if plan.owner is not None and given:
        _as_root(engine, container, ["chown", "-hR", plan.owner, *given], spec)
    if before is None or after is None:
        return set(plan.volumes), 0
    kept = {path for path in plan.volumes if after[path] != before[path]}
    return kept, 1024 * sum(after[path].kilobytes for path in kept)


def run_in(
    engine: Engine,
    container: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    user: str,
    workdir: str,
    job: Job,
    *,
    keep: int | None = _SHOWN_LINES,
) -> tuple[int, list[str]]:
    """Run a command in a running container, each line to the job as it comes; its exit code and last `keep`
    lines.

    Cancelling ends the reading; the command ends with its container.
    """
    body = {
        "Cmd": list(argv),
        "Env": [f"{name}={value}" for name, value in env.items()],
        "User": user,
        "WorkingDir": workdir,
        "AttachStdout": True,
        "AttachStderr": True,
    }
    exec_id = engine.call("POST", f"/containers/{container}/exec", body=body)["Id"]
    lines: deque[str] = deque(maxlen=keep)
    rest = b""
    with engine.stream("POST", f"/exec/{exec_id}/start", body={"Detach": False}, job=job) as stream:
        for frame in stream.frames():
            *whole, rest = (rest + frame).replace(b"\r", b"\n").split(b"\n")
            for line in filter(None, whole):
                _show(line, lines, job)
            rest = rest[-_LINE_LIMIT:]
    if rest:
        _show(rest, lines, job)
    return int(engine.call("GET", f"/exec/{exec_id}/json")["ExitCode"] or 0), list(lines)


def _show(line: bytes, lines: deque[str], job: Job) -> None:
    text = line[:_LINE_LIMIT].decode("utf-8", "replace").rstrip()
    if text:
        lines.append(text)
        job.progress(text)


def _drop_downloads(engine: Engine, container: str, plan: InstallPlan) -> None:
    """Remove what package managers keep in the home only to download less next time: with nothing else in it
    the home is no part of the result, so that a bay keeps its own when the lock file changes.
    """
    home = plan.env.get("HOME", "")
    if home not in plan.volumes:
        return
    unmounted = [
        path
        for path in DOWNLOADS
        if not any(PurePosixPath(cache).is_relative_to(f"{home}/{path}") for cache in plan.caches)
        and not any(PurePosixPath(f"{home}/{path}").is_relative_to(cache) for cache in plan.caches)
    ]
    run_in(engine, container, ["rm", "-rf", *unmounted], {}, "0:0", home, Job())
    # folders that held nothing else go too; for any other the command fails, and that is fine
    for folder in dict.fromkeys(str(PurePosixPath(path).parent) for path in unmounted if "/" in path):
        run_in(engine, container, ["rmdir", "-p", folder], {}, "0:0", home, Job())


def _as_root(engine: Engine, container: str, argv: Sequence[str], spec: ServiceSpec) -> None:
    code, lines = run_in(engine, container, argv, {}, "0:0", "/", Job())
    if code != 0:
        raise _failed(spec, f"`{' '.join(argv[:2])}` in its container ended with {code}", lines)


@dataclass(frozen=True)
class _State:
    """What a volume looks like from above: enough to see whether an install wrote anything into it."""

    kilobytes: int
    listing: tuple[str, ...]


def _states(engine: Engine, container: str, paths: Sequence[str]) -> dict[str, _State] | None:
    """The state of each path, None where the image has no `du` or `ls`."""
    states = {}
    for path in paths:
        code, sizes = run_in(engine, container, ["du", "-skx", path], {}, "0:0", "/", Job(), keep=None)
        found, listing = run_in(engine, container, ["ls", "-lA", path], {}, "0:0", "/", Job(), keep=None)
        if code != 0 or found != 0 or not sizes:
            return None
        states[path] = _State(int(sizes[-1].split()[0]), tuple(listing))
    return states


def _commit(
    engine: Engine, container: str, names: Names, image: ImageInfo, *, replace_workspace: bool
) -> str:
    """The container's difference as an image with the configuration of the one it came from.

    Bays have a link `/workspace`, and the engine puts none where a folder is. So the folder of the inputs
    gives way to a link in a layer of its own, put into a container that is never started and mounts nothing.
    """
    config = {**image.config, "Labels": {**image.labels, **names.labels}}
    if not replace_workspace:
        return _committed(engine, container, config, tag=names.image)
    first = _committed(engine, container, config, tag=None)
    second = containers.create(
        engine,
        ContainerSpec(name=f"{names.container}-link", image=first, command=("true",), labels=names.labels),
    )
    try:
        link = archives.tar_of([Entry(WORKSPACE, "link", target=NO_WORKTREE)], now=0)
        engine.call("PUT", f"/containers/{second}/archive", params={"path": "/"}, data=link)
        return _committed(engine, second, config, tag=names.image)
    finally:
        containers.remove(engine, second)


def _committed(engine: Engine, container: str, config: Mapping[str, Any], *, tag: str | None) -> str:
    params = {"container": container, "pause": "0"}
    if tag is not None:
        params["repo"], _, params["tag"] = tag.partition(":")
    made = engine.call(
        "POST",
        "/commit",
        params=params,
        body=dict(config),
        doing="keep an install",
        timeout_s=COMMIT_TIMEOUT_S,
    )
    return str(made["Id"])


def _added_size(engine: Engine, result: str, image: ImageInfo) -> int:
    sizes = [int(engine.call("GET", f"/images/{name}/json")["Size"]) for name in (result, image.id)]
    return max(0, sizes[0] - sizes[1])


def _notes(plan: InstallPlan, changes: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    command, lost, notes = " ".join(plan.argv), lost_paths(changes, plan), list[str]()
    if lost:
        shown = ", ".join(lost[:5]) + (", ..." if len(lost) > 5 else "")
        notes.append(f"`{command}` wrote {shown}, which no volume keeps: add it to `volumes` in devbay.yaml")
    if plan.dropped_env:
        notes.append(f"`{command}` ran without {', '.join(plan.dropped_env)}, which differ from bay to bay")
    return tuple(notes)


def _failed(
    spec: ServiceSpec,
    what: str,
    lines: Sequence[str],
    *,
    plan: InstallPlan | None = None,
    code: int | None = None,
) -> DevbayError:
    command = " ".join(spec.install or ())
    saw = ""
    if plan is not None:
        inputs = sorted(file.path for file in dict.fromkeys(plan.files.values()))
        saw = f"\nit saw of the worktree only: {', '.join(inputs[:12]) or 'nothing'}"
        saw += f" and {len(inputs) - 12} more" if len(inputs) > 12 else ""
    return DevbayError(
        "install_failed",
        "\n".join([f"`install` of {spec.name} (`{command}`) failed: {what}", *lines]) + saw,
        next="correct `install`; name further files that it reads in `install_inputs`",
        exit_code=WORK_FAILED,
        log=list(lines),
        **({} if code is None else {"status": code}),
    )
