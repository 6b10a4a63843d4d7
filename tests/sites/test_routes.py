import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from websockets.sync.client import ClientConnection, connect

from devbay.errors import DevbayError
from devbay.processes import with_arguments
from devbay.sites import routes as routes_module
from devbay.sites.hosts import Route
from devbay.sites.routes import Proxy, choose_port, configured_port, listen_addresses
from tests.sites.upstreams import EventStream, ask, echo_upstream, free_port, http_upstream

Make = Callable[..., Proxy]


def route(bay: str, port: int, service: str = "web") -> Route:
    return Route(f"{bay}--shop.localhost", port, bay, service)


def pids(proxy: Proxy) -> list[int]:
    return with_arguments(("run", "--config", str(proxy._home.proxy / "caddy.json")))


@pytest.fixture
def upstream() -> Iterator[int]:
    with http_upstream() as port:
        yield port


@contextlib.contextmanager
def web_socket(proxy: Proxy, host: str) -> Iterator[ClientConnection]:
    raw = socket.create_connection(("127.0.0.1", proxy.port))
    with connect(f"ws://{host}:{proxy.port}/", sock=raw) as connection:
        yield connection


def echoes(connection: ClientConnection, text: str) -> bool:
    connection.send(text)
    return connection.recv(timeout=3) == text


def test_a_published_host_reaches_its_service_with_forwarded_headers(make_proxy: Make, upstream: int) -> None:
    proxy = make_proxy()
    proxy.publish("login--shop", [route("login", upstream)])
    host = f"login--shop.localhost:{proxy.port}"
    answer = ask(proxy.port, host, **{"X-Forwarded-For": "6.6.6.6", "X-Forwarded-Proto": "https"})
    assert answer.status == 200
    seen = json.loads(answer.body)
    assert seen["Host"] == seen["X-Forwarded-Host"] == host
    assert seen["X-Forwarded-Proto"] == "http"
    assert seen["X-Forwarded-For"] == "127.0.0.1"
    assert ask(proxy.port, "LOGIN--shop.LOCALHOST").status == 200
    assert proxy.url("login--shop.localhost") == f"http://{host}"


def test_it_listens_on_both_loopbacks_and_nowhere_else(make_proxy: Make) -> None:
    proxy = make_proxy()
    proxy.ensure()
    for address in ("127.0.0.1", "::1"):
        socket.create_connection((address, proxy.port), timeout=2).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", proxy.port), timeout=2)


def test_an_unknown_name_gets_the_list_of_bays(make_proxy: Make, upstream: int, tmp_path: Path) -> None:
    proxy = make_proxy()
    proxy.publish("login--shop", [route("login", upstream)])
    plain = ask(proxy.port, "nope--shop.localhost", Accept="*/*")
    assert plain.status == 404
    assert plain.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert f"http://login--shop.localhost:{proxy.port}" in plain.body
    page = ask(proxy.port, "nope--shop.localhost", Accept="text/html,*/*", method="POST")
    assert page.status == 404
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert f'<a href="http://login--shop.localhost:{proxy.port}">' in page.body
    assert page.headers["X-Devbay"] == "no-such-bay"
    assert str(tmp_path) not in plain.body + page.body
    proxy.withdraw("login--shop")
    assert "no bays" in ask(proxy.port, "login--shop.localhost").body


@pytest.mark.parametrize(
    "host",
    ["evil.example.com", "localhost", "127.0.0.1", "[::1]", "x.localhost.evil.com", "localhost.", "a b"],
)
def test_other_hosts_get_an_empty_421(make_proxy: Make, upstream: int, host: str) -> None:
    proxy = make_proxy()
    proxy.publish("login--shop", [route("login", upstream), Route(host, upstream, "login", "web")])
    answer = ask(proxy.port, host)
    assert answer.status in (421, 400)
    assert "login" not in answer.body
    if answer.status == 421:
        assert answer.body == ""


def test_a_configured_domain_is_served_too(make_proxy: Make, upstream: int) -> None:
    proxy = make_proxy(domain="bays.example.com", port=free_port())
    proxy.publish("a--shop", [Route("a--shop.bays.example.com", upstream, "a", "web")])
    assert ask(proxy.port, "a--shop.bays.example.com").status == 200
    assert ask(proxy.port, "b--shop.bays.example.com").status == 404
    assert ask(proxy.port, "a--shop.baysXexample.com").status == 421


