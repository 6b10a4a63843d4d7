import pytest

from devbay.reports import junit
from devbay.reports.junit_dialects import milliseconds
from tests.reports.samples import failures_of, junit_of, numbers


def test_suites_nest_and_cases_stand_anywhere() -> None:
    parsed = junit_of(
        '<testsuites tests="4"><testsuite name="a"><testsuite name="b"><testcase name="1" classname="a.b"/>'
        '<testcase name="2"><failure message="no"/></testcase></testsuite><testcase name="3">'
        "<skipped/></testcase>"
        '</testsuite><testcase name="4"><error message="oh"/></testcase></testsuites>'
    )
    assert numbers(parsed) == (4, 1, 1, 1, 1)
    assert [(f.name, f.suite, f.kind) for f in parsed.failures] == [
        ("2", "b", "failure"),
        ("4", None, "error"),
    ]
    assert parsed.complete


def test_documents_one_after_the_other_are_one_report() -> None:
    one = '<?xml version="1.0"?><testsuite name="a"><testcase name="x"/></testsuite>\n'
    assert numbers(junit_of(one + one)) == (2, 2, 0, 0, 0)


def test_a_cut_report_keeps_what_was_complete_and_the_failure_it_was_cut_in() -> None:
    parsed = junit_of(
        '<testsuite name="s" tests="4"><testcase name="a"/><testcase name="b"><failure message="no">'
        "<![CDATA[at x.js:3"
    )
    assert not parsed.complete
    assert numbers(parsed) == (2, 1, 1, 0, 0)
    assert parsed.failures[0].message == "no"


def test_a_case_that_the_cut_left_without_an_outcome_is_not_counted() -> None:
    parsed = junit_of('<testsuite><testcase name="a"/><testcase name="b"><system-out>hello')
    assert numbers(parsed) == (1, 1, 0, 0, 0)
    assert not parsed.complete


def test_a_document_type_declaration_is_refused() -> None:
    laughs = '<!DOCTYPE l [<!ENTITY a "ha">]><testsuite name="&a;"><testcase name="x"/></testsuite>'
    parsed = junit_of(laughs)
    assert not parsed.complete
    assert "document type" in (parsed.problem or "")


def test_elements_that_nest_without_end_are_given_up() -> None:
    parsed = junit_of('<testsuite name="a">' * 50_000)
    assert not parsed.complete
    assert "deeper" in (parsed.problem or "")


def test_what_stands_in_properties_or_output_is_no_result() -> None:
    parsed = junit_of(
        "<testsuite><testcase name='a' file='a_test.py'><properties><property name='failure' value='x'/>"
        "<failure/></properties><system-out><failure message='only text'/></system-out></testcase>"
        "</testsuite>"
    )
    assert numbers(parsed) == (1, 1, 0, 0, 0)


def test_retries_that_passed_in_the_end_pass() -> None:
    parsed = junit_of(
        '<testsuite><testcase name="a"><flakyFailure message="x">boo</flakyFailure></testcase>'
        '<testcase name="b"><failure message="y"/><rerunFailure message="z"/></testcase></testsuite>'
    )
    assert numbers(parsed) == (2, 1, 1, 0, 0)
    assert [found.message for found in parsed.failures] == ["y"]


def test_a_test_that_may_fail_is_skipped() -> None:
    parsed = junit_of('<testsuite><testcase name="a"><skipped/><failure message="x"/></testcase></testsuite>')
    assert numbers(parsed) == (1, 0, 0, 0, 1)
    assert not parsed.failures


def test_colour_codes_go_however_they_were_written() -> None:
    parsed = junit_of(
        b'<testsuite><testcase name="a"><failure message="\x1b[31mred\x1b[0m"/></testcase><testcase name="b">'
        b'<failure message="&#27;[32mgreen&#x1b;[0m"/></testcase><testcase name="c">'
        b'<failure message="#x1B[33mamber#x1B[0m"/></testcase></testsuite>'
    )
    assert [found.message for found in parsed.failures] == ["red", "green", "amber"]


@pytest.mark.parametrize("declared", ["utf8", "UTF-8", "zip", "no-such"])
def test_encodings_are_read_and_only_those_of_text(declared: str) -> None:
    text = (
        f'<?xml version="1.0" encoding="{declared}"?><testsuite><testcase name="ñ"><failure/>'
        "</testcase></testsuite>"
    )
    assert junit_of(text).failures[0].name == "ñ"


