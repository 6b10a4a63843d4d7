"""RSpec's JSON and plain output, as RSpec 3 prints them."""

from __future__ import annotations

import json

from devbay.reports import rspec_json, rspec_text
from devbay.reports.paths import PathMapper
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

PROGRESS = """\
.F.*F

Pending: (Failures listed here are expected and do not affect your suite's status)

  1) Shelf holds
     # no wood
     # ./spec/shelf_spec.rb:30

Failures:

  1) Shelf counts books
     Failure/Error: expect(shelf.count).to eq(3)

       expected: 3
            got: 2

       (compared using ==)
     # ./spec/shelf_spec.rb:12:in `block (2 levels) in <top (required)>'

  2) Shelf when full refuses
     Failure/Error: shelves.fetch(:top)

     KeyError:
       key not found: :top
     # ./lib/shelf.rb:5:in `fetch'
     # ./spec/shelf_spec.rb:21:in `block (3 levels) in <top (required)>'
     # ------------------
     # --- Caused by: ---
     # IOError:
     #   ./lib/disk.rb:9:in `read'

Finished in 0.03 seconds (files took 0.08 seconds to load)
5 examples, 2 failures, 1 pending

Failed examples:

rspec ./spec/shelf_spec.rb:10 # Shelf counts books
rspec ./spec/shelf_spec.rb[1:2:1] # Shelf when full refuses
"""


def parsed_of(text: str) -> Parsed:
    return rspec_text.read(Source("output", data=text.encode()))


def test_a_failed_expectation_has_its_line_values_and_message() -> None:
    failure = failures_of(parsed_of(PROGRESS))[0]
    assert (failure.name, failure.kind) == ("Shelf counts books", "failure")
    assert (failure.file, failure.line) == ("spec/shelf_spec.rb", 12)
    assert (failure.expected, failure.actual) == ("3", "2")
    assert failure.message.startswith("expected: 3\n     got: 2")


def test_an_exception_is_an_error_at_the_line_of_the_spec() -> None:
    error = failures_of(parsed_of(PROGRESS))[1]
    assert (error.kind, error.message) == ("error", "KeyError: key not found: :top")
    assert (error.file, error.line) == ("spec/shelf_spec.rb", 21)
    assert error.frames == ["lib/shelf.rb:5", "spec/shelf_spec.rb:21"]


def test_pending_examples_are_skipped_and_no_records() -> None:
    assert numbers(parsed_of(PROGRESS)) == (5, 2, 2, 0, 1)


def test_several_failed_expectations_are_records_apart() -> None:
    parsed = parsed_of(
        "Failures:\n\n  1) A b\n     Got 2 failures:\n\n     1.1) Failure/Error: expect(1).to eq(2)\n\n"
        "            expected: 2\n                 got: 1\n          # ./a_spec.rb:3:in `x'\n\n"
        "     1.2) Failure/Error: expect(2).to be_odd\n            not odd\n"
        "          # ./a_spec.rb:4:in `x'\n\n"
        "1 example, 1 failure\n"
    )
    assert [(f.name, f.line) for f in failures_of(parsed)] == [("A b", 3), ("A b", 4)]


def test_code_of_several_lines_is_not_the_message() -> None:
    parsed = parsed_of(
        "Failures:\n\n  1) A b\n     Failure/Error:\n       expect(1)\n         .to eq(2)\n\n"
        "       not equal\n     # ./a_spec.rb:3:in `x'\n\n1 example, 1 failure\n"
    )
    assert [f.message for f in parsed.failures] == ["not equal"]


def test_a_hook_that_fails_is_set_up() -> None:
    parsed = parsed_of(
        "Failures:\n\n  1) A b\n     Failure/Error: before { raise IOError, 'dry' }\n\n     IOError:\n"
        "       dry\n     # ./a_spec.rb:3:in `x'\n\n1 example, 1 failure\n"
    )
    assert [(f.phase, f.scope, f.message) for f in parsed.failures] == [("setup", "test", "IOError: dry")]


def test_a_file_that_does_not_load_is_a_collection_error() -> None:
    parsed = parsed_of(
        "\nAn error occurred while loading ./spec/bad_spec.rb.\nFailure/Error: nope\n\nNameError:\n"
        "  undefined local variable or method `nope'\n# ./spec/bad_spec.rb:4:in `<top (required)>'\n"
        "No examples found.\n\nFinished in 0.00002 seconds (files took 0.1 seconds to load)\n"
        "0 examples, 0 failures, 1 error occurred outside of examples\n"
    )
    (error,) = failures_of(parsed)
    assert (error.scope, error.kind, error.file, error.line) == ("suite", "error", "spec/bad_spec.rb", 4)
    assert numbers(parsed) == (1, 0, 0, 1, 0)


