"""The demo judges what it sees, tells no lie about it, and takes away what it made."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
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
        self.engine: str | None = "docker"
        self.env: Mapping[str, str] = {}
        self.approved = False
        self.bays: dict[str, str] = {}
        self.called: list[str] = []
        self.message = "assert 1500 == 1350"

    def tool(self, name: str, arguments: Any, on_progress: Any = None) -> dict[str, Any]:
        self.called.append(name)
        if name == self.broken and self.error:
            raise self.error
        if name == "repo_status":
            engine = "host" if self.env.get("DEVBAY_RUNTIME") == "host" else self.engine
            return {"engine": engine} if engine else {"warnings": ["no answer from unix:///x.sock\nat all"]}
        if name == "bay_create":
            bay = self.bays[arguments["name"]] = arguments["name"]
            url = f"http://{bay}--shop.localhost:{self.port}"
            weaker = {"isolation": "the network is shared"} if self.approved else {}
            return {"id": bay, "name": bay, "state": "running", "public_url": url, **weaker}
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
        self.approved = self.approved or method == "devbay/approve.demo"
        return {}


class Stage:
    """A demo on fakes: run it, then look at what was said and what is left."""

    def __init__(self, daemon: FakeDaemon, temporary: Path) -> None:
        self.daemon, self.temporary = daemon, temporary
        self.said: list[str] = []

    def run(self, **given: Any) -> dict[str, Any]:
        return demo.run(self.connect, self.said.append, **given)

    def connect(self, folder: Path, env: Mapping[str, str]) -> contextlib.AbstractContextManager[FakeDaemon]:
        self.daemon.env = env
        return contextlib.nullcontext(self.daemon)

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


def test_an_engine_that_was_asked_for_and_is_not_there_is_an_error_with_both_ways_out(stage: Stage):
    stage.daemon.engine = None
    stage.daemon.broken, stage.daemon.error = "bay_create", DevbayError("engine_unreachable", "no socket")
    with pytest.raises(DevbayError, match="no socket") as raised:
        stage.run(wanted="docker")
    assert all(way in raised.value.next for way in ("make engine", "DEVBAY_RUNTIME=host"))
    assert raised.value.exit_code == 1
    assert "devbay/approve.demo" not in stage.daemon.called


def test_an_engine_that_does_not_answer_is_done_without_and_that_is_said(stage: Stage):
    stage.daemon.engine = None
    summary = stage.run()
    assert (summary["ok"], summary["runtime"]) == (True, "host")
    assert "cannot be used: no answer from unix:///x.sock\n" in stage.text
    assert "runtime: host" in stage.text
    assert "for itself here: the network is shared" in stage.text


def test_a_demo_on_this_machine_has_its_commands_trusted_before_the_first_bay(stage: Stage):
    stage.daemon.engine = "host"
    summary = stage.run()
    assert summary["runtime"] == "host"
    assert stage.daemon.called.index("devbay/approve.demo") < stage.daemon.called.index("bay_create")
    assert "cannot be used" not in stage.text


def test_a_demo_in_containers_has_nothing_trusted(stage: Stage):
    assert stage.run()["runtime"] == "docker"
    assert "devbay/approve.demo" not in stage.daemon.called
    assert "for itself here" not in stage.text


def test_a_demo_that_did_without_its_engine_is_removed_without_it(stage: Stage):
    stage.daemon.engine = None
    stage.run()
    assert stage.daemon.env == {"DEVBAY_RUNTIME": "host"}


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
