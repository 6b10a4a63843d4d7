"""What a person approves for this machine: shown as it is, and asked again only when it changes."""

from __future__ import annotations

import json

import pytest

from devbay.manifest import Capability, Manifest, parse
from devbay.security.host_commands import host_capabilities, not_covered
from tests.security.trees import Tree

TEXT = """
version: 1
project: shop
services:
  db:
    image: postgres:16
    port: 5432
    health: {cmd: [pg_isready]}
    mounts: [{source: ./db, target: /docker-entrypoint-initdb.d}]
  cache: {image: "redis:7", port: 6379, health: {tcp: 6379}}
  web:
    image: node:22
    workdir: /workspace/web
    install: [npm, ci]
    start: [npm, run, dev]
    port: 80
    primary: true
    health: {http: /}
    env: {PLAIN: "1", PATH: "/bin"}
  app: {image: "python:3.12", start: [python, app.py], health: {process: true}}
tasks:
  own: {in: host, run: [bin/check, --fast], needs: []}
  unit: {in: web, run: [make, test], needs: []}
  loose: {in: host, run: [sh], needs: []}
  free: {in: host, run: [python, -m, pytest], needs: []}
"""
FILES = {
    "db/1.sql": "select 1",
    "web/package.json": json.dumps({"scripts": {"dev": "vite", "build": "x"}}),
    "web/Makefile": "test:\n\tjest\nmore:\n\tx\n",
    "bin/check": "#!/bin/sh\necho \x1b[2J checks\n" + "line\n" * 40,
    "app.py": "print(1)",
}


def asked(text: str = TEXT, files: dict[str, str] | None = None, *, whole: bool = True) -> list[Capability]:
    tree = Tree({**FILES, **(files or {})}, runnable=["bin/check"])
    return host_capabilities(parse(text).require(), tree, whole=whole)


def by_path(found: list[Capability]) -> dict[str, Capability]:
    return {each.path: each for each in found}


def changed(text: str = TEXT, files: dict[str, str] | None = None) -> list[str]:
    """The paths of what has another key than before."""
    before, after = by_path(asked()), by_path(asked(text, files))
    return [path for path in after if path not in before or before[path].key != after[path].key]


def test_a_bay_of_containers_asks_for_its_tasks_of_this_machine_alone() -> None:
    found = asked(whole=False)
    assert [each.path for each in found] == ["tasks/own", "tasks/loose", "tasks/free"]
    assert {(each.kind, each.service) for each in found} == {("host", None)}
    assert [each.key for each in found] == [
        each.key for each in asked() if each.task in ("own", "loose", "free")
    ]


def test_a_bay_of_this_machine_asks_once_for_each_service_and_task_that_runs_something() -> None:
    assert [each.path for each in asked()] == [
        "services/db", "services/web", "services/app", "tasks/own", "tasks/unit", "tasks/loose", "tasks/free",
    ]  # fmt: skip
    assert len({each.key for each in asked()}) == 7


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("npm, run, dev", "npm, run, build", "services/web"),
        ("npm, ci", "npm, install", "services/web"),
        ("PATH: \"/bin\"", "PATH: \"./evil\"", "services/web"),
        ("python, app.py", "python, other.py", "services/app"),
        ("--fast", "--slow", "tasks/own"),
        ("make, test", "make, more", "tasks/unit"),
        ("[pg_isready]", "[psql]", "services/db"),
    ],
)  # fmt: skip
def test_another_command_is_asked_again(old: str, new: str, path: str) -> None:
    assert changed(TEXT.replace(old, new)) == [path]


@pytest.mark.parametrize(
    ("file", "content", "path"),
    [
        ("db/1.sql", "select 2", "services/db"),
        ("db/2.sh", "echo", "services/db"),
        ("web/package.json", json.dumps({"scripts": {"dev": "evil"}}), "services/web"),
        ("web/Makefile", "test:\n\tevil\n", "tasks/unit"),
        ("bin/check", "#!/bin/sh\n", "tasks/own"),
    ],
)
def test_another_content_of_a_script_is_asked_again(file: str, content: str, path: str) -> None:
    assert changed(files={file: content}) == [path]


def test_what_no_command_runs_as_it_stands_is_not_asked_again() -> None:
    assert changed(TEXT.replace("PLAIN: \"1\"", "PLAIN: \"2\"")) == []  # fmt: skip
    assert changed(f"# a comment\n{TEXT}\n") == []
    assert changed(files={"app.py": "print(2)", "web/other": "x"}) == []
    assert changed(files={"web/Makefile": "# new\ntest:\n\tjest\nmore:\n\ty\n"}) == []
    assert changed(files={"web/package.json": json.dumps({"scripts": {"dev": "vite", "build": "y"}})}) == []


def test_a_person_sees_each_command_as_it_is_typed_and_the_start_of_each_script() -> None:
    found = by_path(asked())
    web = found["services/web"].detail
    assert "in the folder web" in web
    assert "PATH=/bin npm run dev" in web
    assert "web/package.json: dev" in web
    own = found["tasks/own"].detail
    assert own.startswith("run:        bin/check --fast\nbin/check\n  | #!/bin/sh\n")
    assert "\\u{1b}[2J checks" in own
    assert "... and 30 more lines" in own
    assert "\x1b" not in own


def test_a_command_of_several_lines_is_shown_whole() -> None:
    text = TEXT.replace("[python, app.py]", '[sh, -c, "a\\nb \\u202e"]')
    detail = by_path(asked(text))["services/app"].detail
    assert detail.split("\n")[:2] == ["start:      sh -c 'a", "            b \\u{202e}'"]


def manifest() -> Manifest:
    return parse(TEXT).require()


@pytest.mark.parametrize(
    ("task", "args", "more"),
    [
        ("free", ["-k", "x", "tests/test_a.py"], []),
        ("own", ["--anything"], []),
        ("unit", [], []),
        ("unit", ["more"], ["web/Makefile: test more"]),
        ("unit", ["SHELL=/tmp/evil"], ["SHELL=/tmp/evil"]),
        ("unit", ["--eval=x"], ["--eval=x"]),
        ("loose", ["-c", "evil"], ["-c evil"]),
    ],
)
def test_arguments_that_run_something_else_are_not_covered(
    task: str, args: list[str], more: list[str]
) -> None:
    tree = Tree(FILES, runnable=["bin/check"])
    assert not_covered(manifest(), task, args, tree) == more
