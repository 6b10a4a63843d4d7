"""Runners are found behind package managers, environments, shells and recipes, where these are plain."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from devbay.runners.commands import ALL, Command, commands
from devbay.tasks.asking import reader, start_folder

SCRIPTS = {
    "test": "vitest run",
    "ci": "npm run lint && NODE_ENV=test jest",
    "lint": "eslint .",
    "web": "cd web && mocha",
    "loop": "npm run loop",
    "pretwice": "tsc",
    "twice": "jest",
}
FILES = {
    "package.json": json.dumps({"scripts": SCRIPTS}),
    "web/package.json": '{"scripts": {"test": "jest"}}',
    "broken/package.json": "{",
    "Makefile": "PY ?= python3\n.PHONY: all test\nall: test\n\t@echo done\n"
    "test: lint\n\t@$(PY) -m pytest -q $(ARGS) \\\n\t\ttests\nlint:\n\t-ruff check .\n"
    "sub:\n\t$(MAKE) -C web test\n",
    "web/Makefile": "test: ; jest --ci\n",
    "justfile": "set shell := ['sh']\ndefault: test\n# tests\ntest *args:\n    @uv run pytest {{args}}\n",
}


def found(line: str, folder: str = "") -> list[Command]:
    return commands(shlex.split(line), folder, FILES.get)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("pytest -q", "pytest -q"),
        ("/venv/bin/pytest -q", "pytest -q"),
        ("python3.12 -m pytest tests", "pytest tests"),
        ("python -X dev -W error -m pytest", "pytest"),
        ("coverage run --source src -m pytest -q", "pytest -q"),
        ("uv run --with x pytest -q", "pytest -q"),
        ("uv run -m pytest", "pytest"),
        ("poetry run python -m pytest", "pytest"),
        ("pipenv run pytest", "pytest"),
        ("pdm run pytest", "pytest"),
        ("hatch run dev:pytest", "pytest"),
        ("env -u A B=c timeout -k 5 1m bundle exec rspec spec", None),
        ("env B=c timeout -k 5 1m bundle exec rspec spec", "rspec spec"),
        ("npx -y vitest run", "vitest run"),
        ("npx --package x -- jest", "jest"),
        ("node node_modules/.bin/jest --ci", "jest --ci"),
        ("node --test", "node --test"),
        ("php -d memory_limit=1G vendor/bin/phpunit tests", "phpunit tests"),
        ("npm test", "vitest run"),
        ("npm t", "vitest run"),
        ("npm run test -- -t x", "vitest run -t x"),
        ("npm --silent --prefix web test", "jest"),
        ("pnpm test", "vitest run"),
        ("pnpm run test", "vitest run"),
        ("yarn test", "vitest run"),
        ("yarn jest a", "jest a"),
        ("bun run test", "vitest run"),
        ("bun test", "bun test"),
        ("npm run web", "mocha"),
        ("make -s -j 4 test ARGS=x", None),
        ("make -C web test", "jest --ci"),
        ("make sub", "jest --ci"),
        ("just", "pytest"),
        ("just test -k x", "pytest"),
        ("cargo test --all", "cargo test --all"),
        ("./build/unit_tests", "unit_tests"),
        ("sh -c 'cd web && exec jest --ci > out 2>&1'", "jest --ci"),
        ("sh -ec 'FOO=1 pytest | tee log'", None),
        ("bash -c 'ctest -j$(nproc)'", "ctest -j$_"),
    ],
)
def test_a_runner_is_found_behind_what_runs_it(line: str, words: str | None) -> None:
    programs = [" ".join(command.words) for command in found(line)]
    expected = {
        "env -u A B=c timeout -k 5 1m bundle exec rspec spec": [],
        "make -s -j 4 test ARGS=x": ["ruff check .", "pytest -q tests"],
        "sh -ec 'FOO=1 pytest | tee log'": ["pytest", "tee log"],
    }
    assert programs == (expected[line] if words is None else [words])


@pytest.mark.parametrize(
    "line",
    [
        "npm run missing", "npm run loop", "npm -w api test", "pnpm -r test", "yarn workspace api test",
        "npm --prefix broken test", "npm --prefix ../../elsewhere test", "make missing", "make -C ../.. test",
        "sh -c 'for i in 1 2; do pytest; done'", "sh -c 'while pytest; do :; done'", "sh -c \"pytest '\"",
        "sh -c '(pytest)'", "sh -c 'cd $DIR && pytest'", "sh -c 'cd ../.. && pytest'",
        "uv run --directory x pytest",
    ],
)  # fmt: skip
def test_what_is_not_plain_names_no_program(line: str) -> None:
    assert found(line) == []


@pytest.mark.parametrize(
    ("line", "extended"),
    [
        ("pytest tests", "pytest --own tests"),
        ("uv run python -m pytest tests", "uv run python -m pytest --own tests"),
        ("npm test", "npm test -- --own"),
        ("npm test -- -t x", "npm test -- -t x --own"),
        ("yarn test", "yarn test --own"),
        ("npm run web", "npm run web -- --own"),
    ],
)
def test_further_arguments_reach_the_runner(line: str, extended: str) -> None:
    argv = shlex.split(line)
    assert found(line)[-1].given(argv, ["--own"]) == tuple(shlex.split(extended))


@pytest.mark.parametrize("line", ["make test", "sh -c pytest", "npm run twice", "just test"])
def test_where_no_argument_reaches_the_runner_none_is_given(line: str) -> None:
    assert found(line)[-1].given(shlex.split(line), ["--own"]) is None


def test_variables_that_are_set_on_the_way_are_known() -> None:
    assert found("npm run ci")[-1].sets == {"NODE_ENV"}
    assert found("env A=1 pytest")[0].sets == {"A"}
    assert found("env -i pytest")[0].sets == {ALL}
    assert found("sh -c 'export A=1; B=2 pytest'")[0].sets == {"A", "B"}


def test_a_runner_is_known_with_the_folder_that_it_starts_in() -> None:
    assert [command.folder for command in found("npm run web")] == ["web"]
    assert [command.folder for command in found("npm --prefix web test")] == ["web"]
    assert [command.folder for command in found("make sub")] == ["web"]
    assert [command.folder for command in found("npm test", "web")] == ["web"]


def test_files_are_read_from_the_worktree_only_and_never_through_a_link(tmp_path: Path) -> None:
    worktree = tmp_path / "w"
    (worktree / "a").mkdir(parents=True)
    (worktree / "a" / "package.json").write_text("{}")
    (tmp_path / "secret").write_text("x")
    (worktree / "link").symlink_to(tmp_path / "secret")
    (worktree / "large").write_text("x" * (1024 * 1024 + 1))
    read = reader(worktree)
    assert read("a/package.json") == "{}"
    assert [read(path) for path in ("link", "../secret", "/etc/passwd", "a", "missing", "large")] == [
        None
    ] * 6


def test_the_folder_of_a_container_is_told_relative_to_the_worktree() -> None:
    root = Path("/w/bay")
    folders = ["/w/bay", "/w/bay/api", "/workspace/api", "/app", None, "/w/bays"]
    assert [start_folder(folder, root) for folder in folders] == ["", "api", "api", "", "", ""]
