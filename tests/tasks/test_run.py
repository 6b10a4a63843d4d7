"""Runs that would write the same report into a worktree are told from those that would not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from devbay.answers import Failure
from devbay.errors import DevbayError
from devbay.manifest import Manifest
from devbay.tasks.run import RunRequest, foreseen, written

TASKS = {
    "maven": {"image": "a:1", "run": ["mvn", "-B", "test"], "needs": []},
    "pytest": {"image": "a:1", "run": ["pytest"], "needs": []},
    "own": {"image": "a:1", "run": ["x"], "needs": [], "report": {"format": "junit", "path": "out/*.xml"}},
    "run-dir": {
        "image": "a:1", "run": ["x"], "needs": [], "report": {"format": "junit", "path": "${run.dir}/x.xml"},
    },
    "web": {"image": "a:1", "run": ["npm", "test"], "needs": [], "workdir": "/workspace/web"},
}  # fmt: skip


def bay(worktree: Path) -> Any:
    manifest = Manifest.model_validate({"version": 1, "project": "p", "tasks": TASKS})
    return SimpleNamespace(manifest=manifest, record=SimpleNamespace(worktree=str(worktree)))


@pytest.mark.parametrize(
    ("task", "report"),
    [
        ("maven", "**/target/surefire-reports/TEST-*.xml **/target/failsafe-reports/TEST-*.xml"),
        ("pytest", None),
        ("own", "out/*.xml"),
        ("run-dir", None),
    ],
)
def test_only_runs_with_a_report_in_the_worktree_wait_for_each_other(
    tmp_path: Path, task: str, report: str | None
) -> None:
    run: Any = SimpleNamespace(bay=bay(tmp_path), request=RunRequest("r", task))
    assert written(run) == report


def test_scripts_are_looked_up_where_the_task_runs(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "package.json").write_text('{"scripts": {"test": "jest"}}')
    plan = foreseen(bay(tmp_path), "web", ("-i",), ())
    assert plan.argv[:4] == ("npm", "test", "-i", "--")
    assert plan.argv[4] == "--json"


def test_tests_that_cannot_be_handed_over_are_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(DevbayError) as caught:
        foreseen(bay(tmp_path), "own", (), (Failure(name="a"),))
    assert caught.value.code == "no_selector"
