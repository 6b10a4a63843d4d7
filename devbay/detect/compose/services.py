"""One service of a merged model as the frozen form that detection uses."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Any, TypeVar

from devbay.detect.compose import ports, scalars, shell
from devbay.detect.compose.canonical import is_remote
from devbay.detect.compose.merging import Fault
from devbay.detect.compose.model import (
    Build,
    Dependency,
    EnvFile,
    Health,
    Hook,
    Mount,
    Service,
    Value,
    Volume,
    Watch,
)
from devbay.detect.compose.tree import Map, Path, Text, mapping, sequence, shown, unset_in
from devbay.detect.facts import Origin

T = TypeVar("T")
_SHARED = ("network_mode", "ipc", "pid", "uts", "cgroup")


def service(name: str, data: Map, origin: Origin, faults: list[Fault]) -> Service:
    """The service; a field that cannot be read is left out and told."""
    return _Reader(("services", name), faults).service(name, data, origin)


class _Reader:
    def __init__(self, path: Path, faults: list[Fault]) -> None:
        self._path = path
        self._faults = faults

    def _read(self, owner: Map, key: str, kind: Callable[[Any], T | None], under: str = "") -> T | None:
        try:
            return kind(owner.get(key))
        except ValueError as error:
            self._fault(str(error), under, key)
            return None

    def _fault(self, text: str, *keys: str) -> None:
        self._faults.append((text, (*self._path, *(key for key in keys if key))))

    def service(self, name: str, data: Map, origin: Origin) -> Service:
        def word(key: str) -> str | None:
            return scalars.text(data.get(key))

        def flag(key: str) -> bool:
            return bool(self._read(data, key, scalars.switch))

        deploy = mapping(data.get("deploy"))
        networks = self._networks(data)
        return Service(
            name=name,
            origin=origin,
            image=word("image") or None,
            build=self._build(data.get("build")),
            command=self._words(data, "command"),
            entrypoint=self._words(data, "entrypoint"),
            environment=_environment(data.get("environment"), data.at.get("environment", origin)),
            env_files=self._env_files(data),
            ports=self._ports(data),
            expose=self._expose(data),
            depends_on=self._depends_on(data),
            healthcheck=self._health(data.get("healthcheck")),
            volumes=self._volumes(data),
            volumes_from=scalars.texts(data.get("volumes_from")),
            tmpfs=scalars.texts(data.get("tmpfs")),
            networks=networks,
            network_mode=word("network_mode") or None,
            links=_links(data.get("links")),
            external_links=scalars.texts(data.get("external_links")),
            extra_hosts=_hosts(data.get("extra_hosts")),
            hostname=word("hostname") or None,
            domainname=word("domainname") or None,
            container_name=word("container_name") or None,
            profiles=scalars.texts(data.get("profiles")),
            secrets=_mounts(data.get("secrets"), "/run/secrets/"),
            configs=_mounts(data.get("configs"), "/"),
            user=word("user") or None,
            working_dir=word("working_dir") or None,
            platform=word("platform") or None,
            restart=word("restart") or None,
            labels=scalars.mapped(data.get("labels")),
            scale=self._scale(data, deploy),
            pull_policy="missing" if word("pull_policy") == "if_not_present" else word("pull_policy") or None,
            stop_signal=word("stop_signal") or None,
            stop_grace_period=self._read(data, "stop_grace_period", scalars.seconds),
            shm_size=self._read(data, "shm_size", scalars.size),
            mem_limit=self._memory(data, deploy),
            ulimits=self._ulimits(data.get("ulimits")),
            sysctls=scalars.mapped(data.get("sysctls")),
            dns=scalars.texts(data.get("dns")),
            cap_add=scalars.texts(data.get("cap_add")),
            cap_drop=scalars.texts(data.get("cap_drop")),
            devices=_devices(data.get("devices")),
            security_opt=scalars.texts(data.get("security_opt")),
            group_add=scalars.texts(data.get("group_add")),
            privileged=flag("privileged"),
            read_only=flag("read_only"),
            init=self._read(data, "init", scalars.switch),
            tty=flag("tty"),
            stdin_open=flag("stdin_open"),
            pid=word("pid") or None,
            ipc=word("ipc") or None,
            watch=self._watch(data),
            post_start=self._hooks(data, "post_start"),
            pre_stop=self._hooks(data, "pre_stop"),
            deploy=deploy,
            lines=dict(data.at),
            unset={key: missing for key, value in data.items() if (missing := unset_in(value))},
        )  # fmt: skip

    def _words(self, owner: Map, key: str, under: str = "") -> tuple[str, ...] | None:
        value = owner.get(key)
        if value is None:
            return None
        if isinstance(value, list):
            return scalars.texts(value)
        try:
            return shell.split(shown(value))
        except ValueError as error:
            self._fault(f"the words cannot be told apart: {error}", under, key)
            return ("sh", "-c", shown(value))

    def _build(self, value: Any) -> Build | None:
        if value is None:
            return None
        data = mapping(value)
        context = scalars.text(data.get("context")) or "."
        return Build(
            context=context,
            dockerfile=scalars.text(data.get("dockerfile")) or "Dockerfile",
            target=scalars.text(data.get("target")) or None,
            args=_environment(data.get("args"), data.at.get("args")),
            inline=scalars.text(data.get("dockerfile_inline")),
            contexts=scalars.mapped(data.get("additional_contexts")),
            secrets=tuple(each.source for each in _mounts(data.get("secrets"), "")),
            tags=scalars.texts(data.get("tags")),
            platforms=scalars.texts(data.get("platforms")),
            network=scalars.text(data.get("network")) or None,
            unset=unset_in(Map((key, each) for key, each in data.items() if key != "args")),
            is_remote=is_remote(context),
        )

    def _env_files(self, data: Map) -> tuple[EnvFile, ...]:
        found = []
        for item in sequence(data.get("env_file")):
            each = mapping(item)
            path = scalars.text(each.get("path"))
            if path:
                found.append(
                    EnvFile(path, self._read(each, "required", scalars.switch, "env_file") is not False)
                )
        return tuple(found)

    def _ports(self, data: Map) -> tuple[ports.Port, ...]:
        found: list[ports.Port] = []
        for item in sequence(data.get("ports")):
            each = mapping(item)
            target = self._read(each, "target", scalars.number, "ports")
            if target is None or not 0 < target < 65536:
                if each:
                    self._fault("a port has no usable target", "ports")
                continue

            def word(key: str, default: str = "", each: Map = each) -> str:
                return scalars.text(each.get(key)) or default

            found.append(ports.Port(
                target, word("published"), word("host_ip"), word("protocol", "tcp"), word("mode", "ingress"),
                word("name"), word("app_protocol"),
            ))  # fmt: skip
        return tuple(found)

    def _expose(self, data: Map) -> tuple[ports.Port, ...]:
        found: list[ports.Port] = []
        for item in scalars.texts(data.get("expose")):
            try:
                found += ports.exposed(item)
            except ValueError as error:
                self._fault(str(error), "expose")
        return tuple(found)

    def _depends_on(self, data: Map) -> dict[str, Dependency]:
        found: dict[str, Dependency] = {}
        for name, item in mapping(data.get("depends_on")).items():
            each = mapping(item)
            found[name] = Dependency(
                scalars.text(each.get("condition")) or "service_started",
                self._read(each, "required", scalars.switch, "depends_on") is not False,
                bool(self._read(each, "restart", scalars.switch, "depends_on")),
            )
        for name, _ in _links(data.get("links")):
            found.setdefault(name, Dependency(restart=True))
        for key in _SHARED:
            kind, _, other = (scalars.text(data.get(key)) or "").partition(":")
            if kind == "service" and other:
                found.setdefault(other, Dependency(restart=True))
        for line in scalars.texts(data.get("volumes_from")):
            if not line.startswith("container:"):
                found.setdefault(line.partition(":")[0], Dependency())
        return found

    def _health(self, value: Any) -> Health | None:
        if value is None:
            return None
        data = mapping(value)
        test = data.get("test")
        words = scalars.texts(test) if isinstance(test, list) else ("CMD-SHELL", shown(test)) if test else ()
        return Health(
            test=words,
            interval=self._read(data, "interval", scalars.seconds, "healthcheck"),
            timeout=self._read(data, "timeout", scalars.seconds, "healthcheck"),
            start_period=self._read(data, "start_period", scalars.seconds, "healthcheck"),
            start_interval=self._read(data, "start_interval", scalars.seconds, "healthcheck"),
            retries=self._read(data, "retries", scalars.number, "healthcheck"),
            disabled=bool(self._read(data, "disable", scalars.switch, "healthcheck"))
            or words[:1] == ("NONE",),
        )

    def _volumes(self, data: Map) -> tuple[Volume, ...]:
        found = []
        for item in sequence(data.get("volumes")):
            each = mapping(item)
            target = scalars.text(each.get("target"))
            if not target:
                if each:
                    self._fault("a mount has no target", "volumes")
                continue
            found.append(Volume(
                type=scalars.text(each.get("type")) or "volume",
                target=posixpath.normpath(target),
                source=scalars.text(each.get("source")) or "",
                read_only=bool(self._read(each, "read_only", scalars.switch, "volumes")),
                subpath=scalars.text(mapping(each.get("volume")).get("subpath")),
                unset=unset_in(each),
                origin=each.at.get("target") or data.at.get("volumes"),
            ))  # fmt: skip
        return tuple(found)

    def _networks(self, data: Map) -> dict[str, tuple[str, ...]]:
        if data.get("network_mode") is not None:
            return {}
        given = mapping(data.get("networks")) or Map([("default", None)])
        return {name: scalars.texts(mapping(each).get("aliases")) for name, each in given.items()}

    def _scale(self, data: Map, deploy: Map) -> int | None:
        scale = self._read(data, "scale", scalars.number)
        return self._read(deploy, "replicas", scalars.number, "deploy") if scale is None else scale

    def _memory(self, data: Map, deploy: Map) -> int | None:
        limits = mapping(mapping(deploy.get("resources")).get("limits"))
        limit = self._read(data, "mem_limit", scalars.size)
        return self._read(limits, "memory", scalars.size, "deploy") if limit is None else limit

    def _ulimits(self, value: Any) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for name, each in mapping(value).items():
            parts = each if isinstance(each, Map) else Map([("soft", each), ("hard", each)])
            soft = self._read(parts, "soft", scalars.number, "ulimits")
            hard = self._read(parts, "hard", scalars.number, "ulimits")
            if soft is not None and hard is not None:
                found[name] = (soft, hard)
        return found

    def _watch(self, data: Map) -> tuple[Watch, ...]:
        rules = [mapping(each) for each in sequence(mapping(data.get("develop")).get("watch"))]
        return tuple(
            Watch(
                scalars.text(rule.get("path")) or ".", scalars.text(rule.get("action")) or "",
                scalars.text(rule.get("target")) or None, scalars.texts(rule.get("ignore")),
            )
            for rule in rules
        )  # fmt: skip

    def _hooks(self, data: Map, key: str) -> tuple[Hook, ...]:
        found = []
        for item in sequence(data.get(key)):
            each = mapping(item)
            found.append(Hook(
                self._words(each, "command", key) or (), scalars.text(each.get("user")) or None,
                scalars.text(each.get("working_dir")) or None,
                bool(self._read(each, "privileged", scalars.switch, key)),
                _environment(each.get("environment"), each.at.get("environment")),
            ))  # fmt: skip
        return tuple(found)


def _environment(value: Any, origin: Origin | None) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, each, carrier in scalars.pairs(value):
        at = carrier.origin if isinstance(carrier, Text) else None
        if isinstance(value, Map):
            at = value.at.get(name, at)
        found[name] = Value(None if each is None else shown(each), unset_in(carrier), at or origin)
    return found


def _links(value: Any) -> tuple[tuple[str, str], ...]:
    parts = [line.split(":") for line in scalars.texts(value)]
    return tuple((each[0], each[1] if len(each) > 1 else each[0]) for each in parts)


def _hosts(value: Any) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for name, each, _ in scalars.pairs(value, "=:"):
        addresses = each if isinstance(each, list) else [each]
        found += ((name, shown(address).removeprefix("[").removesuffix("]")) for address in addresses)
    return tuple(sorted(found))


def _mounts(value: Any, folder: str) -> tuple[Mount, ...]:
    found = []
    for item in sequence(value):
        each = item if isinstance(item, Map) else Map([("source", item)])
        source = scalars.text(each.get("source")) or ""
        target = scalars.text(each.get("target")) or f"{folder}{source}"
        found.append(Mount(source, target if target.startswith("/") or not folder else f"{folder}{target}"))
    return tuple(found)


def _devices(value: Any) -> tuple[str, ...]:
    """`SOURCE:TARGET:PERMISSIONS`, as the engine takes them; what is not written is what compose adds."""
    found = []
    for item in sequence(value):
        keys = ("source", "target", "permissions")
        parts = (
            [scalars.text(item.get(key)) for key in keys] if isinstance(item, Map) else shown(item).split(":")
        )
        source, target, permissions = (*parts, None, None)[:3]
        found.append(f"{source}:{target or source}:{permissions or 'rwm'}")
    return tuple(found)
