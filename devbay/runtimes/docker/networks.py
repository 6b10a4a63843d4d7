"""Networks with a subnet of their own, and the subnets that the engine has given away."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from devbay.errors import WORK_FAILED, DevbayError
from devbay.runtimes.docker.engine import Engine

ATTEMPTS = 5


@dataclass(frozen=True)
class Network:
    """A network of the engine; subnets as CIDR."""

    id: str
    name: str
    labels: Mapping[str, str]
    subnets: tuple[str, ...]
    internal: bool
    containers: tuple[str, ...] = ()


def ensure(
    engine: Engine, name: str, subnet: str, labels: Mapping[str, str], *, internal: bool = False
) -> str:
    """Make the bridge network, or take the one of this name and these labels; returns its id.

    One of ours with another subnet is made anew if nothing is on it, else it stays. Raises
    `network_overlap` (take another subnet), `name_conflict` (somebody else's network has the name).
    """
    body = {
        "Name": name,
        "Driver": "bridge",
        "CheckDuplicate": True,  # engines before 25 would make a second one of the same name
        "Internal": internal,
        "IPAM": {"Config": [{"Subnet": subnet}]},
        "Labels": dict(labels),
    }
    for _attempt in range(ATTEMPTS):
        try:
            made = engine.call("POST", "/networks/create", body=body, doing=f"create the network {name}")
            return str(made["Id"])
        except DevbayError as error:
            if error.code != "name_conflict":
                raise
            found = inspect(engine, name)
            if found is None:
                continue  # removed between the two calls
            if not labels.items() <= found.labels.items():
                raise
        as_wanted = subnet in found.subnets and internal == found.internal
        if as_wanted or found.containers:
            return found.id
        remove(engine, found.id)
    raise DevbayError(
        "engine_error",
        f"the network {name} was made and removed by somebody else {ATTEMPTS} times",
        next="try again",
        exit_code=WORK_FAILED,
    )


def remove(engine: Engine, network: str) -> None:
    """Remove it, whatever is still on it; one that is gone is fine."""
    for attempt in range(ATTEMPTS):
        try:
            engine.call("DELETE", f"/networks/{network}", doing=f"remove the network {network}")
            return
        except DevbayError as error:
            if error.code == "not_found":
                return
            if error.code != "network_in_use" or attempt == ATTEMPTS - 1:
                raise
        found = inspect(engine, network)
        for container in found.containers if found else ():
            disconnect(engine, network, container)


def inspect(engine: Engine, network: str) -> Network | None:
    """The network with this id or name, with what is on it; None if there is none."""
    try:
        return _network(engine.call("GET", f"/networks/{network}"))
    except DevbayError as error:
        if error.code == "not_found":
            return None
        raise


def find(engine: Engine, labels: Mapping[str, str]) -> list[Network]:
    """All networks with these labels, in one call (without what is on them)."""
    filters = {"label": [f"{name}={value}" for name, value in labels.items()]}
    found = engine.call("GET", "/networks", params={"filters": json.dumps(filters)})
    return [_network(item) for item in found]


def subnets(engine: Engine, *, besides: str = "") -> list[str]:
    """The subnets (CIDR) of all the engine's networks except that of this name, in one call."""
    networks = [_network(item) for item in engine.call("GET", "/networks")]
    return [cidr for network in networks if network.name != besides for cidr in network.subnets]


def connect(engine: Engine, network: str, container: str, *, aliases: Iterable[str]) -> None:
    """Put a container on the network under these names; one that is on it is fine."""
    body = {"Container": container, "EndpointConfig": {"Aliases": list(aliases)}}
    try:
        engine.call("POST", f"/networks/{network}/connect", body=body, doing="join the network")
    except DevbayError as error:
        if "already exists in network" not in error.message:
            raise


def disconnect(engine: Engine, network: str, container: str) -> None:
    """Take a container off the network; one that is not on it is fine."""
    try:
        engine.call("POST", f"/networks/{network}/disconnect", body={"Container": container, "Force": True})
    except DevbayError as error:
        if error.code not in ("not_found", "not_connected"):
            raise


def _network(found: Mapping[str, Any]) -> Network:
    configs = (found.get("IPAM") or {}).get("Config") or []
    return Network(
        id=found["Id"],
        name=found["Name"],
        labels=found.get("Labels") or {},
        subnets=tuple(config["Subnet"] for config in configs if config.get("Subnet")),
        internal=bool(found.get("Internal")),
        containers=tuple(found.get("Containers") or {}),
    )
