"""`${bay.<service>.<field>}`, `${secret:<ref>}` and `${run.dir}` in values of `env`, per plane.

The container plane is what a process inside the bay sees, the host plane what a process of this machine
sees; `public_url` and `public_host` are a browser's and the same on both. `$${` is a literal `${`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol
from urllib.parse import quote

from devbay.errors import WORK_FAILED, DevbayError
from devbay.manifest import images
from devbay.manifest.diagnostics import near
from devbay.manifest.models import Manifest, Service

Plane = Literal["container", "host"]
FIELDS = ("url", "public_url", "public_host", "host", "port", "name", "user", "password")
LOOPBACK = "127.0.0.1"

_TOKEN = re.compile(r"\$\$\{|\$\{(?P<inner>[^{}]*)\}|\$\{")
_BAY = re.compile(r"bay\.(?P<service>[A-Za-z0-9_-]+)\.(?P<field>[A-Za-z0-9_.-]+)")
_SECRET = re.compile(r"secret:(?P<ref>[A-Za-z0-9/_.:-]+)")
_FORMS = "write ${bay.<service>.<field>}, ${secret:<ref>} or ${run.dir}; a literal ${ is written $${"


class Addresses(Protocol):
    """Where a bay's services are reached from outside it. The port named `port` is the primary one."""

    def public_host(self, service: str, port: str | None = None) -> str:
        """The service's (or its named port's) host name in a browser."""

    def public_url(self, service: str, port: str | None = None) -> str:
        """The same as a URL, with the proxy's port unless that is 80."""

    def host_port(self, service: str, port: str) -> int:
        """The port of this machine's loopback that leads to the service's port."""


@dataclass(frozen=True)
class Reference:
    """One `${...}`. kind: what it names; the fields that its kind has are set. text: as written."""

    kind: Literal["bay", "secret", "run.dir", "malformed"]
    text: str
    service: str = ""
    field: str = ""
    ref: str = ""


def pieces(text: str) -> Iterator[str | Reference]:
    """The literal parts and the references of a text, in order."""
    end = 0
    for match in _TOKEN.finditer(text):
        if match.start() > end:
            yield text[end : match.start()]
        end = match.end()
        inner = match["inner"]
        if match[0] == "$${":
            yield "${"
        elif inner is None:
            yield Reference("malformed", text[match.start() : match.start() + 60])
        elif inner == "run.dir":
            yield Reference("run.dir", match[0])
        elif bay := _BAY.fullmatch(inner):
            yield Reference("bay", match[0], service=bay["service"], field=bay["field"])
        elif secret := _SECRET.fullmatch(inner):
            yield Reference("secret", match[0], ref=secret["ref"])
        else:
            yield Reference("malformed", match[0][:60])
    if end < len(text):
        yield text[end:]


def references(text: str) -> list[Reference]:
    return [piece for piece in pieces(text) if isinstance(piece, Reference)]


def secret_refs(text: str) -> tuple[str, ...]:
    """The secrets that a text asks for, each once, in order."""
    return tuple(dict.fromkeys(each.ref for each in references(text) if each.kind == "secret"))


def problem(reference: Reference, manifest: Manifest, *, in_task: bool) -> tuple[str, str] | None:
    """Why a reference cannot be filled in, and what to write instead (rule R7)."""
    text = reference.text
    if reference.kind == "malformed":
        return f"{text} is no reference", _FORMS
    if reference.kind == "run.dir" and not in_task:
        return "${run.dir} exists only while a task runs", "move it to a task's `env`"
    if reference.kind != "bay":
        return None
    service = manifest.services.get(reference.service)
    if service is None:
        guess = near(reference.service, manifest.services)
        fix = f"write ${{bay.{guess}.{reference.field}}}" if guess else "name a service of this manifest"
        return f"{text} names no service", fix
    return _field_problem(reference, service)


