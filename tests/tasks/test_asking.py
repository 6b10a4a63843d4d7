"""What is asked of each runner: beside what the user has, never in its place, and only where it arrives."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import get_args

import pytest

from devbay.answers import Failure
from devbay.errors import DevbayError
from devbay.manifest.models import ReportFormat
from devbay.reports import registry
from devbay.runners.table import RUNNERS
from devbay.tasks.asking import Asked, asked, put_files

RUN = "/runs/r 1"


def ask(line: str, files: dict[str, str] | None = None, **env: str) -> Asked:
    read = (files or {}).get
    return asked(shlex.split(line), env=env, folder="", run_dir=RUN, read=read, report=True)


def test_the_manifest_takes_the_formats_that_can_be_read_and_no_others() -> None:
    assert sorted(get_args(ReportFormat)) == sorted(registry.names())


def test_every_row_says_what_was_tried_or_why_nothing_is_asked() -> None:
    for row in RUNNERS:
        assert bool(row.ask) == bool(row.tried), row.name
        assert bool(row.ask) != bool(row.plain), row.name


@pytest.mark.parametrize(
    ("line", "variable", "value", "report"),
    [
        (
            "pytest",
            "PYTEST_ADDOPTS",
            "--junit-xml='/runs/r 1'/report.xml -o junit_family=xunit1",
            "report.xml",
        ),
        (
            "rspec",
            "SPEC_OPTS",
            "--format progress --format json --out '/runs/r 1/report.json'",
            "report.json",
        ),
        ("gotestsum", "GOTESTSUM_JSONFILE", "/runs/r 1/report.json", "report.json"),
        ("./build/unit_tests", "GTEST_OUTPUT", "xml:/runs/r 1/gtest/", "gtest/*.xml"),
        (
            "node --test",
            "NODE_OPTIONS",
            '--test-reporter="/runs/r 1/default-reporter.mjs" --test-reporter-destination=stdout'
            ' --test-reporter=tap --test-reporter-destination="/runs/r 1/report.tap"',
            "report.tap",
        ),
    ],
)
def test_a_runner_is_asked_through_the_environment(line: str, variable: str, value: str, report: str) -> None:
    found = ask(line)
    assert found.argv == tuple(shlex.split(line))
    assert found.env == {variable: value}
    assert found.ask is not None
    assert found.ask.reports == (report,)
    assert found.ask.format in registry.names()


@pytest.mark.parametrize(
    ("line", "extended"),
    [
        ("jest src", "jest --json '--outputFile=/runs/r 1/report.json' --testLocationInResults src"),
        ("npx vitest run src", "npx vitest run --reporter=default --reporter=json"
         " '--outputFile.json=/runs/r 1/report.json' src"),
        ("npx playwright test e2e", "npx playwright test --reporter=list,json e2e"),
        ("ctest --test-dir b", "ctest --output-junit '/runs/r 1/report.xml' --test-dir b"),
        ("vendor/bin/phpunit tests", "vendor/bin/phpunit --log-junit '/runs/r 1/report.xml' tests"),
        ("deno test a.ts", "deno test '--junit-path=/runs/r 1/report.xml' a.ts"),
        ("bun test a.ts", "bun test --reporter=junit '--reporter-outfile=/runs/r 1/report.xml' a.ts"),
    ],
)  # fmt: skip
def test_a_runner_is_asked_by_arguments_of_its_own(line: str, extended: str) -> None:
    found = ask(line)
    assert found.argv == tuple(shlex.split(extended))
    assert found.ask is not None
    assert found.ask.format in registry.names()


@pytest.mark.parametrize(
    ("line", "files", "env"),
    [
        ("pytest --junitxml=own.xml", {}, {}),
        ("pytest", {"pyproject.toml": "addopts = '--junit-xml=own.xml'"}, {}),
        ("pytest", {}, {"PYTEST_ADDOPTS": "--junit-xml own.xml"}),
        ("env PYTEST_ADDOPTS=-q pytest", {}, {}),
        ("env -i pytest", {}, {}),
        ("pytest --collect-only", {}, {}),
        ("pytest --version", {}, {}),
        ("sh -c 'pytest unit && pytest integration'", {}, {}),
        ("node --test --test-reporter=dot", {}, {}),
        ("node --test", {}, {"NODE_OPTIONS": "--test-reporter=dot"}),
        ("node --test", {}, {"NODE_VERSION": "16.20.2"}),
        ("node server.js", {}, {}),
        ("jest --json", {}, {}),
        ("jest --watch", {}, {}),
        ("make test", {"Makefile": "test:\n\tjest\n"}, {}),
        ("vitest run --reporter=dot", {}, {}),
        ("vitest run", {"vite.config.ts": "test: { reporters: ['dot'] }"}, {}),
        ("vitest run --config x.ts", {}, {}),
        ("vitest bench", {}, {}),
        ("playwright test", {"playwright.config.ts": "reporter: 'html'"}, {}),
        ("playwright install", {}, {}),
        ("phpunit --log-junit x", {}, {}),
        ("phpunit", {"phpunit.xml": "<logging><junit outputFile='x'/></logging>"}, {}),
        ("ctest -N", {}, {}),
        ("rspec -O x", {}, {}),
        ("./tests.sh", {}, {}),
        ("./build/unit_tests", {}, {"GTEST_OUTPUT": "xml:own"}),
        ("mocha", {}, {}),
        ("go test ./...", {}, {}),
        ("cargo test", {}, {}),
        ("python -m unittest", {}, {}),
        ("echo pytest", {}, {}),
    ],
)
def test_nothing_is_asked_where_it_would_replace_something_or_not_arrive(
    line: str, files: dict[str, str], env: dict[str, str]
) -> None:
    found = ask(line, files, **env)
    assert found == Asked(tuple(shlex.split(line)))


def test_what_a_variable_holds_stays_in_front() -> None:
    assert ask("pytest", PYTEST_ADDOPTS="-q").env["PYTEST_ADDOPTS"].startswith("-q --junit-xml=")
    assert (
        ask("node --test", NODE_OPTIONS="--no-warnings")
        .env["NODE_OPTIONS"]
        .startswith("--no-warnings --test")
    )


@pytest.mark.parametrize(
    ("line", "files", "env", "formatters"),
    [
        ("rspec -fd", {".rspec": "--format html --out x.html"}, {}, "-fd"),
        (
            "rspec",
            {".rspec": "-r spec_helper\n--format documentation # all"},
            {},
            "--format documentation",
        ),
        ("rspec", {".rspec": "-f d", ".rspec-local": "-f p"}, {}, "-f p"),
        ("rspec", {".rspec": "-f d"}, {"SPEC_OPTS": "--format html"}, "--format html"),
    ],
)
def test_rspec_keeps_the_formatters_that_it_had(
    line: str, files: dict[str, str], env: dict[str, str], formatters: str
) -> None:
    assert ask(line, files, **env).env["SPEC_OPTS"].startswith(f"{formatters} --format json --out")


def test_maven_and_gradle_are_read_where_they_write_and_need_not_write() -> None:
    for line, pattern in (("./mvnw -B verify", "**/target/surefire-reports/TEST-*.xml"),
                          ("./gradlew test", "**/build/test-results/**/TEST-*.xml")):  # fmt: skip
        found = ask(line)
        assert found.ask is not None
        assert (found.argv, found.env) == (tuple(shlex.split(line)), {})
        assert (pattern in found.ask.reports, found.ask.in_worktree, found.ask.due) == (True, True, False)


def test_what_a_runner_needs_is_written_for_any_user_of_the_container(tmp_path: Path) -> None:
    put_files({"cache/v/lastfailed": "{}"}, tmp_path)
    assert (tmp_path / "cache/v/lastfailed").stat().st_mode & 0o777 == 0o666
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o777


def select(line: str, *failures: Failure, files: dict[str, str] | None = None, **env: str) -> Asked:
    read = (files or {}).get
    return asked(shlex.split(line), env=env, folder="", run_dir="/r", read=read, report=False, only=failures)


def failed(name: str, suite: str | None = None, file: str | None = None, scope: str = "test") -> Failure:
    return Failure(name=name, suite=suite, file=file, scope=scope)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "failures", "extended"),
    [
        ("jest src", [failed("bad", "a › b", "x/a.test.js")], "jest -t '^(a b bad)$' x/a.test.js src"),
        ("npx vitest run", [failed("1 + 1", None, "a.js")], r"npx vitest run -t '^(1 \+ 1)$' a.js"),
        ("jest", [failed("a.test.js", None, "a.test.js", "suite")], "jest a.test.js"),
        ("npx playwright test", [failed("bad", "sum", "a.spec.js")], "npx playwright test -g ' (sum bad)$'"),
        ("mocha", [failed("bad", "sum > in")], "mocha -g '^(sum in bad)$'"),
        ("node --test x", [failed("bad"), failed("bad"), failed("b")],
         "node '--test-name-pattern=^(bad|b)$' --test x"),
        ("bun test", [failed("bad")], "bun test -t '^(bad)$'"),
        ("deno test", [failed("bad")], "deno test --filter '/^(bad)$/'"),
        ("phpunit", [failed('testRows with data set "three" (3)', "App\\T")],
         r"""phpunit --filter '/(^|\\)(App\\T::testRows\ with\ data\ set\ "three")$/'"""),
        ("ctest -j2", [failed("Sum.Bad")], r"ctest -R '^(Sum\.Bad)$' -j2"),
        ("go test ./...", [failed("TestA"), failed("TestB/x_y")], "go test -run '^(TestA|TestB)$' ./..."),
        ("go test ./...", [failed("TestB/x"), failed("TestB/y")], "go test -run '^(TestB)$/^(x|y)$' ./..."),
        ("cargo test --lib", [failed("m::bad")], "cargo test --lib -- --exact m::bad"),
        ("cargo test -- --nocapture", [failed("m::bad")], "cargo test -- --nocapture --exact m::bad"),
        ("python -m unittest discover -s t", [failed("test_x", "test_a.T")],
         "python -m unittest discover -k test_a.T.test_x -s t"),
        ("bats t", [failed("a b")], "bats -f '^(a b)$' t"),
        ("npm test", [failed("bad")], "npm test -- --test-name-pattern='^(bad)$'"),
    ],
)  # fmt: skip
def test_the_last_failures_are_named_to_the_runner(line: str, failures: list[Failure], extended: str) -> None:
    files = {"package.json": '{"scripts": {"test": "node --test"}}'}
    assert select(line, *failures, files=files).argv == tuple(shlex.split(extended))


def test_pytest_is_told_through_a_memory_of_failures_of_the_runs_own() -> None:
    found = select(
        "make test",
        failed("test_x[a-b]", "tests.test_a.TestA", "api/tests/test_a.py"),
        failed("test_y", "tests/test_b.py", "tests/test_b.py"),
        failed("test_z", "TestB", "tests/test_b.py"),
        failed("tests.test_c", "pytest", "tests/test_c.py", "suite"),
        files={"Makefile": "test:\n\tpytest\n"},
        PYTEST_ADDOPTS="-q",
    )
    assert found.env == {"PYTEST_ADDOPTS": "-q --lf --lfnf=none -o cache_dir=/r/cache"}
    ids = set(json.loads(found.files["cache/v/cache/lastfailed"]))
    assert {
        "tests/test_a.py::TestA::test_x[a-b]", "api/tests/test_a.py::TestA::test_x[a-b]",
        "tests/test_b.py::test_y",
        "tests/test_b.py::TestB::test_z", "tests/test_c.py",
    } <= ids  # fmt: skip


def test_googletest_and_rspec_are_told_through_the_environment() -> None:
    assert select("./unit_tests", failed("Bad", "Sum"), failed("B", "S")).env == {
        "GTEST_FILTER": "Sum.Bad:S.B"
    }
    assert select("rspec", failed("bad", "Sum")).env == {"SPEC_OPTS": "-E '^(Sum bad)$'"}


@pytest.mark.parametrize(
    ("line", "failure", "why"),
    [
        ("echo x", failed("a"), "no runner"),
        ("gotestsum", failed("a"), "no way"),
        ("make test", failed("a"), "do not reach jest"),
        ("jest -t x", failed("a"), "already selects"),
        ("pytest -p no:cacheprovider", failed("a", None, "t.py"), "cacheprovider"),
        ("pytest", failed("a"), "no file"),
        ("mocha", failed("a", None, "a.js", "suite"), "as a whole"),
        ("mocha", failed("x" * 70_000), "too long"),
    ],
)
def test_tests_that_cannot_be_named_are_an_error_that_says_why(line: str, failure: Failure, why: str) -> None:
    with pytest.raises(DevbayError, match=why) as caught:
        select(line, failure, files={"Makefile": "test:\n\tjest\n"})
    assert caught.value.code == "no_selector"
    assert caught.value.next
