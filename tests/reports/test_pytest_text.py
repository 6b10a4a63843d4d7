"""pytest is run for real here, in every style of its output: its own text is the only source of truth."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from devbay.answers import Failure, RunResult
from devbay.reports.offline import report

FILES = {
    "pytest.ini": "[pytest]\naddopts = -p no:cacheprovider\nconsole_output_style = progress\n",
    "shop/__init__.py": "",
    "shop/cart.py": "def total(x):\n    return {'mug': 4}[x]\n",
    "tests/test_cart.py": """import pytest
from shop.cart import total


def test_passes():
    assert total("mug") == 4


def test_compares():
    print("counting mugs")
    assert total("mug") == 5, "mugs are wrong"


class TestErrors:
    def test_unknown(self):
        assert total("cup") == 4

    @pytest.mark.parametrize("name", ["a b", "c/d::e", "x - y"])
    def test_named(self, name):
        assert name == "a b"


@pytest.fixture
def broken():
    raise OSError("no shelf")


@pytest.fixture
def leaky():
    yield 1
    raise ValueError("shelf fell")


def test_set_up(broken):
    pass


def test_tear_down(leaky):
    pass


def test_chained():
    try:
        total("pot")
    except KeyError as error:
        raise RuntimeError("cannot count") from error


@pytest.mark.skip(reason="later")
def test_later():
    pass


@pytest.mark.xfail(strict=True)
def test_should_fail():
    pass


@pytest.mark.xfail
def test_fails_as_expected():
    assert False
