"""Repositories written into a temporary folder."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from devbay.detect.files import View

collect_ignore_glob = ["corpus/*"]

Write = Callable[[Mapping[str, str]], View]


@pytest.fixture
def repo(tmp_path: Path) -> Write:
    """Write files by path and look at them."""

    def write(files: Mapping[str, str]) -> View:
        root = tmp_path / "shop"
        root.mkdir(exist_ok=True)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return View(root)

    return write
