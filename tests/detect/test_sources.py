"""What each evidence source says of small inputs, good and broken."""

import pytest

from devbay.detect import (
    actions,
    devcontainer,
    envfiles,
    jsonc,
    node,
    procfile,
    python,
    recipes,
    versions,
    words,
)


def test_a_plain_command_is_split_and_one_for_a_shell_is_not():
    assert words.argv("env TZ=UTC A='b c' python x.py") == (("python", "x.py"), {"TZ": "UTC", "A": "b c"})
    assert words.argv("a && b") == (("sh", "-c", "a && b"), {})
    assert words.argv("run --port $PORT")[0][:2] == ("sh", "-c")
    assert words.argv("echo 'it$elf'")[0] == ("echo", "it$elf")
    assert words.argv("echo 'open")[0][:2] == ("sh", "-c")


def test_comments_and_last_commas_of_json_do_not_count_but_slashes_in_texts_do():
    text = '// a\n{"a": "http://x//y", /* b // c */ "d": [1, 2, ], // e\n}'
    assert jsonc.loads(text) == {"a": "http://x//y", "d": [1, 2]}
    with pytest.raises(ValueError):
        jsonc.loads("[" * 100_000)


def test_workspace_members_take_the_manager_and_lock_of_their_root(repo):
    view = repo({
        "package.json": '{"name": "m", "packageManager": "pnpm@9.15.0",'
        '"scripts": {"test": "turbo run test"}}',
        "pnpm-workspace.yaml": "packages: [apps/*, '!apps/old']",
        "pnpm-lock.yaml": "",
        "apps/web/package.json": '{"name": "@m/web", "scripts": {"dev": "node s.js", "test": "node --test"}}',
        "apps/old/package.json": "{}",
        "tools/x/package.json": '{"name": "x"}',
    })  # fmt: skip
    found = {package.folder: package for package in node.packages(view)}
    web = found["apps/web"]
    assert (web.manager, web.root, web.lock) == ("pnpm", ".", "pnpm-lock.yaml")
    assert web.argv("test", at_home=False) == ("pnpm", "--dir", "apps/web", "test")
    assert web.argv("dev", at_home=True) == ("pnpm", "run", "dev")
    assert found["."].member_folders == ("apps/web",)
    assert found["."].runs_others("test") and not web.runs_others("test")
    assert found["tools/x"].root == "tools/x"


def test_a_broken_package_is_named_and_the_others_are_read(repo):
    view = repo({"package.json": '{"name": "a"}', "b/package.json": "{broken"})
    assert [package.name for package in node.packages(view)] == ["a"]
    assert [each.file for each in view.skipped] == ["b/package.json"]


def test_python_dependencies_come_from_every_file_that_lists_them(repo):
    view = repo({
        "pyproject.toml": '[project]\nname = "x"\nrequires-python = ">=3.11"\ndependencies = ["Django>=4"]\n'
        '[project.optional-dependencies]\ntest = ["pytest", "pytest-cov"]\ndocs = ["sphinx"]\n',
        "svc/requirements.txt": "flask # note\n#psycopg\n-r other.txt\n",
        "svc/requirements-dev.txt": "-r requirements.txt\npytest\n",
    })  # fmt: skip
    root, svc = python.projects(view)
    assert {"django", "pytest", "sphinx"} <= root.depends
    assert root.extras == ("test",)
    assert root.install()[-1].endswith("-r pyproject.toml --extra test")
    assert svc.depends == {"flask", "pytest"}
    assert svc.requirements == ("requirements-dev.txt",)
    assert str(svc.pytest) == "svc/requirements-dev.txt:2 pytest"


def test_a_workflow_gives_services_and_plain_steps_and_leaves_out_the_runners_values(repo):
    view = repo({".github/workflows/ci.yml": """
on: push
jobs:
  t:
    services:
      pg:
        image: postgres:16
        env: {POSTGRES_PASSWORD: "${{ secrets.DB_PW }}", POSTGRES_DB: app}
        ports: ["5432:5432"]
        options: --health-cmd "pg_isready -U x" -e A=b
      m: {image: "redis:${{ matrix.r }}"}
      empty: {image: ""}
    env: {KEY: value-of-ci}
    defaults: {run: {working-directory: svc}}
    steps:
      - run: |
          set -e
          cd sub
          A=1 pytest -q \\
            --junitxml="${RUNNER_TEMP}/j.xml" --title "x ${{ github.sha }}"
          ${{ matrix.command }}
          serve &
"""})  # fmt: skip
    (job,) = actions.jobs(view)
    pg, matrix = job.services
    assert (pg.env, pg.asked, pg.ports, pg.health) == (
        {"POSTGRES_DB": "app", "A": "b"}, {"POSTGRES_PASSWORD": "DB_PW"}, (5432,), "pg_isready -U x",
    )  # fmt: skip
    assert matrix.image is None
    test, expression, served = job.steps
    assert (test.argv, test.folder, test.env) == (("pytest", "-q"), "svc/sub", {"A": "1"})
    assert test.left == ("--junitxml", "--title")
    assert expression.argv is None and expression.expression
    assert served.argv is None
    assert job.asked == ("KEY",)
    assert "value-of-ci" not in repr(job)


