"""Credentials for pulls, from the Docker configuration of whoever asked (decisions 14 and 44).

The `docker` package would read them from the daemon's own environment and find credential helpers on the
daemon's PATH, so both are given here.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devbay.errors import WORK_FAILED, DevbayError


def registry_auth(reference: str, config_dir: str, env: Mapping[str, str]) -> bytes | None:
    """The `X-Registry-Auth` header for pulling `reference`, None if the configuration has nothing for it.

    Raises `docker_config` if `config.json` cannot be read and `credential_helper` if the helper it names is
    missing or fails. What a helper says on stderr is not shown: it may hold a secret.
    """
    from docker import auth
    from docker.errors import DockerException

    path = Path(config_dir) / "config.json"
    config = _read(path)
    if not config.keys() & {"auths", "credsStore", "credHelpers"}:
        return None
    registry, _name = auth.resolve_repository_name(reference.partition("@")[0])
    try:
        known: Any = auth.load_config(config_dict=config, credstore_env=dict(env))
        helper = known.get_credential_store(registry)
        if helper:
            known._stores[helper] = _store(helper, env, path)
        found = known.resolve_authconfig(registry)
    except (DockerException, ValueError) as error:
        raise DevbayError(
            "credential_helper",
            f"the credentials for {registry} in {path} cannot be used ({type(error).__name__})",
            next=f"docker login {registry}",
            exit_code=WORK_FAILED,
        ) from error
    return bytes(auth.encode_header(found)) if found else None


def _read(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise DevbayError(
            "docker_config", f"cannot read {path}: {error}", next=f"correct or remove {path}"
        ) from error
    return config if isinstance(config, dict) else {}


def _store(helper: str, env: Mapping[str, str], path: Path) -> Any:
    from docker import credentials

    program = f"docker-credential-{helper}"
    executable = shutil.which(program, path=env.get("PATH"))
    if executable is None:
        raise DevbayError(
            "credential_helper",
            f"{path} names the credential helper {program}, which is not on the PATH",
            next=f"install {program}, or remove it from {path}",
            exit_code=WORK_FAILED,
        )
    store = credentials.Store.__new__(credentials.Store)  # its __init__ looks on the daemon's PATH
    store.program, store.exe, store.environment = program, executable, dict(env)
    return store
