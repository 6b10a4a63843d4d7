import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devbay.home import Home
from devbay.sites.routes import Proxy
from devbay.store import BayRecord, Store
from tests.sites.upstreams import free_port


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store that knows one repository and the bays a, b and c."""
    store = Store(tmp_path / "store" / "state.db")
    store.claim_repository("r1", "/src/shop/.git", "/src/shop", "shop")
    for name in ("a", "b", "c"):
        store.add_bay(
            BayRecord(
                id=name, repository="r1", name=f"bay-{name}", project="shop", site=f"bay-{name}--shop",
                worktree=f"/src/shop/.devbay/bays/{name}", runtime="docker", phase="ready",
                created_at="2026-01-01T00:00:00Z", last_used_at="2026-01-01T00:00:00Z",
            )
        )  # fmt: skip
    yield store
    store.close()


@pytest.fixture
def make_proxy(tmp_path: Path) -> Iterator[Callable[..., Proxy]]:
    """Makes proxies with real Caddys in homes of their own; all are stopped at the end.

    `make_proxy("a")` twice gives two proxies of one home, as after a daemon's restart.
    """
    stores: dict[str, Store] = {}
    made: list[Proxy] = []
    runtime = Path(tempfile.mkdtemp(prefix="dvb"))  # socket paths must be short

    def make(name: str = "a", **proxy_config: object) -> Proxy:
        folder = tmp_path / name
        config = folder / "config.toml"
        if proxy_config or not config.exists():
            folder.mkdir(exist_ok=True)
            lines = [
                f"{key} = {json.dumps(value)}"
                for key, value in ({"port": free_port()} | proxy_config).items()
            ]
            config.write_text("\n".join(["[proxy]", *lines]))
        home = Home.from_environment({"DEVBAY_HOME": str(folder), "XDG_RUNTIME_DIR": str(runtime)})
        if name not in stores:
            stores[name] = Store(home.store)
        made.append(Proxy(home, stores[name]))
        return made[-1]

    yield make
    for proxy in made:
        proxy.stop()
    for store in stores.values():
        store.close()
    shutil.rmtree(runtime)
