"""The JSON of linters, type checkers and compilers, in the shapes that their reporters write."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devbay.reports import lint_json
from devbay.reports.records import Parsed
from devbay.reports.registry import recognised
from devbay.reports.source import Source
from tests.reports.samples import numbers


def read(text: str | bytes) -> Parsed:
    return lint_json.read(Source("stdout", data=text if isinstance(text, bytes) else text.encode()))


_RUSTC = {
    "$message_type": "diagnostic",
    "level": "error",
    "message": "mismatched types",
    "code": {"code": "E0308", "explanation": None},
    "spans": [
        {"file_name": "src/a.rs", "line_start": 1, "column_start": 2, "is_primary": False},
        {"file_name": "src/lib.rs", "line_start": 2, "column_start": 9, "is_primary": True},
    ],
    "children": [],
    "rendered": "error[E0308]: mismatched types",
}
SHAPES: dict[str, tuple[object, tuple[str | None, int | None, str, str, str]]] = {
    "eslint": (
        [
            {
                "filePath": "/r/a.js",
                "messages": [
                    {"ruleId": "eqeqeq", "severity": 1, "message": "Use ===", "line": 5, "column": 9}
                ],
                "errorCount": 0,
                "source": "x",
            }
        ],
        ("/r/a.js", 5, "failure", "eqeqeq", "Use ==="),
    ),
    "eslint, broken file": (
        [
            {
                "filePath": "/r/a.js",
                "messages": [
                    {
                        "ruleId": None,
                        "fatal": True,
                        "severity": 2,
                        "message": "Parsing",
                        "line": 1,
                        "column": 9,
                    }
                ],
                "errorCount": 1,
            }
        ],
        ("/r/a.js", 1, "error", "error", "Parsing"),
    ),
    "stylelint": (
        [
            {
                "source": "/r/a.css",
                "deprecations": [],
                "invalidOptionWarnings": [],
                "warnings": [
                    {"line": 3, "column": 1, "rule": "no-x", "severity": "error", "text": "Bad (no-x)"}
                ],
                "errored": True,
            }
        ],
        ("/r/a.css", 3, "error", "no-x", "Bad"),
    ),
    "ruff": (
        [
            {
                "cell": None,
                "code": "F401",
                "filename": "/r/o.py",
                "location": {"column": 8, "row": 1},
                "end_location": {"column": 10, "row": 1},
                "message": "unused",
                "name": "unused-import",
                "noqa_row": 1,
                "severity": "error",
            }
        ],
        ("/r/o.py", 1, "error", "F401", "unused"),
    ),
    "pylint": (
        [
            {
                "type": "convention",
                "module": "k",
                "line": 12,
                "column": 0,
                "path": "k.py",
                "symbol": "missing-doc",
                "message": "Missing",
                "message-id": "C0115",
            }
        ],
        ("k.py", 12, "failure", "C0115", "Missing"),
    ),
    "pylint json2": (
        {
            "messages": [
                {
                    "type": "error",
                    "symbol": "undefined",
                    "message": "Undefined",
                    "messageId": "E0602",
                    "line": 9,
                    "column": 1,
                    "path": "k.py",
                    "absolutePath": "/r/k.py",
                }
            ],
            "statistics": {},
        },
        ("k.py", 9, "error", "E0602", "Undefined"),
    ),
    "pyright, whose lines start at 0": (
        {
            "version": "1",
            "generalDiagnostics": [
                {
                    "file": "/r/b.py",
                    "severity": "error",
                    "message": "No",
                    "range": {"start": {"line": 4, "character": 1}, "end": {"line": 7, "character": 2}},
                    "rule": "reportX",
                }
            ],
        },
        ("/r/b.py", 5, "error", "reportX", "No"),
    ),
    "gcc": (
        [
            {
                "kind": "warning",
                "column-origin": 1,
                "locations": [{"caret": {"file": "p.c", "line": 6, "column": 13}}],
                "message": "bad",
                "option": "-Wx",
                "children": [],
                "escape-source": False,
            }
        ],
        ("p.c", 6, "failure", "-Wx", "bad"),
    ),
    "gitlab": (
        [
            {
                "check_name": "F401",
                "description": "F401: unused",
                "severity": "major",
                "fingerprint": "1",
                "location": {"path": "o.py", "positions": {"begin": {"line": 3, "column": 8}}},
            }
        ],
        ("o.py", 3, "error", "F401", "unused"),
    ),
    "gitlab, by lines": (
        [
            {
                "check_name": "x",
                "description": "unused",
                "severity": "minor",
                "fingerprint": "1",
                "location": {"path": "o.js", "lines": {"begin": 3, "end": 4}},
            }
        ],
        ("o.js", 3, "failure", "x", "unused"),
    ),
    "phpcs": (
        {
            "totals": {"errors": 1, "warnings": 0},
            "files": {
                "/r/L.php": {
                    "errors": 1,
                    "messages": [
                        {
                            "message": "Header",
                            "source": "PSR12.Files.X",
                            "severity": 5,
                            "type": "ERROR",
                            "line": 1,
                            "column": 1,
                        }
                    ],
                }
            },
        },
        ("/r/L.php", 1, "error", "PSR12.Files.X", "Header"),
    ),
    "phpstan": (
        {
            "totals": {"errors": 0, "file_errors": 1},
            "files": {
                "/r/F.php": {
                    "errors": 1,
                    "messages": [
                        {"message": "No type", "line": 12, "ignorable": True, "identifier": "missing.return"}
                    ],
                }
            },
            "errors": [],
        },
        ("/r/F.php", 12, "error", "missing.return", "No type"),
    ),
    "psalm": (
        [
            {
                "severity": "info",
                "line_from": 3,
                "line_to": 3,
                "type": "MixedArgument",
                "message": "Mixed",
                "file_name": "src/a.php",
                "file_path": "/r/src/a.php",
                "snippet": "x",
            }
        ],
        ("/r/src/a.php", 3, "failure", "MixedArgument", "Mixed"),
    ),
    "rubocop": (
        {
            "metadata": {},
            "files": [
                {
                    "path": "a.rb",
                    "offenses": [
                        {
                            "severity": "convention",
                            "message": "Prefer",
                            "cop_name": "Style/X",
                            "location": {"start_line": 4, "line": 4, "column": 1},
                        }
                    ],
                }
            ],
        },
        ("a.rb", 4, "failure", "Style/X", "Prefer"),
    ),
    "golangci-lint": (
        {
            "Issues": [
                {
                    "FromLinter": "errcheck",
                    "Text": "not checked",
                    "Severity": "",
                    "Pos": {"Filename": "a/b.go", "Offset": 1, "Line": 7, "Column": 2},
                }
            ],
            "Report": {},
        },
        ("a/b.go", 7, "error", "errcheck", "not checked"),
    ),
    "go vet": (
        {"example.org/a": {"printf": [{"posn": "/r/a.go:9:2", "message": "wrong type"}]}},
        ("/r/a.go", 9, "error", "printf", "wrong type"),
    ),
    "shellcheck": (
        [
            {
                "file": "a.sh",
                "line": 2,
                "endLine": 2,
                "column": 6,
                "level": "info",
                "code": 2086,
                "message": "Quote",
            }
        ],
        ("a.sh", 2, "failure", "SC2086", "Quote"),
    ),
    "hadolint": (
        [
            {
                "code": "DL3008",
                "column": 1,
                "file": "Dockerfile",
                "level": "warning",
                "line": 3,
                "message": "Pin",
            }
        ],
        ("Dockerfile", 3, "failure", "DL3008", "Pin"),
    ),
    "rustc": (_RUSTC, ("src/lib.rs", 2, "error", "E0308", "mismatched types")),
    "cargo": (
        {
            "reason": "compiler-message",
            "package_id": "x",
            "manifest_path": "/r/Cargo.toml",
            "message": _RUSTC,
        },
        ("src/lib.rs", 2, "error", "E0308", "mismatched types"),
    ),
    "mypy": (
        {
            "file": "b.py",
            "line": 5,
            "column": 1,
            "message": "Bad",
            "hint": None,
            "code": "arg-type",
            "severity": "error",
        },
        ("b.py", 5, "error", "arg-type", "Bad"),
    ),
    "staticcheck": (
        {
            "code": "SA1000",
            "severity": "error",
            "location": {"file": "/r/a.go", "line": 3, "column": 2},
            "end": {"file": "", "line": 0, "column": 0},
            "message": "bad regexp",
        },
        ("/r/a.go", 3, "error", "SA1000", "bad regexp"),
    ),
    "bandit": (
        {
            "errors": [],
            "results": [
                {
                    "code": "4 try:\n5 exec()\n",
                    "filename": "p.py",
                    "issue_severity": "MEDIUM",
                    "issue_text": "Use of exec",
                    "line_number": 5,
                    "test_id": "B102",
                }
            ],
        },
        ("p.py", 5, "failure", "B102", "Use of exec"),
    ),
    "semgrep": (
        {
            "errors": [],
            "results": [
                {
                    "check_id": "py.exec",
                    "path": "p.py",
                    "start": {"line": 5, "col": 1},
                    "end": {"line": 5, "col": 9},
                    "extra": {"message": "No exec", "severity": "ERROR"},
                }
            ],
        },
        ("p.py", 5, "error", "py.exec", "No exec"),
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("indent", [None, 4])
def test_a_reporters_json_is_recognised_and_read(shape: str, indent: int | None) -> None:
    document, expected = SHAPES[shape]
    text = json.dumps(document, indent=indent) + "\n"
    assert recognised(text.encode()) is lint_json
    (found,) = read(text).failures
    assert (
        found.own[0] if found.own else None,
        found.own_line,
        found.kind,
        found.name,
        found.message,
    ) == expected
    assert found.scope == "finding"
    assert read(text).complete


def test_lines_of_objects_are_one_report_with_noise_around_them() -> None:
    line = json.dumps(SHAPES["mypy"][0])
    parsed = read(f"> lint\n> mypy -O json\n\n{line}\n{line.replace('Bad', 'Worse')}\nnpm error code 1\n")
    assert [found.message for found in parsed.failures] == ["Bad", "Worse"]
    assert parsed.complete


def test_a_summary_without_a_place_is_no_finding() -> None:
    summary = {
        "reason": "compiler-message",
        "message": {"message": "aborting due to 1 error", "spans": [], "level": "error", "code": None},
    }
    assert not read(json.dumps(summary)).failures


def test_a_document_without_findings_is_clean_and_one_that_is_cut_is_not_complete() -> None:
    clean = read('[{"filePath":"/r/a.js","messages":[],"errorCount":0}]')
    assert numbers(clean) == (0, 0, 0, 0, 0)
    assert clean.complete and clean.checker
    whole = json.dumps(SHAPES["ruff"][0])
    both = whole[:-1] + "," + whole[1:]
    cut = read(both[: len(whole) + 60])
    assert not cut.complete
    assert [found.name for found in cut.failures] == ["F401"]


def test_a_document_larger_than_what_is_held_is_read_element_by_element() -> None:
    element = '{"filePath":"/r/%d.js","messages":[{"ruleId":"x","severity":2,"message":"m","line":1}],'
    element += '"source":"%s"}'
    text = "[" + ",".join(element % (each, "x" * 20_000) for each in range(1_000)) + "]"
    assert len(read(text).failures) == 1_000


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a":' * 100_000, '[{"a":"' + "\\" * 300_001, "[{\n" * 100_000]
)
def test_documents_that_nest_or_quote_without_end_take_bounded_time(text: str) -> None:
    started = time.monotonic()
    assert not read(text).complete
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "app", "version": "1.0.0", "scripts": {"lint": "eslint"}}',
        '{"numTotalTests": 1, "testResults": []}',
        '{"level":"error","message":"could not connect","time":"x"}',
        '[{"id": 1, "message": "hello"}]',
    ],
)
def test_other_json_is_not_taken_for_a_checkers(text: str) -> None:
    assert not lint_json.sniff(text.encode())


@given(st.binary(max_size=2_000))
@settings(max_examples=60, deadline=None)
def test_any_bytes_give_a_result(data: bytes) -> None:
    lint_json.sniff(data)
    read(data)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "files",
                    "messages",
                    "message",
                    "location",
                    "line",
                    "file",
                    "code",
                    "spans",
                    "level",
                    "errors",
                    "severity",
                    "posn",
                    "ruleId",
                    "range",
                    "lines",
                    "reason",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(_JSON, st.integers(0, 400))
@settings(max_examples=200, deadline=None)
def test_members_of_any_type_and_cut_documents_give_a_result(document: object, cut: int) -> None:
    text = json.dumps(document)
    assert read(text).complete or not text.startswith(("[{", "{"))
    read(text[:cut])
