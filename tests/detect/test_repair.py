"""What a failed boot says is mended in the one way there is, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from devbay.detect.facts_of import gather
from devbay.detect.repair import Problem, Repair, repair

WEB = {"image": "node:20", "start": ["npx", "vite"], "port": 3000, "health": {"http": "/up", "timeout": "9s"}}
MISSING = 'psycopg.errors.UndefinedTable: relation "visits" does not exist'
DB = {"image": "postgres:17", "port": 5432}
ALEMBIC = {"alembic.ini": "[alembic]\nscript_location = m\n", "requirements.txt": "alembic\n"}


@pytest.fixture
def mend(repo):
    """`mend(services, problem, files)`: the repair of a manifest with these services."""

    def found(services: Mapping[str, Any], problem: Problem, files: Mapping[str, str] | None = None):
        return repair({"services": services}, problem, gather(repo(files or {"README": "shop\n"})))

    return found


def failed(reason: str = "connection refused", **seen: Any) -> Problem:
    return Problem("web", "probe_failed", reason, **seen)


def changed(found: Repair | None) -> Mapping[str, Any]:
    assert found is not None
    return {"/".join(path): value for path, value in found.changes.items()}


def test_a_probe_path_that_answers_404_becomes_the_root_and_keeps_its_timeout(mend):
    found = mend({"web": WEB}, failed("HTTP 404"))
    assert changed(found) == {"services/web/health": {"http": "/", "timeout": "9s"}}


def test_a_root_that_answers_404_becomes_a_probe_of_the_port(mend):
    web = {**WEB, "health": {"http": "/", "accept": ["200-399"], "timeout": "9s"}}
    assert changed(mend({"web": web}, failed("HTTP 404"))) == {
        "services/web/health": {"tcp": 3000, "timeout": "9s"}
    }


@pytest.mark.parametrize("reason", ["HTTP 500", "HTTP 401", "no answer within 5 s"])
def test_other_answers_are_the_programs_own_matter(mend, reason: str):
    assert mend({"web": WEB}, failed(reason, listening=(("0.0.0.0", 3000),))) is None


def test_the_one_port_that_is_listened_on_is_taken(mend):
    web = {**WEB, "health": {"tcp": 3000}}
    found = mend({"web": web}, failed(listening=(("0.0.0.0", 8000), ("127.0.0.11", 41234), ("::", 9229))))
    assert changed(found) == {"services/web/port": 8000, "services/web/health": {"tcp": 8000}}


def test_the_engines_own_name_server_is_no_port_of_the_service(mend):
    assert mend({"web": WEB}, failed(listening=(("127.0.0.11", 41234),))) is None


def test_a_port_that_is_listened_on_everywhere_is_not_what_is_wrong(mend):
    assert mend({"web": WEB}, failed(listening=(("0.0.0.0", 3000), ("0.0.0.0", 8000)))) is None


def test_of_several_ports_none_is_chosen(mend):
    assert mend({"web": WEB}, failed(listening=(("0.0.0.0", 8000), ("0.0.0.0", 8001)))) is None


def test_a_port_that_has_another_name_is_not_taken_for_the_primary_one(mend):
    web = {**WEB, "ports": {"metrics": 9100}}
    assert mend({"web": web}, failed(listening=(("0.0.0.0", 9100),))) is None


def test_nothing_is_repaired_where_nothing_listens(mend):
    assert mend({"web": WEB}, failed()) is None


def test_on_this_machine_a_port_is_taken_only_if_the_command_names_it(mend):
    heard = failed(listening=(("127.0.0.1", 8000),), on_host=True)
    assert mend({"web": WEB}, heard) is None
    named = {**WEB, "start": ["python", "-m", "http.server", "8000"]}
    assert changed(mend({"web": named}, heard)) == {"services/web/port": 8000}


LOOPBACK = failed(listening=(("127.0.0.1", 3000),))


@pytest.mark.parametrize(
    ("start", "wanted"),
    [
        ("npx vite", "npx vite --host 0.0.0.0"),
        ("npx vite --host 127.0.0.1", "npx vite --host 0.0.0.0"),
        ("npx next dev -p 3000", "npx next dev -p 3000 -H 0.0.0.0"),
        ("next start --hostname=localhost", "next start --hostname=0.0.0.0"),
        ("bin/rails server -p 3000", "bin/rails server -p 3000 -b 0.0.0.0"),
        ("bundle exec rails s -b localhost", "bundle exec rails s -b 0.0.0.0"),
        ("python manage.py runserver", "python manage.py runserver 0.0.0.0:3000"),
        ("python manage.py runserver 127.0.0.1:3000", "python manage.py runserver 0.0.0.0:3000"),
        ("python manage.py runserver --noreload 3000", "python manage.py runserver --noreload 0.0.0.0:3000"),
        ("flask --app shop run -p 3000", "flask --app shop run -p 3000 --host 0.0.0.0"),
        ("uv run uvicorn shop:app", "uv run uvicorn shop:app --host 0.0.0.0"),
        ("npm run dev", "npm run dev -- --host 0.0.0.0"),
        ("pnpm dev", "pnpm dev --host 0.0.0.0"),
        ("yarn run dev", "yarn run dev --host 0.0.0.0"),
    ],
)
def test_a_known_server_is_told_to_listen_everywhere(mend, start: str, wanted: str):
    files = {"package.json": '{"name": "shop", "scripts": {"dev": "vite --port 3000"}}'}
    found = mend({"web": {**WEB, "start": start.split()}}, LOOPBACK, files)
    assert changed(found) == {"services/web/start": wanted.split()}


@pytest.mark.parametrize("start", ["./serve", "next build", "npm run other", "flask shell", "sh -c vite&"])
def test_a_server_that_nobody_knows_is_left_alone(mend, start: str):
    files = {"package.json": '{"name": "shop", "scripts": {"dev": "vite"}}'}
    assert mend({"web": {**WEB, "start": start.split()}}, LOOPBACK, files) is None


def test_a_shells_simple_command_is_changed_inside_its_text(mend):
    web = {**WEB, "start": ["sh", "-c", "uvicorn shop:app --port 3000"]}
    wanted = ["sh", "-c", "uvicorn shop:app --port 3000 --host 0.0.0.0"]
    assert changed(mend({"web": web}, LOOPBACK)) == {"services/web/start": wanted}


def test_the_command_of_a_dockerfile_is_taken_where_the_service_names_none(mend):
    web = {"build": "app", "port": 3000, "health": {"tcp": 3000}}
    files = {"app/Dockerfile": 'FROM python:3.13\nCMD ["flask", "run"]\n'}
    wanted = ["flask", "run", "--host", "0.0.0.0"]
    assert changed(mend({"web": web}, LOOPBACK, files)) == {"services/web/start": wanted}


def test_another_port_on_the_loopback_is_both(mend):
    found = mend({"web": WEB}, failed(listening=(("127.0.0.1", 5173),)))
    assert changed(found) == {
        "services/web/port": 5173,
        "services/web/start": ["npx", "vite", "--host", "0.0.0.0"],
    }


def test_a_missing_table_is_set_up_by_the_one_migration_tool(mend):
    web = {"image": "python:3.13", "start": ["python", "app.py"], "needs": ["db"], "env": {"A": "b"}}
    exited = Problem("web", "service_exited", "ended with exit code 1", (MISSING,))
    found = mend({"db": DB, "web": web}, exited, ALEMBIC)
    assert changed(found) == {
        "services/migrate": {
            "kind": "oneshot",
            "run": ["alembic", "upgrade", "head"],
            "needs": ["db"],
            "image": "python:3.13",
            "env": {"A": "b"},
        },
        "services/db/setup": ["migrate"],
    }


def test_a_migration_that_runs_already_is_not_run_twice(mend):
    web = {"image": "python:3.13", "start": ["sh", "-c", "alembic upgrade head && app"], "needs": ["db"]}
    assert mend({"db": DB, "web": web}, Problem("web", "x", "", (MISSING,)), ALEMBIC) is None


def test_a_missing_table_without_a_known_tool_or_database_is_left(mend):
    web = {"image": "python:3.13", "start": ["python", "app.py"], "needs": ["db"]}
    assert mend({"db": DB, "web": web}, Problem("web", "x", "", (MISSING,))) is None
    assert mend({"web": {**web, "needs": []}}, Problem("web", "x", "", (MISSING,)), ALEMBIC) is None