def test_a_service_that_does_not_answer_is_named_with_what_to_do(make_proxy: Make, tmp_path: Path) -> None:
    proxy = make_proxy()
    proxy.publish("login--shop", [route("login", free_port(), "api")])
    plain = ask(proxy.port, "login--shop.localhost")
    assert plain.status == 502
    assert "service api of bay login" in plain.body
    assert "devbay thaw login" in plain.body
    page = ask(proxy.port, "login--shop.localhost", Accept="text/html")
    assert page.status == 502
    assert "<b>api</b>" in page.body
    assert "body{font:" in page.body
    assert not re.search(r"\{http\.|" + re.escape(str(tmp_path)), plain.body + page.body)


def test_names_in_pages_are_escaped(make_proxy: Make) -> None:
    proxy = make_proxy()
    proxy.publish("x--shop", [Route("x--shop.localhost", free_port(), "<script>", "<b>")])
    assert "<script>" not in ask(proxy.port, "x--shop.localhost", Accept="text/html").body
    assert "<script>" not in ask(proxy.port, "y--shop.localhost", Accept="text/html").body


def test_streams_of_one_bay_stay_open_while_others_come_and_go(make_proxy: Make, upstream: int) -> None:
    proxy = make_proxy()
    with echo_upstream() as echo:
        proxy.publish(
            "live--shop", [route("live", upstream), Route("ws.live--shop.localhost", echo, "live", "ws")]
        )
        events = EventStream(proxy.port, "live--shop.localhost")
        with web_socket(proxy, "ws.live--shop.localhost") as sock:
            assert echoes(sock, "before")
            for _ in range(3):
                proxy.publish("other--shop", [route("other", upstream)])
                assert ask(proxy.port, "other--shop.localhost").status == 200
                proxy.publish("other--shop", [route("other", free_port())])
                assert ask(proxy.port, "other--shop.localhost").status == 502
                proxy.withdraw("other--shop")
                assert ask(proxy.port, "other--shop.localhost").status == 404
            time.sleep(1.3)  # longer than the grace period of the replaced configuration
            assert echoes(sock, "after")
            assert events.goes_on()
    events.close()


def test_a_restarted_daemon_finds_the_running_caddy(make_proxy: Make, upstream: int) -> None:
    make_proxy().publish("a--shop", [route("a", upstream)])
    with echo_upstream() as echo:
        before = make_proxy()
        before.publish("ws--shop", [route("ws", echo)])
        running = pids(before)
        with web_socket(before, "ws--shop.localhost") as sock:
            after = make_proxy()
            after.ensure()
            assert pids(after) == running
            assert len(running) == 1
            assert echoes(sock, "still here")


