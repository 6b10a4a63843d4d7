"""Reports on disk: where they lie, whether they are new, and that no link leads out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from devbay.manifest import Report
from devbay.tasks.artifacts import digests, ensure_parent, report_place


def report(path: str) -> Report:
    return Report(format="junit", path=path)


def test_a_report_lies_in_the_worktree_or_in_the_runs_own_folder(tmp_path: Path) -> None:
    inside = report_place(report("reports/unit.xml"), tmp_path / "w", tmp_path / "r")
    own = report_place(report("${run.dir}/unit.xml"), tmp_path / "w", tmp_path / "r")
    assert inside.path == tmp_path / "w" / "reports" / "unit.xml"
    assert inside.in_worktree
    assert own.path == tmp_path / "r" / "unit.xml"
    assert not own.in_worktree


def test_an_old_report_is_told_from_one_that_was_written_again(tmp_path: Path) -> None:
    place = report_place(report("unit.xml"), tmp_path, tmp_path)
    assert place.marks() == {}
    place.path.write_text("<testsuite/>")
    before = place.marks()
    assert place.marks() == before
    os.utime(place.path, ns=(1, 1))
    assert place.marks() != before


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("**/target/*/TEST-*.xml", ["a/target/r/TEST-1.xml", "target/r/TEST-2.xml"]),
        ("*/target/r/TEST-1.xml", ["a/target/r/TEST-1.xml"]),
        ("target/r", ["target/r/TEST-2.xml", "target/r/deep/other.xml"]),
        ("target/r/*.xml", ["target/r/TEST-2.xml"]),
        ("missing/**/x.xml", []),
        ("target/r/TEST-2.xml/x", []),
    ],
)
def test_a_pattern_or_a_folder_names_several_reports(tmp_path: Path, path: str, found: list[str]) -> None:
    for name in ("a/target/r/TEST-1.xml", "target/r/TEST-2.xml", "target/r/deep/other.xml", "target/r/x.txt",
                 "node_modules/target/r/TEST-3.xml"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    place = report_place(report(path), tmp_path, tmp_path)
    assert [str(each.relative_to(tmp_path)) for each in place.marks()] == found


def test_a_pattern_never_leads_through_a_link(tmp_path: Path) -> None:
    worktree, outside = tmp_path / "w", tmp_path / "outside"
    for folder in (worktree / "real", outside):
        folder.mkdir(parents=True)
        (folder / "r.xml").write_text("")
    (worktree / "link").symlink_to(outside)
    (worktree / "real" / "l.xml").symlink_to(outside / "r.xml")
    for path in ("**/*.xml", "*/*.xml", "real"):
        marks = report_place(report(path), worktree, tmp_path).marks()
        assert [str(each.relative_to(worktree)) for each in marks] == ["real/r.xml"]


def test_the_reports_folder_is_made_but_never_through_a_link(tmp_path: Path) -> None:
    worktree, outside = tmp_path / "w", tmp_path / "outside"
    worktree.mkdir()
    outside.mkdir()
    ensure_parent(report_place(report("a/b/unit.xml"), worktree, tmp_path))
    assert (worktree / "a" / "b").is_dir()
    (worktree / "link").symlink_to(outside)
    ensure_parent(report_place(report("link/deep/unit.xml"), worktree, tmp_path))
    assert list(outside.iterdir()) == []


def test_only_regular_files_are_digested_and_none_blocks(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert set(digests(tmp_path, ["file", "link", "pipe", "folder", "missing"])) == {"file"}
