import pytest

from devbay.errors import DevbayError
from devbay.runtimes import inputs
from devbay.runtimes.inputs import install_inputs, tools_of, without_scripts


@pytest.fixture
def tree(tmp_path):
    return tmp_path / "w"


def write(tree, *names, text="x"):
    for name in names:
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def found(tree, argv, folder=".", patterns=()):
    return [file.path for file in install_inputs(tree, folder, argv.split(), patterns)]


def test_a_tool_reads_its_own_lock_and_manifest_files(tree):
    write(tree, "package.json", "package-lock.json", ".npmrc", "index.js", "requirements.txt", "Gemfile")
    assert found(tree, "npm ci") == [".npmrc", "package-lock.json", "package.json"]
    assert found(tree, "pip install -r requirements.txt") == ["requirements.txt"]
    assert found(tree, "bundle install") == ["Gemfile"]


def test_a_tool_inside_a_shells_text_is_found(tree):
    write(tree, "package.json", "requirements.txt")
    argv = ("sh", "-c", "cd . && /usr/bin/npm ci; echo done")
    assert [file.path for file in install_inputs(tree, ".", argv, ())] == ["package.json"]


def test_an_unknown_command_gets_the_files_of_every_tool_and_itself(tree):
    write(tree, "package.json", "go.mod", "bin/setup", "main.go")
    assert found(tree, "bin/setup --fast") == ["bin/setup", "go.mod", "package.json"]


def test_files_come_from_the_folder_the_command_runs_in(tree):
    write(tree, "package.json", "web/package.json", "web/src/package.json")
    assert found(tree, "npm ci", folder="web") == ["web/package.json"]


def test_a_folder_the_command_names_counts_as_one_it_runs_in(tree):
    write(tree, "web/package.json", "api/package.json")
    assert found(tree, "npm --prefix web ci") == ["web/package.json"]


def test_members_of_a_workspace_belong_to_it(tree):
    write(tree, "package.json", text='{"workspaces": ["packages/*"]}')
    write(tree, "packages/a/package.json", "packages/a/index.js", "node_modules/b/package.json")
    assert found(tree, "npm ci") == ["package.json", "packages/a/package.json"]


def test_the_workspace_root_above_belongs_to_a_member(tree):
    write(
        tree,
        "pnpm-workspace.yaml",
        "pnpm-lock.yaml",
        "package.json",
        "apps/web/package.json",
        "b/package.json",
    )
    assert found(tree, "pnpm install", folder="apps/web") == [
        "apps/web/package.json",
        "b/package.json",
        "package.json",
        "pnpm-lock.yaml",
        "pnpm-workspace.yaml",
    ]


def test_requirement_files_bring_those_they_include(tree):
    write(tree, "deps/dev.txt", text="-r base.txt\npytest\n--constraint=../pins/all.txt\n# -r not.txt\n")
    write(tree, "deps/base.txt", text="-r dev.txt\nflask")
    write(tree, "pins/all.txt", "deps/not.txt")
    assert found(tree, "pip install -rdeps/dev.txt") == ["deps/base.txt", "deps/dev.txt", "pins/all.txt"]


def test_given_patterns_replace_the_default(tree):
    write(tree, "package.json", "src/a.py", "src/deep/b.py", "src/deep/c.txt", "pyproject.toml")
    assert found(tree, "uv sync", patterns=("pyproject.toml", "src/**/*.py")) == [
        "pyproject.toml",
        "src/a.py",
        "src/deep/b.py",
    ]
    assert found(tree, "uv sync", patterns=("src",)) == ["src/a.py", "src/deep/b.py", "src/deep/c.txt"]
    assert found(tree, "uv sync", folder="src", patterns=("*.json",)) == ["package.json"]


def test_patterns_do_not_enter_dependencies_or_git(tree):
    write(
        tree, ".git/a.py", "node_modules/a.py", ".devbay/bays/b/a.py", ".venv/a.py", "web/node_modules/a.py"
    )
    assert found(tree, "uv sync", patterns=("**/*.py",)) == []


def test_contents_and_the_executable_bit_are_read(tree):
    write(tree, "bin/setup", text="#!/bin/sh")
    (tree / "bin/setup").chmod(0o755)
    (file,) = install_inputs(tree, ".", ("bin/setup",), ())
    assert (file.data, file.executable) == (b"#!/bin/sh", True)


def test_a_link_within_the_worktree_is_read_through(tree):
    write(tree, "shared/package.json", text="{}")
    (tree / "package.json").symlink_to("shared/package.json")
    (file,) = install_inputs(tree, ".", ("npm", "ci"), ())
    assert (file.path, file.data) == ("package.json", b"{}")


@pytest.mark.parametrize("patterns", [(), ("package.json",), ("folder/secret",), ("folder",)])
def test_a_link_out_of_the_worktree_is_refused(tree, tmp_path, patterns):
    write(tmp_path, "outside/secret")
    write(tree, "other")
    (tree / "package.json").symlink_to(tmp_path / "outside/secret")
    (tree / "folder").symlink_to(tmp_path / "outside")
    with pytest.raises(DevbayError) as raised:
        install_inputs(tree, ".", ("npm", "ci"), patterns)
    assert raised.value.code == "unsafe_install_input"


def test_links_that_go_in_circles_end(tree):
    write(tree, "a/package.json")
    (tree / "a/again").symlink_to("..")
    assert found(tree, "npm ci", patterns=("**/package.json",)) == ["a/package.json"]


def test_a_path_in_the_command_that_leads_out_is_no_input(tree, tmp_path):
    write(tmp_path, "secret")
    write(tree, "package.json")
    assert found(tree, "npm ci --cache ../secret") == ["package.json"]


def test_too_much_is_refused(tree, monkeypatch):
    monkeypatch.setattr(inputs, "MAX_BYTES", 10)
    write(tree, "package.json", text="x" * 11)
    with pytest.raises(DevbayError) as raised:
        found(tree, "npm ci")
    assert raised.value.code == "install_inputs_too_big"


def test_no_inputs_are_no_error(tree):
    tree.mkdir()
    assert found(tree, "npm ci") == []


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ("npm ci", "npm ci --ignore-scripts"),
        (
            "/usr/bin/pnpm install --frozen-lockfile",
            "/usr/bin/pnpm install --frozen-lockfile --ignore-scripts",
        ),
        ("yarn install", "yarn install --ignore-scripts"),
        ("bun install", "bun install --ignore-scripts"),
        ("npm install --ignore-scripts", "npm install --ignore-scripts"),
        ("npm install -- x", "npm install --ignore-scripts -- x"),
        ("pip install x", "pip install x"),
        ("make npm", "make npm"),
    ],
)
def test_package_scripts_are_switched_off_in_the_command(argv, expected):
    changed, env = without_scripts(argv.split())
    assert " ".join(changed) == expected
    assert env["npm_config_ignore_scripts"] == "true"


def test_tools_are_found_by_word_not_by_part_of_a_word():
    assert len(tools_of(["npm", "ci"])) == 1
    assert tools_of(["npmish", "run"]) == inputs.TOOLS
