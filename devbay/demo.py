"""`devbay demo`: a shop of its own, two bays of it side by side, and everything taken away again.

It goes the way any client goes: tools over the daemon's socket, addresses through the proxy.
"""

from __future__ import annotations

import contextlib
import http.client
import http.cookiejar
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from devbay.errors import WORK_FAILED, DevbayError
from devbay.templates import template

BAYS = ("spring-sale", "new-checkout")
LIMIT_S = 600
"""A bound for one wait; a first pull of the images on a slow line is the longest."""
GIT = (
    "git", "-c", "user.name=devbay demo", "-c", "user.email=demo@devbay.invalid",
    "-c", "commit.gpgsign=false",
)  # fmt: skip


class Caller(Protocol):
    """What the demo needs of `devbay.client.Client`."""

    def tool(self, name: str, arguments: Mapping[str, Any], on_progress: Any = None) -> dict[str, Any]: ...

    def private(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]: ...


Connect = Callable[[Path, Mapping[str, str]], contextlib.AbstractContextManager[Caller]]
"""Opens a connection to the daemon from a folder, with variables besides those of the caller."""
Say = Callable[[str], None]


def run(
    connect: Connect, say: Say, *, wanted: str = "auto", progress: Any = None, keep: bool = False
) -> dict[str, Any]:
    """Show what devbay does; the summary, with `ok: true` if every step went as it must.

    `say` takes lines for a person. wanted: the caller's `DEVBAY_RUNTIME`; where it leaves the choice, an
    engine that does not answer is done without (decision 42). Whatever was made is removed at the end, also
    after a failure, ctrl-c, SIGTERM and SIGHUP, unless `keep`.
    Raises what made a step impossible (`engine_unreachable`, ...).
    """
    folder = Path(tempfile.mkdtemp(prefix="devbay-demo-")).resolve()
    summary: dict[str, Any] = {"ok": False, "bays": []}
    env: Mapping[str, str] = {}
    kept, left = False, list[str]()
    with _ending_by_signal():
        try:
            shop = make_repository(folder / "shop")
            env = _environment(connect, shop, say, wanted)
            with connect(shop, env) as client:
                _show(client, shop, say, progress, summary)
            kept = keep
        except DevbayError as error:
            raise _explained(error) from error
        finally:
            if kept:
                summary |= {"kept": True, "repository": str(shop)}
            else:
                with _deaf_to_ctrl_c(say):
                    left = summary["left"] = remove(connect, folder, env)
                if left:
                    say("\n".join([f"\nnot removed (the repository is {folder / 'shop'}):", *left]))
    if kept:
        there, all_of_it = shlex.quote(str(shop)), shlex.quote(str(folder))
        removing = "; ".join(f"devbay rm {name} --force" for name in BAYS)
        say(f"\nkept; look around in {shop}, then remove all of it:")
        say(f"  cd {there} && {removing}; cd / && rm -r {all_of_it}")
    elif not left:
        say("\nremoved both bays with their data, and the repository")
    summary["ok"] = all(summary["checks"].values()) and not left
    return summary


def _explained(error: DevbayError) -> DevbayError:
    if error.code != "engine_unreachable":
        return error
    return DevbayError(
        error.code,
        f"the demo was to run in containers: {error.message}",
        next="`make engine` in devbay's checkout installs and starts an engine where it may;"
        " DEVBAY_RUNTIME=host does without one",
        exit_code=WORK_FAILED,
    )


def make_repository(folder: Path) -> Path:
    """The shop as a git repository with one commit; raises `git_failed`."""
    shutil.copytree(template("demo"), folder, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "A small shop")):
        try:
            subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True, text=True)
        except FileNotFoundError as error:
            raise DevbayError(
                "no_git", "there is no `git` command", next="install git", exit_code=WORK_FAILED
            ) from error
        except subprocess.CalledProcessError as error:
            raise DevbayError(
                "git_failed", f"git {words[0]}: {error.stderr.strip()}", exit_code=WORK_FAILED
            ) from error
    return folder


def _environment(connect: Connect, shop: Path, say: Say, wanted: str) -> dict[str, str]:
    """What the demo sets besides the caller's variables: the host where the chosen engine does not answer."""
    if wanted not in ("", "auto"):
        return {}
    with connect(shop, {}) as client:
        status = client.tool("repo_status", {})
    if status.get("engine"):
        return {}
    why = next(iter(status.get("warnings", [])), "it does not answer").splitlines()[0]
    say(f"the container engine that is configured here cannot be used: {why}")
    say("the demo does without it; devbay otherwise never does that by itself\n")
    return {"DEVBAY_RUNTIME": "host"}


