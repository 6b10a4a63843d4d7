"""The process that makes one build with python-on-whales, which keeps its client's process to itself: what
cancels the build ends this process's group. Run by `builds`; imports nothing else of devbay.

Standard input: one line of JSON, a `Request`, and then nothing; its end means that nobody waits any more.
Standard output: the client's lines. Exit code: the client's.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

ENDED_BY_SIGNAL = 128


@dataclass(frozen=True)
class Request:
    """`docker`: the client's path. `client`: arguments of `DockerClient`. `build`: those of `buildx.build`.
    `args_by_name`: build arguments whose values the client takes from its environment.
    """

    docker: str
    client: Mapping[str, Any]
    build: Mapping[str, Any]
    args_by_name: Sequence[str] = ()

    def to_line(self) -> str:
        return json.dumps(asdict(self)) + "\n"


def child_argv() -> list[str]:
    """The command that runs this module of this very installation, whatever folder or PYTHON* is in force."""
    root = str(Path(__file__).parents[3])
    code = (
        f"import sys; {root!r} in sys.path or sys.path.insert(0, {root!r});"
        f" from {__name__} import main; main()"
    )
    return [sys.executable, "-I", "-c", code]


def client_call(docker: str, args_by_name: Sequence[str]) -> list[str]:
    """How the library is to call the client. It writes every build argument with its value, which all users
    of a machine can read, so the arguments without come from here. It takes time quadratic in what comes on
    standard error, where builds print, so that goes to standard output.
    """
    options = shlex.join(part for name in args_by_name for part in ("--build-arg", name))
    return ["/bin/sh", "-c", f'exec "$0" "$@" {options} 2>&1', docker]


def main() -> None:
    """Build what standard input asks for."""
    request = Request(**json.loads(sys.stdin.buffer.readline()))
    from python_on_whales import DockerClient
    from python_on_whales.exceptions import DockerException

    _watch_parent()
    # The group's signal is for the client, whose end ends this process; a handler is not passed on to it.
    signal.signal(signal.SIGTERM, lambda *_: None)
    client = DockerClient(**request.client, client_call=client_call(request.docker, request.args_by_name))
    try:
        lines = cast(
            "Iterator[str]", client.buildx.build(**request.build, progress="plain", stream_logs=True)
        )
        for line in lines:
            sys.stdout.buffer.write(line.encode())
            sys.stdout.buffer.flush()
    except DockerException as error:
        code = error.return_code
        sys.exit(code if code > 0 else ENDED_BY_SIGNAL - code)


def _watch_parent() -> None:
    """End the group when standard input ends, which the client must not read."""
    lifeline = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)

    def wait() -> None:
        os.read(lifeline, 1)
        os.killpg(0, signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
