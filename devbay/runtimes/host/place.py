"""Where the host runtime keeps what bays, templates and copied servers are made of."""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from devbay.home import Home, private_dir
from devbay.runtimes.host.spread import spread

SYSTEM = Path("/var/lib/devbay")
STAMP = "installed"


@dataclass(frozen=True)
class Place:
    """Folders of one home. root: everything that lasts; sockets: a short path, gone with a reboot."""

    root: Path
    sockets: Path

    @classmethod
    def of(cls, home: Home) -> Place:
        """Root's data lies where a server that may not run as root reaches it: homes of root are closed."""
        root = SYSTEM / home.id[:8] if os.getuid() == 0 else home.state_dir / "host"
        return cls(root, home.runtime_dir)

    def make(self) -> None:
        """Make the root: closed, but for root's, which servers that run as others must pass through."""
        if self.root.parent != SYSTEM:
            private_dir(self.root)
        else:
            for folder in (SYSTEM, self.root):
                folder.mkdir(mode=0o711, exist_ok=True)
                folder.chmod(0o711)
        if not self.bays.is_dir():
            self.bays.mkdir(mode=0o711, exist_ok=True)
            spread(self.bays)

    def remove_if_empty(self) -> None:
        """Leave nothing where there is nothing to keep."""
        for folder in (self.bays, self.templates, self.caches, self.servers, self.root):
            with contextlib.suppress(OSError):
                folder.rmdir()
        if self.root.parent == SYSTEM:
            with contextlib.suppress(OSError):
                SYSTEM.rmdir()

    @property
    def bays(self) -> Path:
        return self.root / "bays"

    @property
    def templates(self) -> Path:
        """Prepared data directories and installed dependencies, by key; never given out, only copied."""
        return self.root / "templates"

    @property
    def caches(self) -> Path:
        """Package managers' download caches, per project."""
        return self.root / "caches"

    @property
    def servers(self) -> Path:
        """Servers copied for a user who cannot reach where they were installed."""
        return self.root / "servers"

    def bay(self, bay: str) -> Path:
        return self.bays / bay

    def service(self, bay: str, service: str) -> Path:
        """State, lock and log of one service."""
        return self.bay(bay) / "services" / service

    def data(self, bay: str, service: str) -> Path:
        """A server's data directory: everything that a fork of the service must copy, and nothing else."""
        return self.bay(bay) / "data" / service

    def own(self, bay: str, service: str, kind: str) -> Path:
        """A service's `home`, `tmp`, `env` (its toolchain's environment) and so on."""
        return self.bay(bay) / "own" / service / kind

    def venv(self, bay: str, service: str) -> Path:
        """The virtual environment that a service runs in: that of its install, which services may share."""
        return self.venvs(bay) / self.installed(bay, service)[:16]

    def venvs(self, bay: str) -> Path:
        return self.bay(bay) / "venvs"

    def installed(self, bay: str, service: str) -> str:
        """The key of the dependencies that the bay has for a service; `none` before there are any."""
        try:
            return self.own(bay, service, STAMP).read_text()
        except FileNotFoundError:
            return "none"

    def volume(self, bay: str, service: str, path: str) -> Path:
        """The folder behind a volume of the manifest, by its path inside the service."""
        digest = hashlib.sha256(path.encode()).hexdigest()[:12]
        return self.bay(bay) / "volumes" / service / digest

    def socket(self, bay: str, name: str) -> Path:
        """A keeper's control socket; short, since socket paths end at 103 bytes on some systems."""
        return self.sockets / f"k{hashlib.sha256(f'{bay}/{name}'.encode()).hexdigest()[:16]}"
