"""What linters, type checkers and compilers print, as they printed it on small files of ours."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devbay.reports import lint_text
from devbay.reports.records import Parsed
from devbay.reports.registry import recognised
from devbay.reports.source import Source
from tests.reports.samples import numbers


def read(text: str) -> Parsed:
    return lint_text.read(Source("output", data=text.encode()))


def listed(text: str) -> list[tuple[str | None, int | None, str, str, str]]:
    """(path, line, kind, name, first line of the message) of each finding; the output must be recognised."""
    assert recognised(text.encode()) is lint_text
    return [
        (
            found.own[0] if found.own else None,
            found.own_line,
            found.kind,
            found.name,
            found.message.split("\n")[0],
        )
        for found in read(text).failures
    ]


@pytest.mark.parametrize(
    ("line", "path", "number", "kind", "name", "message"),
    [
        (
            'a/b.py:5: error: Bad value (got "x")  [return-value]',
            "a/b.py",
            5,
            "error",
            "return-value",
            'Bad value (got "x")',
        ),
        ("a.py:5:12:5:33: error: Bad  [operator]", "a.py", 5, "error", "operator", "Bad"),
        ("src/a b/c.c:3:1: error: x", None, 0, "", "", ""),
        ("./src/a b/c.c:3:1: error: x", "./src/a b/c.c", 3, "error", "error", "x"),
        (
            "p.c:6:13: warning: makes pointer [-Wint-conversion]",
            "p.c",
            6,
            "failure",
            "-Wint-conversion",
            "makes pointer",
        ),
        (
            "p.c:1:10: fatal error: x.h: No such file or directory",
            "p.c",
            1,
            "error",
            "fatal error",
            "x.h: No such file or directory",
        ),
        ("o.py:1:1: F401 'os' imported but unused", "o.py", 1, "error", "F401", "'os' imported but unused"),
        ("o.py:1:8: F401 [*] `os` imported", "o.py", 1, "error", "F401", "`os` imported"),
        ("o.py:1: [F401] 'os' imported", "o.py", 1, "error", "F401", "'os' imported"),
        (
            "k.py:9:12: E0602: Undefined variable 'u' (undefined-variable)",
            "k.py",
            9,
            "error",
            "undefined-variable",
            "Undefined variable 'u'",
        ),
        (
            "k.py:9: [W0612(unused-variable), fire] Unused variable",
            "k.py",
            9,
            "error",
            "unused-variable",
            "Unused variable",
        ),
        (
            "k.py:2:0: C0114: Missing docstring (missing-docstring)",
            "k.py",
            2,
            "failure",
            "missing-docstring",
            "Missing docstring",
        ),
        (
            "  /r/b.py:9:12 - error: No operator (reportOperator)",
            "/r/b.py",
            9,
            "error",
            "reportOperator",
            "No operator",
        ),
        (
            "src/b.ts(7,3): error TS2322: Type 'number' is bad.",
            "src/b.ts",
            7,
            "error",
            "TS2322",
            "Type 'number' is bad.",
        ),
        (
            "app/(auth)/[id]/page.tsx(3,4): error TS1005: ';' expected.",
            "app/(auth)/[id]/page.tsx",
            3,
            "error",
            "TS1005",
            "';' expected.",
        ),
        ("src/b.ts:7:3 - error TS2322: Type 'number'.", "src/b.ts", 7, "error", "TS2322", "Type 'number'."),
        ("/s/P.cs(5,9): error CS0103: No 'x' [/s/app.csproj]", "/s/P.cs", 5, "error", "CS0103", "No 'x'"),
        (
            "C:\\s\\p.cpp(12): error C2065: 'x': undeclared",
            "C:\\s\\p.cpp",
            12,
            "error",
            "C2065",
            "'x': undeclared",
        ),
        (
            "/r/a.js:1:7: 'u' is unused. [Error/no-unused-vars]",
            "/r/a.js",
            1,
            "error",
            "no-unused-vars",
            "'u' is unused.",
        ),
        (
            "/r/a.js: line 1, col 18, Warning - Expected '===' (eqeqeq)",
            "/r/a.js",
            1,
            "failure",
            "eqeqeq",
            "Expected '==='",
        ),
        ("/r/L.php:2:12: error - Opening brace", "/r/L.php", 2, "error", "error", "Opening brace"),
        ("A.java:3: error: ';' expected", "A.java", 3, "error", "error", "';' expected"),
        (
            "[ERROR] /r/A.java:[5,12] incompatible types",
            "/r/A.java",
            5,
            "error",
            "error",
            "incompatible types",
        ),
        (
            "e: file:///r/A.kt:12:5 Unresolved reference: x",
            "/r/A.kt",
            12,
            "error",
            "error",
            "Unresolved reference: x",
        ),
        (
            "w: /r/A.kt: (12, 5): Variable is never used",
            "/r/A.kt",
            12,
            "failure",
            "warning",
            "Variable is never used",
        ),
        (
            "src/lib.rs:2:9: error[E0308]: mismatched types",
            "src/lib.rs",
            2,
            "error",
            "E0308",
            "mismatched types",
        ),
        ("a.rb:1:1: C: [Correctable] Style/Strings: Prefer", "a.rb", 1, "failure", "Style/Strings", "Prefer"),
        ("a.yaml:1:5: [error] too many spaces (colons)", "a.yaml", 1, "error", "colons", "too many spaces"),
        ("a.md:1:1 error MD041/first-line First line", "a.md", 1, "error", "MD041/first-line", "First line"),
        ("a.sh:2:6: note: Double quote. [SC2086]", "a.sh", 2, "failure", "SC2086", "Double quote."),
        ("Dockerfile:3 DL3008 warning: Pin versions", "Dockerfile", 3, "failure", "DL3008", "Pin versions"),
        (
            "ERROR: UndefinedMethod - src/a.php:12:5 - No method",
            "src/a.php",
            12,
            "error",
            "UndefinedMethod",
            "No method",
        ),
        (
            "PHP Parse error:  syntax error in /r/a.php on line 7",
            "/r/a.php",
            7,
            "error",
            "parse error",
            "syntax error",
        ),
        (
            "::error file=k.py,line=9,endline=9,col=12,title=E0602::Undefined",
            "k.py",
            9,
            "error",
            "E0602",
            "Undefined",
        ),
        (
            "::error title=ruff (F401),file=/r/o.py,line=1,col=8::o.py:1:8: F401 `os` unused%0A  help: no",
            "/r/o.py",
            1,
            "error",
            "F401",
            "`os` unused",
        ),
        (
            "##vso[task.logissue type=error;sourcepath=/r/o.py;linenumber=1;columnnumber=8;code=F401;]unused",
            "/r/o.py",
            1,
            "error",
            "F401",
            "unused",
        ),
        ("[warn] src/a.css", "src/a.css", None, "error", "format", "it is not formatted"),
        ("would reformat /r/p.py", "/r/p.py", None, "error", "format", "it is not formatted"),
    ],
)
def test_a_line_of_the_family_is_one_finding(
    line: str, path: str | None, number: int, kind: str, name: str, message: str
) -> None:
    if path is None:
        assert not read(line + "\n").failures  # a space in a bare name: where it starts cannot be known
    else:
        assert listed(line + "\n") == [(path, number, kind, name, message)]


def test_colour_codes_do_not_hide_a_finding() -> None:
    text = "\x1b[01m\x1b[Kp.c:6:13:\x1b[m\x1b[K "
    text += "\x1b[01;35m\x1b[Kwarning: \x1b[m\x1b[Kbad [\x1b[01;35m-Wx\x1b[m]\n"
    assert listed(text) == [("p.c", 6, "failure", "-Wx", "bad")]


def test_rows_below_a_file_belong_to_it() -> None:
    text = (
        "\n/r/src/bad.js\n  1:18  error  Parsing error: Unexpected token ;\n\n/r/src/lamp.js\n"
        "  1:7   error    'u' is assigned        no-unused-vars\n  5:9   warning  Expected '==='  eqeqeq\n\n"
        "✖ 3 problems (2 errors, 1 warning)\n"
    )
    assert listed(text) == [
        ("/r/src/bad.js", 1, "error", "error", "Parsing error: Unexpected token ;"),
        ("/r/src/lamp.js", 1, "error", "no-unused-vars", "'u' is assigned"),
        ("/r/src/lamp.js", 5, "failure", "eqeqeq", "Expected '==='"),
    ]
    assert numbers(read(text)) == (3, 0, 1, 2, 0)


def test_stylelint_and_grouped_ruff_are_rows_too() -> None:
    assert listed('\nsrc/a.css\n  1:3  ✖  Unknown "colr"  property-no-unknown\n') == [
        ("src/a.css", 1, "error", "property-no-unknown", 'Unknown "colr"')
    ]
    assert listed("o.py:\n   2:13 F401 [*] `json` imported but unused\n\nFound 1 error.\n") == [
        ("o.py", 2, "error", "F401", "`json` imported but unused")
    ]


def test_a_title_above_its_place_is_one_finding_and_its_notes_are_none() -> None:
    text = (
        "error[E0061]: this function takes 0 arguments\n"
        " --> tests/b.rs:3:17\n  |\n3 |     n(1);\n  |     ^\n  |\n"
        "note: function defined here\n --> src/lib.rs:1:8\n  |\n1 | pub fn n() {}\n  |        ^\n\n"
        "error: could not compile `silo` (lib) due to 1 previous error\n"
    )
    assert listed(text) == [("tests/b.rs", 3, "error", "E0061", "this function takes 0 arguments")]


def test_clippys_rule_is_taken_from_its_notes() -> None:
    text = (
        "error: unneeded `return` statement\n --> src/lib.rs:6:5\n  |\n6 |     return 1;\n  |     ^^^\n  |\n"
        "  = note: `-D clippy::needless-return` implied by `-D warnings`\n"
    )
    assert listed(text) == [("src/lib.rs", 6, "error", "needless_return", "unneeded `return` statement")]


def test_a_message_wrapped_at_the_terminals_width_is_whole() -> None:
    text = (
        'b.py:5: error: Incompatible return value type (got "int | None",\nexpected "int")  [return-value]\n'
        "        return 1\n               ^\n"
        'b.py:9: error: Unsupported operand types for + ("None" and "int") \n[operator]\n        return n\n'
        "Found 2 errors in 1 file (checked 1 source file)\n"
    )
    assert listed(text) == [
        (
            "b.py",
            5,
            "error",
            "return-value",
            'Incompatible return value type (got "int | None", expected "int")',
        ),
        ("b.py", 9, "error", "operator", 'Unsupported operand types for + ("None" and "int")'),
    ]


def test_notes_of_compilers_belong_to_the_finding_before_them() -> None:
    parsed = read("b.py:9: error: Bad  [operator]\nb.py:9: note: Left operand is int\n")
    assert numbers(parsed)[0] == 1
    assert "Left operand is int" in (parsed.failures[0].output or "")


def test_related_places_of_typescript_are_no_findings_and_explanations_are_kept() -> None:
    text = (
        "src/b.ts:10:7 - error TS2741: Property 'knots' is missing.\n  Types are not assignable.\n\n"
        "10 const b: Boat = {};\n         ~\n\n"
        "  src/b.ts:3:3 - 'knots' is declared here.\n    3   knots: number;\n"
    )
    assert [place[:2] for place in listed(text)] == [("src/b.ts", 10)]
    assert read(text).failures[0].message.endswith("Types are not assignable.")


def test_what_is_said_of_each_target_is_counted_once() -> None:
    line = "/s/P.cs(5,9): error CS0103: No 'x' [/s/app.csproj]\n"
    assert numbers(read(line + "\n" + line)) == (1, 0, 0, 1, 0)
    twice = "o.py:3: [E711] Comparison to None\n"  # no column: two places on one line look alike
    assert numbers(read(twice + twice))[0] == 2


def test_shellcheck_points_at_lines_below_its_place() -> None:
    text = (
        "\nIn src/a.sh line 2:\necho $1\n     ^-- SC2086 (info): Double quote.\n\nDid you mean: \n"
        'echo "$1"\n\nIn src/a.sh line 3:\n'
        "for f in $(ls); do cat $f; done\n         ^---^ SC2045 (error): Fragile.\n"
        "                       ^-- SC2086 (info): Double quote.\n"
    )
    assert listed(text) == [
        ("src/a.sh", 2, "failure", "SC2086", "Double quote."),
        ("src/a.sh", 3, "error", "SC2045", "Fragile."),
        ("src/a.sh", 3, "failure", "SC2086", "Double quote."),
    ]


def test_tables_of_phpcs_and_phpstan_are_read_with_their_wrapped_lines() -> None:
    text = (
        "\nFILE: /r/Lamp.php\n-----------\nFOUND 2 ERRORS AFFECTING 1 LINES\n-----------\n"
        " 1 | ERROR   | [x] Header must be separated by a blank\n   |         |     line\n"
        " 2 | WARNING | [ ] Line exceeds 120 characters\n-----------\n"
    )
    assert listed(text) == [
        ("/r/Lamp.php", 1, "error", "error", "Header must be separated by a blank line"),
        ("/r/Lamp.php", 2, "failure", "warning", "Line exceeds 120 characters"),
    ]
    table = (
        " ------ ----------------\n  Line   src/Foo.php\n ------ ----------------\n"
        "  12     Method bar() has no\n         return type.\n         🪪  missingType.return\n"
        " ------ ----------------\n\n [ERROR] Found 1 error\n"
    )
    found = read(table).failures
    assert [(f.own, f.own_line, f.name, f.message) for f in found] == [
        (("src/Foo.php",), 12, "missingType.return", "Method bar() has no return type.")
    ]


def test_a_linker_error_is_listed_where_nothing_else_explains_the_failure() -> None:
    text = (
        "m.c:3:5: warning: unused [-Wunused]\n/usr/bin/ld: /tmp/x.o: in function `main':\n"
        "m.c:(.text+0x44): undefined reference to `f'\ncollect2: error: ld returned 1 exit status\n"
    )
    assert [each[0::4] for each in listed(text)] == [("m.c", "unused"), ("m.c", "undefined reference to `f'")]


@pytest.mark.parametrize(
    "text",
    [
        "Success: no issues found in 3 source files\n",
        "All checks passed!\n",
        "0 errors, 0 warnings, 0 informations\n",
        "Checking formatting...\nAll matched files use Prettier code style!\n",
    ],
)
def test_what_found_nothing_is_a_checkers_report_without_findings(text: str) -> None:
    assert recognised(text.encode()) is lint_text
    assert numbers(read(text)) == (0, 0, 0, 0, 0)
    assert read(text).checker


@pytest.mark.parametrize(
    "text",
    [
        "server.py:12: listening on port 80\n",
        "2026-01-01 12:00:00 ERROR app.py:12 connection refused\n",
        "/r/a.py:12: DeprecationWarning: old\n  import x\n",
        '  File "/r/a.py", line 3, in f\nValueError: bad\n',
        "main.go:23: hello\n",
        "see README.md:3 for the error: none\n",
        "http://localhost:8080/a.js:3:5: error\n",
        "hash.txt:3: SHA256 mismatch\n",
        "    at f (/r/a.js:3:5)\n",
        "[error] something went wrong\n[warn] be careful with a.b\n",
        "error: could not lock config file\n",
        "::error file=e2e/a.spec.js,title=[chromium] › a.spec.js › x,line=3::Error: expect\n",
    ],
)
def test_prose_logs_and_stacks_are_no_findings(text: str) -> None:
    assert not read(text).failures
    assert not lint_text.sniff(text.encode())


def test_counts_are_unknown_where_nothing_of_a_checker_was_printed() -> None:
    assert read("hello\n").counts is None


@given(st.binary(max_size=3_000))
@settings(max_examples=60, deadline=None)
def test_any_bytes_give_a_result(data: bytes) -> None:
    lint_text.sniff(data)
    lint_text.read(Source("x", data=data))


_PARTS = st.sampled_from(
    [
        "a.c",
        "/r/x.py",
        ":",
        "1",
        ":2",
        " error: ",
        "warning",
        " [x]",
        "(",
        ")",
        "\n",
        "  ",
        " --> ",
        "F401",
        "━━━━",
        "In a.sh line 3:",
        "^-- SC1",
        "::error ",
        "file=a",
        "|",
        "FILE: a",
        "  Line   a.php",
        "✖ ",
        '"',
        ",",
    ]
)


@given(st.lists(_PARTS, max_size=60).map("".join))
@settings(max_examples=200, deadline=None)
def test_pieces_of_output_in_any_order_give_a_result(text: str) -> None:
    read(text)


@pytest.mark.parametrize(
    "line", [":" * 8_000, "a.c:1:1: error: " + " (a)" * 1_900, "./" + "a.b(" * 1_900, "/a b" * 1_900]
)
def test_long_lines_take_bounded_time(line: str) -> None:
    started = time.monotonic()
    read(f"a.js\n{line}\n" * 20)
    assert time.monotonic() - started < 2


def test_free_text_after_a_place_is_a_finding_only_where_no_line_says_more() -> None:
    assert [each[:2] for each in listed("src/a.py:1:1: 'os' imported but unused\n")] == [("src/a.py", 1)]
    assert [each[:2] for each in listed("# example.org/a\n./a.go:4:9: undefined: x\n")] == [("./a.go", 4)]
    templates = "a.cc:3:5: error: no match\na.cc:9:5:   required from 'void f()'\n"
    assert [each[:2] for each in listed(templates)] == [("a.cc", 3)]
    assert not lint_text.sniff(b"starting\nmain.js:1:1: ready\nwaiting\nstopped\n")


def test_what_runs_several_tasks_puts_in_front_of_lines_is_taken_off() -> None:
    for prefix in ("web:lint: ", "lint-1  | ", "packages/a lint: ", "2026-01-01T10:00:00.123Z "):
        text = f"{prefix}/r/a.js\n{prefix}  1:7  error  'u' is unused  no-unused-vars\n{prefix}\n"
        assert listed(text) == [("/r/a.js", 1, "error", "no-unused-vars", "'u' is unused")]


def test_an_empty_line_ends_a_wrapped_message() -> None:
    text = "b.py:5: error: Cannot read\n\nsee the manual [manual]\n"
    assert listed(text) == [("b.py", 5, "error", "error", "Cannot read")]


def test_pyrights_explanation_is_part_of_the_message_and_ends_with_the_rule() -> None:
    text = '  /r/b.py:5:12 - error: Type "x" is not assignable\n    "None" is not "int" (reportReturnType)\n'
    (found,) = read(text).failures
    assert (found.name, found.message) == (
        "reportReturnType",
        'Type "x" is not assignable\n    "None" is not "int"',
    )