def _field_problem(reference: Reference, service: Service) -> tuple[str, str] | None:
    text, name, field = reference.text, reference.service, reference.field
    if field.startswith("ports."):
        if field.removeprefix("ports.") in service.port_map():
            return None
        guess = near(field.removeprefix("ports."), service.port_map())
        fix = f"write ${{bay.{name}.ports.{guess}}}" if guess else f"add it under services/{name}/ports"
        return f"{text} names no port of {name}", fix
    if field not in FIELDS:
        guess = near(field, FIELDS)
        return f"{text} names no field", (
            f"write ${{bay.{name}.{guess}}}" if guess else f"use one of {', '.join(FIELDS)}, ports.<name>"
        )
    if field in {"public_url", "public_host"} and service.kind == "oneshot":
        return f"{text}: {name} is a one-shot, which no browser reaches", "name a long-running service"
    if field in {"url", "public_url", "public_host", "port"} and service.port is None:
        return f"{text}: {name} has no port", f"add `port: <number>` to services/{name}"
    if field in {"name", "user", "password"}:
        value = getattr(images.access(service.image, service.env), field)
        if not value:
            return f"{text}: the image and env of {name} tell no {field}", "write the value itself"
        if any(each.kind != "secret" for each in references(value)):
            return f"{text} is itself a reference", f"copy the value from services/{name}/env"
    return None


def resolve(
    text: str,
    *,
    manifest: Manifest,
    plane: Plane,
    addresses: Addresses,
    secret: Callable[[str], str],
    run_dir: str | None,
) -> str:
    """`text` with every reference filled in. `run_dir` is the run's folder as the process sees it.

    Raises `bad_reference` for what a valid manifest cannot hold, and whatever `secret(ref)` raises.
    """
    parts: list[str] = []
    for piece in pieces(text):
        if isinstance(piece, str):
            parts.append(piece)
            continue
        if found := problem(piece, manifest, in_task=run_dir is not None):
            raise DevbayError("bad_reference", found[0], next=found[1], exit_code=WORK_FAILED)
        if piece.kind == "secret":
            parts.append(secret(piece.ref))
        elif piece.kind == "run.dir":
            parts.append(run_dir or "")
        else:
            parts.append(_field(piece, manifest, plane, addresses, secret))
    return "".join(parts)


def service_url(manifest: Manifest, service: str, plane: Plane, addresses: Addresses) -> str | None:
    """The service's URL for showing: passwords that are secrets are left out; None without a port."""
    if manifest.services[service].port is None:
        return None
    return _url(manifest, service, plane, addresses, None)


def _field(
    reference: Reference,
    manifest: Manifest,
    plane: Plane,
    addresses: Addresses,
    secret: Callable[[str], str],
) -> str:
    name, field = reference.service, reference.field
    service = manifest.services[name]
    if field == "url":
        return _url(manifest, name, plane, addresses, secret)
    if field == "public_url":
        return addresses.public_url(name)
    if field == "public_host":
        return addresses.public_host(name)
    if field == "host":
        return name if plane == "container" else LOOPBACK
    if field == "port":
        return str(_port(service, name, "port", plane, addresses))
    if field.startswith("ports."):
        return str(_port(service, name, field.removeprefix("ports."), plane, addresses))
    return _filled(getattr(images.access(service.image, service.env), field), secret) or ""


def _port(service: Service, name: str, port: str, plane: Plane, addresses: Addresses) -> int:
    return service.port_map()[port] if plane == "container" else addresses.host_port(name, port)


def _url(
    manifest: Manifest,
    name: str,
    plane: Plane,
    addresses: Addresses,
    secret: Callable[[str], str] | None,
) -> str:
    service = manifest.services[name]
    scheme = images.scheme(service.image)
    host = name if plane == "container" else LOOPBACK
    location = f"{host}:{_port(service, name, 'port', plane, addresses)}"
    if scheme == "http":  # credentials in an http URL are refused by browsers and by most clients
        return f"http://{location}"
    access = images.access(service.image, service.env)
    user, password = _filled(access.user, secret), _filled(access.password, secret)
    login = quote(user, safe="") if user else ""
    if password:
        login += f":{quote(password, safe='')}"
    path = _filled(access.name, secret) if scheme in {"postgres", "mysql"} else None
    return f"{scheme}://{login and login + '@'}{location}{'/' + quote(path, safe='') if path else ''}"


def _filled(template: str | None, secret: Callable[[str], str] | None) -> str | None:
    """A credential as its service gets it; None if it holds a secret and none may be shown."""
    if template is None:
        return None
    parts: list[str] = []
    for piece in pieces(template):
        if isinstance(piece, str):
            parts.append(piece)
        elif secret is None or piece.kind != "secret":
            return None
        else:
            parts.append(secret(piece.ref))
    return "".join(parts)
