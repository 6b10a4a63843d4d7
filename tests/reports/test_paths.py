from pathlib import Path

import pytest

from devbay.reports.paths import PathMapper, is_library, looks_like_path


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "my repo"
    for file in (
        "tests/test_a.py",
        "src/app.py",
        "packages/api/tests/test_b.py",
        "packages/web/src/index.ts",
        "packages/api/src/index.ts",
        "src/test/java/org/example/KettleTest.java",
        "e2e/zoo.spec.js",
    ):
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (tmp_path / "secret.py").write_text("")
    (root / "leak.py").symlink_to(tmp_path / "secret.py")
    (root / "up").symlink_to(tmp_path)
    return root


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("tests/test_a.py", "tests/test_a.py"),
        ("./tests/../tests/test_a.py", "tests/test_a.py"),
        ("tests\\test_a.py", "tests/test_a.py"),
        ("/workspace/tests/test_a.py", "tests/test_a.py"),
        ("file:///workspace/tests/test_a.py?t=1", "tests/test_a.py"),
        ("C:\\build\\tests\\test_a.py", "tests/test_a.py"),
        ("/builds/acme/app/tests/test_a.py", "tests/test_a.py"),
        ("zoo.spec.js", "e2e/zoo.spec.js"),
        ("webpack:///./src/app.py", "src/app.py"),
    ],
)
def test_paths_of_any_spelling_become_paths_of_the_repository(
    checkout: Path, raw: str, expected: str
) -> None:
    assert PathMapper(checkout, mounts={"/workspace": checkout}).map(raw) == expected


@pytest.mark.parametrize(
    "raw",
    [
        "tests/gone.py",
        "../secret.py",
        "leak.py",
        "up/secret.py",
        "/etc/passwd",
        "index.ts",  # two files are called so
        "src/index.ts",  # and two end so
        "/usr/lib/python3.11/src/app.py",
        "/opt/tool/src/app.py",
        "node_modules/x/src/app.py",
        "<frozen runpy>",
        "node:internal/timers",
        "https://example.org/tests/test_a.py",
        "tests",
        "",
        "a\0b",
        "x" * 5000,
        "d/" + "x" * 300 + ".py",
    ],
)
def test_what_is_not_certainly_a_file_of_the_repository_is_none(checkout: Path, raw: str) -> None:
    assert PathMapper(checkout, mounts={"/workspace": checkout}).map(raw) is None


def test_the_folder_of_the_command_comes_first(checkout: Path) -> None:
    assert PathMapper(checkout, "packages/api").map("src/index.ts") == "packages/api/src/index.ts"
    assert PathMapper(checkout, "packages/web").map("src/index.ts") == "packages/web/src/index.ts"
    assert PathMapper(checkout, "packages/api").map("tests/test_b.py") == "packages/api/tests/test_b.py"


def test_the_end_of_a_foreign_folder_tells_where_in_the_checkout_it_was(checkout: Path) -> None:
    mapper = PathMapper.as_named(checkout, "/builds/acme/app/packages/api")
    assert mapper.map("src/index.ts") == "packages/api/src/index.ts"
    assert mapper.map("/builds/acme/app/src/app.py") == "src/app.py"


def test_a_run_maps_the_worktree_the_workspace_and_a_copy_in_the_image(checkout: Path) -> None:
    for cwd in (str(checkout), "/workspace", "/app", None):
        mapper = PathMapper.of_run(checkout, cwd)
        assert mapper.map("src/app.py") == "src/app.py"
        assert mapper.map(f"{checkout}/src/app.py") == "src/app.py"
        assert mapper.map("/workspace/src/app.py") == "src/app.py"
    assert PathMapper.of_run(checkout, "/app").map("/app/src/app.py") == "src/app.py"
    assert (
        PathMapper.of_run(checkout, "/workspace/packages/web").map("src/index.ts")
        == "packages/web/src/index.ts"
    )


def test_modules_and_classes_name_their_file(checkout: Path) -> None:
    mapper = PathMapper(checkout)
    assert mapper.own("tests.test_a.TestTax") == "tests/test_a.py"
    assert mapper.own("org.example.KettleTest$Inner") == "src/test/java/org/example/KettleTest.java"
    assert mapper.own("org.example.GoneTest") is None
    assert mapper.own("a sentence. with dots") is None


def test_without_a_checkout_the_text_decides() -> None:
    mapper = PathMapper.as_named(None, "/srv/repo")
    assert mapper.map("/srv/repo/s/t.py") == "s/t.py"
    assert mapper.map("./s/t.py") == "s/t.py"
    assert mapper.map("../t.py") is None
    assert mapper.map("/elsewhere/t.py") is None


def test_libraries_and_names_are_told_apart_from_paths() -> None:
    assert is_library("/x/.venv/lib/python3.11/site-packages/a.py")
    assert not is_library("/usr/src/app/a.py")
    assert looks_like_path("tests/test_a.py")
    assert not looks_like_path("example.org/till")


def test_of_two_go_modules_of_one_name_the_one_that_ran_is_meant(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "go.mod").write_text("module example.com/x\n")
        (tmp_path / folder / "x_test.go").write_text("package x\n")
    found = [PathMapper(tmp_path, cwd).in_package("example.com/x", "x_test.go") for cwd in ("a", "b", "")]
    assert found == ["a/x_test.go", "b/x_test.go", None]
