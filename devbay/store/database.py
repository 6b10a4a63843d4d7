"""The SQLite file: schema, version check, and short transactions shared by the daemon's threads."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devbay.errors import WORK_FAILED, DevbayError
from devbay.home import private_dir

SCHEMA_VERSION = 2

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;

CREATE TABLE repositories (
  id TEXT PRIMARY KEY,
  common_dir TEXT NOT NULL UNIQUE,
  main_worktree TEXT,
  project TEXT NOT NULL,
  shared_name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE bays (
  id TEXT PRIMARY KEY,
  repository TEXT NOT NULL REFERENCES repositories(id),
  name TEXT NOT NULL,
  alias TEXT,
  project TEXT NOT NULL,
  site TEXT NOT NULL UNIQUE,
  branch TEXT,
  created_branch INTEGER NOT NULL DEFAULT 0,
  base_commit TEXT NOT NULL DEFAULT '',
  worktree TEXT NOT NULL UNIQUE,
  git_dir TEXT NOT NULL DEFAULT '',
  adopted INTEGER NOT NULL DEFAULT 0,
  submodules TEXT NOT NULL DEFAULT '{}',
  includes TEXT NOT NULL DEFAULT '{}',
  phase TEXT NOT NULL,
  wanted TEXT NOT NULL DEFAULT 'none',
  wanted_services TEXT NOT NULL DEFAULT '[]',
  engine TEXT NOT NULL DEFAULT '{}',
  runtime TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  warnings TEXT NOT NULL DEFAULT '[]',
  service_notes TEXT NOT NULL DEFAULT '{}',
  setup_done TEXT NOT NULL DEFAULT '[]',
  created_at TEXT NOT NULL,
  last_used_at TEXT NOT NULL,
  UNIQUE (repository, name),
  UNIQUE (repository, alias)
) STRICT;

CREATE TABLE ports (
  port INTEGER PRIMARY KEY,
  bay TEXT NOT NULL REFERENCES bays(id) ON DELETE CASCADE,
  service TEXT NOT NULL,
  name TEXT NOT NULL,
  UNIQUE (bay, service, name)
) STRICT;

CREATE TABLE subnets (
  cidr TEXT PRIMARY KEY,
  bay TEXT NOT NULL UNIQUE REFERENCES bays(id) ON DELETE CASCADE
) STRICT;

CREATE TABLE runs (
  id TEXT PRIMARY KEY,
  bay TEXT NOT NULL,
  task TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at TEXT NOT NULL,
  finished_at TEXT,
  folder TEXT NOT NULL,
  details TEXT NOT NULL DEFAULT '{}',
  result TEXT,
  tree_commit TEXT,
  tree_dirty INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX runs_by_bay ON runs (bay, created_at);
CREATE INDEX runs_by_commit ON runs (tree_commit, task);

CREATE TABLE run_tests (
  run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  suite TEXT,
  name TEXT NOT NULL,
  file TEXT,
  outcome TEXT NOT NULL,
  duration_ms INTEGER
) STRICT;
CREATE INDEX run_tests_by_run ON run_tests (run);

CREATE TABLE run_files (
  bay TEXT NOT NULL REFERENCES bays(id) ON DELETE CASCADE,
  path TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  PRIMARY KEY (bay, path)
) STRICT;

CREATE TABLE grants (
  repository TEXT NOT NULL,
  key TEXT NOT NULL,
  kind TEXT NOT NULL,
  summary TEXT NOT NULL,
  granted_at TEXT NOT NULL,
  PRIMARY KEY (repository, key)
) STRICT;

CREATE TABLE templates (
  key TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  details TEXT NOT NULL DEFAULT '{}',
  size INTEGER NOT NULL DEFAULT 0,
  last_used_at TEXT NOT NULL
) STRICT;

CREATE TABLE holders (
  holder TEXT PRIMARY KEY,
  template TEXT NOT NULL REFERENCES templates(key),
  bay TEXT NOT NULL
) STRICT;
"""

# From each version to the next. 2: a run's tests in rows of their own, and the tree that it ran on.
MIGRATIONS = {
    1: """
ALTER TABLE runs ADD COLUMN tree_commit TEXT;
ALTER TABLE runs ADD COLUMN tree_dirty INTEGER NOT NULL DEFAULT 1;
CREATE INDEX runs_by_commit ON runs (tree_commit, task);
CREATE TABLE run_tests (
  run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  suite TEXT,
  name TEXT NOT NULL,
  file TEXT,
  outcome TEXT NOT NULL,
  duration_ms INTEGER
) STRICT;
CREATE INDEX run_tests_by_run ON run_tests (run);
INSERT INTO run_tests SELECT runs.id, json_extract(t.value, '$.suite'), json_extract(t.value, '$.name'),
  json_extract(t.value, '$.file'), json_extract(t.value, '$.outcome'), json_extract(t.value, '$.duration_ms')
  FROM runs, json_each(runs.details, '$.tests') AS t;
UPDATE runs SET details = json_remove(details, '$.tests'),
  tree_commit = json_extract(result, '$.tree.commit'),
  tree_dirty = coalesce(json_extract(result, '$.tree.dirty'), 1);
""",
}


_DISK = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}


class Database:
    """One connection for all threads of the daemon, guarded by a re-entrant lock.

    Every write commits before the method returns, so a kill -9 loses at most the write in progress
    (WAL, synchronous=NORMAL: safe against a killed process, not against a power cut).
    """

    def __init__(self, path: Path) -> None:
        private_dir(path.parent)
        self._path = path
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=10)
        path.chmod(0o600)
        self._connection.row_factory = sqlite3.Row
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._migrate(path)

    def _migrate(self, path: Path) -> None:
        version = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
        if version > SCHEMA_VERSION:
            self._connection.close()
            raise DevbayError(
                "newer_store",
                f"{path} was written by a newer devbay (schema {version}, this one knows {SCHEMA_VERSION})",
                next="update devbay, or set DEVBAY_HOME to another folder",
            )
        while version < SCHEMA_VERSION:
            script, reached = (MIGRATIONS[version], version + 1) if version else (SCHEMA, SCHEMA_VERSION)
            with self.write() as cursor:
                for statement in script.split(";\n"):
                    if statement.strip():
                        cursor.execute(statement)
                cursor.execute(f"PRAGMA user_version={reached}")
            version = reached

    @contextmanager
    def write(self) -> Iterator[sqlite3.Cursor]:
        """A transaction: committed at the end of the block, rolled back if it raises (also `disk_failed`)."""
        with self._lock, _disk_errors(self._path):
            cursor = self._connection.cursor()
            if self._connection.in_transaction:
                yield cursor
                return
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
                cursor.execute("COMMIT")
            finally:
                # a failed COMMIT leaves it open, and sqlite itself rolls some failures back
                if self._connection.in_transaction:
                    cursor.execute("ROLLBACK")

    def rows(self, sql: str, *args: object) -> list[sqlite3.Row]:
        with self._lock:
            return self._connection.execute(sql, args).fetchall()

    def close(self) -> None:
        with self._lock:
            self._connection.close()


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """Tell what the disk refuses as the error `disk_failed`."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in _DISK:  # the low byte; the others say more of the same
            raise
        raise DevbayError(
            "disk_failed",
            f"devbay cannot write what it remembers ({path}): {error}",
            next="make room or correct the permissions, then repeat",
            exit_code=WORK_FAILED,
        ) from error