def test_it_outlives_the_daemon_that_started_it(make_proxy: Make, upstream: int) -> None:
    proxy = make_proxy()
    program = textwrap.dedent("""
        import os, signal, sys
        from devbay.home import Home
        from devbay.sites.hosts import Route
        from devbay.sites.routes import Proxy
        from devbay.store import Store
        home = Home.from_environment(os.environ)
        route = Route("a--shop.localhost", int(sys.argv[1]), "a", "web")
        Proxy(home, Store(home.store)).publish("a--shop", [route])
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    env = {
        **os.environ,
        "DEVBAY_HOME": str(proxy._home.state_dir),
        "XDG_RUNTIME_DIR": str(proxy._home.runtime_parent.parent),
    }
    done = subprocess.run([sys.executable, "-c", program, str(upstream)], env=env, timeout=30)
    assert done.returncode == -signal.SIGKILL
    assert ask(proxy.port, "a--shop.localhost").status == 200
    running = pids(proxy)
    proxy.ensure()
    assert pids(proxy) == running


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_a_caddy_that_died_or_hangs_is_replaced_with_all_routes(
    make_proxy: Make, upstream: int, sig: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devbay.sites.caddy.ADMIN_TIMEOUT_S", 0.5)
    proxy = make_proxy()
    proxy.publish("a--shop", [route("a", upstream)])
    (old,) = pids(proxy)
    os.kill(old, sig)
    proxy.publish("b--shop", [route("b", upstream)])
    assert ask(proxy.port, "a--shop.localhost").status == 200
    assert ask(proxy.port, "b--shop.localhost").status == 200
    assert len(pids(proxy)) == 1
    assert pids(proxy) != [old]


def test_a_caddy_whose_admin_socket_was_deleted_is_replaced(make_proxy: Make, upstream: int) -> None:
    proxy = make_proxy()
    proxy.publish("a--shop", [route("a", upstream)])
    (old,) = pids(proxy)
    (proxy._home.runtime_dir / "caddy.sock").unlink()
    proxy.ensure()
    assert len(pids(proxy)) == 1
    assert pids(proxy) != [old]
    assert ask(proxy.port, "a--shop.localhost").status == 200


def test_routes_changed_behind_its_back_are_put_right(make_proxy: Make, upstream: int) -> None:
    proxy = make_proxy()
    proxy.publish("a--shop", [route("a", upstream)])
    caddy = proxy._caddy
    assert caddy.request("DELETE", "/id/site-a--shop")[0] == 200
    proxy.ensure()
    assert ask(proxy.port, "a--shop.localhost").status == 200
    assert caddy.request("DELETE", "/config/apps")[0] == 200
    proxy.ensure()
    assert ask(proxy.port, "a--shop.localhost").status == 200


def test_sync_serves_exactly_what_is_wanted(make_proxy: Make, upstream: int) -> None:
    proxy = make_proxy()
    proxy.sync({"a--shop": [route("a", upstream)], "b--shop": [route("b", upstream)]})
    proxy.sync({"b--shop": [route("b", upstream)], "c--shop": []})
    assert proxy.serves("b--shop", [route("b", upstream)])
    assert not proxy.serves("a--shop", [route("a", upstream)])
    assert [ask(proxy.port, f"{bay}--shop.localhost").status for bay in "abc"] == [404, 200, 404]
    assert "c--shop" in ask(proxy.port, "c--shop.localhost").body


def test_concurrent_publishers_lose_nothing(make_proxy: Make, upstream: int) -> None:
    first = make_proxy()
    first.ensure()
    proxies = [first, make_proxy(), make_proxy()]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: proxies[n % 3].publish(f"b{n}--shop", [route(f"b{n}", upstream)]), range(12)))
    assert len(first.sites) == 12
    assert all(ask(first.port, f"b{n}--shop.localhost").status == 200 for n in range(12))
    assert len(pids(first)) == 1


def test_two_homes_do_not_disturb_each_other(make_proxy: Make, upstream: int) -> None:
    one, two = make_proxy("one"), make_proxy("two")
    one.publish("a--shop", [route("a", upstream)])
    two.publish("b--shop", [route("b", upstream)])
    assert [ask(one.port, f"{bay}--shop.localhost").status for bay in "ab"] == [200, 404]
    assert [ask(two.port, f"{bay}--shop.localhost").status for bay in "ab"] == [404, 200]
    two.stop()
    assert ask(one.port, "a--shop.localhost").status == 200


def test_two_homes_that_start_at_once_choose_different_ports(
    make_proxy: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes_module, "CANDIDATES", [free_port(), free_port(), free_port()])
    monkeypatch.setattr(routes_module, "configured_port", lambda config: None)
    proxies = [make_proxy("one"), make_proxy("two")]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda proxy: proxy.ensure(), proxies))
    assert proxies[0].port != proxies[1].port
    proxies[0].stop()
    port = proxies[0].port
    assert port in routes_module.CANDIDATES
    again = make_proxy("one")
    assert again.port == port


def test_a_port_somebody_else_holds_is_an_error_that_names_the_holder(
    make_proxy: Make, upstream: int
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        proxy = make_proxy(port=other.getsockname()[1])
        with pytest.raises(DevbayError) as caught:
            proxy.publish("a--shop", [route("a", upstream)])
        assert caught.value.code == "proxy_port_taken"
        assert f"pid {os.getpid()}" in caught.value.message
    proxy.ensure()
    assert ask(proxy.port, "a--shop.localhost").status == 200, "what was wanted is served once it can be"


def test_without_a_caddy_the_error_says_so(
    make_proxy: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    proxy = make_proxy()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr("importlib.metadata.distribution", missing)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DevbayError) as caught:
        proxy.ensure()
    assert caught.value.code == "caddy_missing"


def missing(name: str) -> None:
    import importlib.metadata

    raise importlib.metadata.PackageNotFoundError(name)


def test_a_caddy_that_cannot_start_says_why(make_proxy: Make) -> None:
    proxy = make_proxy()
    proxy._caddy._binary = Path("/bin/false")
    with pytest.raises(DevbayError) as caught:
        proxy.ensure()
    assert caught.value.code == "proxy_failed"


def test_nothing_is_left_after_stop_and_withdraw_starts_nothing(make_proxy: Make) -> None:
    proxy = make_proxy()
    proxy.ensure()
    proxy.stop()
    proxy.withdraw("a--shop")
    assert pids(proxy) == []
    assert not (proxy._home.runtime_dir / "caddy.sock").exists()


def test_open_event_streams_do_not_hold_up_its_end(make_proxy: Make, upstream: int) -> None:
    proxy = make_proxy()
    proxy.publish("a--shop", [route("a", upstream)])
    events = EventStream(proxy.port, "a--shop.localhost")
    assert events.goes_on()
    started = time.monotonic()
    proxy.stop()
    assert time.monotonic() - started < 9  # Caddy would wait for ever, and be killed after ten seconds
    events.close()


def test_everything_it_writes_is_private(make_proxy: Make) -> None:
    proxy = make_proxy()
    proxy.publish("a--shop", [])
    folder = proxy._home.proxy
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (proxy._home.runtime_dir / "caddy.sock").stat().st_mode & 0o777 == 0o600
    assert not (folder / "config").exists(), "nothing to resume from"


def test_the_port_is_80_or_the_first_free_one(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {80, 7780}
    monkeypatch.setattr(routes_module, "port_is_free", lambda port: port not in taken)
    assert choose_port() == 7781
    taken.clear()
    assert choose_port() == 80


@pytest.mark.parametrize("port", [0, 65536, 6667, "80", True, 1.5])
def test_an_unusable_port_is_refused(port: object) -> None:
    with pytest.raises(DevbayError, match=r"proxy\.port"):
        configured_port({"proxy": {"port": port}})


def test_all_addresses_only_on_request() -> None:
    assert listen_addresses({}, 80, True) == ("127.0.0.1:80", "[::1]:80")
    assert listen_addresses({}, 80, False) == ("127.0.0.1:80",)
    assert listen_addresses({"proxy": {"bind": "all"}}, 80, True) == (":80",)
    with pytest.raises(DevbayError, match=r"proxy\.bind"):
        listen_addresses({"proxy": {"bind": "0.0.0.0"}}, 80, True)


def test_a_daemon_killed_while_caddy_starts_leaves_one_caddy_after_the_next_call(
    make_proxy: Make, upstream: int
) -> None:
    proxy = make_proxy()
    program = textwrap.dedent("""
        import os, signal, subprocess
        from devbay.home import Home
        from devbay.sites.routes import Proxy
        from devbay.store import Store
        spawn = subprocess.Popen.__init__
        def spawn_and_die(self, *args, **options):
            spawn(self, *args, **options)
            os.kill(os.getpid(), signal.SIGKILL)
        home = Home.from_environment(os.environ)
        proxy = Proxy(home, Store(home.store))
        subprocess.Popen.__init__ = spawn_and_die
        proxy.ensure()
    """)
    env = {
        **os.environ,
        "DEVBAY_HOME": str(proxy._home.state_dir),
        "XDG_RUNTIME_DIR": str(proxy._home.runtime_parent.parent),
    }
    done = subprocess.run([sys.executable, "-c", program], env=env, timeout=30)
    assert done.returncode == -signal.SIGKILL
    assert proxy._caddy.alive
    proxy.publish("a--shop", [route("a", upstream)])
    assert len(pids(proxy)) == 1
    assert ask(proxy.port, "a--shop.localhost").status == 200
