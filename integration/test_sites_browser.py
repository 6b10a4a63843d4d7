"""Sites in a real browser, through a real Caddy: what one bay stores, another does not see."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devbay.home import Home
from devbay.sites.hosts import Route
from devbay.sites.routes import Proxy
from devbay.store import Store
from tests.sites.upstreams import echo_upstream, free_port, http_upstream

SET_COOKIES = """
for (const domain of ['', '; domain=a--shop.localhost', '; domain=localhost', '; domain=.localhost',
                      '; domain=b--shop.localhost', '; domain=shop.localhost'])
  document.cookie = 'c' + domain.replace(/[^a-z]/g, '') + '=1; path=/' + domain;
document.cookie
"""
ECHO = """
url => new Promise((resolve, reject) => {
  const socket = new WebSocket(url);
  socket.onopen = () => socket.send('hello');
  socket.onmessage = event => { socket.close(); resolve(event.data); };
  socket.onerror = () => reject(new Error('refused'));
})
"""
EVENTS = """
url => new Promise((resolve, reject) => {
  const events = new EventSource(url);
  events.onmessage = event => { events.close(); resolve(event.data); };
  events.onerror = () => reject(new Error('refused'));
})
"""


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """The bays a (web, api, ws) and b (web) of the project shop."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "config.toml").write_text(f"[proxy]\nport = {free_port()}\n")
    runtime = Path(tempfile.mkdtemp(prefix="dvb"))
    home = Home.from_environment({"DEVBAY_HOME": str(folder), "XDG_RUNTIME_DIR": str(runtime)})
    store = Store(home.store)
    proxy = Proxy(home, store)
    with http_upstream() as web, echo_upstream() as echo:
        proxy.publish(
            "a--shop",
            [
                Route("a--shop.localhost", web, "a", "web"),
                Route("api.a--shop.localhost", web, "a", "api"),
                Route("ws.a--shop.localhost", echo, "a", "ws"),
            ],
        )
        proxy.publish("b--shop", [Route("b--shop.localhost", web, "b", "web")])
        yield proxy
        proxy.stop()
    store.close()
    shutil.rmtree(runtime)


def received_cookies(page: Any, url: str) -> str:
    """What the server behind `url` got as its Cookie header."""
    answer = page.goto(url).json()
    return str(answer.get("Cookie", ""))


def test_cookies_of_one_bay_never_reach_another(proxy: Proxy, page: Any) -> None:
    page.goto(proxy.url("a--shop.localhost"))
    kept = page.evaluate(SET_COOKIES)
    assert sorted(kept.split("; ")) == ["c=1", "cdomainashoplocalhost=1"], "wider ones are refused"
    assert received_cookies(page, proxy.url("b--shop.localhost")) == ""
    assert page.evaluate("document.cookie") == ""
    assert "c=1" in received_cookies(page, proxy.url("a--shop.localhost"))


def test_services_of_one_bay_can_share_a_cookie(proxy: Proxy, page: Any) -> None:
    page.goto(proxy.url("api.a--shop.localhost"))
    page.evaluate("document.cookie = 's=1; path=/; domain=a--shop.localhost; SameSite=Strict'")
    assert received_cookies(page, proxy.url("a--shop.localhost")) == "s=1"
    assert received_cookies(page, proxy.url("b--shop.localhost")) == ""


def test_storage_is_apart(proxy: Proxy, page: Any) -> None:
    page.goto(proxy.url("a--shop.localhost"))
    page.evaluate("localStorage.setItem('k', 'v')")
    page.goto(proxy.url("b--shop.localhost"))
    assert page.evaluate("localStorage.getItem('k')") is None


def test_pages_are_a_secure_context(proxy: Proxy, page: Any) -> None:
    page.goto(proxy.url("a--shop.localhost"))
    assert page.evaluate("window.isSecureContext") is True
    assert page.evaluate("typeof crypto.subtle.digest") == "function"


def test_web_sockets_and_event_streams_work(proxy: Proxy, page: Any) -> None:
    page.goto(proxy.url("a--shop.localhost"))
    socket_url = proxy.url("ws.a--shop.localhost").replace("http:", "ws:")
    assert page.evaluate(ECHO, socket_url) == "hello"
    assert page.evaluate(EVENTS, proxy.url("a--shop.localhost") + "/events") == "tick"


def test_an_unknown_name_shows_the_bays_there_are(proxy: Proxy, page: Any) -> None:
    answer = page.goto(proxy.url("nope--shop.localhost"))
    assert answer.status == 404
    assert page.title() == "No bay has this name - devbay"
    links = page.get_by_role("link").all_inner_texts()
    assert links == [
        "a--shop.localhost", "api.a--shop.localhost", "ws.a--shop.localhost", "b--shop.localhost",
    ]  # fmt: skip
    page.get_by_role("link", name="b--shop.localhost").click()
    assert page.url == proxy.url("b--shop.localhost") + "/"


def test_the_page_of_a_service_that_starts_becomes_the_service(proxy: Proxy, page: Any) -> None:
    proxy.publish("c--shop", [Route("c--shop.localhost", free_port(), "c", "web")])
    answer = page.goto(proxy.url("c--shop.localhost"))
    assert answer.status == 502
    assert "devbay thaw c" in page.content()
    with http_upstream() as web:
        proxy.publish("c--shop", [Route("c--shop.localhost", web, "c", "web")])
        page.get_by_text("X-Forwarded-Host").wait_for()
    proxy.withdraw("c--shop")
