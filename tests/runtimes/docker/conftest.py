from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtimes.docker.fake_engine import FakeEngine


@pytest.fixture
def fake() -> Iterator[FakeEngine]:
    """A running fake engine; its socket lies in a short path, which tmp_path need not be."""
    with tempfile.TemporaryDirectory(prefix="engine") as folder:
        engine = FakeEngine(Path(folder))
        engine.start()
        yield engine
        engine.stop()
