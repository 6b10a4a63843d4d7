"""What of this machine a bay's processes have no business with: the user's home, and sockets that do as told.

A container sees nothing of a home, and a list of every tool's secrets would never be complete. So the whole
home is hidden, and of it shown, read-only, what toolchains are in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# fmt: off
TOOLCHAINS = (
    ".asdf", ".bun", ".cache/Cypress", ".cache/ms-playwright", ".cache/puppeteer", ".cargo/bin",
    ".conda/envs", ".deno", ".dotnet", ".elan", ".exenv", ".fnm", ".ghcup", ".goenv", ".jabba", ".jdks",
    ".jenv", ".juliaup", ".linuxbrew", ".local/bin", ".local/lib", ".local/opt", ".local/share/fnm",
    ".local/share/mise", ".local/share/nvm", ".local/share/pipx", ".local/share/pnpm",
    ".local/share/rtx", ".local/share/uv", ".local/share/virtualenvs", ".local/state/nix", ".n",
    ".nix-profile", ".nodenv", ".nvm", ".opam", ".phpenv", ".pixi", ".plenv", ".proto", ".pyenv",
    ".rbenv", ".rustup", ".rvm", ".rye", ".sdkman", ".swiftly", ".tool-versions", ".volta",
)
# fmt: on
"""Where version managers and installers put programs, below a home."""

STILL_SECRET = (".bun/install/cache", ".cargo/credentials", ".cargo/credentials.toml", ".rvm/user")
"""What of the places above is no program."""

TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - looked at, not written to

SOCKETS = (
    "/run/docker.sock",
    "/run/containerd",
    "/run/podman",
    "/run/crio",
    "/run/buildkit",
    "/run/libvirt",
    "/run/user",
    "/run/dbus",
    "/run/systemd/private",
    "/run/screen",
    "/run/tmux",
)
"""Who may connect to these can start processes outside: engines, service managers, desktops, terminals.

A read-only folder does not keep a process from connecting to a socket in it.
"""


@dataclass(frozen=True)
class Hiding:
    """For a `View`: paths that are not there, and those below them that are."""

    hidden: tuple[Path, ...]
    visible: tuple[Path, ...]


def hiding(home: Path, path: str) -> Hiding:
    """What to hide on a machine where the user has this home and this `PATH`.

    A folder of `PATH` below the home is shown; where no name on the way starts with a dot, all of what a
    program beside `bin` is in (`~/miniconda3/bin` shows `~/miniconda3`). The same below the temporary
    folders, in whose place a process has its own.
    """
    sockets = tuple(Path(place) for place in SOCKETS)
    if home == Path("/") or not home.is_absolute():
        return Hiding(sockets, ())
    elsewhere = ":".join(word for word in path.split(":") if not Path(word).is_relative_to(home))
    temporary = (shown for base in TEMPORARY for shown in _of_path(base, elsewhere))
    shown = [*(home / place for place in TOOLCHAINS), *_of_path(home, path), *temporary]
    return Hiding((home, *(home / place for place in STILL_SECRET), *sockets), tuple(dict.fromkeys(shown)))


def _of_path(home: Path, path: str) -> Iterator[Path]:
    for word in path.split(":"):
        folder = Path(word)
        if not word or ".." in folder.parts or not folder.is_relative_to(home) or folder == home:
            continue
        inside = folder.relative_to(home).parts
        known = any(folder.is_relative_to(home / place) for place in TOOLCHAINS)
        if not known:
            whole = len(inside) > 1 and inside[-1] in ("bin", "sbin", "shims", "condabin")
            dotted = any(part.startswith(".") for part in inside)
            yield folder.parent if whole and not dotted else folder
