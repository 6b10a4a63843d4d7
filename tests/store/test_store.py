"""The store: what is written is there for the next process, and names are kept apart."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import threading
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.store import BayRecord, GrantRecord, PortRecord, RunRecord, RunTestRecord, Store, TemplateRecord

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


def over(store: Store, run: str, *, bay_id: str = "id-a", **changes: object) -> RunRecord:
    """A run that is over, with one passed and one failed test."""
    record = RunRecord(run, bay_id, "unit", "running", "t", "/f")
    store.add_run(record)
    known: dict[str, object] = {
        "status": "failed",
        "result": {"exit_code": 1},
        "tree_commit": "c0",
        "tree_dirty": False,
    }
    store.update_run(run, **{**known, **changes})
    tests = [RunTestRecord(run, "s", name, "a.py", outcome, 7) for name, outcome in OUTCOMES]
    store.add_run_tests(record, tests, keep=2)
    return record


OUTCOMES = (("good", "passed"), ("bad", "failed"))


def test_the_last_runs_of_a_task_keep_their_tests_and_older_ones_lose_them(store: Store) -> None:
    for number in range(4):
        over(store, f"r{number}")
    over(store, "other", bay_id="id-b")
    assert [len(store.run_tests(f"r{number}")) for number in range(4)] == [0, 0, 2, 2]
    assert store.run_tests("r3")[0] == RunTestRecord("r3", "s", "good", "a.py", "passed", 7)
    assert len(store.run_tests("other")) == 2


def test_of_a_forgotten_bay_only_the_last_run_keeps_its_tests(store: Store) -> None:
    over(store, "r0")
    over(store, "r1")
    store.forget_bay("id-a")
    assert (store.run_tests("r0"), len(store.run_tests("r1"))) == ([], 2)


def test_the_newest_run_is_one_that_ran_to_an_end(store: Store) -> None:
    over(store, "r0")
    over(store, "r1", tree_dirty=True)
    over(store, "r2", status="cancelled")
    over(store, "r3", status="error", result={})
    over(store, "elsewhere", bay_id="id-b", tree_commit="c1")
    found = [
        store.newest_run("unit", bay_id="id-a"),
        store.newest_run("unit", commit="c0"),
        store.newest_run("unit", bay_id="id-a", before="r1"),
        store.newest_run("unit", bay_id="id-b"),
        store.newest_run("lint", bay_id="id-a"),
    ]
    assert [run and run.id for run in found] == ["r1", "r0", "r0", "elsewhere", None]


def test_what_passed_on_a_commit_is_known_only_of_clean_trees(store: Store) -> None:
    over(store, "r0")
    over(store, "r1", tree_commit="c1", tree_dirty=True)
    assert store.passed_on("c0", "unit") == {("a.py", "s", "good")}
    assert store.passed_on("c1", "unit") == set()


def test_a_store_of_the_first_schema_keeps_its_runs_and_their_tests(tmp_path: Path) -> None:
    path = tmp_path / "home" / "state.db"
    store = Store(path)
    store.add_run(RunRecord("r1", "id-a", "unit", "failed", "t", "/f"))
    store.close()
    tests = [{"suite": "s", "name": "good", "file": "a.py", "outcome": "passed", "duration_ms": 7}]
    with sqlite3.connect(path) as old:
        old.execute("DROP TABLE run_tests")
        old.execute("DROP INDEX runs_by_commit")
        for column in ("tree_commit", "tree_dirty"):
            old.execute(f"ALTER TABLE runs DROP COLUMN {column}")
        result = json.dumps({"exit_code": 0, "tree": {"commit": "c0", "dirty": False}})
        details = json.dumps({"tests": tests, "position": 0})
        old.execute("UPDATE runs SET result = ?, details = ?", (result, details))
        old.execute("PRAGMA user_version=1")
    old.close()
    store = Store(path)
    assert store.run_tests("r1") == [RunTestRecord("r1", "s", "good", "a.py", "passed", 7)]
    run = store.run("r1")
    assert run is not None
    assert (run.tree_commit, run.tree_dirty, run.details) == ("c0", False, {"position": 0})


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


def test_a_template_that_only_forgotten_bays_hold_can_be_let_go(store: Store) -> None:
    store.add_bay(bay("a"))
    for key in ("known", "forgotten"):
        store.put_template(TemplateRecord(key, "ready", "t1"))
    store.hold_template("known", "id-a", "id-a/web/known", "t2")
    store.hold_template("forgotten", "id-gone", "id-gone/web/forgotten", "t2")
    store.release_unknown_holders()
    assert (store.holders("known"), store.holders("forgotten")) == (1, 0)


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


def test_a_forgotten_repository_gives_its_name_and_grants_back_unless_it_has_bays(store: Store) -> None:
    grant = GrantRecord(REPO, "k", "git_rw", "git: rw", "t")
    store.add_grant(grant)
    store.add_bay(bay("a"))
    store.forget_repositories([REPO])
    assert store.repository(REPO) is not None
    assert store.grants(REPO)
    store.forget_bay("id-a")
    store.forget_repositories([REPO])
    assert not store.grants(REPO)
    assert store.claim_repository("cd" * 8, "/s/.git", "/s", "shop").shared_name == "shop"


def test_a_full_disk_is_said_and_what_is_written_later_is_kept(store: Store, tmp_path: Path) -> None:
    store.database.rows("PRAGMA max_page_count=1")  # never less than there are
    with pytest.raises(DevbayError, match="full") as caught:
        store.set_setting("big", "x" * 1_000_000)
    assert caught.value.code == "disk_failed"
    store.database.rows("PRAGMA max_page_count=1000000")
    store.set_setting("small", "kept")
    again = Store(tmp_path / "home" / "state.db")
    assert (again.setting("big"), again.setting("small")) == (None, "kept")


def test_a_run_of_a_part_of_the_tests_is_no_baseline(store: Store) -> None:
    store.add_bay(bay("a"))
    for name, details in (("r1", {}), ("r2", {"part": True})):
        store.add_run(RunRecord(name, "id-a", "unit", "running", "t", "/f", details=details))
        store.update_run(name, status="failed", result={"exit_code": 1}, tree_commit="c1", tree_dirty=False)
    newest = store.newest_run("unit", bay_id="id-a")
    whole = store.newest_run("unit", commit="c1", whole=True)
    assert newest is not None and newest.id == "r2"
    assert whole is not None and whole.id == "r1"
