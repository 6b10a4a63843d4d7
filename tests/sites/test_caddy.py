import os
import socket
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.sites.caddy import find_binary
from devbay.sites.holders import port_holder


def test_the_caddy_beside_this_python_is_taken() -> None:
    assert find_binary() == Path(sys.executable).parent / "caddy"


def test_a_caddy_that_was_installed_elsewhere_is_found_by_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = (Path(sys.executable).parent / "caddy").resolve()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert find_binary().resolve() == expected


def test_a_caddy_on_the_path_is_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr("importlib.metadata.distribution", missing)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(DevbayError) as caught:
        find_binary()
    assert caught.value.code == "caddy_missing"
    own = tmp_path / "bin" / "caddy"
    own.parent.mkdir()
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    assert find_binary() == own


def test_the_holder_of_a_port_is_named() -> None:

    with socket.socket(socket.AF_INET6) as other:
        other.bind(("::1", 0))
        port = other.getsockname()[1]
        assert port_holder(port) == "another process", "bound, but it does not listen"
        other.listen()
        assert f"(pid {os.getpid()})" in port_holder(port)
