"""Why compose would refuse a stack that can be read: what is not declared, what contradicts itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from devbay.detect.compose.model import ComposeResult, FileObject, Refusal, Service
from devbay.detect.compose.tree import Map, mapping, shown

TOP = frozenset({
    "configs", "include", "models", "name", "networks", "secrets", "services", "version", "volumes",
})  # fmt: skip
SERVICE = frozenset({
    "annotations", "attach", "blkio_config", "build", "cap_add", "cap_drop", "cgroup", "cgroup_parent",
    "command", "configs", "container_name", "cpu_count", "cpu_percent", "cpu_period", "cpu_quota",
    "cpu_rt_period", "cpu_rt_runtime", "cpu_shares", "cpus", "cpuset", "credential_spec", "depends_on",
    "deploy", "develop", "device_cgroup_rules", "devices", "dns", "dns_opt", "dns_search", "domainname",
    "entrypoint", "env_file", "environment", "expose", "extends", "external_links", "extra_hosts", "gpus",
    "group_add", "healthcheck", "hostname", "image", "init", "ipc", "isolation", "label_file", "labels",
    "links", "logging", "mac_address", "mem_limit", "mem_reservation", "mem_swappiness", "memswap_limit",
    "models", "network_mode", "networks", "oom_kill_disable", "oom_score_adj", "pid", "pids_limit",
    "platform", "ports", "post_start", "pre_stop", "privileged", "profiles", "provider", "pull_policy",
    "pull_refresh_after", "read_only", "restart", "runtime", "scale", "secrets", "security_opt", "shm_size",
    "stdin_open", "stop_grace_period", "stop_signal", "storage_opt", "sysctls", "tmpfs", "tty", "ulimits",
    "use_api_socket", "user", "userns_mode", "uts", "volumes", "volumes_from", "working_dir",
})  # fmt: skip
"""Keys of the Compose Specification (compose-go 2.9); an older compose refuses the newest of them."""
_LISTS = (
    "cap_add", "cap_drop", "configs", "devices", "expose", "links", "ports", "profiles", "secrets", "volumes",
)  # fmt: skip


_ONCE = ("external_links", "group_add", "security_opt", "volumes_from")
_TEXTS = (
    "cgroup", "cgroup_parent", "container_name", "domainname", "hostname", "image", "ipc", "mac_address",
    "network_mode", "pid", "platform", "pull_policy", "restart", "runtime", "stop_signal", "user",
    "userns_mode", "uts", "working_dir",
)  # fmt: skip


def unknown(model: Map) -> Iterator[Refusal]:
    """Keys that no compose knows, and values of a kind that their key does not take."""
    for key in model:
        if key not in TOP and not key.startswith("x-"):
            yield Refusal(f"{key} is no section of a compose file", model.at.get(key))
    services = model.get("services")
    if services is not None and not isinstance(services, Map):
        yield Refusal("services must be a mapping", model.at.get("services"))
    for name, service in mapping(services).items():
        where = mapping(services).at.get(name)
        if not isinstance(service, Map):
            yield Refusal(f"services.{name} must be a mapping", where)
            continue
        for key, value in service.items():
            if key not in SERVICE and not key.startswith("x-"):
                yield Refusal(f"services.{name}.{key} is no field of a service", service.at.get(key, where))
            elif key in _LISTS and not isinstance(value, list):
                yield Refusal(f"services.{name}.{key} must be a list", service.at.get(key, where))
            elif key in _TEXTS and not isinstance(value, str):
                yield Refusal(f"services.{name}.{key} must be a text", service.at.get(key, where))
            elif key in _ONCE and isinstance(value, list) and len({*map(shown, value)}) < len(value):
                yield Refusal(f"services.{name}.{key} has an item twice", service.at.get(key, where))


def refusals(result: ComposeResult) -> Iterator[Refusal]:
    """What is wrong between the parts of a stack, as `checkConsistency` of compose-go finds it."""
    known = {service.name: service for service in result.services}
    for service in result.services:
        for text, key in (*_alone(service), *_with_others(service, known), *_declared(service, result)):
            shown = f"with the profile {service.profiles[0]}: " if service.profiles else ""
            yield Refusal(f"{shown}services.{service.name}{text}", service.at(key))
    for kind, declared in (("secrets", result.secrets), ("configs", result.configs)):
        yield from _sources(kind, declared)
    if (circle := _circle(known)) is not None:
        first = known[circle[0]]
        yield Refusal(f"services wait for each other: {' -> '.join(circle)}", first.at("depends_on"))


def _alone(service: Service) -> Iterator[tuple[str, str]]:
    if not service.image and service.build is None and "provider" not in service.lines:
        yield " has neither an image nor a build", "image"
    if service.network_mode and "networks" in service.lines:
        yield " has both network_mode and networks", "network_mode"
    test = service.healthcheck.test if service.healthcheck else ()
    if test and test[0] not in ("CMD", "CMD-SHELL", "NONE"):
        yield ".healthcheck.test must begin with CMD, CMD-SHELL or NONE", "healthcheck"
    if service.container_name and (service.scale or 1) > 1:
        yield " has a fixed container_name and is to run more than once", "container_name"
    for rule in service.watch:
        if not rule.target and rule.action not in ("rebuild", "restart"):
            yield f".develop.watch: {rule.action} of {rule.path} has no target", "develop"
    for file in service.env_files:
        if file.required and not file.exists:
            yield f".env_file: {file.path} is not there", "env_file"


def _with_others(service: Service, known: Mapping[str, Service]) -> Iterator[tuple[str, str]]:
    for name, need in service.depends_on.items():
        other = known.get(name)
        if other is None:
            yield f" needs the service {name}, which is not declared", "depends_on"
        elif need.required and other.profiles and not set(service.profiles) & set(other.profiles):
            yield f" needs {name}, which is only there with the profile {other.profiles[0]}", "depends_on"


def _declared(service: Service, result: ComposeResult) -> Iterator[tuple[str, str]]:
    for name in service.networks:
        if name not in result.networks and name != "default":
            yield f" uses the network {name}, which is not declared", "networks"
    for volume in service.volumes:
        if volume.type == "volume" and volume.source and volume.source not in result.volumes:
            yield f" uses the volume {volume.source}, which is not declared", "volumes"
    for secret in (
        *(each.source for each in service.secrets),
        *(service.build.secrets if service.build else ()),
    ):
        if secret not in result.secrets:
            yield f" uses the secret {secret}, which is not declared", "secrets"
    for config in service.configs:
        if config.source not in result.configs:
            yield f" uses the config {config.source}, which is not declared", "configs"


def _sources(kind: str, declared: Mapping[str, FileObject]) -> Iterator[Refusal]:
    for name, each in declared.items():
        given = [value for value in (each.file, each.environment, each.content) if value is not None]
        if not each.external and len(given) != 1:
            many = "more than one of" if given else "none of"
            yield Refusal(f"{kind}.{name} has {many} file, environment and content", each.origin)


def _circle(known: Mapping[str, Service]) -> list[str] | None:
    """Services that wait for each other, the first one repeated at the end."""
    done: set[str] = set()
    for start in known:
        path: list[str] = []
        waiting = [(start, iter(known[start].depends_on))] if start not in done else []
        path += [start] if waiting else []
        while waiting:
            name, needs = waiting[-1]
            need = next((each for each in needs if each in known and each not in done), None)
            if need is None:
                waiting.pop()
                path.pop()
                done.add(name)
            elif need in path:
                return [*path[path.index(need) :], need]
            else:
                path.append(need)
                waiting.append((need, iter(known[need].depends_on)))
    return None
