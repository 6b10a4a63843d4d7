"""Catch2, doctest and Boost.Test as their runners print and write them."""

from __future__ import annotations

import json
from types import ModuleType

import pytest

from devbay.reports import (
    boost_text,
    boost_xml,
    catch2_json,
    catch2_text,
    catch2_xml,
    doctest_text,
    sonar,
)
from devbay.reports.paths import PathMapper
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

SRC = PathMapper.as_named(None, "/src")

RULE, DOUBLE, DOTS = "-" * 79, "=" * 79, "." * 79

CONSOLE = f"""\
Randomness seeded to: 34

{"~" * 79}
loom_test is a Catch2 v3.7.1 host application.
Run with -? for options

{RULE}
sections
  large
  very
{RULE}
/src/loom/test/loom.cpp:14
{DOTS}

/src/loom/test/loom.cpp:17: FAILED:
  REQUIRE( threads(5) == 21 )
with expansion:
  20 == 21
with message:
  five rows

{RULE}
unknown
{RULE}
/src/loom/test/loom.cpp:23
{DOTS}

/src/loom/test/loom.cpp:23: FAILED:
  REQUIRE( pattern(7) == "" )
due to unexpected exception with message:
  pattern 7 unknown

{RULE}
skipped
{RULE}
/src/loom/test/loom.cpp:30
{DOTS}

/src/loom/test/loom.cpp:30: SKIPPED:
explicitly with message:
  dusty

{DOUBLE}
test cases:  5 | 1 passed | 2 failed | 1 skipped | 1 failed as expected
assertions: 11 | 4 passed | 6 failed | 1 failed as expected

"""

COMPACT = """\
RNG seed: 10
/src/loom/test/loom.cpp:17: failed: threads(5) == 21 for: 20 == 21 with 1 message: 'five'
/src/loom/test/loom.cpp:23: failed: unexpected exception with message: 'gone'; expression was: pattern(7)
/src/loom/test/loom.cpp:30: skipped: 'dusty'
test cases:  3 | 2 failed | 1 skipped
assertions: 2 | 2 failed

"""

DOCTEST = f"""\
[doctest] doctest version is "2.4.9"
[doctest] run with "--help" for options
{DOUBLE}
dt.cpp:6:
TEST CASE:  sums
  deep
  deeper

dt.cpp:10: FATAL ERROR: REQUIRE( a == b ) is NOT correct!
  values: REQUIRE( 1 == 2 )
  logged: adding up

{DOUBLE}
dt.cpp:14:
TEST SUITE: ledger
TEST CASE:  throws

dt.cpp:14: ERROR: test case THREW exception: no ledger

{DOUBLE}
dt.cpp:17:
TEST SUITE: ledger
TEST CASE:  may fail

dt.cpp:17: ERROR: CHECK( 1 == 2 ) is NOT correct!
  values: CHECK( 1 == 2 )

Allowed to fail so marking it as not failed
{DOUBLE}
[doctest] test cases: 5 | 3 passed | 2 failed | 1 skipped
[doctest] assertions: 8 | 1 passed | 7 failed |
[doctest] Status: FAILURE!
"""

BOOST = """\
Running 4 test cases...
bt.cpp(6): \x1b[1;31;49merror: in "oven/bakes": check a == 3 has failed [2 != 3]\x1b[0;39;49m
bt.cpp(6): \x1b[4;31;49mfatal error: in "oven/bakes": no dough\x1b[0;39;49m
unknown location(0): \x1b[4;31;49mfatal error: in "oven/burns": std::runtime_error: fire\x1b[0;39;49m
bt.cpp(7): \x1b[1;36;49mlast checkpoint: "burns" test entry\x1b[0;39;49m

\x1b[1;31;49m*** 3 failures are detected in the test module "kitchen"
\x1b[0;39;49m"""

CATCH2_XML = """\
<?xml version="1.0" encoding="UTF-8"?>
<Catch2TestRun name="loom" rng-seed="1" xml-format-version="3" catch2-version="3.7.1">
  <TestCase name="sections" filename="/src/loom.cpp" line="14">
    <Section name="large" filename="/src/loom.cpp" line="16">
      <Info>
        five rows
      </Info>
      <Expression success="false" type="REQUIRE" filename="/src/loom.cpp" line="17">
        <Original>
          threads(5) == 21
        </Original>
        <Expanded>
          20 == 21
        </Expanded>
      </Expression>
      <OverallResults successes="0" failures="1" expectedFailures="0" skipped="false"/>
    </Section>
    <OverallResult success="false" skips="0"/>
  </TestCase>
  <TestCase name="skips" filename="/src/loom.cpp" line="30">
    <Skip filename="/src/loom.cpp" line="30">
      dusty
    </Skip>
    <OverallResult success="true" skips="1"/>
  </TestCase>
  <TestCase name="may fail" tags="[!mayfail]" filename="/src/loom.cpp" line="32">
    <Expression success="false" type="CHECK" filename="/src/loom.cpp" line="32">
      <Original>
        1 == 5
      </Original>
      <Expanded>
        1 == 5
      </Expanded>
    </Expression>
    <OverallResult success="true" skips="0"/>
  </TestCase>
</Catch2TestRun>
"""

