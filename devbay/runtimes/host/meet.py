"""What of this machine stands in for a service's image: a server program, or a language's toolchain."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from devbay.errors import WORK_FAILED, DevbayError
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.host.machine import Machine
from devbay.runtimes.host.providers import Provider, Server, provider
from devbay.runtimes.host.toolchains import Toolchain, find, refusal

WAYS_OUT = "give the service an `image:` and `start:`, or start a container engine and make the bay anew"


@dataclass(frozen=True)
class Met:
    """Exactly one of the two is set, or neither: a command of this machine itself (`in: host`)."""

    provider: Provider | None = None
    server: Server | None = None
    toolchain: Toolchain | None = None

    @property
    def is_this_machine(self) -> bool:
        return self.server is None and self.toolchain is None

    @property
    def identity(self) -> str:
        """Changes when something else would run: part of every service's fingerprint."""
        if self.server is not None:
            return f"server {self.server.identity}"
        return f"toolchain {self.toolchain.identity}" if self.toolchain else "machine"

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where what stands in lies, with its libraries: to be seen also where the user's home is hidden."""
        if self.server is not None:
            return (self.server.tree or self.server.bin,)
        return (self.toolchain.program.parent.parent,) if self.toolchain else ()

    @property
    def image(self) -> str:
        """Stands where other runtimes have an image's id."""
        return f"host:{hashlib.sha256(self.identity.encode()).hexdigest()[:16]}"

    @property
    def notes(self) -> tuple[str, ...]:
        note = self.server.note if self.server else self.toolchain.note if self.toolchain else ""
        return (note,) if note else ()


def meet(spec: ServiceSpec, machine: Machine, data: Path | None = None) -> Met:
    """What a service or task runs on here; raises `image_not_met` naming the ways out.

    data: the service's data directory, if there is one: a server that can read it comes first.
    """
    if spec.docker_socket:
        raise _refused(f"{spec.name} wants a container engine's socket, and bays of this machine have none")
    if spec.build is not None:
        raise _refused(f"{spec.name} is built from {spec.build.dockerfile}, which takes a container engine")
    if spec.image is None:
        return Met()
    if (found := provider(spec.image)) is not None:
        return Met(found, found.find(spec.image, machine.path, data))
    toolchain = find(spec.image, machine)
    if toolchain is None:
        raise refusal(spec.image, machine)
    return Met(toolchain=toolchain)


def _refused(message: str) -> DevbayError:
    return DevbayError("image_not_met", message, next=WAYS_OUT, exit_code=WORK_FAILED)
