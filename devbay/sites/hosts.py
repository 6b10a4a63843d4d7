"""Host names: what the services of a bay are called in a browser. Pure.

A bay is a site of its own: everything lies below `<bay>--<project>.localhost`, so that cookies and storage
of one bay never reach another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from devbay.errors import DevbayError

SUFFIX = "localhost"
PRIMARY_PORT = "port"
_DOMAIN = re.compile(
    r"(?=.{1,120}\Z)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+"
)


@dataclass(frozen=True)
class Route:
    """One host name that leads to a host port. `bay` and `service` are what pages call them."""

    host: str
    port: int
    bay: str
    service: str


def host_name(site: str, service: str, port: str, primary: str | None, suffix: str = SUFFIX) -> str:
    """The host name of one port of a service; `site` is the label from `devbay.names.site_label`.

    `<site>` for the primary service's primary port, `<service>.<site>` for other services' and
    `<port>.<service>.<site>` for named ports. The primary service keeps its own name in the last form:
    without it a port named like a service would get that service's host name.
    """
    labels = [site, suffix]
    if port != PRIMARY_PORT:
        labels[:0] = [port, service]
    elif service != primary:
        labels[:0] = [service]
    return ".".join(labels)


@dataclass(frozen=True)
class SiteAddresses:
    """Every address of one bay (meets `devbay.manifest.Addresses`).

    site: the bay's label. ports: (service, port name) to host port; the primary port is called `port`.
    proxy_port: where the proxy listens; every URL carries it unless it is 80.
    """

    site: str
    primary: str | None = None
    ports: Mapping[tuple[str, str], int] = field(default_factory=dict)
    proxy_port: int = 80

    def public_host(self, service: str, port: str | None = None) -> str:
        """The host name a browser uses, without scheme and port."""
        return host_name(self.site, service, port or PRIMARY_PORT, self.primary)

    def public_url(self, service: str, port: str | None = None) -> str:
        """The URL a browser uses, such as `http://login--shop.localhost:7780`."""
        return url(self.public_host(service, port), self.proxy_port)

    def host_port(self, service: str, port: str) -> int:
        """The port on 127.0.0.1; raises `unknown_port` if the bay has none of that name."""
        try:
            return self.ports[service, port]
        except KeyError:
            raise DevbayError(
                "unknown_port",
                f"the service {service!r} of {self.site} has no host port {port!r}",
                next="declare it under `port` or `ports` in devbay.yaml and run devbay up",
            ) from None

    def routes(self, bay: str, services: Iterable[str], suffixes: Sequence[str] = (SUFFIX,)) -> list[Route]:
        """The routes of these services (those with host ports), the primary one's first, for every suffix."""
        wanted = set(services)
        keys = sorted(
            (key for key in self.ports if key[0] in wanted),
            key=lambda key: (key != (self.primary, PRIMARY_PORT), key[0], key[1] != PRIMARY_PORT, key[1]),
        )
        return [
            Route(host_name(self.site, service, port, self.primary, suffix), number, bay, service)
            for suffix in suffixes
            for (service, port), number in ((key, self.ports[key]) for key in keys)
        ]


def url(host: str, proxy_port: int) -> str:
    """`http://<host>`, with the port unless it is HTTP's own."""
    return f"http://{host}" if proxy_port == 80 else f"http://{host}:{proxy_port}"


def suffixes_from_config(config: Mapping[str, Any]) -> tuple[str, ...]:
    """`localhost`, and `proxy.domain` of config.toml if there is one; raises `bad_config`.

    Bays below such a domain share its cookies unless browsers know it as a public suffix; `localhost`
    stays what devbay prints.
    """
    section = config.get("proxy", {})
    domain = section.get("domain") if isinstance(section, Mapping) else None
    if domain is None:
        return (SUFFIX,)
    text = str(domain).lower().strip(".")
    if not _DOMAIN.fullmatch(text):
        raise DevbayError(
            "bad_config",
            f"proxy.domain = {domain!r} in config.toml is no domain name",
            next='write a name of at least two labels, such as domain = "bays.example.com"',
        )
    return (SUFFIX, text)
