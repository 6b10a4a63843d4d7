"""The demo judges what it sees, tells no lie about it, and takes away what it made."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from devbay import demo
from devbay.errors import DevbayError


class FakeShop(ThreadingHTTPServer):
    """The shop's page for every bay on one port, told apart by Host. shared: one database for all."""

    def __init__(self, *, shared: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.orders: dict[str, int] = {}
        self.shared = shared
        self.visitors = 0


class _Page(BaseHTTPRequestHandler):
    server: FakeShop

    def do_GET(self) -> None:
        known = dict(each.split("=") for each in self.headers.get("Cookie", "").split("; ") if each)
        if "visitor" not in known:
            self.server.visitors += 1
        visitor = known.get("visitor", f"v{self.server.visitors}")
        visits = int(known.get("visits", 0)) + 1
        self.send_response(200)
        self.send_header("Set-Cookie", f"visitor={visitor}; Path=/")
        self.send_header("Set-Cookie", f"visits={visits}; Path=/")
        self.end_headers()
        words = {"visitor": visitor, "visits": visits, "orders": self.server.orders.get(self._bay(), 0)}
        self.wfile.write("".join(f'<i id="{name}">{value}</i>' for name, value in words.items()).encode())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.orders[self._bay()] = self.server.orders.get(self._bay(), 0) + 1
        self.send_response(303)
        self.send_header("Location", "/")
        self.end_headers()

    def _bay(self) -> str:
        return "" if self.server.shared else self.headers["Host"].split("--")[0]

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


class FakeDaemon:
    """The tools that the demo calls; `broken` names one that raises `error`."""

    def __init__(self, port: int, broken: str = "", error: DevbayError | None = None) -> None:
        self.port, self.broken, self.error = port, broken, error
        self.bays: dict[str, str] = {}
        self.called: list[str] = []
        self.message = "assert 1500 == 1350"

    def tool(self, name: str, arguments: Any, on_progress: Any = None) -> dict[str, Any]:
        self.called.append(name)
        if name == self.broken and self.error:
            raise self.error
        if name == "bay_create":
            bay = self.bays[arguments["name"]] = arguments["name"]
            url = f"http://{bay}--shop.localhost:{self.port}"
            return {"id": bay, "name": bay, "state": "running", "public_url": url}
        if name == "bay_list":
            return {"bays": [{"id": bay, "name": bay} for bay in self.bays]}
        if name == "bay_destroy":
            del self.bays[arguments["bay"]]
            return {"destroyed": True}
        if arguments["task"] == "integration":
            return {"run": "r2", "status": "passed", "counts": {"passed": 3}, "duration_ms": 5}
        failure = {"file": "tests/unit/test_prices.py", "line": 9, "message": self.message}
        return {"run": "r1", "status": "failed", "counts": {"failed": 1}, "failures": [failure]}

    def private(self, method: str, params: Any) -> dict[str, Any]:
        self.called.append(method)
        return {}


class Stage:
    """A demo on fakes: run it, then look at what was said and what is left."""

    def __init__(self, daemon: FakeDaemon, temporary: Path) -> None:
        self.daemon, self.temporary = daemon, temporary
        self.said: list[str] = []

    def run(self, **given: Any) -> dict[str, Any]:
        return demo.run(lambda _: contextlib.nullcontext(self.daemon), self.said.append, **given)

    @property
    def text(self) -> str:
        return "\n".join(self.said)

    @property
    def folders(self) -> list[Path]:
        return list(self.temporary.iterdir())


@pytest.fixture
def shop() -> Iterator[FakeShop]:
    server = FakeShop()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def stage(shop: FakeShop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(demo.tempfile, "tempdir", str(tmp_path))
    return Stage(FakeDaemon(shop.server_port), tmp_path)


def test_a_demo_where_all_goes_as_it_must_is_ok_and_leaves_nothing(stage: Stage):
    summary = stage.run()
    assert summary["ok"] is True
    assert summary["checks"] == dict.fromkeys(
        ("typed_failure", "integration_passes", "cookies_apart", "databases_apart"), True
    )
    assert "tests/unit/test_prices.py:9: assert 1500 == 1350" in stage.text
    assert (stage.daemon.bays, stage.folders) == ({}, [])
    assert "devbay/gc" in stage.daemon.called


def test_one_database_for_both_bays_is_not_ok(stage: Stage, shop: FakeShop):
    shop.shared = True
    summary = stage.run()
    assert (summary["ok"], summary["checks"]["databases_apart"]) == (False, False)


def test_another_assertion_than_the_shops_is_not_ok(stage: Stage):
    stage.daemon.message = "ImportError"
    assert stage.run()["checks"]["typed_failure"] is False


def test_bays_with_one_address_are_told_as_not_apart(
    stage: Stage, shop: FakeShop, monkeypatch: pytest.MonkeyPatch
):
    create = stage.daemon.tool

    def tool(name: str, arguments: Any, on_progress: Any = None) -> dict[str, Any]:
        answer = create(name, arguments, on_progress)
        if name == "bay_create":
            answer["public_url"] = f"http://127.0.0.1:{shop.server_port}"
        return answer

    monkeypatch.setattr(stage.daemon, "tool", tool)
    summary = stage.run()
    assert summary["checks"]["cookies_apart"] is False
    assert "never saw it" not in stage.text


@pytest.mark.parametrize("broken", ["bay_create", "bay_run_task"])
def test_a_failed_demo_takes_away_what_it_made(stage: Stage, broken: str):
    stage.daemon.broken, stage.daemon.error = broken, DevbayError("image_not_found", "no such image")
    with pytest.raises(DevbayError, match="no such image"):
        stage.run()
    assert (stage.daemon.bays, stage.folders) == ({}, [])


def test_an_interrupted_demo_takes_away_what_it_made(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "_failing", interrupt)
    with pytest.raises(KeyboardInterrupt):
        stage.run()
    assert (stage.daemon.bays, stage.folders) == ({}, [])


def test_without_an_engine_the_next_step_is_make_engine(stage: Stage):
    stage.daemon.broken, stage.daemon.error = "bay_create", DevbayError("engine_unreachable", "no socket")
    with pytest.raises(DevbayError, match="needs a container engine") as raised:
        stage.run()
    assert "make engine" in raised.value.next
    assert raised.value.exit_code == 1


@pytest.mark.parametrize("broken", ["bay_destroy", "bay_list"])
def test_what_could_not_be_removed_is_said_with_its_place(stage: Stage, broken: str):
    stage.daemon.broken, stage.daemon.error = broken, DevbayError("survivors", "volume x is still there")
    summary = stage.run()
    assert summary["ok"] is False
    assert "volume x is still there" in stage.text
    assert str(stage.folders[0] / "shop") in stage.text
    assert "removed both" not in stage.text


def test_a_kept_demo_stays_and_says_how_it_is_removed(stage: Stage):
    summary = stage.run(keep=True)
    assert (summary["ok"], summary["kept"]) == (True, True)
    assert set(stage.daemon.bays) == set(demo.BAYS)
    assert all(f"devbay rm {name} --force" in stage.text for name in demo.BAYS)
