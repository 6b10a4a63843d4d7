"""Which engine the caller's environment means: the rules of the `docker` command, as data.

Order (docker/cli, `resolveContextName`): `DOCKER_HOST`, then `DOCKER_CONTEXT`, then `currentContext` of
`config.json`, then the default socket. The environment is the caller's, never the daemon's (decision 14).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from devbay.errors import DevbayError

DEFAULT_SOCKET = Path("/var/run/docker.sock")
DEFAULT_CONTEXT = "default"


@dataclass(frozen=True)
class Endpoint:
    """Where an engine answers. Holds paths and addresses, no secret, so a bay may store it.

    name: the context it came from (`default` also for `DOCKER_HOST`). host: `unix://`, `tcp://` or `ssh://`.
    ca, cert, key: files of the TLS material, or None. tls: speak TLS. verify: check the server's certificate.
    config_dir: the folder of `config.json`, where the credentials for pulls come from.
    """

    name: str
    host: str
    tls: bool = False
    verify: bool = True
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    config_dir: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON data that `from_json` reads back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Endpoint:
        return cls(**data)

    @property
    def socket(self) -> Path | None:
        """The unix socket of a local engine, None for any other."""
        return Path(self.host.removeprefix("unix://")) if self.host.startswith("unix://") else None


def resolve_endpoint(env: Mapping[str, str]) -> Endpoint:
    """The engine that `docker` would talk to in this environment.

    Raises `docker_context`: the named context does not exist or cannot be read.
    """
    config_dir = _config_dir(env)
    if host := env.get("DOCKER_HOST"):
        return _from_environment(env, host, config_dir)
    name = _context_name(env, config_dir)
    if name == DEFAULT_CONTEXT:
        return _from_environment(env, f"unix://{DEFAULT_SOCKET}", config_dir)
    return _from_context(name, config_dir)


def engine_configured(env: Mapping[str, str], *, default_socket: Path = DEFAULT_SOCKET) -> bool:
    """Whether the user pointed at an engine at all (decision 42); says nothing about its answering."""
    if env.get("DOCKER_HOST"):
        return True
    return _context_name(env, _config_dir(env)) != DEFAULT_CONTEXT or default_socket.exists()


def client_argv(endpoint: Endpoint) -> list[str]:
    """The start of a `docker` command line that talks to exactly this engine, whatever the environment."""
    argv = ["docker"]
    if endpoint.config_dir:
        argv += ["--config", endpoint.config_dir]
    argv += ["--host", endpoint.host]
    if endpoint.tls:
        argv.append("--tlsverify" if endpoint.verify else "--tls")
        files = {"--tlscacert": endpoint.ca, "--tlscert": endpoint.cert, "--tlskey": endpoint.key}
        for flag, path in files.items():
            if path:
                argv += [flag, path]
    return argv


def _config_dir(env: Mapping[str, str]) -> Path:
    if explicit := env.get("DOCKER_CONFIG"):
        return Path(explicit)
    home = env.get("HOME")
    return (Path(home) if home else Path.home()) / ".docker"


def _context_name(env: Mapping[str, str], config_dir: Path) -> str:
    if name := env.get("DOCKER_CONTEXT"):
        return name
    path = config_dir / "config.json"
    try:
        config = json.loads(path.read_bytes())
    except FileNotFoundError:
        return DEFAULT_CONTEXT
    except (OSError, ValueError) as error:
        raise DevbayError(
            "docker_context", f"cannot read {path}: {error}", next=f"correct or remove {path}"
        ) from error
    name = config.get("currentContext") if isinstance(config, dict) else None
    return name if isinstance(name, str) and name else DEFAULT_CONTEXT


def _from_environment(env: Mapping[str, str], host: str, config_dir: Path) -> Endpoint:
    """`DOCKER_HOST` or the default socket, with the TLS variables, which only count for TCP."""
    host = _normal_host(host)
    verify = bool(env.get("DOCKER_TLS_VERIFY"))
    if not host.startswith("tcp://") or not (verify or env.get("DOCKER_TLS")):
        return Endpoint(DEFAULT_CONTEXT, host, config_dir=str(config_dir))
    material = _material(Path(env.get("DOCKER_CERT_PATH") or config_dir))
    return Endpoint(DEFAULT_CONTEXT, host, tls=True, verify=verify, config_dir=str(config_dir), **material)


def _from_context(name: str, config_dir: Path) -> Endpoint:
    """A context from the store: `contexts/meta/<sha256 of the name>/meta.json` and `contexts/tls/...`."""
    folder = hashlib.sha256(name.encode()).hexdigest()
    path = config_dir / "contexts" / "meta" / folder / "meta.json"
    try:
        docker = json.loads(path.read_bytes())["Endpoints"]["docker"]
        host, skip_verify = str(docker.get("Host") or ""), bool(docker.get("SkipTLSVerify"))
    except FileNotFoundError as error:
        raise DevbayError(
            "docker_context",
            f"the Docker context {name!r} does not exist in {config_dir / 'contexts'}",
            next="docker context ls",
        ) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DevbayError(
            "docker_context",
            f"the Docker context {name!r} cannot be read from {path}: {type(error).__name__}: {error}",
            next=f"docker context inspect {name}",
        ) from error
    host = _normal_host(host) if host else f"unix://{DEFAULT_SOCKET}"
    material = _material(config_dir / "contexts" / "tls" / folder / "docker")
    tls = host.startswith("tcp://") and (any(material.values()) or skip_verify)
    if not tls:
        return Endpoint(name, host, config_dir=str(config_dir))
    return Endpoint(name, host, tls=True, verify=not skip_verify, config_dir=str(config_dir), **material)


def _material(folder: Path) -> dict[str, str | None]:
    found = {part: folder / f"{part}.pem" for part in ("ca", "cert", "key")}
    return {part: str(path) if path.is_file() else None for part, path in found.items()}


def _normal_host(host: str) -> str:
    """The forms that the client accepts as one; a password (which no transport uses) is dropped."""
    host = host.strip()
    if host.startswith("/"):
        return f"unix://{host}"
    if "://" not in host:
        host = f"tcp://{host}"
    parts = urlsplit(host)
    if parts.scheme in ("http", "https"):
        parts = parts._replace(scheme="tcp")
    if parts.password is not None:
        user = f"{parts.username}@" if parts.username else ""
        parts = parts._replace(netloc=user + parts.netloc.rpartition("@")[2])
    return urlunsplit(parts) if parts.scheme != "unix" else host