def remove(connect: Connect, folder: Path, env: Mapping[str, str]) -> list[str]:
    """Destroy every bay of the demo's repository, collect, remove the folder; what could not be removed."""
    left: list[str] = []
    if (folder / "shop/.git").is_dir():
        try:
            with connect(folder / "shop", env) as client:
                left = _destroy_all(client)
        except DevbayError as error:
            left.append(error.message)
    if not left:  # otherwise the bays are removed from there
        shutil.rmtree(folder)
    return left


def _destroy_all(client: Caller) -> list[str]:
    left: list[str] = []
    bays = client.tool("bay_list", {})["bays"]
    for bay in bays:
        try:
            client.tool("bay_destroy", {"bay": bay["id"], "force": True})
        except DevbayError as error:
            left.append(f"bay {bay['name']}: {error.message}")
    if not left:
        try:
            client.private("devbay/gc", {"all": True})
        except DevbayError as error:
            if bays or error.code != "engine_unreachable":
                left.append(f"caches: {error.message}")
    return left


def _show(client: Caller, shop: Path, say: Say, progress: Any, summary: dict[str, Any]) -> None:
    summary["checks"] = dict[str, bool]()
    runtime = summary["runtime"] = client.tool("repo_status", {}).get("engine", "docker")
    where = "as processes of this machine" if runtime == "host" else "in containers"
    say("one small shop (a web page, an API, Postgres), two branches, each running in a bay of its own")
    say(f"{where} (runtime: {runtime})\n")
    if runtime == "host":  # nobody is asked about what devbay itself ships
        client.private("devbay/approve.demo", {})
    first, second = _bays(client, say, progress, summary)
    _failing(client, shop, say, progress, summary)
    _passing(client, say, progress, summary)
    browser = Browser()
    _cookies(browser, first["public_url"], second["public_url"], say, summary)
    _databases(browser, first["public_url"], second["public_url"], say, summary)


def _bays(client: Caller, say: Say, progress: Any, summary: dict[str, Any]) -> list[dict[str, Any]]:
    bays = []
    for name in BAYS:
        began = time.monotonic()
        answer = client.tool("bay_create", {"name": name}, progress)
        info = _until_over(client, answer, "bay_status", {"bay": answer["id"]}, progress)
        seconds = round(time.monotonic() - began, 1)
        if info["state"] != "running":
            raise _failed(f"bay {name} is {info['state']}: {info.get('reason', '')}")
        bays.append(info)
        summary["bays"].append({"name": name, "public_url": info["public_url"], "seconds": seconds})
        say(f"  {name:<13} {info['public_url']:<46} up after {seconds} s")
    if isolation := bays[0].get("isolation"):
        say(f"  what a bay has for itself here: {isolation}")
    return bays


def _failing(client: Caller, shop: Path, say: Say, progress: Any, summary: dict[str, Any]) -> None:
    say(f"\na failing test as typed data: devbay run {BAYS[0]} unit")
    result = summary["unit"] = _task(client, BAYS[0], "unit", progress)
    failures = result.get("failures", [])
    started = ", ".join(result.get("started_services", [])) or "no service"
    say(f"  {_verdict(result)}; {started} had to start for it")
    for failure in failures:
        message = failure.get("message", "").splitlines()
        say(f"  {failure.get('file')}:{failure.get('line')}: {message[0] if message else failure['name']}")
    places = [(failure.get("file"), failure.get("line")) for failure in failures]
    typed = places == [_failing_line(shop)] and "1350" in failures[0].get("message", "")
    summary["checks"]["typed_failure"] = result["status"] == "failed" and typed


def _passing(client: Caller, say: Say, progress: Any, summary: dict[str, Any]) -> None:
    say(f"\na test that needs the database: devbay run {BAYS[1]} integration")
    result = summary["integration"] = _task(client, BAYS[1], "integration", progress)
    say(f"  {_verdict(result)}")
    summary["checks"]["integration_passes"] = result["status"] == "passed"


