"""What a draft still needs once its services stand: ports, probes, the primary service."""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import join

from devbay.detect import checks, families, ports
from devbay.detect.apps import App
from devbay.detect.containers import Placed
from devbay.detect.draft import Draft
from devbay.detect.facts import Origin, slug
from devbay.detect.files import View, normal
from devbay.detect.stack import HealthFact
from devbay.manifest import images

_NAMED = re.compile(r"\bhttps?://([A-Za-z0-9_.-]+):(\d{2,5})\b")
_CONFIGS = re.compile(r"\.(conf|cfg|ini|toml|ya?ml|json|template|tmpl)$|(^|/)Caddyfile$")
MAX_CONFIGS = 400
_FRONT = ("web", "app", "frontend", "ui", "client", "site", "www")


def ports_of(placed: Mapping[str, Placed], draft: Draft, view: View) -> None:
    """Give every service its ports."""
    named = _named_elsewhere(placed, view)
    for one in placed.values():
        if one.oneshot:
            continue
        here = ("services", one.name)
        one.chosen = ports.choose(one.part, one.stage, named.get(one.part.name, ()))
        if one.chosen.udp:
            listed = ", ".join(map(str, one.chosen.udp))
            text = f"udp ports ({listed}) are reached inside the bay only; devbay publishes tcp"
            draft.ask("/".join((*here, "ports")), text, origin=one.part.at("ports"))
        if one.chosen.primary is None:
            continue
        draft.put((*here, "port"), one.chosen.primary, one.chosen.source)
        others: dict[str, int] = {}
        for port in one.chosen.others:
            label = one.chosen.names.get(port) or ("debug" if port in ports.DEBUG else f"port-{port}")
            name = slug(label, f"port-{port}")
            name = f"port-{port}" if name in others or name == "port" or name in _names(placed) else name
            others[name] = port
        if others:
            draft.put((*here, "ports"), others, one.part.at("ports" if one.part.ports else "expose"))


def _names(placed: Mapping[str, Placed]) -> set[str]:
    return {one.name for one in placed.values()}


def _named_elsewhere(placed: Mapping[str, Placed], view: View) -> dict[str, list[tuple[int, Origin]]]:
    """Ports at which configuration files ask services, for services without any of their own."""
    wanted = {key for key, one in placed.items() if not one.part.ports and not one.part.expose}
    found: dict[str, list[tuple[int, Origin]]] = {}
    for one in placed.values():
        for variable, value in one.part.env.items():
            for match in _NAMED.finditer(value.text or ""):
                if match[1] in wanted and match[1] != one.part.name:
                    origin = value.origin or one.part.at("environment")
                    found.setdefault(match[1], []).append(
                        (int(match[2]), Origin(origin.file, origin.line, variable))
                    )
    files = [
        file for file in view.files() if _CONFIGS.search(file) and "compose" not in file.rsplit("/", 1)[-1]
    ]
    for file in files[:MAX_CONFIGS] if wanted else ():
        for match in _NAMED.finditer(view.text(file) or ""):
            if match[1] in wanted:
                line = (view.text(file) or "").count("\n", 0, match.start()) + 1
                found.setdefault(match[1], []).append((int(match[2]), Origin(file, line)))
    return found


def health(placed: Mapping[str, Placed], draft: Draft) -> None:
    """Give every long-running service its probe: the stack's own check, the image's, or its port."""
    by_name = {one.name: one for one in placed.values()}
    for name, data in draft.services.items():
        if data.get("kind") == "oneshot" or "health" in data:
            continue
        here, one = ("services", name, "health"), by_name.get(name)
        port = data.get("port")
        check = one.part.health if one else None
        own = one.stage.health if one and one.stage and one.build else None
        if check is not None and check.argv and one:
            draft.put(here, checks.probe(check, port), one.part.at("healthcheck"))
        elif check is None and own and one and one.build:
            origin = Origin(normal(join(one.build.context, one.build.dockerfile)), 0, "HEALTHCHECK")
            draft.put(here, checks.probe(HealthFact(own), port), origin)
        elif families.is_store(data.get("image")) and port:
            env = {key: str(value) for key, value in data.get("env", {}).items()}
            command = tuple(map(str, (*data.get("entrypoint", []), *data.get("start", []))))
            draft.put(here, families.health(data["image"], env, command, port), "the image's family")
        elif port:
            draft.put(here, {"tcp": port, "timeout": "60s"}, "no file names a check: its port must answer")
        else:
            draft.put(here, {"process": True}, "no port and no check in any file")


def primary(placed: Mapping[str, Placed], apps: list[App], draft: Draft) -> None:
    """Mark the service that a browser opens first, and ask where files leave it open."""
    published = {
        one.name for one in placed.values() if any(port.protocol == "tcp" for port in one.part.ports)
    }
    ported = [name for name, data in draft.services.items() if data.get("port")]
    programs = [name for name in ported if not families.is_store(draft.services[name].get("image"))]
    if len(ported) < 2:
        return
    ranked = sorted(programs, key=lambda name: _rank(name, draft, published, apps))
    if not ranked:
        draft.put(("services", ported[0], "primary"), True, "no service is a site")
        text = "no file names a site to open in a browser; the first datastore stands in for it"
        draft.ask("services", text, *ported)
        return
    draft.put(("services", ranked[0], "primary"), True, "the first site that people open")
    best = _rank(ranked[0], draft, published, apps)[:-2]
    equal = [name for name in ranked if _rank(name, draft, published, apps)[:-2] == best]
    if len(equal) > 1:
        text = f"which is primary, the site that a browser opens first? {ranked[0]} is taken"
        draft.ask(f"services/{ranked[0]}/primary", text, *equal)


def _rank(
    name: str, draft: Draft, published: set[str], apps: list[App]
) -> tuple[int, int, int, int, int, str]:
    """Smaller is likelier: programs before bare proxies, published before hidden, what nobody needs first."""
    data = draft.services[name]
    family = images.family(data.get("image")) if "image" in data else None
    needs = [
        need
        for need in data.get("needs", [])
        if not families.is_store(draft.services.get(need, {}).get("image"))
    ]
    bare = family is not None and not (family in families.PROXIES and needs)
    front = family in families.PROXIES and not bare
    needed = any(name in other.get("needs", []) for other in draft.services.values())
    outside = name not in published and name not in {app.name for app in apps}
    named = _FRONT.index(name) if name in _FRONT else len(_FRONT)
    return (int(bare), int(outside), int(not front), int(needed and not front), named, name)
