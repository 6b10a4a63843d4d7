"""Which port of a service is the one to open: published, checked, exposed, or told by its command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from devbay.detect import checks, families
from devbay.detect.dockerfile import Stage
from devbay.detect.facts import Origin
from devbay.detect.stack import Part
from devbay.manifest import images

DEBUG = frozenset({9229, 9230, 5678, 5005, 9003, 2345, 35729, 24678})
"""Ports of debuggers and of live reload, which nobody opens as a site."""
_FLAG = re.compile(
    r"(?:^|\s)(?:--port|--http-port|-p|--listen|--bind|-b|--addr|--http)[= ]\s*\"?"
    r"(?:[\w.*\[\]:]*:)?(\d{2,5})\b"
)
_SERVED = re.compile(r"\bhttp\.server\s+(\d{2,5})\b|\brunserver\s+(?:[\w.]+:)?(\d{2,5})\b")


@dataclass(frozen=True)
class Chosen:
    """primary: None where nothing tells. others: further TCP ports. udp: what devbay does not publish."""

    primary: int | None
    source: Origin | str | None = None
    others: tuple[int, ...] = ()
    udp: tuple[int, ...] = ()
    names: dict[int, str] = field(default_factory=dict)


def choose(part: Part, stage: Stage | None, named_elsewhere: Sequence[tuple[int, Origin]]) -> Chosen:
    """`named_elsewhere`: ports of the service that other files ask over HTTP (a proxy's configuration)."""
    udp = tuple(dict.fromkeys(port.target for port in (*part.ports, *part.expose) if port.protocol == "udp"))
    published = [port for port in part.ports if port.protocol == "tcp"]
    exposed = [port for port in part.expose if port.protocol == "tcp"]
    listed = list(dict.fromkeys(port.target for port in published)) or list(
        dict.fromkeys(port.target for port in exposed)
    )
    names = {port.target: port.name for port in published if port.name}
    checked = checks.asked(part.health.argv) if part.health else None
    variable = part.env.get("PORT")
    set_port = int(variable.text) if variable and variable.text and variable.text.isdigit() else None
    family = images.family(part.image) if part.build is None else None
    if listed:
        ranked = [port for port in listed if port not in DEBUG and port not in udp] or listed
        wanted = (
            checked[0] if checked else None,
            set_port,
            families.PORTS.get(family or ""),
            *(stage.expose if stage else ()),
        )
        first = next((port for port in wanted if port in ranked), ranked[0])
        return Chosen(
            first,
            part.at("ports" if published else "expose"),
            tuple(p for p in listed if p != first),
            udp,
            names,
        )
    for port, source in _told(part, stage, checked, set_port, family, named_elsewhere):
        if port is not None and 0 < port < 65536 and port not in udp:
            return Chosen(port, source, (), udp, {})
    return Chosen(None, None, (), udp, {})


def _told(
    part: Part,
    stage: Stage | None,
    checked: tuple[int, str] | None,
    set_port: int | None,
    family: str | None,
    named_elsewhere: Sequence[tuple[int, Origin]],
) -> list[tuple[int | None, Origin | str]]:
    own = part.command is None and part.entrypoint is None
    command = " ".join((*(part.entrypoint or ()), *(part.command or ())))
    told: list[tuple[int | None, Origin | str]] = [
        (checked[0] if checked else None, part.at("healthcheck")),
        (set_port, part.at("environment")),
        (in_command(command), part.at("command")),
    ]
    if own and stage is not None and part.build is not None:
        file = part.build.dockerfile
        exposed = [port for port in stage.expose if port not in DEBUG]
        told.append((exposed[0] if exposed else None, Origin(file, stage.lines.get("EXPOSE", 0), "EXPOSE")))
        value = stage.env.get("PORT", "")
        told.append(
            (int(value) if value.isdigit() else None, Origin(file, stage.lines.get("ENV", 0), "ENV PORT"))
        )
        told.append((in_command(" ".join(stage.cmd or ())), Origin(file, stage.lines.get("CMD", 0), "CMD")))
    told += list(named_elsewhere)
    told.append((families.PORTS.get(family or ""), f"the port of {family} images"))
    return told


def in_command(text: str) -> int | None:
    """The port that a command line names."""
    match = _SERVED.search(text) or _FLAG.search(text)
    number = next((group for group in match.groups() if group), None) if match else None
    return int(number) if number else None
