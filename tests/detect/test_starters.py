"""Starters: valid by themselves, chosen by sources where nothing else speaks, and asked about."""

from pathlib import Path

import pytest

from devbay.detect.propose import propose
from devbay.detect.verdict import settle
from devbay.manifest import parse
from devbay.templates import template

STARTERS = sorted(template("starters").glob("*.yaml"))
FLASK = "from flask import Flask\n\nsite = Flask(__name__)\n"
CASES = {
    "django": {"manage.py": "from django.core import management\n", "requirements.txt": "django\n"},
    "fastapi": {"main.py": "from fastapi import FastAPI\napi = FastAPI()\n"},
    "flask": {"wsgi.py": FLASK},
    "node-web": {"index.js": "http.createServer(f).listen(process.env.PORT || 8123)\n"},
    "python-web": {"server.py": "HTTPServer(('', 9000), Handler).serve_forever()\n"},
    "static-site": {"public/index.html": "<p>"},
}
STARTS = {
    "fastapi": "main:api", "flask": "wsgi", "node-web": "index.js", "python-web": "server.py",
    "django": "manage.py",
}  # fmt: skip


@pytest.mark.parametrize("file", STARTERS, ids=lambda file: file.stem)
def test_a_starter_is_valid_by_itself(file: Path):
    assert parse(file.read_text(), root=None).valid


def test_every_starter_is_tried_here():
    assert [file.stem for file in STARTERS] == sorted(CASES)


@pytest.mark.parametrize("name", CASES)
def test_sources_choose_the_starter_and_the_proposal_asks_whether_it_is_right(repo, name):
    view = repo(CASES[name])
    draft = propose(view, "shop")
    assert settle(draft, view.root).loaded.valid
    web = draft.services["web"]
    assert STARTS.get(name) in (*web.get("start", ()), None)
    assert [each.about for each in draft.questions if f"`{name}`" in each.text] == ["services/web"]


def test_the_port_is_where_the_program_listens(repo):
    web = propose(repo(CASES["node-web"]), "shop").services["web"]
    assert (web["port"], web["health"]["tcp"]) == (8123, 8123)


def test_the_pages_of_a_folder_alone_are_served(repo):
    web = propose(repo(CASES["static-site"]), "shop").services["web"]
    assert web["mounts"] == [{"source": "public", "target": "/usr/share/nginx/html"}]


def test_each_line_keeps_the_reason_of_the_starter(repo):
    draft = propose(repo(CASES["flask"]), "shop")
    assert draft.sources["services", "web", "start"] == "loads itself anew after an edit"
    assert draft.sources["services", "web"] == "the starter flask, for wsgi.py:3"


def test_listed_dependencies_count_before_those_of_the_starter(repo):
    web = propose(repo({**CASES["flask"], "requirements.txt": "flask==3.1\n"}), "shop").services["web"]
    assert web["install"][-1] == "requirements.txt"


def test_a_program_that_listens_on_localhost_alone_is_asked_about(repo):
    view = repo({"server.py": "HTTPServer(('127.0.0.1', 9000), Handler)\n"})
    assert "services/web/port" in [each.about for each in propose(view, "shop").questions]


@pytest.mark.parametrize(
    "files",
    [
        {"README.md": "# hello\n"},
        {"app.py": "print('hello')\n"},
        {"app.py": FLASK, "compose.yaml": "services:\n  db:\n    image: postgres:17\n"},
    ],
)
def test_without_a_program_or_beside_a_stack_no_starter_is_taken(repo, files):
    draft = propose(repo(files), "shop")
    assert "web" not in draft.services
    assert any("no file says how the application's server starts" in each.text for each in draft.questions)
