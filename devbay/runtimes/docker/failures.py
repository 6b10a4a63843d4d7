"""What an engine's error means: one table from the engine's own texts to the codes that callers act on.

The texts are those of Docker Engine 20.10 to 28, seen on a real engine unless a row says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from devbay.errors import WORK_FAILED, DevbayError


@dataclass(frozen=True)
class Meaning:
    """A text of the engine (`pattern`) and what it means. Named groups of the pattern become data fields."""

    pattern: str
    code: str
    says: str = "{text}"
    next: str = ""


MEANINGS = tuple(
    Meaning(*row)
    for row in (
        (
            r"no space left on device|disk quota exceeded",
            "engine_full",
            "the engine's disk is full: {text}",
            "free space with `devbay gc --all` or `docker system prune`, then try again",
        ),
        (
            r"(?:Bind for \S*?|listen tcp[46]? \S*?|bind host port (?:for )?\S*?|exposing port \S*? \S*?)"
            r":(?P<port>\d+)\b.*(?:port is already allocated|address already in use|not available)",
            "port_taken",
            "port {port} of this machine is already taken",
            "find its owner with `ss -ltnp` or `docker ps`, then `devbay up` again",
        ),
        (
            r"port is already allocated|address already in use|ports are not available",
            "port_taken",
            "a port of this machine is already taken: {text}",
            "find its owner with `ss -ltnp` or `docker ps`, then `devbay up` again",
        ),
        (
            r"No such image: (?P<image>\S+)|(?P<named>\S+) was found but does not match the specified"
            r" platform|pull access denied|manifest unknown|repository does not exist",
            "image_not_found",
        ),
        (
            r"container name \"/?(?P<name>[^\"]+)\" is already in use"
            r"|network with name (?P<network>\S+) already exists",
            "name_conflict",
        ),
        (
            r"Pool overlaps with other one",
            "network_overlap",
            "the subnet overlaps with another network of the engine",
            "set another `network` range in config.toml, or remove unused networks: `docker network prune`",
        ),
        (
            r"non-overlapping IPv4 address pool|predefined address pools have been fully subnetted",
            "network_exhausted",
            "the engine has no free subnet left",
            "remove unused networks: `docker network prune`",
        ),
        (
            r"bind source path does not exist: (?P<path>.+)"
            r"|path (?P<unshared>\S+) is not shared from the host|[Mm]ounts denied",
            "path_not_shared",
            "the engine does not see a folder of this machine: {text}",
            "share the folder with the engine's virtual machine, or use an engine on this machine",
        ),
        (
            r"exec: \"(?P<program>[^\"]*)\": (?:executable file not found|no such file or directory"
            r"|stat [^:]*: no such file or directory)",
            "command_not_found",
            "the command {program!r} is not in the image",
            "correct `start` or `run` in devbay.yaml, or use an image that has the command",
        ),
        (
            r"exec: \"(?P<program>[^\"]*)\": permission denied",
            "command_not_executable",
            "the command {program!r} may not be executed in the image",
            "make the file executable",
        ),
        (
            r"exec format error",
            "wrong_architecture",
            "the image is for another processor architecture: {text}",
            "set `platform` in devbay.yaml or use an image for this machine",
        ),
        (r"cannot overwrite directory \"(?P<path>[^\"]+)\" with non-directory", "directory_in_the_way"),
        (r"volume is in use", "volume_in_use"),
        (r"has active endpoints", "network_in_use"),
        (r"is not connected to (?:the )?network", "not_connected"),
        (r"is not running|is restarting, wait", "not_running"),
        (r"is not paused", "not_paused"),
        (r"is paused|is already paused", "paused"),
        (r"removal of container \S+ is already in progress", "removal_in_progress"),
        (
            r"No such container|No such exec instance|no such volume|network (?P<network>\S+) not found"
            r"|Could not find the file",
            "not_found",
        ),
        (
            r"permission denied while trying to connect|\[Errno 13\]|Permission denied'",
            "engine_unreachable",
            "{text}",
            "let this user use the engine: `sudo usermod -aG docker $USER`, then log in again",
        ),
        (
            r"Install paramiko",
            "engine_unreachable",
            "engines over ssh:// need the Python package paramiko, which is not installed",
            "install paramiko beside devbay, or forward the socket: "
            "`ssh -nNT -L /tmp/docker.sock:/var/run/docker.sock HOST` and DOCKER_HOST=unix:///tmp/docker.sock",
        ),
    )
)


def failure_from_text(text: str, *, doing: str = "", status: int | None = None) -> DevbayError:
    """The engine's `text` as an error; `doing` (such as "start db") says what was asked of it.

    A text with no meaning of its own is `engine_error`, or `not_found` for status 404.
    """
    text = " ".join(text.split())
    for meaning in MEANINGS:
        if found := re.search(meaning.pattern, text):
            fields = {name: value for name, value in found.groupdict().items() if value}
            data: dict[str, object] = (
                {**fields, "port": int(fields["port"])} if "port" in fields else {**fields}
            )
            says = meaning.says.format(text=text, **fields)
            return DevbayError(
                meaning.code, _said(doing, says), next=meaning.next, exit_code=WORK_FAILED, **data
            )
    code = "not_found" if status == 404 else "engine_error"
    return DevbayError(code, _said(doing, text or f"status {status}"), exit_code=WORK_FAILED)


def unreachable(host: str, reason: str, *, context: str = "default", doing: str = "") -> DevbayError:
    """`engine_unreachable` for the engine at `host`, with how to start it."""
    named = "" if context == "default" else f" (Docker context {context!r})"
    local = host.startswith("unix://")
    start = (
        "start the engine (`sudo systemctl start docker`, or open Docker Desktop), then see `docker version`"
        if local
        else f"see that `docker --host {host} version` answers"
    )
    said = f"the Docker engine at {host}{named} does not answer: {reason}"
    return DevbayError("engine_unreachable", _said(doing, said), next=start, exit_code=WORK_FAILED, host=host)


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from, also where a library keeps that only in `args`."""
    pending: list[BaseException] = [error]
    seen: set[int] = set()
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        linked = (current.__cause__, current.__context__, getattr(current, "reason", None), *current.args)
        pending += [item for item in linked if isinstance(item, BaseException)]


def _said(doing: str, text: str) -> str:
    return f"cannot {doing}: {text}" if doing else text