DOCTEST_XML = """\
<?xml version="1.0" encoding="UTF-8"?>
<doctest binary="./dt" version="2.4.9">
  <TestSuite name="ledger">
    <TestCase name="throws" filename="dt.cpp" line="14">
      <Exception crash="false">
        no ledger
      </Exception>
      <OverallResultsAsserts successes="0" failures="0" test_case_success="false"/>
    </TestCase>
    <TestCase name="fails" filename="dt.cpp" line="19">
      <Message type="FATAL ERROR" filename="dt.cpp" line="20">
        <Text>
          given up
        </Text>
      </Message>
      <OverallResultsAsserts successes="0" failures="1" test_case_success="false"/>
    </TestCase>
    <TestCase name="off" filename="dt.cpp" line="30" skipped="true"/>
  </TestSuite>
</doctest>
"""

BOOST_XML = """\
<TestLog><TestSuite name="kitchen"><TestSuite name="oven" file="bt.cpp" line="5">\
<TestCase name="bakes" file="bt.cpp" line="6">\
<Error file="bt.cpp" line="8"><![CDATA[check a == 3 has failed]]>\
</Error><Message file="bt.cpp" line="6"><![CDATA[hm]]></Message><TestingTime>2500</TestingTime></TestCase>\
<TestCase name="burns" file="bt.cpp" line="9"><Exception file="unknown location" line="0">\
<![CDATA[std::runtime_error: fire]]><LastCheckpoint file="bt.cpp" line="9"><![CDATA["burns" test entry]]>\
</LastCheckpoint></Exception><TestingTime>1</TestingTime></TestCase>\
<TestCase name="off" skipped="yes" reason="disabled"/></TestSuite></TestSuite></TestLog>"""

SONAR = """\
<?xml version="1.0" encoding="UTF-8"?>
<testExecutions version="1">
  <file path="/src/loom.cpp">
    <testCase name="fine" duration="3"/>
    <testCase name="sections/large" duration="0">
      <failure message="REQUIRE(threads(5) == 21)">
FAILED:
	REQUIRE( threads(5) == 21 )
with expansion:
	20 == 21
at /src/loom.cpp:17
      </failure>
    </testCase>
    <testCase name="off" duration="0"><skipped message="SKIP()"/></testCase>
  </file>
</testExecutions>
"""


def parsed(format: ModuleType, text: str) -> Parsed:
    assert format.sniff(text.encode())
    result: Parsed = format.read(Source("report", data=text.encode()))
    return result


def test_catch2_names_sections_and_gives_the_assertion_its_line() -> None:
    first, second = failures_of(parsed(catch2_text, CONSOLE), SRC)
    assert (first.name, first.line, first.kind) == ("sections/large/very", 17, "failure")
    assert (first.expected, first.actual) == ("21", "20")
    assert first.message == "REQUIRE( threads(5) == 21 )\nwith expansion:\n20 == 21\nwith message:\nfive rows"
    assert (second.name, second.line, second.kind) == ("unknown", 23, "error")


def test_catch2_counts_an_expected_failure_as_passed() -> None:
    assert numbers(parsed(catch2_text, CONSOLE)) == (5, 2, 2, 0, 1)


def test_catch2_compact_has_no_names_but_places() -> None:
    found = failures_of(parsed(catch2_text, COMPACT), SRC)
    assert [(each.line, each.kind) for each in found] == [(17, "failure"), (23, "error")]
    assert (found[0].expected, found[0].actual) == ("21", "20")
    assert numbers(parsed(catch2_text, COMPACT)) == (3, 0, 2, 0, 1)


def test_catch2_without_totals_is_not_complete() -> None:
    assert not parsed(catch2_text, CONSOLE[: CONSOLE.index("test cases:")]).complete


def test_catch2_fatal_condition_is_a_crash() -> None:
    text = CONSOLE.replace("due to unexpected exception with message:", "due to a fatal error condition:")
    result = parsed(catch2_text, text)
    assert (result.failures[1].kind, result.stopped) == ("crash", "crash")


