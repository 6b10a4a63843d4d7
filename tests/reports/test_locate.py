from pathlib import Path

from devbay.reports.locate import frames_in, place
from devbay.reports.paths import PathMapper
from devbay.reports.records import Found

NOWHERE = PathMapper(None)


def places(text: str) -> list[str]:
    return [f"{frame.path}:{frame.line}" for frame in frames_in(text)]


def test_frames_of_each_language_are_read_deepest_first() -> None:
    python = (
        'Traceback (most recent call last):\n  File "t.py", line 3, in test\n'
        '  File "a.py", line 9, in f\nKeyError: 1'
    )
    assert places(python) == ["a.py:9", "t.py:3"]
    assert places("tests/test_a.py:4: in test_a\n    f()\nsrc/a.py:2: in f\nE  KeyError") == [
        "src/a.py:2",
        "tests/test_a.py:4",
    ]
    assert places("Error: x\n    at f (/r/a.js:1:2)\n    at async file:///r/a.test.js:7:9") == [
        "/r/a.js:1",
        "file:///r/a.test.js:7",
    ]
    assert places(" ❯ f src/geo.ts:4:27\n ❯ test/geo.test.ts:17:14") == [
        "src/geo.ts:4",
        "test/geo.test.ts:17",
    ]
    assert places("\tat org.example.A.f(A.java:9)\n\tat org.example.ATest.t(ATest.java:3)") == [
        "org/example/A.java:9",
        "org/example/ATest.java:3",
    ]
    assert places("   at N.T.M() in /r/T.cs:line 17") == ["/r/T.cs:17"]
    assert places("/r/src/T.php:8\n/r/tests/TTest.php:70") == ["/r/src/T.php:8", "/r/tests/TTest.php:70"]
    assert places("./spec/a_spec.rb:12:in `block'") == ["./spec/a_spec.rb:12"]
    assert places("thread 'x' panicked at src/lib.rs:30:9:\nboom") == ["src/lib.rs:30"]
    assert places("    a_test.go:24: Total() = 7, want 8") == ["a_test.go:24"]
    assert places("/r/t.cc:11: Failure\nExpected: x") == ["/r/t.cc:11"]
    assert places("(in test file test/pack.bats, line 13)") == ["test/pack.bats:13"]
    assert places("#   at t/basic.t line 10.") == ["t/basic.t:10"]
    assert places("b is bad at src/m.rs:8:5") == ["src/m.rs:8"]


def test_a_dump_of_the_most_recent_call_first_is_not_turned_round() -> None:
    text = (
        'Current thread (most recent call first):\n  File "native.py", line 5 in peek\n'
        '  File "t.py", line 3 in test_x'
    )
    assert places(text) == ["native.py:5", "t.py:3"]


def test_of_chained_errors_the_last_comes_first() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\nKeyError: 1\n\n'
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "t.py", line 2, in test\n'
        '  File "b.py", line 3, in g\nOSError'
    )
    assert places(text) == ["b.py:3", "t.py:2", "a.py:1"]


def test_addresses_and_times_are_no_frames() -> None:
    assert places("connect to localhost:5432 or api.example.com:8080 at 12:30:05") == []


def test_file_and_line_are_the_innermost_frame_in_the_tests_own_file() -> None:
    text = (
        "E\n    at f (src/a.js:1:2)\n    at check (a.test.js:30:2)\n    at a.test.js:7:9\n"
        "    at node_modules/j/x.js:1:1"
    )
    found = Found("t", message="Error: x", frames=frames_in(text), own=("a.test.js",))
    failure = place(found, NOWHERE)
    assert (failure.file, failure.line) == ("a.test.js", 30)
    assert failure.frames == ["src/a.js:1", "a.test.js:30", "a.test.js:7"]


def test_without_a_known_file_the_outermost_that_is_named_like_a_test_is_the_tests() -> None:
    text = "E\n    at f (src/a.js:1:2)\n    at test/a.test.js:7:9\n    at src/runner.js:1:1"
    failure = place(Found("t", frames=frames_in(text)), NOWHERE)
    assert (failure.file, failure.line) == ("test/a.test.js", 7)


def test_with_no_frame_in_the_tests_file_the_deepest_of_the_users_is_the_place() -> None:
    failure = place(
        Found("t", frames=frames_in("shop/cart.py:19: KeyError"), own=("tests/test_cart.py",)), NOWHERE
    )
    assert (failure.file, failure.line) == ("shop/cart.py", 19)


def test_with_no_frame_at_all_the_runners_place_of_the_test_counts() -> None:
    failure = place(Found("t", own=("a.test.ts",), own_line=42), NOWHERE)
    assert (failure.file, failure.line) == ("a.test.ts", 42)


def test_a_line_is_never_given_without_its_file(tmp_path: Path) -> None:
    failure = place(Found("t", own=("gone.test.ts",), own_line=42), PathMapper(tmp_path))
    assert failure.file is None
    assert failure.line is None


def test_what_go_logged_is_not_where_it_failed(tmp_path: Path) -> None:
    (tmp_path / "a_test.go").write_text("package a\n\tt.Log(1)\n\tt.Errorf(2)\n")
    found = Found("T", frames=frames_in("    a_test.go:2: one\n    a_test.go:3: two"), own=())
    assert place(found, PathMapper(tmp_path)).line == 3


def test_a_record_always_has_a_name() -> None:
    assert place(Found("", suite="s"), NOWHERE).name == "s"
    assert place(Found(" "), NOWHERE).name == "(unnamed)"


def test_only_what_is_known_is_in_the_answer() -> None:
    assert place(Found("t", message="m"), NOWHERE).as_json() == {
        "name": "t", "kind": "failure", "scope": "test", "message": "m"
    }  # fmt: skip