def test_a_broken_workflow_is_named_and_the_others_are_read(repo):
    view = repo({
        ".github/workflows/a.yml": "jobs:\n  x: [unclosed\n",
        ".github/workflows/b.yml": "jobs: {x: {steps: [{run: pytest}]}}",
        ".github/workflows/c.yml": "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
        "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n",
    })  # fmt: skip
    assert [job.file for job in actions.jobs(view)] == [".github/workflows/b.yml"]
    assert [each.file for each in view.skipped] == [".github/workflows/a.yml", ".github/workflows/c.yml"]


def test_a_procfile_line_with_shell_syntax_is_kept_whole(repo):
    view = repo({"Procfile": "#release: x\nweb: serve --port $PORT\nclock: env TZ=UTC python c.py\n"})
    web, clock = procfile.processes(view)
    assert web.shell and web.argv == ("sh", "-c", "serve --port $PORT")
    assert (clock.argv, dict(clock.env), str(clock.origin)) == (
        ("python", "c.py"), {"TZ": "UTC"}, "Procfile:3 clock",
    )  # fmt: skip


def test_a_devcontainer_gives_its_build_and_asks_about_all_it_wants_of_the_host(repo):
    view = repo({
        ".devcontainer/devcontainer.json": '{"build": {"dockerfile": "Dockerfile", "context": ".."}, // x\n'
        '"runArgs": ["--network=host"], "remoteEnv": {"T": "${localEnv:MY_TOKEN}"},'
        '"forwardPorts": [8000, "x:81"],'
        '"mounts": ["source=${localEnv:HOME}/.ssh,target=/home/d/.ssh,type=bind"], "features": {"f:1": {}},'
        '"containerEnv": {"A": "1", "DB": "postgres://u@localhost/d"}, }',
        ".devcontainer/gpu/devcontainer.json": '{"image": "a:1"}',
    })  # fmt: skip
    first, second = devcontainer.configurations(view)
    assert first.build == {
        "context": ".",
        "dockerfile": ".devcontainer/Dockerfile",
        "target": None,
        "args": {},
    }
    assert (first.ports, dict(first.env)) == ((8000, 81), {"A": "1"})
    said = " ".join(map(str, first.questions))
    for word in ("f:1", "runArgs", "MY_TOKEN", ".ssh", "DB points at localhost"):
        assert word in said
    assert second.image == "a:1"


def test_compose_calls_are_found_with_their_files_and_verb():
    text = "docker compose -f a.yml -f b.yml up -d\n# docker compose down\n"
    text += "docker-compose --profile x run --rm t sh\n"
    up, run = recipes.compose_calls(text, recipes.Origin("x"))
    assert (up.files, up.verb, up.words) == (("a.yml", "b.yml"), "up", ("-d",))
    assert (run.verb, run.words) == ("run", ("--rm", "t", "sh"))


@pytest.mark.parametrize(
    ("files", "language", "asked", "image"),
    [
        ({".python-version": "# note\n3.11.4\n"}, "python", None, "python:3.11-slim"),
        ({".nvmrc": "v20.1.0"}, "node", None, "node:20-slim"),
        ({".tool-versions": "nodejs 18.1.0\nruby 3.2.1"}, "ruby", None, "ruby:3.2"),
        ({"mise.toml": '[tools]\ngo = "1.22.1"'}, "go", None, "golang:1.22"),
        ({}, "python", ">=3.11", "python:3.12-slim"),
        ({}, "python", ">=3.9,<3.11", "python:3.9-slim"),
        ({}, "python", "==3.10.*", "python:3.10-slim"),
        ({}, "python", "^3.11", "python:3.12-slim"),
        ({}, "node", ">=24", "node:24-slim"),
        ({}, "node", None, "node:22-slim"),
    ],
)
def test_the_version_that_files_ask_for_decides_the_image(repo, files, language, asked, image):
    assert versions.version(repo(files), language, asked=asked).image == image


def test_example_files_give_names_and_shapes_and_no_value(repo):
    view = repo(
        {".env.example": "export A_URL=postgres://u:p4ss@localhost:5432/d # x\nKEY=abc123\n#B=1\nPORT=81\n"}
    )
    assert envfiles.examples(view) == (".env.example",)
    address, key, port = envfiles.shapes(view, ".env.example")
    assert (address.scheme, address.port, address.local) == ("postgres", 5432, True)
    assert port.port == 81
    assert "p4ss" not in repr((address, key, port)) and "abc123" not in repr((address, key, port))
