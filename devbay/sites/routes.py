"""The proxy as bays see it: which sites it serves, brought in line with what is wanted.

What is wanted is in the store. Every call converges the running Caddy to it, route by route, so a killed
daemon or a killed Caddy is put right by the next call, whichever it is.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from devbay.errors import WORK_FAILED, DevbayError
from devbay.home import Home, write_private
from devbay.sites import caddy_config, hosts, pages
from devbay.sites.caddy import Caddy, locked
from devbay.sites.caddy_config import Frame, Json
from devbay.sites.holders import port_holder
from devbay.sites.hosts import Route
from devbay.sites.ports import BLOCKED_BY_BROWSERS, has_ipv6_loopback, port_is_free
from devbay.store import Store

CANDIDATES: Sequence[int] = (80, *range(7780, 7880))
_PORT, _SITES = "proxy.port", "proxy.sites"


class Proxy:
    """The sites of one home. Safe to use from any thread, and from several processes of one home.

    Methods raise `caddy_missing`, `proxy_failed`, `proxy_port_taken` or `bad_config` if the proxy cannot
    run; what was asked for is remembered all the same and served as soon as it can.
    """

    def __init__(self, home: Home, store: Store, caddy: Caddy | None = None) -> None:
        self._home = home
        self._store = store
        self._caddy = Caddy(home) if caddy is None else caddy
        self._lock = self._caddy.folder / "proxy.lock"

    @property
    def port(self) -> int:
        """The proxy's port: `proxy.port` of config.toml, else the one chosen at its first start.

        Before that start it is the one that would be chosen now.
        """
        wanted = configured_port(self._home.config)
        if wanted is not None:
            return wanted
        stored = self._store.setting(_PORT)
        return int(stored) if stored is not None else choose_port()

    def url(self, host: str) -> str:
        """`http://<host>`, with the proxy's port unless it is 80."""
        return hosts.url(host, self.port)

    @property
    def sites(self) -> dict[str, list[Route]]:
        """What is wanted: site label to its routes."""
        stored = json.loads(self._store.setting(_SITES) or "{}")
        return {site: [Route(**route) for route in routes] for site, routes in stored.items()}

    def ensure(self) -> None:
        """Have a Caddy that serves exactly what is wanted; a running one keeps its streams."""
        with locked(self._lock):
            self._converge()

    def publish(self, site: str, routes: Sequence[Route]) -> None:
        """Serve these routes for the site, in place of those it had."""
        with locked(self._lock):
            self._want({**self.sites, site: list(routes)})
            self._converge()

    def serves(self, site: str, routes: Sequence[Route]) -> bool:
        """Whether these routes are wanted for the site already and Caddy is there; asks it nothing."""
        return self.sites.get(site) == list(routes) and self._caddy.alive

    def withdraw(self, site: str) -> None:
        """Serve the site no longer; does not start a proxy for it."""
        with locked(self._lock):
            self._want({name: routes for name, routes in self.sites.items() if name != site})
            if self._caddy.alive:
                self._converge()

    def sync(self, wanted: Mapping[str, Sequence[Route]]) -> None:
        """Serve exactly these sites."""
        with locked(self._lock):
            self._want(wanted)
            self._converge()

    def stop(self) -> None:
        """End Caddy; what is wanted stays remembered."""
        with locked(self._lock):
            self._caddy.stop()

    def _want(self, sites: Mapping[str, Sequence[Route]]) -> None:
        data = {site: [dataclasses.asdict(route) for route in routes] for site, routes in sites.items()}
        text = json.dumps(data, sort_keys=True)
        if text != self._store.setting(_SITES):
            self._store.set_setting(_SITES, text)

    def _converge(self) -> None:
        sites = self.sites
        routes = [caddy_config.site_route(site, sites[site]) for site in sites]
        if not self._bring_in_line(routes):
            self._start(routes)
        self._write_lists(sites)

    def _bring_in_line(self, routes: Sequence[Json]) -> bool:
        """Change the routes that differ in the running Caddy; False if it has to be started anew."""
        if not self._caddy.alive:
            return False
        frame = self._frame(self.port)
        try:
            parts = caddy_config.split(self._caddy.running_config(), frame)
            if parts is None or parts[0] != caddy_config.configuration(frame, []):
                return False
            running = parts[1]
            wanted = {route["@id"]: route for route in routes}
            for gone in running.keys() - wanted.keys():
                self._call("DELETE", f"/id/{gone}")
            for key, route in wanted.items():
                if key not in running:
                    self._call("POST", f"/id/{frame.sites_id}/routes", route)
                elif running[key] != route:
                    self._call("PATCH", f"/id/{key}", route)
        except DevbayError as error:
            if error.code != "proxy_unreachable":
                raise
            return False
        return True

    def _call(self, method: str, path: str, body: Any = None) -> None:
        status, answer = self._caddy.request(method, path, body)
        if status >= 300:
            said = answer.get("error", answer) if isinstance(answer, dict) else answer
            raise DevbayError(
                "proxy_failed",
                f"the proxy refused a route: {str(said)[:500]}",
                next="devbay doctor",
                exit_code=WORK_FAILED,
            )

    def _start(self, routes: Sequence[Json]) -> None:
        """Start Caddy on this home's port, which is chosen and stored the first time.

        Caddy shares its listening sockets (SO_REUSEPORT) with any other of the same user and would split
        their connections, so no two homes may pass from the probe to the start at once.
        """
        self._caddy.stop()
        with locked(self._home.machine_dir / "proxy-port.lock"):
            port = self.port
            if not port_is_free(port):
                raise DevbayError(
                    "proxy_port_taken",
                    f"port {port} of the proxy is held by {port_holder(port)}",
                    next="end that process, or set proxy.port in config.toml to another port",
                    exit_code=WORK_FAILED,
                    port=port,
                )
            if configured_port(self._home.config) is None:
                self._store.set_setting(_PORT, str(port))
            self._caddy.start(caddy_config.configuration(self._frame(port), routes))

    def _frame(self, port: int) -> Frame:
        return Frame(
            home_id=self._home.id,
            admin_socket=self._caddy.socket,
            log=self._caddy.log,
            listen=listen_addresses(self._home.config, port, has_ipv6_loopback()),
            suffixes=hosts.suffixes_from_config(self._home.config),
        )

    def _write_lists(self, sites: Mapping[str, Sequence[Route]]) -> None:
        port = self.port
        for name, text in (
            (caddy_config.NO_SUCH_BAY_TEXT, pages.no_such_bay_text(sites, port)),
            (caddy_config.NO_SUCH_BAY_HTML, pages.no_such_bay_html(sites, port)),
        ):
            write_private(self._caddy.folder / name, text)


