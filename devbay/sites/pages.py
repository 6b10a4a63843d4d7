"""What the proxy itself says: the page for names that no bay has, and for services that do not answer. Pure.

Pages name bays, services and commands, never a path of this machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from devbay.sites.hosts import Route, url

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:4rem auto;padding:0 1rem}"
    "code{background:#8882;padding:.1em .3em;border-radius:3px}:root{color-scheme:light dark}"
)

# Placeholders that Caddy fills in for the route that failed.
BAY, SERVICE = "{http.vars.devbay_bay}", "{http.vars.devbay_service}"


def no_such_bay_text(bays: Mapping[str, Sequence[Route]], proxy_port: int) -> str:
    """For curl: the bays there are, one host name a line."""
    lines = ["devbay: no bay has this name.", ""]
    if not bays:
        return "\n".join([*lines, "There are no bays. Make one with: devbay new NAME"])
    lines.append("Bays on this machine:")
    for site, routes in sorted(bays.items()):
        lines.append(f"  {_title(site, routes)}")
        lines += [f"    {route.service:<12} {url(route.host, proxy_port)}" for route in routes]
    return "\n".join(lines)


def no_such_bay_html(bays: Mapping[str, Sequence[Route]], proxy_port: int) -> str:
    """For browsers: the bays there are, with links."""
    if not bays:
        body = "<p>There are no bays. Make one with <code>devbay new NAME</code>.</p>"
    else:
        body = "<p>Bays on this machine:</p>"
        for site, routes in sorted(bays.items()):
            items = "".join(
                f'<li><a href="{escape(url(route.host, proxy_port))}">{escape(route.host)}</a>'
                f" ({escape(route.service)})</li>"
                for route in routes
            )
            body += f"<h2>{escape(_title(site, routes))}</h2><ul>{items}</ul>"
    return _page("No bay has this name", body)


def no_answer_text() -> str:
    """A template of Caddy's: the service a name leads to does not answer."""
    return (
        f"devbay: service {SERVICE} of bay {BAY} does not answer. It may be starting, cooled or stopped.\n\n"
        f"  devbay status {BAY}   says which\n"
        f"  devbay thaw {BAY}     brings a cooled bay back\n"
        f"  devbay up {BAY}       starts what is not running\n"
    )


def no_answer_html() -> str:
    """The same for browsers; it tries again by itself, because a bay that starts is the usual reason."""
    return _page(
        "This service does not answer",
        f"<p>Service <b>{SERVICE}</b> of bay <b>{BAY}</b> does not answer."
        " It may be starting, cooled or stopped. This page tries again every 3 seconds.</p><ul>"
        f"<li><code>devbay status {BAY}</code> says which</li>"
        f"<li><code>devbay thaw {BAY}</code> brings a cooled bay back</li>"
        f"<li><code>devbay up {BAY}</code> starts what is not running</li></ul>",
        head='<meta http-equiv="refresh" content="3">',
    )


def _title(site: str, routes: Sequence[Route]) -> str:
    return routes[0].bay if routes else site


def _page(title: str, body: str, head: str = "") -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title} - devbay</title>{head}'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>{body}</body></html>"
    )
