"""Which task proves a manifest, how a file says that it was proven, and when that is written."""

from __future__ import annotations

from dataclasses import dataclass

from devbay.detect.answers import Verification
from devbay.detect.apply import edited
from devbay.detect.init import init
from devbay.detect.verify import stamped, task_to_run, unstamped
from devbay.manifest import parse

HEAD = """\
version: 1
project: shop
services:
  db: {image: 'postgres:17', port: 5432, health: {tcp: 5432}}
  web: {image: 'python:3.13', start: [serve], needs: [db], health: {process: true}}
tasks:
"""
MINE = """\
# mine
version: 1
project: shop
services:
  web: {image: 'a:1', start: [b], health: {process: true}}
"""


@dataclass(frozen=True)
class Outcome:
    """What a verification came to, without a bay."""

    text: str
    verification: Verification

    @property
    def ok(self) -> bool:
        return self.verification.outcome == "verified"


def chosen(*tasks: str) -> str | None:
    return task_to_run(parse(HEAD + "".join(f"  {task}\n" for task in tasks)).require())


def holds(text: str) -> Outcome:
    return Outcome(
        stamped(text, date="2026-01-02", runtime="docker", what="up"), Verification(outcome="verified")
    )


def test_the_test_task_that_needs_least_is_run():
    e2e, unit = "e2e: {in: web, run: [a], needs: [web]}", "test: {in: web, run: [b], needs: [db]}"
    assert chosen(e2e, unit) == "test"
    assert chosen(e2e) == "e2e"


def test_what_is_no_test_or_runs_on_this_machine_is_not_run():
    assert chosen("deploy: {in: web, run: [a], needs: []}", "latest: {in: web, run: [a], needs: []}") is None
    assert chosen("test: {in: host, run: [a], needs: []}") is None


def test_a_stamp_replaces_an_older_one_and_is_one_line_of_comment():
    once = stamped(MINE, date="2026-01-01", runtime="host", what="a\nb")
    again = stamped(once, date="2026-01-02", runtime="docker", what="c")
    assert again == f"# Verified by `devbay init --verify` on 2026-01-02 (docker): c\n{MINE}"
    assert unstamped(again) == MINE


def test_a_file_of_the_users_that_held_gets_the_stamp_and_nothing_else(repo):
    root = repo({"devbay.yaml": MINE}).root
    answer = init(root, write=True, verify=holds)
    assert answer.written and answer.verified
    assert (root / "devbay.yaml").read_text() == holds(MINE).text


def test_without_write_nothing_is_stamped(repo):
    root = repo({"devbay.yaml": MINE}).root
    assert not init(root, verify=holds).written
    assert (root / "devbay.yaml").read_text() == MINE


def test_a_repair_of_the_users_file_is_shown_and_not_written(repo):
    root = repo({"devbay.yaml": MINE}).root
    answer = init(root, write=True, verify=lambda text: holds(text.replace("[b]", "[c]")))
    assert not answer.written and answer.manifest["services"]["web"]["start"] == ["c"]
    assert answer.diff and "[c]" in answer.diff
    assert (root / "devbay.yaml").read_text() == MINE


def test_a_proposal_that_held_is_written_as_it_was_verified(repo):
    root = repo({"Procfile": "web: python -m http.server 8000\n", "requirements.txt": ""}).root
    answer = init(root, write=True, verify=holds)
    assert (root / "devbay.yaml").read_text() == answer.yaml
    assert answer.yaml.startswith("# Verified by")


def test_a_proposal_that_failed_is_written_without_a_stamp(repo):
    root = repo({"Procfile": "web: python -m http.server 8000\n", "requirements.txt": ""}).root
    answer = init(root, write=True, verify=lambda text: Outcome(text, Verification(outcome="boot_failed")))
    assert answer.written and answer.verified is False
    assert "# Verified" not in (root / "devbay.yaml").read_text()


def test_nothing_is_written_while_it_is_verified(repo):
    root = repo({"Procfile": "web: python -m http.server 8000\n", "requirements.txt": ""}).root
    answer = init(root, write=True, verify=lambda text: Outcome(text, Verification(outcome="running")))
    assert not answer.written and "repeat the same call" in answer.next
    assert not (root / "devbay.yaml").exists()


def test_an_edit_keeps_comments_and_the_way_values_are_written():
    text = "services:\n  web: # mine\n    port: 1 # one\n    health: {http: /up}\n    start: [a]\n"
    changes = {
        ("services", "web", "port"): 2,
        ("services", "web", "health"): {"http": "/"},
        ("services", "web", "start"): ["a", "b"],
    }
    assert edited(text, changes) == text.replace("port: 1", "port: 2").replace("/up", "/").replace(
        "[a]", "[a, b]"
    )