""",
}
PLACES = {
    "test_compares": 11,
    "test_unknown": 16,
    "test_named[c/d::e]": 20,
    "test_named[x - y]": 20,
    "test_set_up": 25,
    "test_tear_down": 31,
    "test_chained": 46,
}


@dataclass(frozen=True)
class Shop:
    root: Path

    def run(self, *arguments: str, env: dict[str, str] | None = None) -> RunResult:
        """Run pytest on the shop and read what it printed."""
        argv = [sys.executable, "-m", "pytest", *arguments]
        done = subprocess.run(
            argv, cwd=self.root, capture_output=True, check=False, env=clean_environment() | (env or {})
        )
        out, err = self.root / ".out", self.root / ".err"
        out.write_bytes(done.stdout)
        err.write_bytes(done.stderr)
        return report(
            root=str(self.root), cwd=str(self.root), stdout=str(out), stderr=str(err),
            exit_code=done.returncode, argv=argv,
        )  # fmt: skip


def clean_environment() -> dict[str, str]:
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTEST", "CI", "FORCE", "NO_"))
    }
    return kept | {"PYTHONDONTWRITEBYTECODE": "1"}


def make_shop(root: Path, files: dict[str, str]) -> Shop:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Shop(root)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return make_shop(tmp_path_factory.mktemp("the shop"), FILES)


def by_name(result: RunResult) -> dict[str, Failure]:
    return {failure.name: failure for failure in result.failures}


def counted(result: RunResult) -> tuple[int, int, int, int, int]:
    counts = result.counts
    assert counts is not None
    return counts.total, counts.passed, counts.failed, counts.errors, counts.skipped


STYLES = [
    ("-q",),
    ("-v",),
    ("-vv", "--tb=long"),
    ("--tb=short",),
    ("--tb=native",),
    ("-q", "--color=yes"),
    ("-rA", "-o", "console_output_style=count"),
    ("-q", "-o", "console_output_style=classic", "-l"),
]


@pytest.mark.parametrize("style", STYLES, ids=" ".join)
def test_every_style_gives_the_same_records(shop: Shop, style: tuple[str, ...]) -> None:
    result = shop.run(*style)
    assert (result.status, result.reason) == ("failed", "tests_failed")
    assert counted(result) == (13, 3, 6, 2, 2)
    found = by_name(result)
    assert sorted(found) == sorted([*PLACES, "test_should_fail"])
    assert {name: found[name].line for name in PLACES} == PLACES
    assert {failure.file for name, failure in found.items() if name in PLACES} == {"tests/test_cart.py"}
    compared = found["test_compares"]
    assert compared.message.startswith("AssertionError: mugs are wrong\nassert 4 == 5")
    assert (compared.expected, compared.actual) == ("5", "4")
    assert compared.output == "counting mugs"
    assert found["test_unknown"].frames == ["shop/cart.py:2", "tests/test_cart.py:16"]
    assert found["test_unknown"].suite == "TestErrors"
    assert found["test_chained"].message == "RuntimeError: cannot count"
    assert (found["test_set_up"].phase, found["test_set_up"].kind) == ("setup", "error")
    assert (found["test_tear_down"].phase, found["test_tear_down"].message) == (
        "teardown",
        "ValueError: shelf fell",
    )
    assert "strict" in found["test_should_fail"].message


@pytest.mark.parametrize("style", [("-q", "--tb=line"), ("-q", "--tb=no")], ids=" ".join)
def test_what_a_terse_style_leaves_out_is_not_made_up(shop: Shop, style: tuple[str, ...]) -> None:
    result = shop.run(*style)
    assert counted(result) == (13, 3, 6, 2, 2)
    found = by_name(result)
    assert len(result.failures) == 8
    assert found["test_compares"].file == "tests/test_cart.py"
    assert found["test_compares"].line in (None, 11)
    assert found["test_unknown"].line in (None, 2)
    assert found["test_set_up"].kind == "error"


def test_a_green_run_passes_with_its_counts(shop: Shop) -> None:
    result = shop.run("-q", "-k", "passes or later")
    assert (result.status, result.reason) == ("passed", None)
    assert counted(result) == (2, 1, 0, 0, 1)
    assert not result.failures


def test_the_quietest_output_is_read_by_its_dots(shop: Shop) -> None:
    result = shop.run("-qq", "-k", "passes or compares")
    assert counted(result) == (2, 1, 1, 0, 0)
    assert [failure.name for failure in result.failures] == ["test_compares"]
    assert shop.run("-qq", "-k", "passes").status == "passed"


def test_no_test_is_an_error(shop: Shop) -> None:
    for arguments in (("-q", "-k", "nothing"), ("-v", "shop")):
        result = shop.run(*arguments)
        assert (result.status, result.reason) == ("error", "no_tests"), arguments


@pytest.mark.parametrize("arguments", [("tests/gone.py",), ("--no-such-flag",)])
def test_a_wrong_call_is_one_record_of_the_run(shop: Shop, arguments: tuple[str, ...]) -> None:
    result = shop.run("-q", *arguments)
    assert result.status == "error"
    assert [failure.scope for failure in result.failures] == ["run"]
    assert arguments[0] in result.failures[0].message


def test_two_sessions_in_one_output_are_added(shop: Shop, tmp_path: Path) -> None:
    text = ".  [100%]\n1 passed in 0.01s\n.F [100%]\n1 failed, 1 passed in 0.01s\n"
    (tmp_path / "out").write_text(text)
    assert counted(report(stdout=str(tmp_path / "out"), exit_code=1)) == (3, 2, 1, 0, 0)


def test_files_that_do_not_load_are_a_collection_error(tmp_path: Path) -> None:
    shop = make_shop(
        tmp_path,
        {
            "pytest.ini": FILES["pytest.ini"],
            "test_import.py": "import os\nimport gone.module\n",
            "test_syntax.py": "def test_a():\n    return 1 +* 2\n",
            "test_fine.py": "def test_fine():\n    pass\n",
        },
    )
    for style in (("-q",), ("-v", "--tb=short"), ("--tb=native",), ("-q", "--continue-on-collection-errors")):
        result = shop.run(*style)
        assert (result.status, result.reason) == ("error", "collection_error"), style
        places = {failure.name: (failure.file, failure.line, failure.scope) for failure in result.failures}
        assert places == {
            "test_import.py": ("test_import.py", 2, "suite"),
            "test_syntax.py": ("test_syntax.py", 2, "suite"),
        }, style
        assert "No module named 'gone'" in by_name(result)["test_import.py"].message
        assert by_name(result)["test_syntax.py"].message.startswith("SyntaxError: invalid syntax")


def test_a_conftest_that_does_not_load_is_one_record_of_the_run(tmp_path: Path) -> None:
    shop = make_shop(
        tmp_path, {"conftest.py": "import os\nimport gone\n", "test_a.py": "def test_a(): pass\n"}
    )
    result = shop.run("-q")
    assert (result.status, result.reason) == ("error", "collection_error")
    [failure] = result.failures
    assert (failure.scope, failure.file, failure.line) == ("run", "conftest.py", 2)
    assert failure.message == "ModuleNotFoundError: No module named 'gone'"


def test_an_internal_error_is_a_crash(tmp_path: Path) -> None:
    hook = "def pytest_runtest_logreport(report):\n    raise OSError('disk is full')\n"
    shop = make_shop(tmp_path, {"conftest.py": hook, "test_a.py": "def test_a(): pass\n"})
    result = shop.run("-q")
    assert (result.status, result.reason) == ("error", "crash")
    assert result.failures[0].message == "OSError: disk is full"
    assert (result.failures[0].file, result.failures[0].line) == ("conftest.py", 2)


@pytest.mark.parametrize("style", ["-q", "-v"])
def test_a_crash_names_the_test_that_ran_and_keeps_what_was_before(tmp_path: Path, style: str) -> None:
    crash = "import os\n\n\ndef test_ok():\n    pass\n\n\ndef test_dies():\n    os.abort()\n"
    result = make_shop(tmp_path, {"test_a.py": crash}).run(style)
    assert (result.status, result.reason) == ("error", "crash")
    assert counted(result)[:2] == (1, 1)
    [failure] = result.failures
    assert (failure.name, failure.kind, failure.scope) == ("test_dies", "crash", "run")
    assert (failure.file, failure.line) == ("test_a.py", 9)


def test_an_exit_in_a_test_is_told(tmp_path: Path) -> None:
    leave = "import os\n\n\ndef test_leaves():\n    os._exit(0)\n"
    result = make_shop(tmp_path, {"test_a.py": leave}).run("-v")
    assert (result.status, result.reason) == ("error", "crash")
    assert [failure.name for failure in result.failures] == ["test_leaves"]


def test_doctests_and_unittest_cases_are_tests_too(tmp_path: Path) -> None:
    shop = make_shop(
        tmp_path,
        {
            "lib.py": 'def f():\n    """\n    >>> f()\n    2\n    """\n    return 1\n',
            "test_u.py": "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_u(self):\n"
            "        self.assertEqual(1, 2)\n",
        },
    )
    found = by_name(shop.run("-q", "--doctest-modules"))
    assert (found["lib.f"].file, found["lib.f"].line) == ("lib.py", 3)
    assert (found["test_u"].file, found["test_u"].line, found["test_u"].suite) == ("test_u.py", 6, "T")
    assert found["test_u"].message == "AssertionError: 1 != 2"


def test_tests_of_the_same_name_keep_their_own_file(tmp_path: Path) -> None:
    files = {f"{name}/test_{name}.py": "def test_same():\n    assert False\n" for name in ("one", "two")}
    result = make_shop(tmp_path, files).run("-q")
    assert sorted((failure.file or "") for failure in result.failures) == [
        "one/test_one.py",
        "two/test_two.py",
    ]


def test_blocks_and_summary_need_not_be_in_the_same_order(tmp_path: Path) -> None:
    def block(file: str) -> str:
        return f"____ test_same ____\n\n>   assert False\nE   assert False\n\n{file}:2: AssertionError\n"

    text = (
        f"==== FAILURES ====\n{block('two.py')}{block('one.py')}==== short test summary info ====\n"
        "FAILED one.py::test_same - assert False\nFAILED two.py::test_same - assert False\n"
        "2 failed in 0.01s\n"
    )
    assert [(failure.file, failure.line) for failure in read_text(tmp_path, text).failures] == [
        ("two.py", 2),
        ("one.py", 2),
    ]


PREFIXED = """test-1  | ============================= test session starts ==============================
test-1  | collected 1 item
test-1  |
test-1  | tests/test_oar.py F                                                      [100%]
test-1  |
test-1  | =================================== FAILURES ===================================
test-1  | __________________________________ test_pull ___________________________________
test-1  |
test-1  |     def test_pull():
test-1  | >       assert 6 == 9
test-1  | E       assert 6 == 9
test-1  |
test-1  | tests\\test_oar.py:11: AssertionError
test-1  | =========================== short test summary info ============================
test-1  | FAILED tests/test_oar.py::test_pull - assert 6 == 9
test-1  | ============================== 1 failed in 0.02s ===============================
test-1 exited with code 1
"""
WORKER_CRASH = """bringing up nodes...
[gw0] node down: Not properly terminated
F
replacing crashed worker gw0
.                                                                      [100%]
=================================== FAILURES ===================================
________________________________ tests/test_a.py _______________________________
[gw0] linux -- Python 3.11.7 /usr/bin/python
worker 'gw0' crashed while running 'tests/test_a.py::test_dies'
=========================== short test summary info ============================
FAILED tests/test_a.py::test_dies
========================= 1 failed, 1 passed in 0.60s ==========================
"""


def read_text(tmp_path: Path, text: str) -> RunResult:
    (tmp_path / "out").write_bytes(text.encode())
    return report(stdout=str(tmp_path / "out"), exit_code=1)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_wrappers_prefix_and_line_ends_do_not_matter(tmp_path: Path, end: str) -> None:
    result = read_text(tmp_path, PREFIXED.replace("\n", end))
    [failure] = result.failures
    assert (failure.name, failure.file, failure.line) == ("test_pull", "tests/test_oar.py", 11)
    assert failure.message == "assert 6 == 9"


def test_a_crashed_worker_is_a_crash_of_its_test(tmp_path: Path) -> None:
    result = read_text(tmp_path, WORKER_CRASH)
    [failure] = result.failures
    assert (failure.name, failure.kind, failure.file) == ("test_dies", "crash", "tests/test_a.py")


def test_output_that_ends_in_the_middle_is_not_taken_for_a_result(tmp_path: Path) -> None:
    cut = PREFIXED.split("test-1  | =========================== short")[0]
    result = read_text(tmp_path, cut.replace("[100%]", ""))
    assert (result.status, result.reason) == ("error", "report_truncated")
    assert [failure.line for failure in result.failures] == [11]
