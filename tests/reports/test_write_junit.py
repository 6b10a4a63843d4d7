from xml.etree import ElementTree

from devbay.answers import Failure, RunResult
from devbay.reports.records import TestCase
from devbay.reports.write_junit import to_junit
from tests.reports.samples import junit_of, numbers


def test_what_is_written_reads_back_the_same() -> None:
    tests = [
        TestCase("test_a", "tests.T", "tests/t.py", 12, "passed"),
        TestCase("test_b", "tests.T", "tests/t.py", 5, "failed"),
        TestCase("test_c", "tests.T", "tests/t.py", None, "skipped"),
    ]
    failures = [
        Failure(
            name="test_b",
            suite="tests.T",
            file="tests/t.py",
            line=7,
            message="no \x1b[1m\0 ]]> <b>",
            frames=["a.py:1"],
        ),
        Failure(name="conftest", scope="run", kind="error", message="ImportError"),
    ]
    written = to_junit(RunResult(status="failed", task="unit", failures=failures), tests)
    ElementTree.fromstring(written)
    parsed = junit_of(written)
    assert numbers(parsed) == (4, 1, 1, 1, 1)
    assert [(found.name, found.kind) for found in parsed.failures] == [
        ("test_b", "failure"),
        ("conftest", "error"),
    ]
    assert parsed.failures[0].message.startswith("no")
    assert parsed.failures[0].message.endswith("]]> <b>")
    assert parsed.tests[0].duration_ms == 12


def test_a_run_without_a_single_test_is_not_an_empty_green_report() -> None:
    parsed = junit_of(to_junit(RunResult(status="error", task="unit", reason="crash"), []))
    assert numbers(parsed) == (1, 0, 0, 1, 0)
