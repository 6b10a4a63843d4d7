"""One file's model onto another's: what is replaced, joined, listed once or turned into a mapping first."""

from __future__ import annotations

from typing import Any

from devbay.detect.compose import mounts
from devbay.detect.compose.tree import Map, Path, Text, like, matches, shown

Fault = tuple[str, Path]

_LISTED = (
    "networks.*.labels", "volumes.*.labels", "services.*.annotations", "services.*.build.args",
    "services.*.build.additional_contexts", "services.*.build.labels", "services.*.deploy.labels",
    "services.*.dns", "services.*.dns_opt", "services.*.dns_search", "services.*.env_file",
    "services.*.label_file", "services.*.environment", "services.*.labels", "services.*.sysctls",
    "services.*.tmpfs", "services.*.build.extra_hosts", "services.*.extra_hosts",
)  # fmt: skip
_REPLACED = (
    "services.*.command",
    "services.*.entrypoint",
    "services.*.healthcheck.test",
    "services.*.ulimits.*",
)
_NAMED = (
    "networks.*.labels", "networks.*.ipam.options", "services.*.annotations", "services.*.build.args",
    "services.*.build.additional_contexts", "services.*.build.tags", "services.*.build.labels",
    "services.*.cap_add", "services.*.cap_drop", "services.*.deploy.labels", "services.*.dns",
    "services.*.dns_opt", "services.*.dns_search", "services.*.environment", "services.*.env_file",
    "services.*.label_file", "services.*.labels", "services.*.links", "services.*.networks.*.aliases",
    "services.*.networks.*.link_local_ips", "services.*.profiles", "services.*.sysctls", "services.*.tmpfs",
    "services.*.expose", "services.*.ports", "services.*.volumes", "services.*.devices", "services.*.secrets",
    "services.*.configs",
)  # fmt: skip


def merged(base: Map, over: Map, faults: list[Fault], path: Path = ()) -> Map:
    """`over` laid onto `base`, which is changed; what does not fit is told and taken from `over`."""
    for key, value in over.items():
        here = (*path, key)
        if key in base and not key.startswith("x-"):
            base[key] = _value(base[key], value, faults, here)
        else:
            base[key] = value
        if key in over.at and (key not in base.at or not isinstance(value, Map | None)):
            base.at[key] = over.at[key]
    return base


def _value(base: Any, over: Any, faults: list[Fault], path: Path) -> Any:
    if any(matches(path, pattern) for pattern in _REPLACED):
        return over
    if any(matches(path, pattern) for pattern in _LISTED):
        return _listed(base, over, once=path[-1] == "extra_hosts")
    if matches(path, "services.*.build"):
        base, over = _as_map(base, "context"), _as_map(over, "context")
    elif matches(path, "services.*.depends_on"):
        started = (("condition", Text("service_started")), ("required", True))
        base, over = _keyed(base, started), _keyed(over, started)
    elif matches(path, "services.*.networks"):
        base, over = _keyed(base, None), _keyed(over, None)
    elif matches(path, "services.*.logging") and _other_driver(base, over):
        return over
    if over is None:
        return base
    if isinstance(base, Map) and isinstance(over, Map):
        return merged(base, over, faults, path)
    if isinstance(base, list) and isinstance(over, list):
        return base + over
    if isinstance(base, Map | list):
        faults.append((f"cannot be overridden by {type(over).__name__.lower()}", path))
    return over


def _listed(base: Any, over: Any, *, once: bool) -> list[Any]:
    first, second = _sequence(base), _sequence(over)
    return first + [each for each in second if not (once and each in first)]


def _sequence(value: Any) -> list[Any]:
    if not isinstance(value, Map):
        return list(value) if isinstance(value, list) else [value] if isinstance(value, str) else []
    found: list[Any] = []
    for key in sorted(value):
        for each in value[key] if isinstance(value[key], list) else [value[key]]:
            text = key if each is None else f"{key}={shown(each)}"
            found.append(Text(text, value.at.get(key), like(text, each).unset))
    return found


def _as_map(value: Any, key: str) -> Any:
    return Map([(key, value)]) if isinstance(value, str) else Map() if value is None else value


def _keyed(value: Any, default: tuple[tuple[str, Any], ...] | None) -> Any:
    if not isinstance(value, list):
        return Map() if value is None else value
    names = [name for name in value if isinstance(name, str)]
    at = {str(name): name.origin for name in names if isinstance(name, Text) and name.origin}
    return Map(((str(name), None if default is None else Map(default)) for name in names), at)


def _other_driver(base: Any, over: Any) -> bool:
    drivers = [part.get("driver") for part in (base, over) if isinstance(part, Map)]
    return len(drivers) == 2 and None not in drivers and drivers[0] != drivers[1]


def unique(value: Any, path: Path = ()) -> Any:
    """Lists with one item for each name (variable, target, port): the last is kept, in the first's place."""
    if isinstance(value, Map):
        for key, each in value.items():
            value[key] = unique(each, (*path, key))
    elif isinstance(value, list) and any(matches(path, pattern) for pattern in _NAMED):
        kept: dict[Any, Any] = {}
        for each in value:
            kept[_name(each, path[-1])] = each
        return list(kept.values())
    return value


def _name(item: Any, kind: str) -> Any:
    if kind == "volumes" or kind == "devices":
        return _target(item, kind)
    if kind in ("secrets", "configs"):
        folder = "/run/secrets/" if kind == "secrets" else "/"
        return (
            item.get("target") or f"{folder}{item.get('source')}"
            if isinstance(item, Map)
            else f"{folder}{item}"
        )
    if isinstance(item, Map):
        if kind == "ports":
            host, protocol = item.get("host_ip", "0.0.0.0"), item.get("protocol", "tcp")  # noqa: S104 - compared
            return f"{host}:{item.get('published')}:{item.get('target')}/{protocol}"
        return str(item.get("path"))
    text = shown(item)
    return text if kind in ("ports", "expose", "env_file", "label_file") else text.partition("=")[0]


def _target(item: Any, kind: str) -> str:
    if isinstance(item, Map):
        return str(item.get("target"))
    if kind == "devices":
        parts = shown(item).split(":")
        return parts[1] if len(parts) > 1 else parts[0]
    try:
        return str(mounts.parse(shown(item))["target"])
    except ValueError:
        return shown(item)
