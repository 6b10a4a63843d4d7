"""Containers: everything that can be done with one, in as few API calls as it takes."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import ContainerState
from devbay.runtimes.docker.archives import Entry, put
from devbay.runtimes.docker.engine import Engine, Stream
from devbay.runtimes.docker.failures import unreachable
from devbay.runtimes.docker.specs import (
    WORKSPACE,
    ContainerSpec,
    create_body,
    refuse_files_in_binds,
    with_workspace_mounts,
)

OUTPUT_LIMIT = 64 * 1024


@dataclass(frozen=True)
class Container:
    """A container as it is. Times are RFC 3339, empty if it never happened. Fields of `inspect` alone are
    None or empty where it came from `find`: restarts, started_at, finished_at, oom_killed, error, restart.
    """

    id: str
    name: str
    image: str
    state: ContainerState
    labels: Mapping[str, str]
    exit_code: int | None = None
    restarts: int | None = None
    started_at: str = ""
    finished_at: str = ""
    oom_killed: bool | None = None
    error: str = ""
    restart: str = ""

    @property
    def will_restart(self) -> bool:
        """Whether the engine brings it back by itself after the exit it has now."""
        if self.state == "restarting":
            return True
        if self.restart in ("always", "unless-stopped"):
            return True
        return self.restart == "on-failure" and self.exit_code not in (0, None)


@dataclass(frozen=True)
class ExecResult:
    """How a command in a container ended. output: stdout and stderr, the first 64 KiB.

    exit_code: 127 also where the engine found no such program; -1 on timeout (the process may go on: the
    engine has no way to end it).
    """

    exit_code: int
    output: bytes
    timed_out: bool = False


def create(engine: Engine, spec: ContainerSpec) -> str:
    """Make (do not start) the container and put its files in; returns its id.

    Two calls, one without files. Raises `name_conflict`, `image_not_found`, `path_not_shared`, ... ; no
    value of `env` is in a message. A container whose files cannot be put in is removed again.
    """
    refuse_files_in_binds(spec)
    doing = f"create {spec.name}"
    params = {"name": spec.name} | ({"platform": spec.platform} if spec.platform else {})
    try:
        made = engine.call(
            "POST", "/containers/create", params=params, body=create_body(spec, engine.info()), doing=doing
        )
    except DevbayError as error:
        raise _told(error, spec) from None
    container = str(made["Id"])
    link = (Entry(WORKSPACE, "link", target=spec.worktree),) if spec.worktree else ()
    if not (spec.files or link):
        return container
    try:
        # the link last: where an image has a folder there, the rest has been put in by then
        put(engine, container, (*spec.files, *link), doing=doing)
    except DevbayError as error:
        remove(engine, container)
        if error.code == "directory_in_the_way" and error.data.get("path") == WORKSPACE and link:
            return create(engine, with_workspace_mounts(spec))
        raise
    return container


def start(engine: Engine, container: str, *, doing: str = "") -> None:
    """Start it; one that runs already is fine. Raises `port_taken`, `command_not_found`, ..."""
    engine.call("POST", f"/containers/{container}/start", doing=doing)


def stop(engine: Engine, container: str, *, timeout_s: float) -> None:
    """TERM, then KILL after `timeout_s`; one that is stopped or gone is fine."""
    seconds = max(0, math.ceil(timeout_s))
    path = f"/containers/{container}/stop"
    _allowing("not_found", engine, "POST", path, params={"t": seconds}, timeout_s=seconds + 60)


def kill(engine: Engine, container: str, *, signal: str = "KILL") -> None:
    """Send a signal; one that is stopped or gone is fine."""
    path = f"/containers/{container}/kill"
    _allowing("not_running not_found", engine, "POST", path, params={"signal": signal})


def pause(engine: Engine, container: str) -> None:
    """Freeze its processes; one that is frozen already is fine. Raises `not_running`, `not_found`."""
    _allowing("paused", engine, "POST", f"/containers/{container}/pause")


def unpause(engine: Engine, container: str) -> None:
    """Let its processes go on; one that is not frozen is fine. Raises `not_found`."""
    _allowing("not_paused not_running", engine, "POST", f"/containers/{container}/unpause")


def remove(engine: Engine, container: str) -> None:
    """Kill and remove it with its anonymous volumes; returns when it is gone. One that is gone is fine."""
    path = f"/containers/{container}"
    try:
        engine.call("DELETE", path, params={"force": "1", "v": "1"}, doing=f"remove {container}")
    except DevbayError as error:
        if error.code == "removal_in_progress":
            _allowing("not_found", engine, "POST", f"{path}/wait", params={"condition": "removed"})
        elif error.code != "not_found":
            raise


def inspect(engine: Engine, container: str) -> Container | None:
    """The container as it is now, None if there is none."""
    try:
        found = engine.call("GET", f"/containers/{container}/json")
    except DevbayError as error:
        if error.code == "not_found":
            return None
        raise
    return inspected(found)


def inspected(found: Mapping[str, Any]) -> Container:
    """The answer of `GET /containers/{id}/json`."""
    state, config = found["State"], found["Config"]
    word = cast("ContainerState", "exited" if state["Status"] == "removing" else state["Status"])
    return Container(
        id=found["Id"],
        name=found["Name"].lstrip("/"),
        image=found["Image"],
        state=word,
        labels=config.get("Labels") or {},
        exit_code=state["ExitCode"] if _ended(state) else None,
        restarts=found.get("RestartCount", 0),
        started_at=_moment(state.get("StartedAt")),
        finished_at=_moment(state.get("FinishedAt")),
        oom_killed=bool(state.get("OOMKilled")),
        error=state.get("Error", ""),
        restart=found["HostConfig"]["RestartPolicy"]["Name"] or "no",
    )


def find(engine: Engine, labels: Mapping[str, str]) -> list[Container]:
    """All containers with these labels, running or not, in one call."""
    filters = {"label": [f"{name}={value}" for name, value in labels.items()]}
    found = engine.call("GET", "/containers/json", params={"all": "1", "filters": json.dumps(filters)})
    return [listed(item) for item in found]


def listed(item: Mapping[str, Any]) -> Container:
    """One item of `GET /containers/json`; its exit code stands in the words `Exited (137) 2 hours ago`."""
    code = re.match(r"(?:Exited|Restarting) \((\d+)\)", item.get("Status", ""))
    word = "exited" if item["State"] == "removing" else item["State"]
    return Container(
        id=item["Id"],
        name=item["Names"][0].lstrip("/") if item.get("Names") else "",
        image=item["ImageID"],
        state=cast("ContainerState", word),
        labels=item.get("Labels") or {},
        exit_code=int(code[1]) if code else None,
    )


def observe(engine: Engine, labels: Mapping[str, str]) -> list[Container]:
    """The same with all fields, one call more per container (2 ms); one removed meanwhile is left out."""
    return [full for brief in find(engine, labels) if (full := inspect(engine, brief.id)) is not None]


def wait(engine: Engine, container: str, job: Job) -> int:
    """Wait until it does not run; returns its exit code. Raises `Cancelled`, `not_found`."""
    path = f"/containers/{container}/wait"
    with engine.stream("POST", path, doing=f"wait for {container}", job=job) as stream:
        for answer in stream.documents():
            return int(answer["StatusCode"])
    job.check()
    raise unreachable(engine.endpoint.host, "it ended while a container was waited for")


def attach(engine: Engine, container: str, *, job: Job | None = None) -> AbstractContextManager[Stream]:
    """Its output from now on, `frames()` in order; attach before the start to miss nothing.

    It ends when the container does.
    """
    params = {"stream": "1", "stdout": "1", "stderr": "1"}
    return engine.stream("POST", f"/containers/{container}/attach", params=params, job=job)


def exec_(engine: Engine, container: str, argv: Sequence[str], *, timeout_s: float) -> ExecResult:
    """Run a command in a running container. Raises `not_running`, `paused`, `not_found`."""
    body = {"Cmd": list(argv), "AttachStdout": True, "AttachStderr": True}
    made = engine.call("POST", f"/containers/{container}/exec", body=body)
    path, output, deadline = f"/exec/{made['Id']}", bytearray(), time.monotonic() + timeout_s
    with engine.stream("POST", f"{path}/start", body={"Detach": False, "Tty": False}) as stream:
        timer = threading.Timer(timeout_s, stream.close)
        timer.start()
        try:
            for frame in stream.frames():
                output += frame[: OUTPUT_LIMIT - len(output)]
        finally:
            timer.cancel()
    # the output may end a little before the engine notes the exit
    while (done := engine.call("GET", f"{path}/json"))["Running"]:
        if time.monotonic() >= deadline:
            return ExecResult(-1, bytes(output), timed_out=True)
        time.sleep(0.005)
    code = int(done["ExitCode"])
    missing = code == 126 and done["Pid"] == 0 and b"executable file not found" in output
    return ExecResult(127 if missing else code, bytes(output))


def memory_bytes(engine: Engine, container: str) -> int:
    """What it uses now without the page cache it could give back; 0 if it does not run."""
    try:
        found = engine.call(
            "GET", f"/containers/{container}/stats", params={"stream": "0", "one-shot": "1"}
        ).get("memory_stats", {})
    except DevbayError as error:
        if error.code in ("not_found", "not_running"):
            return 0
        raise
    stats = found.get("stats", {})
    cache = stats.get("total_inactive_file", stats.get("inactive_file", 0))  # cgroup v1, v2
    return max(0, int(found.get("usage", 0)) - int(cache))


def _allowing(codes: str, engine: Engine, method: str, path: str, **options: Any) -> None:
    """A call for which some errors mean that it was so already."""
    try:
        engine.call(method, path, **options)
    except DevbayError as error:
        if error.code not in codes.split():
            raise


def _told(error: DevbayError, spec: ContainerSpec) -> DevbayError:
    """A refused create without the values of `env`, and with the fact that only this side knows."""
    gone = error.data.get("path") if error.code == "path_not_shared" else None
    if gone is not None and not Path(gone).exists():
        return DevbayError(
            "folder_missing",
            f"cannot create {spec.name}: {gone}, which it mounts, does not exist",
            next="make the folder again, or `devbay rm` the bay if its checkout was deleted",
            exit_code=WORK_FAILED,
            path=gone,
        )
    message = error.message
    for name, value in spec.env.items():
        if len(value) >= 4:
            message = message.replace(value, f"[{name}]")
    return DevbayError(error.code, message, next=error.next, exit_code=error.exit_code, **error.data)


def _ended(state: Mapping[str, Any]) -> bool:
    return state["Status"] in ("exited", "dead", "restarting", "removing") or bool(state.get("Error"))


def _moment(text: str | None) -> str:
    return "" if not text or text.startswith("0001-") else text