def test_catch2_xml_leaves_allowed_failures_out() -> None:
    result = parsed(catch2_xml, CATCH2_XML)
    [found] = failures_of(result, SRC)
    assert (found.name, found.line, found.expected, found.actual) == ("sections/large", 17, "21", "20")
    assert found.message == "REQUIRE( threads(5) == 21 )\nwith expansion:\n20 == 21\nfive rows"
    assert numbers(result) == (3, 1, 1, 0, 1)


def test_catch2_xml_that_ends_in_a_test_names_it() -> None:
    result = parsed(catch2_xml, CATCH2_XML[: CATCH2_XML.index("<OverallResult success")])
    assert not result.complete
    assert [(each.name, each.kind) for each in result.failures] == [
        ("sections/large", "failure"),
        ("sections", "crash"),
    ]


def test_doctest_xml_is_read_alike() -> None:
    result = parsed(catch2_xml, DOCTEST_XML)
    found = failures_of(result, SRC)
    assert [(each.name, each.line, each.kind, each.message) for each in found] == [
        ("throws", 14, "error", "no ledger"),
        ("fails", 20, "failure", "given up"),
    ]
    assert numbers(result) == (3, 0, 1, 1, 1)


def test_catch2_json_tells_places_only() -> None:
    assertion = {"kind": "assertion", "status": False, "source-location": {"filename": "/s/a.cpp", "line": 7}}
    section = {"kind": "section", "name": "deep", "path": [assertion]}
    case = {
        "test-info": {"name": "sums", "source-location": {"filename": "/s/a.cpp", "line": 5}},
        "runs": [{"path": [{"kind": "section", "name": "sums", "path": [section]}]}],
        "totals": {"assertions": {"passed": 0, "failed": 1, "fail-but-ok": 0, "skipped": 0}},
    }
    report = {"version": 1, "metadata": {"catch2-version": "3.7.1"}, "test-run": {"test-cases": [case]}}
    result = parsed(catch2_json, json.dumps(report))
    assert [(each.name, each.frames[0].line) for each in result.failures] == [("sums/deep", 7)]
    assert numbers(result) == (1, 0, 1, 0, 0)


def test_doctest_names_subcases_and_forgives_what_may_fail() -> None:
    result = parsed(doctest_text, DOCTEST)
    found = failures_of(result, SRC)
    assert [(each.suite, each.name, each.line, each.kind) for each in found] == [
        (None, "sums/deep/deeper", 10, "failure"),
        ("ledger", "throws", 14, "error"),
    ]
    assert (found[0].expected, found[0].actual) == ("2", "1")
    assert numbers(result) == (6, 3, 2, 0, 1)


def test_boost_tells_failed_checks_and_exceptions_apart() -> None:
    result = parsed(boost_text, BOOST)
    assert [(each.suite, each.name, each.line, each.kind) for each in failures_of(result, SRC)] == [
        ("oven", "bakes", 6, "failure"),
        ("oven", "bakes", 6, "failure"),
        ("oven", "burns", 7, "error"),
    ]
    assert numbers(result) == (4, 2, 1, 1, 0)


def test_boost_without_its_last_line_is_not_complete() -> None:
    assert not parsed(boost_text, BOOST[: BOOST.index("\x1b[1;31;49m***")]).complete


def test_boost_xml_says_the_same() -> None:
    result = parsed(boost_xml, BOOST_XML)
    assert [(each.suite, each.name, each.line, each.kind) for each in failures_of(result, SRC)] == [
        ("oven", "bakes", 8, "failure"),
        ("oven", "burns", 9, "error"),
    ]
    assert numbers(result) == (3, 0, 1, 1, 1)
    assert result.tests[0].duration_ms == 2


def test_sonar_executions_have_the_place_in_their_text() -> None:
    result = parsed(sonar, SONAR)
    [found] = failures_of(result, SRC)
    assert (found.name, found.file, found.line) == ("sections/large", "loom.cpp", 17)
    assert numbers(result) == (3, 1, 1, 0, 1)


@pytest.mark.parametrize("format", [catch2_xml, boost_xml, sonar])
def test_xml_with_a_document_type_is_refused(format: ModuleType) -> None:
    start = {"catch2-xml": CATCH2_XML, "boost-xml": BOOST_XML, "sonar": SONAR}[format.name]
    text = '<!DOCTYPE x [<!ENTITY a "b">]>' + start.split("?>")[-1]
    assert not format.read(Source("r.xml", data=text.encode())).complete