def choose_port() -> int:
    """80 where this user may listen on it and nobody does, else the first free one from 7780 up."""
    for port in CANDIDATES:
        if port_is_free(port):
            return port
    raise DevbayError(
        "no_free_port",
        f"no port for the proxy: 80 and {CANDIDATES[1]} to {CANDIDATES[-1]} are all held",
        next="set proxy.port in config.toml to a free port",
        exit_code=WORK_FAILED,
    )


def configured_port(config: Mapping[str, Any]) -> int | None:
    """`proxy.port` of config.toml, if given; raises `bad_config` if no browser could use it."""
    port = _section(config).get("port")
    if port is None:
        return None
    if not isinstance(port, int) or not 1 <= port <= 65535 or port in BLOCKED_BY_BROWSERS:
        raise DevbayError(
            "bad_config",
            f"proxy.port = {port!r} in config.toml is no port that browsers open",
            next="write a number such as port = 7780, or remove the line",
        )
    return port


def listen_addresses(config: Mapping[str, Any], port: int, ipv6: bool) -> tuple[str, ...]:
    """Where the proxy listens: both loopbacks, or everywhere with `proxy.bind = "all"` in config.toml."""
    bind = _section(config).get("bind", "loopback")
    if bind == "all":
        return (f":{port}",)
    if bind != "loopback":
        raise DevbayError(
            "bad_config",
            f"proxy.bind = {bind!r} in config.toml is neither 'loopback' nor 'all'",
            next='write bind = "loopback", or remove the line',
        )
    return (f"127.0.0.1:{port}", f"[::1]:{port}") if ipv6 else (f"127.0.0.1:{port}",)


def _section(config: Mapping[str, Any]) -> Mapping[str, object]:
    section = config.get("proxy", {})
    if not isinstance(section, Mapping):
        raise DevbayError(
            "bad_config", "proxy in config.toml is no table", next="write a [proxy] section, or remove it"
        )
    return section
