"""Where devbay keeps things. Standard library only: the pipe and the thin client import this.

`DEVBAY_HOME` holds everything below one folder; without it the XDG directories are used. Sockets are
apart, because their path may not exceed 107 bytes (103 on macOS).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from devbay.errors import DevbayError


@dataclass(frozen=True)
class Home:
    """The folders of one devbay installation of one user."""

    config_dir: Path
    state_dir: Path
    runtime_parent: Path

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> Home:
        """`DEVBAY_HOME`, else `XDG_CONFIG_HOME` and `XDG_STATE_HOME` with their defaults."""
        user_home = Path(env.get("HOME") or Path.home())
        if root := env.get("DEVBAY_HOME"):
            config = state = Path(root).expanduser().absolute()
        else:
            config = Path(env.get("XDG_CONFIG_HOME") or user_home / ".config") / "devbay"
            state = Path(env.get("XDG_STATE_HOME") or user_home / ".local" / "state") / "devbay"
        runtime = env.get("XDG_RUNTIME_DIR")
        parent = Path(runtime) / "devbay" if runtime else _temporary() / f"devbay-{os.getuid()}"
        return cls(config, state, parent)

    @cached_property
    def id(self) -> str:
        """A random id of 16 hex digits, made once and kept in the state folder."""
        path = self.state_dir / "home-id"
        try:
            return path.read_text().strip()
        except FileNotFoundError:
            pass
        import secrets  # 10 ms, needed once in the life of a home

        private_dir(self.state_dir)
        draft = path.with_name(f"home-id.{os.getpid()}.{secrets.token_hex(4)}")
        draft.write_text(secrets.token_hex(8) + "\n")
        try:
            os.link(draft, path)  # the first of two concurrent starts wins
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        return path.read_text().strip()

    @cached_property
    def runtime_dir(self) -> Path:
        """A folder of mode 0700 for sockets, made and checked to be the user's own."""
        private_dir(self.runtime_parent)
        return private_dir(self.runtime_parent / self.id[:8])

    @property
    def machine_dir(self) -> Path:
        """A folder of this user's that every home of this machine shares, whatever `XDG_RUNTIME_DIR` says."""
        return private_dir(Path("/tmp") / f"devbay-{os.getuid()}")  # noqa: S108  # checked to be ours

    @property
    def socket(self) -> Path:
        return self.runtime_dir / "devbayd.sock"

    @property
    def store(self) -> Path:
        return self.state_dir / "state.db"

    @property
    def logs(self) -> Path:
        return self.state_dir / "logs"

    @property
    def runs(self) -> Path:
        return self.state_dir / "runs"

    @property
    def trash(self) -> Path:
        return self.state_dir / "trash"

    @property
    def proxy(self) -> Path:
        return self.state_dir / "proxy"

    @cached_property
    def config(self) -> dict[str, Any]:
        """`config.toml` as data; empty if there is none. Raises `bad_config` if it is not TOML."""
        import tomllib  # 7 ms that the pipe never needs

        path = self.config_dir / "config.toml"
        try:
            return tomllib.loads(path.read_text())
        except FileNotFoundError:
            return {}
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DevbayError("bad_config", f"{path}: {error}", next=f"correct {path}") from error


def _temporary() -> Path:
    import tempfile  # 3 ms, needed only without XDG_RUNTIME_DIR

    return Path(tempfile.gettempdir())


def private_dir(path: Path) -> Path:
    """Make a folder of mode 0700; refuse one that is a link, another user's, or open to others."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise DevbayError(
            "unsafe_directory",
            f"{path} is not a directory of this user",
            next=f"remove {path} or set XDG_RUNTIME_DIR / DEVBAY_HOME",
        )
    if found.st_mode & 0o077:
        path.chmod(0o700)
    return path


def write_private(path: Path, text: str) -> None:
    """Write a file of mode 0600 that holds either the old or the new text, whenever this process dies."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    draft.touch(mode=0o600)
    draft.write_text(text)
    draft.replace(path)
