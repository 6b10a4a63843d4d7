"""Which tasks are found, where they run, and which are not made up."""

import json

import pytest

from devbay.detect.init import init


def tasks(repo, files):
    answer = init(repo(files).root)
    assert answer.valid, answer.diagnostics
    return answer.manifest.get("tasks", {})


def package(**scripts: str) -> str:
    return json.dumps({"name": "shop", "scripts": scripts})


@pytest.mark.parametrize(
    "script",
    [
        'echo "Error: no test specified" && exit 1',
        "jest --watch",
        "docker compose run web jest",
        "vitest --ui",
    ],
)
def test_placeholders_watchers_and_scripts_that_drive_an_engine_are_no_tasks(repo, script):
    assert tasks(repo, {"package.json": package(test=script)}) == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [("lint", "eslint --fix ."), ("lint", "biome check --write ."), ("release", "jest"), ("build", "x")],
)
def test_what_changes_files_or_ships_them_is_no_task(repo, name, text):
    assert tasks(repo, {"package.json": package(**{name: text})}) == {}


def test_a_runner_that_is_no_dependency_is_not_made_up(repo):
    assert tasks(repo, {"test_a.py": "", "requirements.txt": "flask\n"}) == {}
    assert tasks(repo, {"requirements.txt": "pytest\n", "test_a.py": ""})["test"]["run"] == ["pytest"]


@pytest.mark.parametrize(
    ("files", "run", "image"),
    [
        ({"go.mod": "module x\n", "a_test.go": ""}, ["go", "test", "./..."], "golang:1.23"),
        ({"Cargo.toml": "[package]\nname='x'\n", "tests/a.rs": ""}, ["cargo", "test"], "rust:1.83"),
        ({"Gemfile": "gem 'rspec'\n", "spec/a_spec.rb": ""}, ["bundle", "exec", "rspec"], "ruby:3.3"),
        ({"mix.exs": "", "test/a_test.exs": ""}, ["mix", "test"], "elixir:1.17"),
        ({"pom.xml": "", "src/test/A.java": "", "mvnw": ""}, ["./mvnw", "-B", "test"], "eclipse-temurin:21"),
    ],
)
def test_a_build_file_with_tests_beside_it_stands_for_its_tools_test_command(repo, files, run, image):
    (task,) = tasks(repo, files).values()
    assert (task["run"], task["image"], task["needs"]) == (run, image, [])


def test_a_make_target_is_the_command_it_runs_with_what_ci_starts_for_it(repo):
    found = tasks(repo, {
        "Makefile": "test: ## all\n\t@pytest -q\nwatch:\n\tptw\n",
        "requirements.txt": "pytest\n",
        ".github/workflows/ci.yml": "jobs: {t: {services: {db: {image: 'postgres:16'}},"
        " steps: [{run: make test}]}}",
    })  # fmt: skip
    assert found["test"]["run"] == ["pytest", "-q"]
    assert found["test"]["needs"] == ["db"]
    assert len(found) == 1


def test_members_of_a_workspace_have_their_own_tests_and_the_roots_lint(repo):
    found = tasks(repo, {
        "package.json": '{"name": "m", "workspaces": ["a", "b"], '
        '"scripts": {"test": "npm -ws test", "lint": "npm -ws run lint"}}',
        "a/package.json": '{"name": "@m/a", "scripts": {"test": "node --test", "lint": "eslint ."}}',
        "b/package.json": '{"name": "@m/b", "scripts": {"dev": "node s.js", "test": "vitest"}}',
    })  # fmt: skip
    assert {name: task["run"] for name, task in found.items()} == {
        "lint": ["npm", "run", "lint"], "a-test": ["npm", "--prefix", "a", "test"],
        "b-test": ["npm", "--prefix", "b", "test"],
    }  # fmt: skip
    assert found["a-test"]["report"] == "auto" and "report" not in found["lint"]


def test_a_report_that_the_command_writes_is_named_from_the_root(repo):
    found = tasks(repo, {
        "svc/requirements.txt": "pytest\n",
        ".github/workflows/c.yml": "jobs: {t: {steps: [{run: 'pytest --junitxml=out/j.xml',"
        " working-directory: svc}]}}",
    })  # fmt: skip
    assert found["test"]["report"] == {"format": "junit", "path": "svc/out/j.xml"}
    assert found["test"]["workdir"] == "/workspace/svc"


def test_a_stack_behind_profiles_runs_the_program_so_that_a_procfile_adds_nothing(repo):
    answer = init(repo({
        "compose.yaml": "services: {site: {build: ., profiles: [a], ports: ['80:8000']}}",
        "Dockerfile": "FROM python:3.12-slim\nCMD [x]\n",
        "Procfile": "web: python x.py\n",
    }).root)  # fmt: skip
    assert list(answer.manifest["services"]) == ["site"]
    assert not [each for each in answer.undecided if "server starts" in each.question]
