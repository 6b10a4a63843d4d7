from dataclasses import dataclass
from pathlib import Path

from devbay.answers import RunResult
from devbay.reports import Ending, RunReport, judge


@dataclass(frozen=True)
class Declared:
    format: str = "junit"
    path: str = "out/r.xml"


RED = (
    '<testsuite name="s"><testcase name="a" file="/workspace/t.py"><failure message="no">/workspace/t.py:3: E'
    "</failure></testcase></testsuite>"
)


def worktree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "out").mkdir(parents=True)
    (root / "t.py").write_text("")
    return root


def test_the_declared_report_is_read_and_mapped_to_the_worktree(tmp_path: Path) -> None:
    root = worktree(tmp_path)
    (root / "out/r.xml").write_text(RED)
    judged = judge(
        Ending(1),
        RunReport(Declared(), root / "out/r.xml", root),
        log=tmp_path / "log",
        root=root,
        cwd="/workspace",
    )
    result = RunResult(**judged.fields)
    assert (result.status, result.failures[0].file, result.failures[0].line) == ("failed", "t.py", 3)
    assert result.report is not None
    assert result.report.source == "out/r.xml"
    assert [(test.name, test.file, test.outcome) for test in judged.tests] == [("a", "t.py", "failed")]


def test_a_report_that_was_there_before_is_stale(tmp_path: Path) -> None:
    root = worktree(tmp_path)
    (root / "out/r.xml").write_text(RED.replace("failure", "skipped"))
    stale = RunReport(Declared(), root / "out/r.xml", root, fresh=False)
    fields = judge(Ending(0), stale, log=tmp_path / "log", root=root).fields
    assert (fields["status"], fields["reason"]) == ("error", "report_stale")


def test_a_missing_report_is_an_error_unless_the_output_says_it(tmp_path: Path) -> None:
    root = worktree(tmp_path)
    log = tmp_path / "log"
    missing = RunReport(Declared(), root / "out/r.xml", root, fresh=False)
    assert judge(Ending(0), missing, log=log, root=root).fields["reason"] == "no_report"
    log.write_text("===== test session starts =====\n\nt.py . [100%]\n\n===== 1 passed in 0.01s =====\n")
    assert judge(Ending(0), missing, log=log, root=root).fields["status"] == "passed"


def test_a_report_that_is_a_link_out_of_the_worktree_is_not_read(tmp_path: Path) -> None:
    root = worktree(tmp_path)
    (tmp_path / "elsewhere.xml").write_text(RED)
    (root / "out/r.xml").symlink_to(tmp_path / "elsewhere.xml")
    fields = judge(
        Ending(1), RunReport(Declared(), root / "out/r.xml", root), log=tmp_path / "log", root=root
    ).fields
    assert (fields["reason"], fields["parsed"]) == ("no_report", False)


def test_auto_wants_output_of_a_known_runner(tmp_path: Path) -> None:
    root = worktree(tmp_path)
    (tmp_path / "log").write_text("all fine\n")
    assert (
        judge(Ending(0), RunReport(auto=True), log=tmp_path / "log", root=root).fields["reason"]
        == "no_report"
    )
    plain = judge(Ending(0), RunReport(), log=tmp_path / "log", root=root).fields
    assert (plain["status"], plain["parsed"], plain["counts"]) == ("passed", False, None)


def test_several_reports_of_a_run_are_one(tmp_path: Path) -> None:
    root = worktree(tmp_path)
    files = (root / "out/a.xml", root / "out/b.xml")
    for file, text in zip(files, (RED, RED.replace('name="a"', 'name="b"')), strict=True):
        file.write_text(text)
    report = RunReport(Declared(path="out/*.xml"), root / "out/*.xml", root, files=files)
    result = RunResult(**judge(Ending(1), report, log=tmp_path / "log", root=root, cwd="/workspace").fields)
    assert [failure.name for failure in result.failures] == ["a", "b"]
    assert result.report is not None
    assert result.report.source == "out/a.xml and 1 more"


def test_a_result_says_what_was_asked_also_where_the_output_was_read_instead(tmp_path: Path) -> None:
    root = worktree(tmp_path)
    log = tmp_path / "log"
    asked = RunReport(Declared(), root / "out/r.xml", root, asked="PYTEST_ADDOPTS=--junit-xml")
    assert judge(Ending(0), asked, log=log, root=root).fields["reason"] == "no_report"
    log.write_text("===== test session starts =====\n\nt.py . [100%]\n\n===== 1 passed in 0.01s =====\n")
    report = judge(Ending(0), asked, log=log, root=root).fields["report"]
    assert (report.source, report.asked) == ("output", "PYTEST_ADDOPTS=--junit-xml")


def test_a_report_that_is_not_due_leaves_the_verdict_to_the_exit_code(tmp_path: Path) -> None:
    root = worktree(tmp_path)
    may = RunReport(Declared(), root / "out/r.xml", root, due=False)
    fields = judge(Ending(0), may, log=tmp_path / "log", root=root).fields
    assert (fields["status"], fields["parsed"]) == ("passed", False)


def test_the_one_file_of_a_pattern_is_named(tmp_path: Path) -> None:
    (tmp_path / "gtest").mkdir()
    file = tmp_path / "gtest/unit.xml"
    file.write_text(RED)
    named = Declared(path="${run.dir}/gtest/*.xml")
    report = RunReport(named, tmp_path / "gtest/*.xml", tmp_path, files=(file,))
    fields = judge(Ending(1), report, log=tmp_path / "log", root=worktree(tmp_path)).fields
    assert fields["report"].source == "${run.dir}/gtest/unit.xml"
