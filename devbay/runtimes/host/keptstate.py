"""What is known of a kept service from its folder: the state its keeper wrote, and whether it still lives."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from devbay.runtimes.host import tree

KeptWord = Literal["created", "running", "paused", "restarting", "exited"]
KILLED = "its keeper was killed"
REBOOTED = "the machine was restarted"


@dataclass(frozen=True)
class KeptState:
    """The state of one service.

    mark: `<home id>/<bay id>/<name>`. ref: random, another one at each `start`. alive: its keeper lives.
    pid, started: main process and its start in clock ticks since boot, None if there is none. started_at:
    RFC 3339. exit_code: 128+n for a signal. config: as given to `start`. cgroup: see `Cgroup.text`.
    """

    mark: str
    ref: str
    state: KeptWord
    pid: int | None
    started: int | None
    keeper: int
    boot: str
    started_at: str
    exit_code: int | None
    restarts: int
    oom_killed: bool
    config: str
    cgroup: str
    reason: str
    alive: bool

    @property
    def bay(self) -> str:
        return self.mark.split("/")[1]

    @property
    def name(self) -> str:
        return self.mark.split("/")[2]


def holder(folder: Path) -> int:
    """The process that keeps a service's folder, as the kernel knows it; 0 if none does."""
    darwin = sys.platform == "darwin"  # the fields of `struct flock` stand in another order there
    question = (
        struct.pack("@qqihh", 0, 0, 0, fcntl.F_WRLCK, 0)
        if darwin
        else struct.pack("@hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
    )
    try:
        handle = os.open(folder / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        answer = fcntl.fcntl(handle, fcntl.F_GETLK, question)
    finally:
        os.close(handle)
    if darwin:
        _, _, pid, kind, _ = struct.unpack("@qqihh", answer)
    else:
        kind, _, _, _, pid = struct.unpack("@hhqqi4x", answer)
    return 0 if kind == fcntl.F_UNLCK else int(pid)


def read_state(folder: Path) -> KeptState | None:
    """The state of the service kept in `folder`; None if none ever was.

    One whose keeper is gone without having said so has `exited`, with the reason.
    """
    found = _parse(folder)
    if found is None:
        return None
    if holder(folder):
        return KeptState(**found, alive=True)
    found = _parse(folder) or found  # the keeper may have said its last word in between
    if found["state"] != "exited":
        boot = tree.boot_id()
        reason = REBOOTED if boot and found["boot"] != boot else KILLED
        found |= {"state": "exited", "pid": None, "started": None, "reason": reason}
    return KeptState(**found, alive=False)


def _parse(folder: Path) -> dict[str, Any] | None:
    try:
        found = json.loads((folder / "state.json").read_bytes())
    except (FileNotFoundError, ValueError):  # the second: the machine lost power before the disk had it
        return None
    known = isinstance(found, dict) and found.get("state") in get_args(KeptWord)
    if not known or set(KeptState.__dataclass_fields__) - {"alive"} - set(found):
        return None
    return {key: found[key] for key in KeptState.__dataclass_fields__ if key != "alive"}
