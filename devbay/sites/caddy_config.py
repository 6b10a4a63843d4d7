"""Caddy's configuration as JSON data. Pure.

One route per site, found by `@id`; everything else never changes while bays come and go. Any change of
configuration makes Caddy build all of it anew, which closes proxied WebSockets unless `stream_close_delay`
is set and waits for open event streams unless `grace_period` is (both tried with 2.11).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from devbay.sites import pages
from devbay.sites.hosts import Route

Json = dict[str, Any]

# Read at each request, relative to Caddy's working directory: the list changes without a change of
# configuration.
NO_SUCH_BAY_HTML, NO_SUCH_BAY_TEXT = "no-such-bay.html", "no-such-bay.txt"
_PAGE_HEADERS = {
    "Cache-Control": ["no-store"],
    "Content-Security-Policy": ["default-src 'none'; style-src 'unsafe-inline'"],
    "X-Content-Type-Options": ["nosniff"],
}
_WANTS_HTML = [{"header": {"Accept": ["*text/html*"]}}]


@dataclass(frozen=True)
class Frame:
    """What a home's proxy is, apart from its routes. listen: `host:port` strings."""

    home_id: str
    admin_socket: Path
    log: Path
    listen: tuple[str, ...]
    suffixes: tuple[str, ...]

    @property
    def sites_id(self) -> str:
        """The `@id` below which the routes of all sites are; it holds the home's id, so it proves whose."""
        return f"sites-{self.home_id}"


def site_id(site: str) -> str:
    """The `@id` of a site's route."""
    return f"site-{site}"


def configuration(frame: Frame, sites: Iterable[Json]) -> Json:
    """The whole configuration, with these site routes."""
    return {
        "admin": {"listen": f"unix/{frame.admin_socket}|0600", "config": {"persist": False}},
        "logging": {"logs": {"default": _log(frame.log)}},
        "apps": {
            "http": {
                "grace_period": "1s",
                "servers": {
                    "devbay": {
                        "listen": list(frame.listen),
                        "protocols": ["h1"],
                        "automatic_https": {"disable": True},
                        "routes": [
                            _misdirected(frame.suffixes),
                            {"handle": [{"@id": frame.sites_id, "handler": "subroute", "routes": [*sites]}]},
                            *_no_such_bay(),
                        ],
                        "errors": {"routes": _errors()},
                    }
                },
            }
        },
    }


def site_route(site: str, routes: Sequence[Route]) -> Json:
    """The one route of a site: all its hosts, each to its host port."""
    return {
        "@id": site_id(site),
        "match": [{"host": [route.host for route in routes]}],
        "handle": [{"handler": "subroute", "routes": [_host_route(route) for route in routes]}],
        "terminal": True,
    }


def split(config: Any, frame: Frame) -> tuple[Json, dict[str, Json]] | None:
    """A running configuration as (itself without site routes, route by `@id`); None if it is not of ours."""
    try:
        server = config["apps"]["http"]["servers"]["devbay"]
        holder = server["routes"][1]["handle"][0]
        if holder["@id"] != frame.sites_id:
            return None
        sites = {route["@id"]: route for route in holder["routes"]}
    except (KeyError, IndexError, TypeError):
        return None
    holder["routes"] = []
    return config, sites


def _host_route(route: Route) -> Json:
    return {
        "match": [{"host": [route.host]}],
        "handle": [
            {
                "handler": "vars",
                "devbay_bay": escape(route.bay),
                "devbay_service": escape(route.service),
            },
            {
                "handler": "reverse_proxy",
                "upstreams": [{"dial": f"127.0.0.1:{route.port}"}],
                "flush_interval": -1,
                "stream_close_delay": "24h",
                "transport": {
                    "protocol": "http",
                    "dial_timeout": "3s",
                    "compression": False,
                    "versions": ["1.1"],
                },
            },
        ],
        "terminal": True,
    }


def _misdirected(suffixes: Sequence[str]) -> Json:
    """An empty 421 for every host that is not ours, so that a rebound name of the web reaches nothing."""
    names = "|".join(re.escape(suffix) for suffix in suffixes)
    ours = {"{http.request.host}": {"pattern": rf"(?i)^([a-z0-9_-]+\.)+({names})$"}}
    return {
        "match": [{"not": [{"vars_regexp": ours}]}],
        "handle": [{"handler": "static_response", "status_code": 421}],
        "terminal": True,
    }


def _no_such_bay() -> list[Json]:
    marker = {"X-Devbay": ["no-such-bay"]}
    return [
        {
            "match": _WANTS_HTML,
            "handle": [_page(404, "html", f"{{file.{NO_SUCH_BAY_HTML}}}", marker)],
            "terminal": True,
        },
        {"handle": [_page(404, "plain", f"{{file.{NO_SUCH_BAY_TEXT}}}\n", marker)]},
    ]


def _errors() -> list[Json]:
    status = "{http.error.status_code}"
    unreachable = {"vars": {status: ["502", "503", "504"]}}
    headers = {"X-Devbay": ["no-answer"], "Retry-After": ["3"]}
    return [
        {
            "match": [unreachable | _WANTS_HTML[0]],
            "handle": [_page(status, "html", pages.no_answer_html(), headers)],
            "terminal": True,
        },
        {
            "match": [unreachable],
            "handle": [_page(status, "plain", pages.no_answer_text(), headers)],
            "terminal": True,
        },
        {"handle": [{"handler": "static_response", "status_code": status}]},
    ]


def _page(status: int | str, kind: str, body: str, headers: Mapping[str, list[str]]) -> Json:
    return {
        "handler": "static_response",
        "status_code": status,
        "headers": {"Content-Type": [f"text/{kind}; charset=utf-8"], **_PAGE_HEADERS, **headers},
        "body": body,
    }


def _log(path: Path) -> Json:
    """Warnings in a small rolling file; nothing about single requests, whose URLs can hold secrets."""
    return {
        "level": "WARN",
        "writer": {
            "output": "file",
            "filename": str(path),
            "mode": "0600",
            "roll_size_mb": 1,
            "roll_keep": 1,
        },
        "exclude": ["http.log", "http.handlers"],
    }
