"""Typed reads and writes over the database; every method is one transaction."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from devbay.errors import DevbayError
from devbay.store.database import Database
from devbay.store.records import (
    BayRecord,
    GrantRecord,
    PortRecord,
    RepositoryRecord,
    RunRecord,
    RunTestRecord,
    TemplateRecord,
)

_JSON = frozenset(
    {"submodules", "includes", "wanted_services", "engine", "warnings", "service_notes", "setup_done"}
    | {"details", "result"}
)
_BOOL = frozenset({"created_branch", "adopted", "tree_dirty"})


def _load(row: sqlite3.Row) -> dict[str, Any]:
    data = dict(row)
    for key in data.keys() & _JSON:
        data[key] = None if data[key] is None else json.loads(data[key])
    for key in data.keys() & _BOOL:
        data[key] = bool(data[key])
    return data


def _dump(key: str, value: Any) -> Any:
    if key in _JSON:
        return None if value is None else json.dumps(value)
    return int(value) if key in _BOOL else value


def _insert(cursor: sqlite3.Cursor, table: str, record: Any) -> None:
    data = {f.name: _dump(f.name, getattr(record, f.name)) for f in dataclasses.fields(record)}
    columns = ", ".join(data)
    marks = ", ".join("?" for _ in data)
    cursor.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(data.values()))  # noqa: S608


def _update(cursor: sqlite3.Cursor, table: str, key: str, changes: dict[str, Any]) -> None:
    sets = ", ".join(f"{name} = ?" for name in changes)
    values = [_dump(name, value) for name, value in changes.items()]
    cursor.execute(f"UPDATE {table} SET {sets} WHERE id = ?", (*values, key))  # noqa: S608


class Store:
    """The daemon's memory. Safe to use from any thread."""

    def __init__(self, path: Path) -> None:
        self.database = Database(path)

    def close(self) -> None:
        self.database.close()

    # -- settings --------------------------------------------------------------------------------

    def setting(self, key: str) -> str | None:
        rows = self.database.rows("SELECT value FROM meta WHERE key = ?", key)
        return rows[0]["value"] if rows else None

    def set_setting(self, key: str, value: str) -> None:
        with self.database.write() as cursor:
            cursor.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (key, value),
            )

    # -- repositories ----------------------------------------------------------------------------

    def repository(self, repository_id: str) -> RepositoryRecord | None:
        rows = self.database.rows("SELECT * FROM repositories WHERE id = ?", repository_id)
        return RepositoryRecord(**dict(rows[0])) if rows else None

    def repositories(self) -> list[RepositoryRecord]:
        return [RepositoryRecord(**dict(row)) for row in self.database.rows("SELECT * FROM repositories")]

    def claim_repository(
        self, repository_id: str, common_dir: str, main_worktree: str | None, project: str
    ) -> RepositoryRecord:
        """The repository's record, made on first use; a changed project name is taken over.

        A project name belongs to the first repository that used it; the next gets `<project>-<4 hex>`.
        """
        with self.database.write() as cursor:
            known = self.repository(repository_id)
            if known and known.project == project and known.main_worktree == main_worktree:
                return known
            shared = project
            if known and known.project == project:
                shared = known.shared_name
            else:
                for size in (0, 4, 8, 16):
                    shared = f"{project}-{repository_id[:size]}" if size else project
                    holder = self.database.rows(
                        "SELECT id FROM repositories WHERE shared_name = ? AND id != ?", shared, repository_id
                    )
                    if not holder:
                        break
            record = RepositoryRecord(repository_id, common_dir, main_worktree, project, shared)
            if known:
                _update(cursor, "repositories", repository_id, dataclasses.asdict(record))
            else:
                _insert(cursor, "repositories", record)
            return record

    def forget_repositories(self, ids: Iterable[str]) -> None:
        """Drop repositories and what was granted to them; those that have bays stay."""
        with self.database.write() as cursor:
            for each in set(ids) - {record.repository for record in self.bays()}:
                cursor.execute("DELETE FROM grants WHERE repository = ?", (each,))
                cursor.execute("DELETE FROM repositories WHERE id = ?", (each,))

    # -- bays ------------------------------------------------------------------------------------

    def add_bay(self, record: BayRecord) -> None:
        """Write a bay's record; raises `bay_exists` if the name, alias or folder is taken."""
        try:
            with self.database.write() as cursor:
                _insert(cursor, "bays", record)
        except sqlite3.IntegrityError as error:
            raise DevbayError(
                "bay_exists",
                f"there is already a bay with this name, alias, site or folder: {record.name!r} ({error})",
                next="choose another name, or use the bay that is there (bay_list)",
            ) from error

    def bay(self, bay_id: str) -> BayRecord | None:
        rows = self.database.rows("SELECT * FROM bays WHERE id = ?", bay_id)
        return BayRecord(**_load(rows[0])) if rows else None

    def bays(self, repository: str | None = None) -> list[BayRecord]:
        """All bays, or those of one repository, oldest first."""
        if repository is None:
            rows = self.database.rows("SELECT * FROM bays ORDER BY created_at, name")
        else:
            rows = self.database.rows(
                "SELECT * FROM bays WHERE repository = ? ORDER BY created_at, name", repository
            )
        return [BayRecord(**_load(row)) for row in rows]

    def update_bay(self, bay_id: str, **changes: Any) -> None:
        with self.database.write() as cursor:
            _update(cursor, "bays", bay_id, changes)

    def note_service(self, bay_id: str, service: str, reason: str) -> None:
        """Remember why a service is not well; an empty reason forgets it."""
        with self.database.write():
            record = self.bay(bay_id)
            if record is None or record.service_notes.get(service, "") == reason:
                return
            notes = {**record.service_notes, service: reason}
            if not reason:
                del notes[service]
            self.update_bay(bay_id, service_notes=notes)

    def forget_bay(self, bay_id: str) -> None:
        """Drop the record with its ports, subnet and run files; runs stay as history.

        Of each task only the last run keeps its tests: enough to compare with.
        """
        with self.database.write() as cursor:
            cursor.execute(
                "DELETE FROM run_tests WHERE run IN (SELECT id FROM (SELECT id, row_number() OVER"
                " (PARTITION BY task ORDER BY rowid DESC) AS age FROM runs WHERE bay = ?)"
                " WHERE age > 1)",
                (bay_id,),
            )
            cursor.execute("DELETE FROM bays WHERE id = ?", (bay_id,))

    # -- ports and subnets -------------------------------------------------------------------------

    def ports(self, bay_id: str | None = None) -> list[PortRecord]:
        if bay_id is None:
            rows = self.database.rows("SELECT * FROM ports")
        else:
            rows = self.database.rows("SELECT * FROM ports WHERE bay = ?", bay_id)
        return [PortRecord(**dict(row)) for row in rows]

    def claim_port(self, record: PortRecord) -> bool:
        """False if the port, or this service's port name, is already given."""
        try:
            with self.database.write() as cursor:
                _insert(cursor, "ports", record)
        except sqlite3.IntegrityError:
            return False
        return True

    def release_port(self, port: int) -> None:
        with self.database.write() as cursor:
            cursor.execute("DELETE FROM ports WHERE port = ?", (port,))

    def subnets(self) -> dict[str, str]:
        """CIDR to bay id."""
        return {row["cidr"]: row["bay"] for row in self.database.rows("SELECT * FROM subnets")}

    def claim_subnet(self, cidr: str, bay_id: str) -> bool:
        try:
            with self.database.write() as cursor:
                cursor.execute("INSERT INTO subnets VALUES (?, ?)", (cidr, bay_id))
        except sqlite3.IntegrityError:
            return False
        return True

    def release_subnet(self, bay_id: str) -> None:
        with self.database.write() as cursor:
            cursor.execute("DELETE FROM subnets WHERE bay = ?", (bay_id,))

    # -- runs ------------------------------------------------------------------------------------

    def add_run(self, record: RunRecord) -> None:
        with self.database.write() as cursor:
            _insert(cursor, "runs", record)

    def update_run(self, run_id: str, **changes: Any) -> None:
        with self.database.write() as cursor:
            _update(cursor, "runs", run_id, changes)

    def run(self, run_id: str) -> RunRecord | None:
        rows = self.database.rows("SELECT * FROM runs WHERE id = ?", run_id)
        return RunRecord(**_load(rows[0])) if rows else None

    def runs(self, bay_id: str | None = None, statuses: Iterable[str] = ()) -> list[RunRecord]:
        """Runs, newest first, optionally of one bay and only with one of these statuses."""
        wanted = list(statuses)
        sql, args = "SELECT * FROM runs", []
        where = []
        if bay_id is not None:
            where.append("bay = ?")
            args.append(bay_id)
        if wanted:
            where.append(f"status IN ({', '.join('?' for _ in wanted)})")
            args.extend(wanted)
        if where:
            sql += " WHERE " + " AND ".join(where)
        return [
            RunRecord(**_load(row)) for row in self.database.rows(sql + " ORDER BY created_at DESC", *args)
        ]

    def newest_run(
        self,
        task: str,
        *,
        bay_id: str | None = None,
        commit: str | None = None,
        before: str = "",
        whole: bool = False,
    ) -> RunRecord | None:
        """The newest run of a task that found something out, in a bay or on a commit without local changes.

        before: the id of a run that does not count, since it is the one that asks. whole: leave out runs of
        a part of the tests.
        """
        rows = self.database.rows(
            "SELECT * FROM runs WHERE task = ? AND id != ? AND (? IS NULL OR bay = ?) AND (? IS NULL OR"
            " (tree_commit = ? AND tree_dirty = 0)) AND status IN ('passed', 'failed', 'error', 'timeout')"
            " AND json_extract(result, '$.exit_code') IS NOT NULL"
            " AND (? = 0 OR json_extract(details, '$.part') IS NULL) ORDER BY rowid DESC LIMIT 1",
            task, before, bay_id, bay_id, commit, commit, whole,
        )  # fmt: skip
        return RunRecord(**_load(rows[0])) if rows else None

    def add_run_tests(self, run: RunRecord, tests: Iterable[RunTestRecord], *, keep: int) -> None:
        """Write a run's tests; of this task's runs in this bay only the last `keep` keep theirs."""
        with self.database.write() as cursor:
            cursor.executemany(
                "INSERT INTO run_tests VALUES (?, ?, ?, ?, ?, ?)", map(dataclasses.astuple, tests)
            )
            cursor.execute(
                "DELETE FROM run_tests WHERE run IN (SELECT id FROM runs WHERE bay = ? AND task = ?"
                " ORDER BY rowid DESC LIMIT -1 OFFSET ?)",
                (run.bay, run.task, keep),
            )

    def run_tests(self, run_id: str) -> list[RunTestRecord]:
        """The tests of a run in the order in which they were reported."""
        rows = self.database.rows("SELECT * FROM run_tests WHERE run = ? ORDER BY rowid", run_id)
        return [RunTestRecord(**dict(row)) for row in rows]

    def passed_on(self, commit: str, task: str) -> set[tuple[str | None, str | None, str]]:
        """(file, suite, name) of tests that passed in a run of a task on a commit without local changes."""
        rows = self.database.rows(
            "SELECT DISTINCT file, suite, name FROM run_tests JOIN runs ON runs.id = run_tests.run"
            " WHERE tree_commit = ? AND tree_dirty = 0 AND task = ? AND outcome = 'passed'",
            commit, task,
        )  # fmt: skip
        return {(row["file"], row["suite"], row["name"]) for row in rows}

    def run_files(self, bay_id: str) -> dict[str, str]:
        """Files that appeared during runs of this bay: path to sha256 at the run's end."""
        rows = self.database.rows("SELECT path, sha256 FROM run_files WHERE bay = ?", bay_id)
        return {row["path"]: row["sha256"] for row in rows}

    def add_run_files(self, bay_id: str, files: dict[str, str]) -> None:
        with self.database.write() as cursor:
            cursor.executemany(
                "INSERT OR REPLACE INTO run_files VALUES (?, ?, ?)",
                [(bay_id, path, digest) for path, digest in files.items()],
            )

    # -- grants ------------------------------------------------------------------------------------

    def grants(self, repository: str) -> dict[str, GrantRecord]:
        rows = self.database.rows("SELECT * FROM grants WHERE repository = ?", repository)
        return {row["key"]: GrantRecord(**dict(row)) for row in rows}

    def add_grant(self, record: GrantRecord) -> None:
        with self.database.write() as cursor:
            cursor.execute(
                "INSERT OR REPLACE INTO grants VALUES (?, ?, ?, ?, ?)", dataclasses.astuple(record)
            )

    def revoke_grant(self, repository: str, key: str) -> bool:
        with self.database.write() as cursor:
            cursor.execute("DELETE FROM grants WHERE repository = ? AND key = ?", (repository, key))
            return cursor.rowcount > 0

    # -- templates -----------------------------------------------------------------------------------

    def template(self, key: str) -> TemplateRecord | None:
        rows = self.database.rows("SELECT * FROM templates WHERE key = ?", key)
        return TemplateRecord(**_load(rows[0])) if rows else None

    def templates(self) -> list[TemplateRecord]:
        """All templates, least recently used first."""
        rows = self.database.rows("SELECT * FROM templates ORDER BY last_used_at, key")
        return [TemplateRecord(**_load(row)) for row in rows]

    def put_template(self, record: TemplateRecord) -> None:
        """Write a template, replacing whatever was under its key; its holders stay."""
        values = (record.key, record.state, json.dumps(record.details), record.size, record.last_used_at)
        with self.database.write() as cursor:
            cursor.execute(
                "INSERT INTO templates VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET state ="
                " excluded.state, details = excluded.details, size = excluded.size,"
                " last_used_at = excluded.last_used_at",
                values,
            )

    def hold_template(self, key: str, bay: str, holder: str, moment: str) -> TemplateRecord | None:
        """If it is ready: count the holder, mark it used, and return it."""
        with self.database.write() as cursor:
            record = self.template(key)
            if record is None or record.state != "ready":
                return None
            cursor.execute("INSERT OR REPLACE INTO holders VALUES (?, ?, ?)", (holder, key, bay))
            cursor.execute("UPDATE templates SET last_used_at = ? WHERE key = ?", (moment, key))
            return record

    def holders(self, key: str) -> int:
        rows = self.database.rows("SELECT count(*) AS n FROM holders WHERE template = ?", key)
        return int(rows[0]["n"])

    def forget_template(self, key: str) -> bool:
        """Drop a template unless it has holders; False if it has."""
        with self.database.write() as cursor:
            if self.holders(key):
                return False
            cursor.execute("DELETE FROM templates WHERE key = ?", (key,))
            return True

    def release_templates(self, bay: str, *, service: str = "", keep: str = "") -> None:
        """Drop a bay's holders (all, or one service's), except `keep`."""
        prefix = f"{bay}/{service}/" if service else f"{bay}/"
        with self.database.write() as cursor:
            cursor.execute(
                "DELETE FROM holders WHERE bay = ? AND substr(holder, 1, ?) = ? AND holder != ?",
                (bay, len(prefix), prefix, keep),
            )

    def release_unknown_holders(self) -> None:
        """Drop the holders of bays that are not recorded, so that their templates can go."""
        with self.database.write() as cursor:
            cursor.execute("DELETE FROM holders WHERE bay NOT IN (SELECT id FROM bays)")
