"""What this machine has, lacks, and what to do about it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import devbay
from devbay.bays.parts import Parts
from devbay.errors import DevbayError

LOW_DISK_GB, LOW_MEMORY_GB = 3, 4
GIT_MINIMUM = (2, 31)


def checks(parts: Parts, env: Mapping[str, str]) -> dict[str, Any]:
    """`ok` is false if something blocks the main job. Each check: name, status, detail, next."""
    found = [
        {
            "name": "devbay",
            "status": "ok",
            "detail": f"version {devbay.__version__}, home {parts.home.state_dir}",
        },
        _git(env),
        *_runtime(parts, env),
        _guarded("proxy", lambda: _proxy(parts)),
        _disk(parts.home.state_dir),
        {
            "name": "names",
            "status": "note",
            "detail": "browsers resolve *.localhost by themselves; curl does, Safari and most other programs"
            " do not: use `url` for code",
        },
        {"name": "egress", "status": "note", "detail": "egress lists are accepted but not enforced yet"},
    ]
    return {"ok": all(each["status"] != "error" for each in found), "checks": found}


def _guarded(name: str, check: Callable[[], dict[str, str]]) -> dict[str, str]:
    try:
        return check()
    except DevbayError as error:
        return {"name": name, "status": "error", "detail": error.message, "next": error.next}


def _git(env: Mapping[str, str]) -> dict[str, str]:
    git = shutil.which("git", path=env.get("PATH"))
    if git is None:
        return {"name": "git", "status": "error", "detail": "there is no git", "next": "install git"}
    said = subprocess.run([git, "--version"], capture_output=True, text=True, timeout=10).stdout.strip()
    numbers = re.search(r"(\d+)\.(\d+)", said)
    if numbers and (int(numbers[1]), int(numbers[2])) < GIT_MINIMUM:
        return {"name": "git", "status": "error", "detail": f"{said} is too old", "next": "install git 2.31+"}
    return {"name": "git", "status": "ok", "detail": said}


def _runtime(parts: Parts, env: Mapping[str, str]) -> list[dict[str, str]]:
    """The container engine if one is configured; else what this machine has for bays of its own."""
    try:
        name, endpoint = parts.runtimes.choose(env)
    except DevbayError as error:
        return [{"name": "engine", "status": "error", "detail": error.message, "next": error.next}]
    if name == "docker":
        found = _guarded("engine", lambda: _engine(parts.runtimes.for_bay(name, endpoint, env), endpoint))
        if found["status"] == "error":
            found["next"] += "; or run without an engine: DEVBAY_RUNTIME=host"
        return [found, _client(env)]
    from devbay.runtimes.host.inventory import servers, toolchains  # only where there is no engine

    here: Any = parts.runtimes.for_bay(name, endpoint, env)
    why = (
        "DEVBAY_RUNTIME says so"
        if env.get("DEVBAY_RUNTIME") == "host"
        else "no container engine is configured"
    )
    engine = f"{why}: bays run as processes of this machine (docs/host.md)"
    return [
        {"name": "runtime", "status": "note", "detail": engine},
        {"name": "isolation", "status": "note", "detail": here.isolation},
        {"name": "servers", "status": "note", "detail": servers(here.machine)},
        {"name": "toolchains", "status": "note", "detail": toolchains(here.machine)},
    ]


def _engine(runtime: Any, endpoint: Mapping[str, Any]) -> dict[str, str]:
    runtime.check()
    info = runtime.engine.info()
    gigabytes = info.memory_bytes / 2**30
    detail = (
        f"Docker {info.version} ({info.kind}) at {endpoint['host']}, {info.storage_driver},"
        f" cgroup v{info.cgroup_version}, {info.cpus} cores, {gigabytes:.1f} GB"
    )
    if gigabytes < LOW_MEMORY_GB:
        return {
            "name": "engine",
            "status": "warning",
            "detail": detail,
            "next": "give the engine more memory",
        }
    if not info.limits:
        return {"name": "engine", "status": "warning", "detail": f"{detail}; limits are not applied"}
    return {"name": "engine", "status": "ok", "detail": detail}


def _client(env: Mapping[str, str]) -> dict[str, str]:
    if shutil.which("docker", path=env.get("PATH")) is None:
        return {
            "name": "docker client",
            "status": "warning",
            "detail": "the docker command is missing: builds and devbay exec need it",
            "next": "install the docker client with buildx",
        }
    return {"name": "docker client", "status": "ok", "detail": "found"}


def _proxy(parts: Parts) -> dict[str, str]:
    parts.proxy.ensure()
    return {"name": "proxy", "status": "ok", "detail": f"Caddy on port {parts.proxy.port} of the loopback"}


def _disk(folder: Path) -> dict[str, str]:
    free = shutil.disk_usage(folder).free / 2**30
    detail = f"{free:.1f} GB free at {folder}"
    if free < LOW_DISK_GB:
        return {
            "name": "disk",
            "status": "warning",
            "detail": detail,
            "next": "devbay gc --all, or free space",
        }
    return {"name": "disk", "status": "ok", "detail": detail}
