"""Tasks without a `report`: real runners are recognised, asked and read, whatever way their tests end."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.house import House, docker
from integration.repositories import git, repository
from integration.suites import COMPILED, NATIVE, SCRIPT, SCRIPTED, Expected, Suite

HERE = Path(__file__).parent / "images" / "runners"


@pytest.fixture(scope="module")
def image() -> Iterator[Callable[[str], str]]:
    """Builds an image of runners on first use; all are removed at the end."""
    built: set[str] = set()

    def build(name: str) -> str:
        if name not in built:
            target = name.rpartition(":")[2]
            done = subprocess.run(
                ["docker", "build", "-q", "--target", target, "-t", name, str(HERE)],
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stderr
            built.add(name)
        return name

    yield build
    for name in built:
        docker("rmi", "-f", name)


@pytest.fixture(scope="module")
def scripted(house: House, image: Callable[[str], str]) -> Path:
    image(SCRIPT)
    return bay_of(house, "scripted", SCRIPTED)


@pytest.fixture(scope="module")
def native(house: House, image: Callable[[str], str]) -> Path:
    image(COMPILED)
    return bay_of(house, "native", NATIVE)


def bay_of(house: House, name: str, suites: tuple[Suite, ...]) -> Path:
    """A repository with a folder and a task for every suite and ending, and a bay of it."""
    tasks, files = [], {}
    for suite in suites:
        for ending, (own, _) in suite.endings.items():
            folder = f"{suite.runner}/{ending}"
            files |= {f"{folder}/{path}": text for path, text in (suite.common | own).items()}
            tasks.append(
                f"  {suite.runner}-{ending}: {{image: '{suite.image}', run: {suite.run}, needs: [],"
                f" workdir: /workspace/{folder}, env: {{HOME: /tmp}}}}\n"
            )
            if "a.cc" in own:
                tasks.append(
                    f"  build-{suite.runner}-{ending}: {{image: '{suite.image}', needs: [],"
                    f" workdir: /workspace/{folder},"
                    " run: [g++, -O0, a.cc, -o, unit_tests, -lgtest, -lgtest_main]}\n"
                )
    manifest = f"version: 1\nproject: {name}\ntasks:\n{''.join(tasks)}"
    path = house.root / "repositories" / name
    ignored = "unit_tests\n__pycache__\n.pytest_cache\n/*/*/node_modules/\n"
    repository(path, {"devbay.yaml": manifest, ".gitignore": ignored, **files})
    (path / "node_modules").symlink_to("/opt/js/node_modules")
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "Find packages in the image")
    house.repositories.append(path)
    house.devbay("new", "bay", "--no-boot", cwd=path)
    return path


def cases(suites: tuple[Suite, ...]) -> list[Any]:
    return [
        pytest.param(suite, ending, id=f"{suite.runner}-{ending}")
        for suite in suites
        for ending in suite.endings
    ]


@pytest.mark.parametrize(("suite", "ending"), cases(SCRIPTED))
def test_a_script_runner_is_read_however_its_tests_end(
    house: House, scripted: Path, suite: Suite, ending: str
) -> None:
    check(house.json("run", "bay", f"{suite.runner}-{ending}", cwd=scripted, code=None), suite, ending)


@pytest.mark.full
@pytest.mark.parametrize(("suite", "ending"), cases(NATIVE))
def test_a_native_runner_is_read_however_its_tests_end(
    house: House, native: Path, suite: Suite, ending: str
) -> None:
    if "a.cc" in suite.endings[ending][0]:
        house.devbay("run", "bay", f"build-{suite.runner}-{ending}", cwd=native)
    check(house.json("run", "bay", f"{suite.runner}-{ending}", cwd=native, code=None), suite, ending)


def check(result: dict[str, Any], suite: Suite, ending: str) -> None:
    expected: Expected = suite.endings[ending][1]
    assert result["status"] == expected.status, result
    if expected.reason:
        assert result["reason"] == expected.reason, result
    if ending in ("pass", "fail"):
        assert (result["report"]["format"], result["report"]["source"]) == (suite.format, suite.source), (
            result
        )
        assert ("asked" in result["report"]) == suite.source.startswith("${run.dir}"), result
    if expected.total is not None:
        counts = result["counts"]
        failing = counts["failed"] + counts["errors"]
        assert (counts["total"], failing) == (expected.total, expected.failing), result
    if ending == "pass":
        assert not result.get("failures"), result
        return
    first = result["failures"][0]
    assert expected.message in first["message"], result
    if expected.place:
        folder = f"{suite.runner}/{ending}"
        place = f"{first['file']}:{first['line']}" if ":" in expected.place else first["file"]
        assert place == f"{folder}/{expected.place}", result


def rerun(house: House, path: Path, task: str) -> dict[str, Any]:
    house.json("run", "bay", task, cwd=path, code=1)
    found: dict[str, Any] = house.json("run", "bay", task, "--only-failed", cwd=path, code=1)
    return found


def check_rerun(result: dict[str, Any]) -> None:
    """What failed ran again; of what passed nothing did."""
    assert (result["status"], result["reason"]) == ("failed", "tests_failed"), result
    counts = result["counts"]
    assert (counts["passed"], counts["failed"] + counts["errors"]) == (0, 1), result


@pytest.mark.parametrize("suite", SCRIPTED, ids=lambda suite: suite.runner)
def test_only_the_last_failures_of_a_script_runner_run_again(
    house: House, scripted: Path, suite: Suite
) -> None:
    check_rerun(rerun(house, scripted, f"{suite.runner}-fail"))


@pytest.mark.full
@pytest.mark.parametrize(
    "suite", [suite for suite in NATIVE if suite.runner != "ctest"], ids=lambda suite: suite.runner
)
def test_only_the_last_failures_of_a_native_runner_run_again(
    house: House, native: Path, suite: Suite
) -> None:
    if suite.runner == "gtest":
        house.devbay("run", "bay", "build-gtest-fail", cwd=native)
    check_rerun(rerun(house, native, f"{suite.runner}-fail"))


def test_what_was_changed_is_compared_with_the_base_commit(house: House, scripted: Path) -> None:
    task, place = "pytest-fail", "pytest/fail/test_a.py"
    house.json("run", "bay", task, cwd=scripted, code=1)
    file = scripted / ".devbay/bays/bay" / place
    was = file.read_text()
    file.write_text("def test_good():\n    assert 1 == 3\n\n\ndef test_bad():\n    assert 1 == 1\n")
    result = house.json("run", "bay", task, "--compare-to", "base", cwd=scripted, code=1)
    file.write_text(was)
    comparison = result["comparison"]
    assert comparison.pop("with").startswith("base "), comparison
    assert comparison == {"new": [f"{place}: test_good"], "fixed": [f"{place}: test_bad"], "shared": []}
    assert "flaky" not in result["failures"][0], "the tree had changes"


def test_a_test_that_passed_and_failed_on_one_commit_is_flaky(
    house: House, image: Callable[[str], str]
) -> None:
    task = f"{{image: '{image(SCRIPT)}', run: [pytest-3, -q], needs: []}}"
    manifest = f"version: 1\nproject: flaky\ntasks:\n  unit: {task}\n"
    files = {"devbay.yaml": manifest, ".gitignore": "seen\n__pycache__\n.pytest_cache\n", "test_a.py": FLAKY}
    path = house.root / "repositories" / "flaky"
    house.repositories.append(repository(path, files))
    house.devbay("new", "bay", "--no-boot", cwd=path)
    passed = house.json("run", "bay", "unit", cwd=path)
    assert passed["report"]["source"] == "${run.dir}/report.xml"
    failed = house.json("run", "bay", "unit", "--compare-to", passed["run"], cwd=path, code=1)
    assert failed["failures"][0]["flaky"] is True
    assert failed["comparison"]["new"] == ["test_a.py: test_alternates"]
    error = house.devbay("run", "bay", "unit", "--compare-to", "nowhere", "--json", cwd=path, code=2).error
    assert error["code"] == "unknown_bay"


FLAKY = """\
from pathlib import Path


def test_alternates():
    seen = Path("seen")
    if seen.exists():
        seen.unlink()
        assert 1 == 2
    seen.touch()
"""