def _cookies(browser: Browser, first: str, second: str, say: Say, summary: dict[str, Any]) -> None:
    """Each site is visited twice, in turns: whoever comes back is known there, and only there."""
    pages = [browser.get(url) for url in (first, second, first, second)]
    visitors = [_word(page, "visitor") for page in pages]
    visits = [_word(page, "visits") for page in pages]
    apart = visitors[0] != visitors[1] and visitors[:2] == visitors[2:] and visits == ["1", "1", "2", "2"]
    say("\ntwo bays are two sites, also for a browser that visits both")
    if apart:
        say(f"  {BAYS[0]} set the cookie visitor={visitors[0]}, and gets it back on the next visit;")
        say(f"  {BAYS[1]} never saw it and set visitor={visitors[1]}")
    else:
        say(f"  the visitors in turns were {', '.join(visitors)}, which is not as it must be")
    summary["checks"]["cookies_apart"] = apart


def _databases(browser: Browser, first: str, second: str, say: Say, summary: dict[str, Any]) -> None:
    browser.get(f"{first}/buy", {"product": "2", "quantity": "1"})
    orders = [int(_word(browser.get(url), "orders")) for url in (first, second)]
    say("\ntwo bays are two databases")
    say(f"  bought a fender in {BAYS[0]}; orders there: {orders[0]}, in {BAYS[1]}: {orders[1]}")
    summary["checks"]["databases_apart"] = orders == [1, 0]


def _task(client: Caller, bay: str, task: str, progress: Any) -> dict[str, Any]:
    answer = client.tool("bay_run_task", {"bay": bay, "task": task}, progress)
    return _until_over(client, answer, "bay_run_result", {"run": answer.get("run", "")}, progress)


def _until_over(
    client: Caller, answer: dict[str, Any], tool: str, arguments: dict[str, Any], progress: Any
) -> dict[str, Any]:
    """The answer once the work is over; `tool` tells how it stands."""
    deadline = time.monotonic() + LIMIT_S
    while answer.get("status") in ("queued", "running") or answer.get("state") in ("creating", "starting"):
        if time.monotonic() > deadline:
            raise _failed(f"the work was not over after {LIMIT_S} s")
        time.sleep(0.2)
        answer = client.tool(tool, {**arguments, "wait_s": 45}, progress)
    return answer


def _verdict(result: Mapping[str, Any]) -> str:
    counts = result.get("counts") or {}
    numbers = [f"{counts[name]} {name}" for name in ("passed", "failed", "errors") if counts.get(name)]
    seconds = result.get("duration_ms", 0) / 1000
    return f"{result['status']} in {seconds:.1f} s: {', '.join(numbers) or result.get('reason', '')}"


def _failed(message: str) -> DevbayError:
    return DevbayError("demo_failed", message, exit_code=WORK_FAILED)


def _failing_line(shop: Path) -> tuple[str, int]:
    """Where the shop's one failing assertion stands."""
    name = "tests/unit/test_prices.py"
    lines = (shop / name).read_text().splitlines()
    return name, next(number for number, line in enumerate(lines, 1) if "1350" in line)


def _word(page: str, id: str) -> str:
    found = re.search(rf'id="{id}">([^<]*)<', page)
    if found is None:
        raise _failed(f"the shop's page has no {id!r}: {page[:200]!r}")
    return found[1]


class Browser:
    """As much of a browser as the demo needs: one cookie jar, and every `*.localhost` is this machine.

    Which cookie goes to which site is decided by `http.cookiejar`; most systems do not resolve
    `*.localhost` outside of browsers, so connections go to the loopback address.
    """

    def __init__(self) -> None:
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            _ToLoopback(),
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()),
        )

    def get(self, url: str, form: Mapping[str, str] | None = None) -> str:
        """The page, after redirects; with `form` it is posted. Raises `demo_failed`."""
        body = urllib.parse.urlencode(form).encode() if form else None
        try:
            with self._opener.open(url, body, timeout=20) as answer:
                return str(answer.read().decode())
        except OSError as error:
            raise _failed(f"{url}: {error}") from error


class _LoopbackConnection(http.client.HTTPConnection):
    def connect(self) -> None:
        host, self.host = self.host, "127.0.0.1"
        try:
            super().connect()
        finally:
            self.host = host


class _ToLoopback(urllib.request.HTTPHandler):
    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_LoopbackConnection, request)


@contextlib.contextmanager
def _ending_by_signal() -> Iterator[None]:
    """SIGTERM and SIGHUP end the block as ctrl-c does, so that it is cleaned up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = [(number, signal.signal(number, interrupt)) for number in (signal.SIGTERM, signal.SIGHUP)]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextlib.contextmanager
def _deaf_to_ctrl_c(say: Say) -> Iterator[None]:
    """Cleaning up is not interrupted half-way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def answer(*_: object) -> None:
        say("cleaning up; a moment")

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [(number, signal.signal(number, answer)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
