"""Input that is broken, hostile or empty: named where it was left out, never fatal, never slow."""

import subprocess
import time
from pathlib import Path

import pytest

from devbay.detect import finish, hosts, mounting, setup, stacks, tasking
from devbay.detect import propose as proposing
from devbay.detect.init import init

STACK = "services:\n  web: {image: 'nginx:1.26', ports: ['80:80']}\n"
GOOD = {"compose.yaml": STACK, "requirements.txt": "pytest\n", "test_a.py": ""}


def skipped(answer, word: str) -> bool:
    return any(word in warning for warning in answer.warnings)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (stacks, "choose"), (proposing.compose_stack, "read"), (proposing.containers, "place"),
        (finish, "ports_of"), (finish, "primary"), (finish, "health"), (mounting, "put"),
        (mounting, "shared"), (hosts, "put"), (tasking, "homes"), (tasking, "put"), (setup, "put"),
        (proposing, "_variables"), (proposing, "_leftovers"), (proposing, "_server"),
        (proposing.programs, "place"),
    ],
)  # fmt: skip
def test_a_pass_that_fails_costs_its_part_and_is_named(repo, monkeypatch, module, name):
    def fail(*_: object, **__: object) -> None:
        raise IndexError("secret text of a file")

    files = dict(GOOD) if name != "place" or module is not proposing.programs else {"Procfile": "web: x\n"}
    root = repo(files).root
    monkeypatch.setattr(module, name, fail)
    answer = init(root)
    if name != "_server":
        assert skipped(answer, "cannot be understood (IndexError)")
    assert answer.valid and "secret text" not in answer.model_dump_json()
    if module in (finish, hosts, setup, tasking, mounting):
        assert "web" in answer.manifest["services"]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("package.json", "// a comment\n{\n"), ("pyproject.toml", "[project\n"), ("Taskfile.yml", "a: [\n"),
        (".devcontainer/devcontainer.json", "{ /* open"), (".github/workflows/a.yml", "jobs: {a: [\n"),
        ("mise.toml", "= 1\n"), ("composer.json", "{'a': 1}"), ("app.json", "[1"), ("Cargo.toml", "a = \n"),
        ("pnpm-workspace.yaml", "packages: [\n"),
    ],
)  # fmt: skip
def test_a_broken_file_is_named_and_the_rest_goes_on(repo, file, text):
    more = {"package.json": "{}"} if file.startswith("pnpm") else {}
    answer = init(repo({**GOOD, **more, "Gemfile": "gem 'rails'", file: text}).root)
    assert answer.valid and "web" in answer.manifest["services"] and "test" in answer.manifest["tasks"]
    assert skipped(answer, file) or file == "mise.toml"


@pytest.mark.parametrize("text", ["services: [", "services: {web: ", "a: *nope\n", "\tservices:\n"])
def test_a_broken_stack_is_named_and_the_other_sources_go_on(repo, text):
    answer = init(repo({**GOOD, "compose.yaml": text, "Procfile": "web: python -m http.server 8000\n"}).root)
    assert answer.valid and "web" in answer.manifest["services"]
    assert skipped(answer, "compose.yaml") or any("compose.yaml" in note for note in answer.notes)


@pytest.mark.parametrize(
    "files",
    [
        {"package.json": '{"scripts": [1], "workspaces": 7, "dependencies": "x", "engines": []}'},
        {"package.json": '{"scripts": {"test": {"a": 1}}, "name": 5, "packageManager": []}'},
        {"pyproject.toml": "project = 3\ntool = []\n"},
        {"pyproject.toml": "[project]\ndependencies = 'x'\nname = 1\n[tool.poetry]\ndependencies = 4\n"},
        {"composer.json": '{"require": [], "scripts": 3}'},
        {".github/workflows/a.yml": "jobs: {a: {services: [x], steps: {b: c}, env: 5, strategy: []}}"},
        {".github/workflows/a.yml": "[1, 2]\n"},
        {".devcontainer/devcontainer.json": '{"build": 4, "forwardPorts": {"a": 1}, "features": 5}'},
        {"Taskfile.yml": "tasks: [a]\n"},
        {"Procfile": "web:\n: x\nweb: 'open\n\x00\n"},
        {"app.json": '{"env": 5, "environments": []}'},
        {"compose.yaml": "services: {a: 5, b: [x], c: {image: 7, ports: {}, environment: 5, depends_on: 1}}"},
        {"Dockerfile": "EXPOSE 80\nFROM\nCMD [\nHEALTHCHECK --x=\n"},
    ],
)
def test_values_of_other_kinds_than_expected_are_survived(repo, files):
    assert init(repo(files).root).valid