def test_a_syntax_error_is_where_its_message_says() -> None:
    parsed = parsed_of(
        "An error occurred while loading ./spec/bad_spec.rb. - Did you mean?\n"
        "                    rspec ./spec/ok_spec.rb\n\n"
        "Failure/Error: __send__(method, file)\n\nSyntaxError:\n"
        "  /src/spec/bad_spec.rb:7: syntax error, unexpected end-of-input\n  it {\n"
        "# /usr/lib/gems/rspec-core-3.12.0/lib/rspec/core/runner.rb:102:in `setup'\n\n"
        "0 examples, 0 failures, 1 error occurred outside of examples\n"
    )
    (error,) = failures_of(parsed, PathMapper.as_named(None, "/src"))
    assert (error.file, error.line) == ("spec/bad_spec.rb", 7)
    assert error.message.startswith("SyntaxError: /src/spec/bad_spec.rb:7: syntax error")


def test_where_shared_examples_are_included_is_a_frame() -> None:
    parsed = parsed_of(
        "Failures:\n\n  1) A b\n     Failure/Error:\n       expect(x)\n         .to eq(4)\n\n"
        "       expected: 4\n            got: 1\n"
        '     Shared Example Group: "c" called from ./spec/a_spec.rb:9\n'
        "     # ./spec/shared.rb:3:in `x'\n\n1 example, 1 failure\n"
    )
    (failure,) = failures_of(parsed)
    assert failure.message == "expected: 4\n     got: 1"
    assert "spec/a_spec.rb:9" in failure.frames


def test_the_documentation_formatter_names_what_failed_before_a_crash() -> None:
    parsed = parsed_of("\nWell\n  when dry\n    is empty\n    is deep (FAILED - 1)\n  is round\n  is old\n")
    assert [(f.name, f.suite, f.scope) for f in parsed.failures] == [
        ("is deep", "Well when dry", "test"),
        ("rspec", None, "run"),
    ]
    assert numbers(parsed) == (3, 2, 1, 0, 0)


def test_the_failures_formatter_gives_places() -> None:
    parsed = parsed_of("./spec/a_spec.rb:10:counts\n./spec/a_spec.rb:30:opens: wide\n")
    assert parsed.complete
    assert [(f.name, f.file, f.line) for f in failures_of(parsed)] == [
        ("counts", "spec/a_spec.rb", 10),
        ("opens: wide", "spec/a_spec.rb", 30),
    ]


def example(**members: object) -> dict[str, object]:
    return {
        "description": "b",
        "full_description": "A b",
        "file_path": "./a_spec.rb",
        "line_number": 2,
    } | members


def json_of(*examples: object, summary: object = None, tail: str = "") -> Parsed:
    report = {"version": "3.13.0", "seed": 7, "examples": list(examples), "summary": summary or {}}
    return rspec_json.read(Source("r.json", data=("noise {\n" + json.dumps(report) + tail).encode()))


def test_json_gives_the_failing_line_and_what_was_raised() -> None:
    stack = ["/g/gems/rspec-core-3.1/lib/a.rb:3:in `x'", "./lib/a.rb:5:in `f'", "./a_spec.rb:9:in `block'"]
    raised = {"class": "KeyError", "message": "no key", "backtrace": stack}
    parsed = json_of(example(status="passed", run_time=0.5), example(status="failed", exception=raised))
    (failure,) = failures_of(parsed)
    assert (failure.name, failure.suite, failure.kind) == ("b", "A", "error")
    assert (failure.message, failure.line) == ("KeyError: no key", 9)
    assert numbers(parsed) == (2, 1, 1, 0, 0)
    assert [test.duration_ms for test in parsed.tests] == [500, None]


def test_json_that_is_cut_off_is_not_complete() -> None:
    data = b'{"version":"3.1","examples":[{"description":"a","status":"passed"},{"descr'
    parsed = rspec_json.read(Source("r.json", data=data))
    assert not parsed.complete
    assert numbers(parsed) == (1, 1, 0, 0, 0)