def test_utf_16_and_latin_1_are_read() -> None:
    text = (
        '<?xml version="1.0" encoding="{}"?><testsuite><testcase name="ñ"><failure/></testcase></testsuite>'
    )
    assert junit_of(text.format("UTF-16").encode("utf-16")).failures[0].name == "ñ"
    assert junit_of(text.format("ISO-8859-1").encode("latin-1")).failures[0].name == "ñ"


def test_one_record_for_each_failed_assertion_but_one_test() -> None:
    parsed = junit_of(
        '<testsuite name="Load"><testcase name="Two" classname="Load">'
        '<failure message="/src/a_test.cc:11&#10;Expected: x">/src/a_test.cc:11</failure>'
        '<failure message="/src/a_test.cc:12&#10;Expected: y">/src/a_test.cc:12</failure></testcase>'
        "</testsuite>"
    )
    assert numbers(parsed) == (1, 0, 1, 0, 0)
    assert [found.message for found in parsed.failures] == ["Expected: x", "Expected: y"]


def test_a_fixture_that_broke_is_an_error_of_set_up_or_teardown() -> None:
    parsed = junit_of(
        '<testsuite name="pytest">'
        '<testcase classname="tests.test_a" name="test_x" file="tests/test_a.py" line="4">'
        '<error message="failed on teardown with &quot;OSError: gone&quot;">tests/conftest.py:9: '
        "OSError</error>"
        "</testcase></testsuite>"
    )
    found = parsed.failures[0]
    assert (found.phase, found.kind, found.message) == ("teardown", "error", "OSError: gone")


def test_pytests_line_of_a_test_is_counted_from_zero() -> None:
    parsed = junit_of(
        '<testsuite name="pytest"><testcase classname="t" name="a" file="t.py" line="4">'
        '<failure message="x"/></testcase></testsuite>'
    )
    assert failures_of(parsed)[0].line == 5


def test_a_file_that_did_not_load_is_an_error_of_the_suite() -> None:
    parsed = junit_of(
        '<testsuite name="pytest"><testcase classname="" name="tests.test_a">'
        '<error message="collection failure">'
        "tests/test_a.py:1: in &lt;module&gt;\n    import gone\n"
        "E   ModuleNotFoundError: No module named 'gone'"
        "</error></testcase></testsuite>"
    )
    [failure] = failures_of(parsed)
    assert (failure.scope, failure.kind) == ("suite", "error")
    assert (failure.file, failure.line) == ("tests/test_a.py", 1)
    assert failure.message == "ModuleNotFoundError: No module named 'gone'"


def test_findings_of_linters_are_findings() -> None:
    parsed = junit_of(
        '<testsuites><testsuite package="org.eslint" name="src/a.js"><testcase name="org.eslint.eqeqeq" '
        'classname="src/a"><failure message="Expected ===.">'
        "<![CDATA[line 5, col 9, Warning - Expected ===.]]>"
        '</failure></testcase></testsuite><testsuite package="org.eslint" name="src/b.js">'
        '<testcase name="src/b.js"/>'
        "</testsuite></testsuites>"
    )
    assert numbers(parsed) == (1, 0, 1, 0, 0)
    [failure] = failures_of(parsed)
    assert (failure.name, failure.scope, failure.file, failure.line) == ("eqeqeq", "finding", "src/a.js", 5)


def test_a_clean_linter_is_known_as_one() -> None:
    assert junit_of('<testsuites name="ruff" tests="0" failures="0" errors="0"/>').checker


def test_failures_that_are_counted_but_not_listed_are_told() -> None:
    parsed = junit_of(
        '<testsuites failures="2"><testsuite failures="2"><testcase name="a"/></testsuite></testsuites>'
    )
    assert parsed.hidden == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1.5", 1500), ("1,234.5", 1_234_500), ("0,125", 125), ("1.5E-02", 15), ("0:00:01.25", 1250)],
)
def test_times_are_read_with_any_separators(text: str, expected: int) -> None:
    assert milliseconds(text) == expected


@pytest.mark.parametrize("text", ["NaN", "N/A", "", "inf", "1e999"])
def test_times_that_are_no_number_are_not_known(text: str) -> None:
    assert milliseconds(text) is None


def test_only_a_line_that_starts_with_an_element_is_recognised() -> None:
    assert junit.sniff(b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- x -->\n<testsuites>')
    assert junit.sniff(b"noise\n<testsuite name='x'>")
    assert not junit.sniff(b"we write <testsuite> elements")
    assert not junit.sniff(b"<html><body>")
