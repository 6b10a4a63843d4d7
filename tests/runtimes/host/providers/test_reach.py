"""A server in a closed home, as a user who may not enter it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from devbay.runtimes.host import owner as owners
from devbay.runtimes.host.owner import Owner, owner, owner_of
from devbay.runtimes.host.providers.base import Server
from devbay.runtimes.host.providers.reach import reaches, within_reach

SOMEBODY: Owner = (61234, 61234)


@pytest.fixture
def closed(tmp_path: Path) -> Server:
    """pytest's own folder is closed to others."""
    program = tmp_path / "install" / "bin" / "server"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\ncat $(dirname $0)/../share/word\n")
    program.chmod(0o755)
    (tmp_path / "install" / "share").mkdir()
    (tmp_path / "install" / "share" / "word").write_text("from the copy\n")
    tmp_path.chmod(0o700)
    return Server("x", "1.2", program, program.parent, "a wheel", tree=tmp_path / "install")


def test_a_server_in_a_closed_folder_is_copied_once_and_runs_as_the_user(
    closed: Server, reachable: Path
) -> None:
    assert not reaches(closed.program, SOMEBODY)
    copied = within_reach(closed, SOMEBODY, reachable / "servers")
    assert reaches(copied.program, SOMEBODY)
    assert copied.identity != closed.identity and copied.version == closed.version
    again = within_reach(closed, SOMEBODY, reachable / "servers")
    assert again == copied
    assert len(list((reachable / "servers").iterdir())) == 1
    if os.geteuid() == 0:
        said = subprocess.run(
            [copied.program], user=61234, group=61234, extra_groups=(), capture_output=True, check=True
        )
        assert said.stdout == b"from the copy\n"


def test_a_single_program_is_copied_alone(closed: Server, reachable: Path) -> None:
    alone = Server("y", "1", closed.program, closed.bin, "a wheel", tree=closed.program)
    copied = within_reach(alone, SOMEBODY, reachable / "servers")
    assert [path.name for path in copied.bin.iterdir()] == ["server"]


def test_another_build_of_the_same_version_is_another_copy(closed: Server, reachable: Path) -> None:
    first = within_reach(closed, SOMEBODY, reachable / "builds")
    os.utime(closed.program, (1, 1))
    assert within_reach(closed, SOMEBODY, reachable / "builds").program != first.program


def test_a_server_within_reach_stays_where_it_is(closed: Server, tmp_path: Path) -> None:
    system = Server("sh", "1", Path("/bin/sh"), Path("/bin"), "/bin")
    assert within_reach(system, SOMEBODY, tmp_path / "servers") is system
    assert within_reach(closed, None, tmp_path / "servers") is closed
    assert not (tmp_path / "servers").exists()


def test_a_server_that_is_no_tree_of_its_own_is_never_copied(closed: Server, tmp_path: Path) -> None:
    interpreter = Server("mailpit", "1", closed.program, closed.bin, "devbay's own mailbox")
    assert within_reach(interpreter, SOMEBODY, tmp_path / "servers") is interpreter


def test_only_root_has_users_for_bays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert owner("0badcafe") is None


def test_a_bays_user_is_its_own_in_the_range_and_in_no_passwd_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(owners, "_mapped", lambda: [(0, 65536)])
    found = owner("0badcafe")
    assert found is not None and found == owner("0badcafe") != owner("0badcaff")
    assert owners.FIRST <= found[0] <= owners.LAST
    monkeypatch.setattr(owners, "_known", lambda user: user == found[0])
    assert owner("0badcafe") == (found[0] + 1, found[0] + 1)


def test_root_that_can_become_no_other_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(owners, "_mapped", lambda: [(0, 1)])
    assert owner("0badcafe") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_data_keeps_the_user_it_was_made_for(tmp_path: Path) -> None:
    os.chown(tmp_path, *SOMEBODY)
    assert owner_of(tmp_path, (61999, 61999)) == SOMEBODY
    assert owner_of(tmp_path / "none", (61999, 61999)) == (61999, 61999)
    assert owner_of(tmp_path, None) is None
