import io
import sys
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.reports.offline import report

GREEN = '<testsuite name="s" tests="1"><testcase name="a" classname="T"/></testsuite>'
RED = (
    '<testsuite name="s"><testcase name="a" classname="T" file="t.py">'
    '<failure message="no">t.py:3: E</failure>'
    "</testcase></testsuite>"
)
PRINTED = (
    "F\n=========================== short test summary info ============================\n"
    "FAILED t.py::a - no\n1 failed in 0.01s\n"
)


def file(path: Path, text: str | bytes) -> str:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def test_a_report_is_read_and_judged(tmp_path: Path) -> None:
    result = report([file(tmp_path / "r.xml", RED)], exit_code=1)
    assert (result.status, result.reason, result.parsed) == ("failed", "tests_failed", True)
    assert [(f.file, f.line, f.message) for f in result.failures] == [("t.py", 3, "no")]
    assert result.report is not None
    assert result.report.format == "junit"


def test_several_files_are_one_report(tmp_path: Path) -> None:
    result = report([file(tmp_path / "a.xml", RED), file(tmp_path / "b.xml", GREEN)], exit_code=1)
    assert result.counts is not None
    assert result.counts.total == 2


def test_output_is_read_where_there_is_no_report(tmp_path: Path) -> None:
    result = report(stdout=file(tmp_path / "out", PRINTED), exit_code=1)
    assert (result.status, result.reason) == ("failed", "tests_failed")
    assert result.report is not None
    assert (result.report.format, result.report.source) == ("pytest", "stdout")


def test_output_tells_what_a_green_report_of_a_failed_command_does_not(tmp_path: Path) -> None:
    out = file(
        tmp_path / "out", "INTERNALERROR> Traceback (most recent call last):\nINTERNALERROR> OSError: full\n"
    )
    result = report([file(tmp_path / "r.xml", GREEN)], stdout=out, exit_code=3, argv=["pytest"])
    assert (result.status, result.reason) == ("error", "crash")
    assert result.failures[0].message == "OSError: full"


def test_standard_input_is_read_as_output_or_as_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PRINTED.encode())))
    assert report(exit_code=1).reason == "tests_failed"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(RED.encode())))
    assert report(["-"], exit_code=1).reason == "tests_failed"


def test_every_failure_is_given_ungrouped(tmp_path: Path) -> None:
    cases = "".join(f'<testcase name="t{n}"><failure message="same"/></testcase>' for n in range(500))
    result = report([file(tmp_path / "r.xml", f"<testsuite>{cases}</testsuite>")], exit_code=1)
    assert len(result.failures) == 500
    assert "more_failures" not in result.as_json()


def test_an_empty_report_says_that_no_test_is_known(tmp_path: Path) -> None:
    result = report([file(tmp_path / "r.xml", "")], exit_code=0)
    assert (result.status, result.reason) == ("error", "no_tests")


def test_a_report_in_no_known_format_is_no_report(tmp_path: Path) -> None:
    result = report([file(tmp_path / "r.xml", "<html>")], exit_code=0)
    assert (result.status, result.reason) == ("error", "no_report")


def test_a_time_limit_is_a_timeout_and_keeps_what_was_read(tmp_path: Path) -> None:
    printed = "===== test session starts =====\ntests/t.py::test_a PASSED [ 50%]\ntests/t.py::test_b "
    result = report(stdout=file(tmp_path / "out", printed), exit_code=-15, timed_out=True)
    assert (result.status, result.reason) == ("timeout", "timeout")
    assert [(f.name, f.kind, f.scope, f.file) for f in result.failures] == [
        ("test_b", "timeout", "run", "tests/t.py")
    ]


def test_wrong_arguments_are_errors_that_say_what_to_do(tmp_path: Path) -> None:
    good = file(tmp_path / "r.xml", GREEN)
    for arguments, code in (
        ({"files": [str(tmp_path)]}, "bad_report"),
        ({"files": [str(tmp_path / "gone")]}, "report_missing"),
        ({"files": [good], "format": "xunit9"}, "unknown_format"),
        ({"files": [good], "root": str(tmp_path / "gone")}, "bad_root"),
    ):
        with pytest.raises(DevbayError) as error:
            report(**arguments)  # type: ignore[arg-type]
        assert error.value.code == code
        assert error.value.next


def test_an_answer_leaves_out_what_is_not_known(tmp_path: Path) -> None:
    assert report([file(tmp_path / "r.xml", GREEN)], exit_code=0).as_json() == {
        "status": "passed",
        "parsed": True,
        "counts": {"total": 1, "passed": 1, "failed": 0, "errors": 0, "skipped": 0},
        "report": {"format": "junit", "source": str(tmp_path / "r.xml")},
        "exit_code": 0,
    }


@pytest.mark.parametrize(
    "noise", ["<" * 300_000, "&" * 300_000, "<b>" * 100_000, "]" * 300_000, " " * 300_000, "\n" * 300_000]
)
def test_hostile_text_ends_in_a_result(tmp_path: Path, noise: str) -> None:
    text = f'<testsuite><testcase name="a"><failure message="no">{noise}'
    assert report([file(tmp_path / "r.xml", text)], exit_code=1).reason == "report_truncated"
