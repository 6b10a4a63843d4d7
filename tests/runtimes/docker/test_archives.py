from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.runtimes.docker import archives
from devbay.runtimes.docker.archives import Entry, tar_of
from tests.runtimes.docker.fake_engine import FakeEngine


def test_entries_keep_order_owner_mode_and_target() -> None:
    entries = [
        Entry("/home/x/.bashrc", "file", b"hi", mode=0o600, uid=1000, gid=1001),
        Entry("/data/", "dir", mode=0o700, uid=5, gid=6),
        Entry("/workspace", "link", target="/repo/ü b"),
    ]
    with tarfile.open(fileobj=io.BytesIO(tar_of(entries, now=1.0))) as tar:
        members = tar.getmembers()
        content = tar.extractfile(members[0])
        assert content is not None and content.read() == b"hi"
    assert [m.name for m in members] == ["home/x/.bashrc", "data", "workspace"]
    assert [(m.uid, m.gid, m.mode) for m in members[:2]] == [(1000, 1001, 0o600), (5, 6, 0o700)]
    assert members[1].isdir() and members[2].issym() and members[2].linkname == "/repo/ü b"


def test_a_folder_in_a_container_is_never_replaced_by_something_else(fake: FakeEngine) -> None:
    fake.answers["PUT /containers/c/archive"] = {}
    archives.put(fake.engine, "c", [Entry("/workspace", "link", target="/r")])
    _, query, body = fake.asked[-1]
    assert query == {"path": "/", "noOverwriteDirNonDir": "1"}
    assert body[:9] == b"workspace"


def test_a_folder_that_the_engine_does_not_see_is_refused_and_nothing_is_left_in_it(
    fake: FakeEngine, tmp_path: Path
) -> None:
    fake.answers["GET /containers/c/json"] = {}
    with pytest.raises(DevbayError, match="does not see the files") as raised:
        archives.check_visible(fake.engine, "c", tmp_path)
    assert raised.value.code == "path_not_shared" and raised.value.data["path"] == str(tmp_path)
    assert str(tmp_path) in raised.value.next
    assert list(tmp_path.iterdir()) == []
    assert fake.asked[-2][1]["path"].startswith(f"{tmp_path}/.devbay-nonce-")


def test_what_is_made_to_be_seen_is_an_empty_folder_which_git_does_not_see(
    fake: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bool] = []

    def seen(_engine: object, _container: str, path: str) -> bool:
        made.append(Path(path).is_dir())
        return True

    monkeypatch.setattr(archives, "stat", seen)
    archives.check_visible(fake.engine, "c", tmp_path)
    assert made == [True]
    assert list(tmp_path.iterdir()) == []
