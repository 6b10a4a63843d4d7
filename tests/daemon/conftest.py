from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.house import House, house


@pytest.fixture
def home(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path / "user") as found:
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One daemon for all tests of a module that leave it as they found it."""
    with house(tmp_path_factory.mktemp("user")) as found:
        found.client().__exit__()
        yield found
