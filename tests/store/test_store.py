"""The store: what is written is there for the next process, and names are kept apart."""

from __future__ import annotations

import dataclasses
import sqlite3
import threading
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.store import BayRecord, GrantRecord, PortRecord, RunRecord, Store, TemplateRecord

REPO = "ab" * 8


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "home" / "state.db")
    store.claim_repository(REPO, "/r/.git", "/r", "shop")
    return store


def bay(name: str, **changes: object) -> BayRecord:
    fields: dict[str, object] = {
        "id": f"id-{name}",
        "repository": REPO,
        "name": name,
        "project": "shop",
        "site": f"{name}--shop",
        "worktree": f"/w/{name}",
        "runtime": "docker",
        "phase": "creating",
        "created_at": "t",
        "last_used_at": "t",
    }
    return BayRecord(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_bay_reads_back_as_written_also_by_another_process(store: Store, tmp_path: Path) -> None:
    record = bay("a", submodules={"lib": "/m"}, created_branch=True, wanted_services=["db"])
    store.add_bay(record)
    store.update_bay(record.id, phase="ready", includes={".env": "00"})
    again = Store(tmp_path / "home" / "state.db").bay(record.id)
    assert again is not None
    assert again.phase == "ready"
    assert again.includes == {".env": "00"}
    assert again.submodules == {"lib": "/m"}
    assert again.created_branch is True


@pytest.mark.parametrize("field", ["id", "name", "site", "worktree"])
def test_a_second_bay_with_the_same_identity_is_refused_and_the_first_stays(store: Store, field: str) -> None:
    store.add_bay(bay("a"))
    with pytest.raises(DevbayError) as caught:
        store.add_bay(dataclasses.replace(bay("b"), **{field: getattr(bay("a"), field)}))
    assert caught.value.code == "bay_exists"
    assert [each.name for each in store.bays()] == ["a"]


def test_an_alias_is_unique_in_its_repository_only(store: Store) -> None:
    store.claim_repository("cd" * 8, "/s/.git", "/s", "shop")
    store.add_bay(bay("a", alias="x"))
    with pytest.raises(DevbayError):
        store.add_bay(bay("b", alias="x"))
    store.add_bay(bay("c", alias="x", repository="cd" * 8))


def test_a_project_name_belongs_to_the_first_repository_that_used_it(store: Store) -> None:
    other = store.claim_repository("cd" * 8, "/s/.git", "/s", "shop")
    assert other.shared_name == "shop-cdcd"
    assert store.claim_repository(REPO, "/r/.git", "/r", "shop").shared_name == "shop"


def test_forgetting_a_bay_gives_back_its_ports_and_subnet_and_keeps_its_runs(store: Store) -> None:
    store.add_bay(bay("a"))
    assert store.claim_port(PortRecord(20001, "id-a", "web", "port"))
    assert not store.claim_port(PortRecord(20001, "id-a", "db", "port"))
    assert store.claim_subnet("10.213.0.0/27", "id-a")
    store.add_run_files("id-a", {"x": "00"})
    store.add_run(RunRecord("r1", "id-a", "unit", "running", "t", "/f"))
    store.forget_bay("id-a")
    assert store.ports() == []
    assert store.subnets() == {}
    assert store.run_files("id-a") == {}
    assert [run.id for run in store.runs()] == ["r1"]


def test_a_note_about_a_service_is_kept_until_it_is_well_again(store: Store) -> None:
    store.add_bay(bay("a"))
    store.note_service("id-a", "db", "exited with code 1")
    assert store.bay("id-a").service_notes == {"db": "exited with code 1"}  # type: ignore[union-attr]
    store.note_service("id-a", "db", "")
    assert store.bay("id-a").service_notes == {}  # type: ignore[union-attr]


def test_a_grant_can_be_taken_back(store: Store) -> None:
    store.add_grant(GrantRecord(REPO, "k", "secret", "db: the secret x", "t"))
    assert set(store.grants(REPO)) == {"k"}
    assert store.revoke_grant(REPO, "k")
    assert store.grants(REPO) == {}


def test_a_template_with_holders_is_not_forgotten(store: Store) -> None:
    store.put_template(TemplateRecord("k", "building", "t0"))
    assert store.hold_template("k", "id-a", "id-a/web/k", "t1") is None
    store.put_template(TemplateRecord("k", "ready", "t1", {"image": "i"}, 5))
    held = store.hold_template("k", "id-a", "id-a/web/k", "t2")
    assert held is not None
    assert held.details == {"image": "i"}
    assert not store.forget_template("k")
    store.release_templates("id-a", service="web", keep="id-a/web/k")
    assert store.holders("k") == 1
    store.release_templates("id-a")
    assert store.forget_template("k")


def test_threads_claim_a_port_once(store: Store) -> None:
    store.add_bay(bay("a"))
    won: list[bool] = []

    def claim(service: str) -> None:
        won.append(store.claim_port(PortRecord(20002, "id-a", service, "port")))

    threads = [threading.Thread(target=claim, args=(f"s{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [False] * 7 + [True]


def test_a_store_of_a_newer_devbay_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "home" / "state.db"
    Store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=99")
    with pytest.raises(DevbayError) as caught:
        Store(path)
    assert caught.value.code == "newer_store"


def test_only_the_user_can_read_the_store(tmp_path: Path) -> None:
    path = tmp_path / "home" / "state.db"
    Store(path).close()
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
