"""What is decided for MariaDB and MySQL; `integration/test_host_servers.py` starts a real one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import BayRef, BindMount, ServiceSpec
from devbay.runtimes.host.providers import mariadb
from devbay.runtimes.host.providers.base import Server
from devbay.runtimes.host.providers.mariadb import MariaDB
from devbay.runtimes.host.providers.mydata import Settings, settings, setup

PATH = os.environ.get("PATH", "")
PROVIDER = MariaDB()
SERVER = Server("mariadb", "10.11.6", Path("/usr/sbin/mariadbd"), Path("/usr/sbin"), "/usr/sbin")


def fake(folder: Path, name: str, version: str) -> None:
    program = folder / name
    program.write_text(f'#!/bin/sh\necho "{name}  Ver {version} for Linux on x86_64"\n')
    program.chmod(0o755)


def test_the_images_own_server_is_preferred_and_another_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mariadb, "PLACES", ())
    fake(tmp_path, "mariadbd", "10.11.6-MariaDB")
    path = str(tmp_path)
    assert not PROVIDER.find("mariadb:10.11", path).note
    assert PROVIDER.find("mariadb:11", path).note == f"mariadb:11 is met by MariaDB 10.11.6 ({path})"
    assert PROVIDER.find("mysql:8.0", path).note == f"mysql:8.0 is met by MariaDB 10.11.6 ({path})"
    fake(tmp_path, "mysqld", "8.0.36")
    assert PROVIDER.find("mysql:8.0", path).program.name == "mysqld"
    assert not PROVIDER.find("mysql:8.0", path).note


def test_the_data_decides_between_the_two_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mariadb, "PLACES", ())
    fake(tmp_path, "mariadbd", "10.11.6-MariaDB")
    fake(tmp_path, "mysqld", "8.0.36")
    (tmp_path / "devbay-made").write_text("mariadb")
    assert PROVIDER.find("mysql:8.0", str(tmp_path), tmp_path).program.name == "mariadbd"
    spec = ServiceSpec(BayRef("b", "h", "p", "r", "n"), "db", "service", command=())
    mysql = Server("mariadb", "8.0.36", tmp_path / "mysqld", tmp_path, "here")
    with pytest.raises(DevbayError) as refused:
        PROVIDER.prepare(spec, mysql, tmp_path, None, None, None, Job())  # type: ignore[arg-type]
    assert refused.value.code == "data_unusable"


def test_without_a_server_the_refusal_names_both_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb, "PLACES", ())
    with pytest.raises(DevbayError) as refused:
        PROVIDER.find("mysql:8", "")
    assert refused.value.code == "image_not_met"
    assert "mariadb" in refused.value.next and "container engine" in refused.value.next


@pytest.mark.parametrize(
    ("env", "found"),
    [
        ({"MYSQL_ROOT_PASSWORD": "r", "MYSQL_DATABASE": "d"}, Settings("r", "d", "", "")),
        ({"MARIADB_ALLOW_EMPTY_ROOT_PASSWORD": "1"}, Settings("", "", "", "")),
        (
            {"MARIADB_RANDOM_ROOT_PASSWORD": "1", "MARIADB_USER": "u", "MARIADB_PASSWORD": "p"},
            Settings(None, "", "u", "p"),
        ),
    ],
)
def test_settings_are_those_of_both_images(spec_of: Any, env: dict[str, str], found: Settings) -> None:
    assert settings(spec_of("mariadb:11", env=env)) == found


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"MYSQL_ROOT_PASSWORD_FILE": "/run/secrets/x"},
        {"MYSQL_ROOT_PASSWORD": "r", "MYSQL_USER": "root", "MYSQL_PASSWORD": "x"},
        {"MYSQL_ROOT_PASSWORD": "r", "MYSQL_USER": "u"},
        {"MYSQL_ROOT_PASSWORD": "a\nb"},
    ],
)
def test_settings_that_cannot_be_followed_are_refused(spec_of: Any, env: dict[str, str]) -> None:
    with pytest.raises(DevbayError) as refused:
        settings(spec_of("mysql:8", env=env))
    assert refused.value.code == "bad_env"


def test_names_and_passwords_cannot_end_their_quotes() -> None:
    text = setup(Settings("it's \\", "a`b", "u'", "p"), mariadb=True)
    assert "ALTER USER 'root'@'localhost' IDENTIFIED BY 'it''s \\\\';" in text
    assert "CREATE DATABASE IF NOT EXISTS `a``b`;" in text
    assert "CREATE USER 'u'''@'%' IDENTIFIED BY 'p';" in text
    assert text.endswith("SHUTDOWN;\n")


def test_flags_move_neither_port_nor_address(spec_of: Any, tmp_path: Path) -> None:
    spec = spec_of(
        "mysql:8", ports={"port": 3306}, env={"MYSQL_ROOT_PASSWORD": "secret"},
        command=("mysqld", "--max-connections=7", "--port=1", "--bind-address=0.0.0.0"),
    )  # fmt: skip
    launch = PROVIDER.launch(spec, SERVER, tmp_path, None)
    words = list(launch.argv)
    assert words[1] == "--no-defaults"
    assert words.index("--max-connections=7") > words.index("--performance-schema=OFF")
    assert words.index(f"--port={spec.ports['port'][1]}") > words.index("--port=1")
    assert words.index("--bind-address=127.0.0.1") > words.index("--bind-address=0.0.0.0")
    assert "secret" not in " ".join((*words, *launch.env.values()))


def test_one_mounted_configuration_file_is_read_and_several_are_refused(spec_of: Any, tmp_path: Path) -> None:
    mount = BindMount(str(tmp_path), "/etc/mysql/conf.d", True)
    (tmp_path / "a.cnf").touch()
    spec = spec_of("mariadb:11", ports={"port": 3306}, mounts=(mount,))
    assert PROVIDER.launch(spec, SERVER, tmp_path, None).argv[1] == f"--defaults-file={tmp_path / 'a.cnf'}"
    (tmp_path / "b.cnf").touch()
    with pytest.raises(DevbayError, match="2 files"):
        PROVIDER.launch(spec, SERVER, tmp_path, None)


@pytest.mark.parametrize(
    "argv",
    [
        ("mysqladmin", "ping", "-h", "localhost", "-uroot", "-px"),
        ("healthcheck.sh", "--connect", "--innodb_initialized"),
        ("sh", "-c", "mariadb-admin ping -p$$MARIADB_ROOT_PASSWORD --silent"),
    ],
)
def test_pings_are_met_by_a_check(spec_of: Any, argv: tuple[str, ...]) -> None:
    check = PROVIDER.probe(spec_of("mariadb:11", ports={"port": 3306}), SERVER, argv)
    assert callable(check)
    assert "port" in (check() or "")
