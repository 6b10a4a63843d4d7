"""What a service or task runs on the machine itself where no container is, and whether a person is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping

from devbay.manifest import images
from devbay.manifest.models import HOST, Container, Manifest, Mount, Service, Task

INIT_FOLDER = "/docker-entrypoint-initdb.d"
"""Where the images of databases look for scripts of their first start; stand-ins for them do the same."""

_VALUE = r"(?:=|\s+)?[^\s-]\S*"
_QUESTIONS: Mapping[str, str] = {
    "postgres": r"pg_isready(\s.*)?",
    "redis": rf"(redis|valkey|keydb)-cli(\s+(-[hpan]{_VALUE}|--(user|pass){_VALUE}"
    r"|--(no-auth-warning|raw|tls)))*\s+(?i:ping)",
    "mysql": rf"(mysqladmin|mariadb-admin)(\s+(ping|-[hPu]{_VALUE}|-p\S*|--(silent|wait|password)(=\S*)?"
    rf"|--(host|port|user|protocol){_VALUE}))*|(/usr/local/bin/)?healthcheck\.sh(\s+--[\w=-]+)*",
    "minio": r"mc\s+ready\s+\w+|curl(\s+(-[fsSI]+|--(fail|silent|show-error|head)))*\s+\S+/minio/health/\w+",
    "mail": r"/?mailpit\s+readyz",
}  # fmt: skip
"""Health commands, as one line, that only ask a server how it is."""

_LONGEST_QUESTION = 1000
_LIKE = {"valkey": "redis", "keydb": "redis", "dragonfly": "redis", "mariadb": "mysql"}


def commands(part: Container) -> dict[str, tuple[str, ...]]:
    """Every argv of a service or task by its key in the manifest, in the order they run."""
    found: dict[str, tuple[str, ...]] = {}
    for key in ("install", "entrypoint", "start", "run"):
        if argv := getattr(part, key, None):
            found[key] = argv
    if isinstance(part, Service) and part.health and part.health.cmd:
        found["health.cmd"] = part.health.cmd
    return found


def scripts_of_first_start(part: Container) -> tuple[Mount, ...]:
    """The mounts whose files a database's server runs when its data is made."""
    return tuple(
        mount for mount in part.mounts if f"{mount.target.rstrip('/')}/".startswith(f"{INIT_FOLDER}/")
    )


def is_asked(part: Container) -> bool:
    """Whether a person is asked before it runs on the machine: not where it is only devbay's own server."""
    argvs = commands(part)
    if images.family(part.image) is None:
        return bool(argvs)
    own = {key: argv for key, argv in argvs.items() if key != "health.cmd" or not only_asks(part, argv)}
    return bool(own or scripts_of_first_start(part))


def only_asks(part: Container, argv: tuple[str, ...]) -> bool:
    """Whether a health command is a known client's question to a server of the image's family."""
    family = images.family(part.image) or ""
    pattern = _QUESTIONS.get(_LIKE.get(family, family))
    return pattern is not None and re.fullmatch(pattern, _line(argv)) is not None


def _line(argv: tuple[str, ...]) -> str:
    """The command as one line; `sh -c TEXT` as TEXT if that is one command; empty where neither is clear."""
    if sum(map(len, argv)) > _LONGEST_QUESTION:
        return ""
    if argv[0] in {"sh", "bash", "/bin/sh", "/bin/bash"} and len(argv) == 3 and argv[1] in {"-c", "-ec"}:
        text = re.sub(r"\s*(\|\|\s*exit\s+\d+|>\s*/dev/null(\s+2>&1)?)\s*$", "", argv[2]).strip()
        plain = re.sub(r"[\"']|\$\{?\w+\}?", "x", text)
        return "" if re.search(r"[$;&|<>()`\n\\]", plain) else plain
    return "" if any(re.search(r"\s", word) for word in argv) else " ".join(argv)


def asked_of(manifest: Manifest, *, whole: bool) -> list[tuple[str | None, str | None, Container]]:
    """(service, task, part) of all that is asked: tasks `in: host`, with `whole` everything."""
    found: list[tuple[str | None, str | None, Container]] = []
    if whole:
        found += [(name, None, part) for name, part in manifest.services.items() if is_asked(part)]
    found += [(None, name, task) for name, task in manifest.tasks.items() if whole or _is_own(task)]
    return found


def _is_own(task: Task) -> bool:
    return task.in_ == HOST
