"""Talking to keepers: starting one, and asking a live one over its socket."""

from __future__ import annotations

import errno
import logging
import marshal
import os
import signal
import socket as sockets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import devbay
from devbay.errors import WORK_FAILED, DevbayError
from devbay.runtimes.host import tree
from devbay.runtimes.host.cgroups import Cgroup
from devbay.runtimes.host.keptstate import holder
from devbay.runtimes.host.launch import MARK, Launch

log = logging.getLogger(__name__)

KEEPER_MARK = "DEVBAY_KEEPER"
"""Marks keepers themselves, with the same value as `MARK` marks what they keep."""
# The package is found behind the standard library, so that none of its modules can take one's place.
CODE = "import sys; sys.path.append(sys.argv[1]); from devbay.runtimes.host.keeper import main; main()"
FULL = {
    errno.EMFILE: "no file handle is left",
    errno.ENFILE: "no file handle is left",
    errno.ENOMEM: "no memory is left",
    errno.EAGAIN: "no further process may be started",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
}


def command() -> list[str]:
    """The argv of a keeper: isolated from the environment and without site packages."""
    return [sys.executable, "-I", "-S", "-c", CODE, str(Path(devbay.__file__).parent.parent)]


def environment(mark: str) -> dict[str, str]:
    """The whole environment of a keeper."""
    return {KEEPER_MARK: mark, "LC_ALL": "C.UTF-8"}


def order(launch: Launch, cgroup: Cgroup | None, **more: Any) -> bytes:
    """What a keeper reads: length and content. Text is given as the bytes the kernel takes."""
    env = {**launch.env, MARK: launch.mark}
    memory = launch.limits.memory if launch.limits else None
    content = marshal.dumps(
        {
            "argv": [os.fsencode(word) for word in (*launch.prefix, *launch.argv)],
            "env": {os.fsencode(key): os.fsencode(value) for key, value in env.items()},
            "cwd": os.fsencode(launch.cwd),
            "user": launch.user,
            "memory": memory,
            "restart": launch.restart,
            "stop_signal": int(launch.stop_signal),
            "mark": f"{MARK}={launch.mark}",
            "sandbox": Path(launch.prefix[0]).name[:15] if launch.prefix else "",
            "cgroup": (cgroup.version, cgroup.folders) if cgroup else (0, {}),
            **more,
        }
    )
    return len(content).to_bytes(8, "little") + content


def connect(folder: Path, path: Path) -> sockets.socket | None:
    """A connection to the keeper of `folder`; None if there is none.

    A keeper whose socket was removed, by a cleaner of temporary folders, is asked to make it again.
    """
    for attempt in range(100):
        connection = sockets.socket(sockets.AF_UNIX)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError):
            connection.close()
        except OSError:
            connection.close()
            raise
        else:
            return connection
        keeper = holder(folder)
        if not keeper:
            return None
        if attempt % 20 == 5:
            _signal_holder(folder, keeper)
        time.sleep(0.01)
    raise DevbayError(
        "keeper_silent",
        f"the keeper {keeper} of {folder.name} does not answer",
        next=f"end the process {keeper}, then repeat",
        exit_code=WORK_FAILED,
    )


def _signal_holder(folder: Path, keeper: int) -> None:
    found = tree.process(keeper)
    if found is not None and holder(folder) == keeper:  # so the process looked at holds the lock
        tree.send(found, signal.SIGHUP)


def failed(launch: Launch, stage: str, number: int) -> DevbayError:
    """What to tell of a process that could not be started, by the stage and error that its keeper names."""
    if number in FULL:
        return full(launch.argv[0], number)
    program = (*launch.prefix, *launch.argv)[0]
    why = os.strerror(number)
    if stage == "folder":
        return DevbayError(
            "no_workdir",
            f"{launch.cwd}: {why}",
            next="correct `workdir`, or make the folder",
            exit_code=WORK_FAILED,
        )
    if stage != "program":
        return DevbayError("not_started", f"{program}: setting its {stage}: {why}", exit_code=WORK_FAILED)
    there = "/" in program and (Path(launch.cwd) / program).exists()
    if number == errno.ENOENT and there:
        why = "the interpreter that its first line names is missing"
    elif number == errno.ENOENT:
        why = "there is no such program" + ("" if "/" in program else " in PATH")
    elif number == errno.ENOEXEC:
        why = "it is neither a program nor a script with `#!` in its first line"
    elif number == errno.EACCES:
        why = "it may not be executed"
    return DevbayError(
        "not_executable",
        f"{program}: {why}",
        next="install it or correct the command in devbay.yaml",
        exit_code=WORK_FAILED,
        program=program,
    )


def full(what: str, number: int) -> DevbayError:
    """The machine has none left of what `number` (an errno of `FULL`) names."""
    return DevbayError(
        "machine_full",
        f"{what} could not be started: {FULL[number]}",
        next="put bays to rest (`devbay ls`, `devbay cool BAY`) or end other programs, then repeat",
        exit_code=WORK_FAILED,
    )


@contextmanager
def told_when_full(what: str) -> Iterator[None]:
    """An operating system's refusal inside the block for want of anything is `machine_full`."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise full(what, error.errno) from error
        raise


def spawn(launch: Launch, output: int | None = None) -> subprocess.Popen[bytes]:
    """A keeper that waits for its order; `output` is a handle that it inherits. Raises `machine_full`."""
    with told_when_full(launch.argv[0]):
        return subprocess.Popen(
            command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env=environment(launch.mark),
            pass_fds=() if output is None else (output,),
        )


def start(launch: Launch, content: bytes) -> str:
    """Start a service's keeper with this order; returns its word (`ok <ref>`, `held`, `failed ...`)."""
    starter = spawn(launch)
    # Ends as soon as the service is started: its keeper then lets go of these pipes.
    said, fault = starter.communicate(content)
    word = said.decode().strip()
    if not word:
        raise broken(launch, fault)
    return word


def broken(launch: Launch, fault: bytes) -> DevbayError:
    """A keeper ended without its word."""
    lines = fault.decode(errors="replace").strip().splitlines() or ["it was killed"]
    log.error("the keeper of %s: %s", launch.mark, "\n".join(lines))
    return DevbayError(
        "keeper_failed",
        f"what keeps {launch.argv[0]} ended: {lines[-1]}",
        next="repeat",
        exit_code=WORK_FAILED,
    )
