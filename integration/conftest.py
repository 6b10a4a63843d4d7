"""An engine that answers, homes of the tests' own, repositories, a browser, and nothing left at the end."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration import repositories
from integration.house import House

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER_FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync",
)  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "only the tests of this runtime; those of the host need no container engine"
    parser.addoption("--runtime", choices=("docker", "host"), help=about)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Nothing is tried without an engine, but for what runs without one."""
    if session.config.option.runtime == "host":
        return
    found = shutil.which("docker")
    answer = subprocess.run([found, "version"], capture_output=True, text=True) if found else None
    if answer is None or answer.returncode:
        reason = answer.stderr.strip() if answer else "there is no `docker` command"
        pytest.exit(
            f"no container engine answers ({reason}); `make engine` gives one, `make host` needs none",
            returncode=3,
        )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if wanted := config.option.runtime:
        others = [item for item in items if runtime_of(item) != wanted]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if runtime_of(item) == wanted]


def runtime_of(item: pytest.Item) -> str:
    """The runtime that a test is about."""
    given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    alone = "host" if item.path.name.startswith("test_host_") else "docker"
    return str(given.get("house") or given.get("own_house") or alone)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A module with `RUNTIMES` runs once on each of them."""
    runtimes = getattr(metafunc.module, "RUNTIMES", ())
    for name, scope in (("house", "module"), ("own_house", "function")):
        if runtimes and name in metafunc.fixturenames:
            metafunc.parametrize(name, runtimes, indirect=True, scope=scope)


@pytest.fixture(scope="module")
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    """One home (and daemon) for the tests of a module; at its end nothing of it may be left."""
    with House(runtime=getattr(request, "param", "docker")) as found:
        yield found


@pytest.fixture
def own_house(request: pytest.FixtureRequest) -> Iterator[House]:
    """A home for one test, which may kill its daemon or configure it."""
    with House(runtime=getattr(request, "param", "docker")) as found:
        yield found


@pytest.fixture(scope="module")
def make(house: House) -> Callable[..., Path]:
    """`make(kind, name, ...)`: a repository of `integration.repositories` that the end check looks at."""
    return maker(house)


def maker(house: House) -> Callable[..., Path]:
    """Repositories in a house, each in a folder of its own, whose commands a person approved."""

    def make(kind: str, name: str, *given: Any, **more: Any) -> Path:
        path: Path = getattr(repositories, kind)(house.root / "repositories" / name, *given, **more)
        house.repositories.append(path)
        house.approve(path)
        return path

    return make


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real Chromium."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert path, "no Chromium on the PATH: integration/engine/engine.sh browser"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(BROWSER_FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page in a fresh profile; what the tests look for comes within seconds."""
    context = browser.new_context()
    context.set_default_timeout(15_000)
    yield context.new_page()
    context.close()
