from collections.abc import Iterator
from pathlib import Path

import pytest

from devbay.store import BayRecord, Store


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
