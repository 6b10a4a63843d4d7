"""What of the caller's environment a bay of this machine may use: where tools are, and the way out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TOOLCHAINS = frozenset(
    {
        "ASDF_DATA_DIR", "ASDF_DIR", "CARGO_HOME", "DOTNET_ROOT", "FNM_DIR", "GOROOT", "JAVA_HOME",
        "MISE_DATA_DIR", "NVM_DIR", "PYENV_ROOT", "RBENV_ROOT", "RUSTUP_HOME", "SDKMAN_DIR",
        "UV_PYTHON_INSTALL_DIR", "VOLTA_HOME",
    }
)  # fmt: skip
"""Where version managers keep what they installed."""

OUTBOUND = frozenset(
    {
        "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "REQUESTS_CA_BUNDLE",
        "SSL_CERT_DIR", "SSL_CERT_FILE",
    }
)  # fmt: skip
"""Certificates that this machine trusts; proxies are known by their ending."""

_LOCALE = frozenset({"LANG", "LANGUAGE", "TZ"})
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Machine:
    """path: the caller's `PATH`. user_home: below which version managers look. env: those of `TOOLCHAINS`,
    `OUTBOUND`, the locale, and proxies that need no password; nothing secret, since a bay's record keeps it.
    """

    path: str
    user_home: Path
    env: Mapping[str, str] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, env: Mapping[str, str]) -> Machine:
        """The machine as a caller with this environment sees it."""
        return cls(
            env.get("PATH") or _DEFAULT_PATH,
            Path(env.get("HOME") or Path.home()),
            {name: value for name, value in sorted(env.items()) if value and _allowed(name, value)},
        )

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "home": str(self.user_home), "env": dict(self.env)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Machine:
        return cls(data["path"], Path(data["home"]), dict(data["env"]))

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of `path` without relative ones, which would mean another place in each process, and
        those of virtual environments and `node_modules`, which are another project's.
        """
        found = (Path(word) for word in self.path.split(os.pathsep) if word.startswith("/"))
        return tuple(dict.fromkeys(folder for folder in found if not _of_a_project(folder)))

    def folder(self, name: str, default: str) -> Path:
        """The folder that a variable names, else one below the user's home."""
        named = self.env.get(name, "")
        return Path(named) if named.startswith("/") else self.user_home / default


def _allowed(name: str, value: str) -> bool:
    if name in TOOLCHAINS or name in OUTBOUND or name in _LOCALE or name.startswith("LC_"):
        return True
    return name.upper() in {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"} and not _has_password(value)


def _has_password(value: str) -> bool:
    try:
        return "@" in (urlsplit(value).netloc if "://" in value else value)
    except ValueError:  # no URL: nothing that one would want to use either
        return True


def _of_a_project(folder: Path) -> bool:
    return folder.parent.name == "node_modules" or (folder.parent / "pyvenv.cfg").is_file()