def test_variables_without_a_value_are_asked_about_and_a_required_one_is_told(repo):
    stack = "services:\n  b: {image: 'x:${TAG}'}\n  web:\n    image: nginx:1.26\n    environment:\n"
    stack += "      A: '${WANTED:?set it}'\n      B: '${PLAIN}'\n"
    answer = init(repo({"compose.yaml": stack}).root)
    said = " ".join([*(f"{each.about} {each.question}" for each in answer.undecided), *answer.notes])
    assert answer.valid and all(name in said for name in ("TAG", "WANTED", "PLAIN"))


@pytest.mark.parametrize("commits", [False, True])
def test_an_empty_repository_gets_a_proposal_that_asks(tmp_path: Path, commits: bool):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    if commits:
        name = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(tmp_path), *name, "commit", "-qm", "x", "--allow-empty"], check=True)
    answer = init(tmp_path)
    assert answer.valid and answer.undecided and not answer.manifest.get("services")


def test_two_hundred_stacks_are_weighed_quickly(repo):
    files = {f"d{number}/compose.yaml": STACK.replace("web", f"w{number}") for number in range(200)}
    root = repo(files).root
    began = time.perf_counter()
    answer = init(root)
    assert time.perf_counter() - began < 60
    assert answer.valid and len(answer.manifest["services"]) == 1


@pytest.mark.parametrize(
    "files",
    [
        {"compose.yaml": "include: [compose.yaml]\n" + STACK},
        {"compose.yaml": "include: [b.yaml]\n" + STACK, "b.yaml": "include: [compose.yaml]\n"},
        {"compose.yaml": STACK + "  a: {extends: b}\n  b: {extends: a}\n"},
        {"compose.yaml": STACK + "  a: {extends: {file: b.yaml, service: a}}\n",
         "b.yaml": "services: {a: {extends: {file: compose.yaml, service: a}}}\n"},
    ],
)  # fmt: skip
def test_circles_of_include_and_extends_are_told(repo, files):
    began = time.perf_counter()
    answer = init(repo(files).root)
    assert answer.valid and time.perf_counter() - began < 60
    said = " ".join([*answer.warnings, *answer.notes, *(each.question for each in answer.undecided)])
    assert any(word in said for word in ("circle", "itself", "cycl", "circular")), said


@pytest.mark.parametrize(
    "name", ["compose.yaml", "package.json", "Procfile", "pyproject.toml", ".env.example"]
)
def test_a_link_out_of_the_repository_is_not_read(repo, tmp_path: Path, name):
    outside = tmp_path / "outside"
    outside.write_text("web: leaked\nname: leaked\n")
    root = repo({"a.txt": ""}).root
    (root / name).symlink_to(outside)
    answer = init(root)
    assert answer.valid and "leaked" not in answer.model_dump_json() and skipped(answer, name)


def test_names_with_newlines_neither_stop_it_nor_write_lines_of_their_own(repo):
    root = repo(GOOD).root
    (root / "x\nservices: {evil: {image: a}}").write_text("")
    (root / "d\nir").mkdir()
    (root / "d\nir" / "package.json").write_text('{"scripts": {"dev": "node x\\nevil: 1"}}')
    (root / "b").mkdir()
    (root / "b" / "package.json").write_text('{"name": "a\\nevil: 1", "scripts": {"test": "jest\\nevil"}}')
    answer = init(root)
    assert answer.valid and "evil" not in answer.manifest["services"]
    assert "\nevil" not in answer.yaml and skipped(answer, "x\\nservices")


def test_a_procfile_line_for_a_shell_is_kept_whole_and_asked_about(repo):
    line = "cd app && python -m http.server $PORT | tee log"
    answer = init(repo({"Procfile": f"web: {line}\n", "requirements.txt": ""}).root)
    assert answer.manifest["services"]["web"]["start"] == ["sh", "-c", line]
    assert any("needs a shell" in each.question for each in answer.undecided)
