"""The environment of a process of this machine: its own folders, its toolchain, and little of the caller's.

Of the caller's environment come PATH (without other projects' folders), the locale and time zone, the
certificates the machine trusts and proxies without a password (all in `Machine`). Nothing else does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from devbay.runtimes.host.machine import TOOLCHAINS, Machine
from devbay.runtimes.host.toolchains import Toolchain
from devbay.runtimes.outbound import Outbound


@dataclass(frozen=True)
class Folders:
    """What a process writes to. home, tmp: the service's own. caches: downloads, shared by the project's
    bays. venv: the service's virtual environment. project_venv: the service keeps a `.venv` of its own among
    its volumes, so that tools which make one shall use that.
    """

    home: Path
    tmp: Path
    caches: Path
    venv: Path | None = None
    project_venv: bool = False


def environment(
    toolchain: Toolchain | None,
    folders: Folders,
    machine: Machine,
    outbound: Outbound,
    own: Mapping[str, str],
) -> dict[str, str]:
    """The whole environment of a process whose service sets `own`, which wins.

    But for PATH: what the service sets goes behind the toolchain's folders, since it names an image's.
    """
    shared = {name: value for name, value in machine.env.items() if name not in TOOLCHAINS}
    found = {
        **shared,
        **outbound.env_here(),
        **_places(folders),
        **_package_managers(folders, machine),
        **dict(toolchain.env if toolchain else ()),
        **_python(toolchain, folders),
        **own,
    }
    return {**found, "PATH": _path(toolchain, folders, machine, own.get("PATH", ""))}


def _places(folders: Folders) -> dict[str, str]:
    home = folders.home
    return {
        "HOME": str(home),
        "TMPDIR": str(folders.tmp),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_STATE_HOME": str(home / ".local/state"),
    }


def _package_managers(folders: Folders, machine: Machine) -> dict[str, str]:
    """Global installs go to the service's home, downloads to the project's caches.

    Only what a tool never changes once it is there, and guards against two at once, may be shared: not what
    holds a project's own builds (Maven's and Gradle's repositories), and nothing that would be linked into a
    bay instead of copied (uv, pnpm and Bun link by default, so that a bay could change what others run; for
    pnpm see `pnpm_store`).
    """
    home, caches = folders.home, folders.caches
    return {
        "BUNDLE_USER_CACHE": str(caches / "bundle"),
        "BUNDLE_PATH": str(home / ".bundle/gems"),
        "BUN_INSTALL": str(home / ".bun"),
        "CARGO_HOME": str(caches / "cargo"),
        "CARGO_INSTALL_ROOT": str(home / ".cargo"),
        "COMPOSER_CACHE_DIR": str(caches / "composer"),
        "COMPOSER_HOME": str(home / ".composer"),
        "COREPACK_ENABLE_DOWNLOAD_PROMPT": "0",
        "COREPACK_HOME": str(caches / "corepack"),
        "DENO_DIR": str(caches / "deno"),
        "DENO_INSTALL_ROOT": str(home / ".deno"),
        "DOTNET_CLI_HOME": str(home),
        "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
        "DOTNET_NOLOGO": "1",
        "GEM_HOME": str(home / ".gem"),
        "GOCACHE": str(caches / "go-build"),
        "GOFLAGS": "-modcacherw",  # else only a chmod lets the cache be removed
        "GOMODCACHE": str(caches / "go-mod"),
        "GOPATH": str(home / "go"),
        "GRADLE_USER_HOME": str(home / ".gradle"),
        "HEX_HOME": str(home / ".hex"),
        "MAVEN_OPTS": f"-Dmaven.repo.local={home / '.m2/repository'}",  # Java's idea of a home is passwd's
        "MIX_HOME": str(home / ".mix"),
        "NUGET_PACKAGES": str(home / ".nuget/packages"),
        "NUGET_HTTP_CACHE_PATH": str(caches / "nuget"),
        "POETRY_CACHE_DIR": str(caches / "poetry"),
        "RUSTUP_HOME": str(machine.folder("RUSTUP_HOME", ".rustup")),
        "YARN_CACHE_FOLDER": str(caches / "yarn"),
        "npm_config_cache": str(caches / "npm"),
        "npm_config_prefix": str(home / ".npm-global"),
        "npm_config_update_notifier": "false",
    }


def pnpm_store(folders: Folders) -> dict[str, str]:
    """For commands that name pnpm: npm warns of what it does not know, and both read the same names."""
    return {
        "npm_config_package_import_method": "clone-or-copy",
        "npm_config_store_dir": str(folders.caches / "pnpm"),
    }


def _python(toolchain: Toolchain | None, folders: Folders) -> dict[str, str]:
    found = {
        "PIP_CACHE_DIR": str(folders.caches / "pip"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_REQUIRE_VIRTUALENV": "1",
        "PYTHONUSERBASE": str(folders.home / ".local"),
        "UV_CACHE_DIR": str(folders.caches / "uv"),
        "UV_LINK_MODE": "copy",
    }
    if folders.venv is None:
        return found
    found["VIRTUAL_ENV"] = str(folders.venv)
    if not folders.project_venv:
        found["UV_PROJECT_ENVIRONMENT"] = str(folders.venv)
    if toolchain is not None and toolchain.family == "python":
        found["UV_PYTHON"] = str(toolchain.program)
    return found


def _path(toolchain: Toolchain | None, folders: Folders, machine: Machine, own: str) -> str:
    home = folders.home
    named = [Path(word) for word in own.split(os.pathsep) if word.startswith("/")]
    places = [
        *([folders.venv / "bin"] if folders.venv else []),
        *(toolchain.bin if toolchain else ()),
        *(home / name for name in (".local/bin", ".npm-global/bin", ".gem/bin", "go/bin", ".cargo/bin")),
        *named,
        *machine.folders,
    ]
    return os.pathsep.join(dict.fromkeys(map(str, places)))
