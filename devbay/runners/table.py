"""The test runners there are: how each is recognised, asked for a report, and told which tests to run.

A row says what was tried with the real runner (`tried`), or why nothing is asked of it (`plain`). What is
asked never replaces a reporter, a report or a setting of the user's: where the command, the environment or a
configuration file says something of its own about reports, the runner's output is read as it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from posixpath import dirname, join

from devbay.runners import selectors
from devbay.runners.commands import ALL, Command, Read
from devbay.runners.selectors import Selection, Selector


@dataclass(frozen=True)
class Situation:
    """A runner's command and what is around it. env: of its container. run_dir: as the container sees it."""

    command: Command
    env: Mapping[str, str]
    run_dir: str
    read: Read

    def reaches(self, variable: str) -> bool:
        """Whether a variable of the container arrives at the runner."""
        return variable not in self.command.sets and ALL not in self.command.sets

    def says(self, pattern: str, *files: str, variable: str = "", upwards: bool = False) -> bool:
        """Whether the command's words, a variable or one of these files (where it runs) match."""
        texts = [*self.command.words[1:], self.env.get(variable, "")]
        texts += [text for folder in self._folders(upwards) for text in self._texts(folder, files)]
        return any(re.search(pattern, text) for text in texts)

    def _folders(self, upwards: bool) -> list[str]:
        folders = [self.command.folder]
        while upwards and folders[-1]:
            folders.append(dirname(folders[-1]))
        return folders

    def _texts(self, folder: str, files: tuple[str, ...]) -> list[str]:
        return [text for name in files if (text := self.read(join(folder, name))) is not None]


@dataclass(frozen=True)
class Ask:
    """What is asked of a runner. env: whole values. args: after `skip` words of its own.

    files: what they need, by path in the run's folder. reports: patterns of what it writes, below the run's
    folder or, with `in_worktree`, below the worktree. due: it writes one whenever it runs tests at all.
    """

    format: str
    reports: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    args: tuple[str, ...] = ()
    skip: int = 0
    files: Mapping[str, str] = field(default_factory=dict)
    in_worktree: bool = False
    due: bool = True
    said: str = ""


@dataclass(frozen=True)
class Runner:
    """One row. subcommands: of which the first argument must be one. options: of which one must be there."""

    name: str
    programs: frozenset[str]
    subcommands: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()
    ask: Callable[[Situation], Ask | None] | None = None
    select: Selector | None = None
    tried: str = ""
    plain: str = ""

    def runs(self, command: Command) -> bool:
        words = command.words
        if words[0] not in self.programs or _NO_TESTS & set(words):
            return False
        if self.subcommands and not self.subcommands & set(words[1:2]):
            return False
        return not self.options or bool(self.options & set(words[1:]))


# With one of these a runner runs no tests, or does not end by itself.
_NO_TESTS = {
    "--version", "--help", "--collect-only", "--co", "--list", "--listTests", "--list-tests", "--watch",
    "--watchAll", "--ui", "--init", "--fixtures", "--markers", "--setup-plan", "--show-only", "--showConfig",
    "--gtest_list_tests",
}  # fmt: skip


def _pytest(at: Situation) -> Ask | None:
    files = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
    own = r"junit-?xml|no:junit"
    if not at.reaches("PYTEST_ADDOPTS") or at.says(own, *files, variable="PYTEST_ADDOPTS", upwards=True):
        return None
    options = f"--junit-xml={shlex.quote(at.run_dir)}/report.xml -o junit_family=xunit1"
    return Ask(
        "junit", ("report.xml",), {"PYTEST_ADDOPTS": _appended(at.env, "PYTEST_ADDOPTS", options)},
        said="PYTEST_ADDOPTS=--junit-xml",
    )  # fmt: skip


# The default of Node's test runner where stdout is no terminal: TAP up to 22, spec from 23 on.
_NODE_DEFAULT = """\
import { spec, tap } from 'node:test/reporters';
export default Number(process.versions.node.split('.')[0]) < 23 ? tap : spec;
"""


def _node(at: Situation) -> Ask | None:
    if not at.reaches("NODE_OPTIONS") or at.says("--test-reporter", variable="NODE_OPTIONS"):
        return None
    if _older(at.env.get("NODE_VERSION"), (18, 17)):
        return None  # it refuses the options, and then does not start
    quoted = at.run_dir.replace("\\", "\\\\").replace('"', '\\"')
    options = (
        f'--test-reporter="{quoted}/default-reporter.mjs" --test-reporter-destination=stdout'
        f' --test-reporter=tap --test-reporter-destination="{quoted}/report.tap"'
    )
    return Ask(
        "tap", ("report.tap",), {"NODE_OPTIONS": _appended(at.env, "NODE_OPTIONS", options)},
        files={"default-reporter.mjs": _NODE_DEFAULT}, said="NODE_OPTIONS=--test-reporter=tap",
    )  # fmt: skip


def _jest(at: Situation) -> Ask | None:
    if at.says(r"^--(json|outputFile|testLocationInResults)\b"):
        return None
    args = ("--json", f"--outputFile={at.run_dir}/report.json", "--testLocationInResults")
    return Ask("jest-json", ("report.json",), args=args, said="--json --outputFile")


def _vitest(at: Situation) -> Ask | None:
    kinds = ("ts", "mts", "cts", "js", "mjs", "cjs")
    files = [f"{name}.config.{kind}" for name in ("vitest", "vite") for kind in kinds]
    if at.says(r"^(-c|--(config|reporter|outputFile)(=.*)?)$|\breporters\b", *files, "vitest.workspace.ts"):
        return None
    if "GITHUB_ACTIONS" in at.env:
        return None  # there it reports in two ways by itself
    if at.command.words[1:2] and at.command.words[1] in ("bench", "list", "init", "dev", "watch"):
        return None
    args = ("--reporter=default", "--reporter=json", f"--outputFile.json={at.run_dir}/report.json")
    skip = 1 if at.command.words[1:2] == ("run",) else 0
    return Ask("jest-json", ("report.json",), args=args, skip=skip, said="--reporter=json")


def _playwright(at: Situation) -> Ask | None:
    files = [f"playwright.config.{kind}" for kind in ("ts", "mts", "cts", "js", "mjs", "cjs")]
    if at.says(r"^(-c|--(config|reporter)(=.*)?)$|\breporter\b", *files):
        return None
    variable = "PLAYWRIGHT_JSON_OUTPUT_NAME"
    if not at.reaches(variable) or variable in at.env:
        return None
    default = "dot" if at.env.get("CI") else "list"
    return Ask(
        "playwright-json", ("report.json",), {variable: f"{at.run_dir}/report.json"},
        args=(f"--reporter={default},json",), skip=1, said="--reporter=json",
    )  # fmt: skip


def _rspec(at: Situation) -> Ask | None:
    """SPEC_OPTS replaces formatters from elsewhere, so those that there are stand in it again."""
    if not at.reaches("SPEC_OPTS") or at.says(r"^(-O|--options)|<%", ".rspec", ".rspec-local"):
        return None
    given = at.env.get("SPEC_OPTS", "")
    files = [at.read(join(at.command.folder, name)) or "" for name in (".rspec-local", ".rspec")]
    formatters: list[str] = []
    for text in (given, shlex.join(at.command.words[1:]), *files):
        try:
            formatters = _formatters(shlex.split(text, comments=True))
        except ValueError:
            return None
        if formatters:
            break
    again = [] if _formatters(shlex.split(given)) else formatters or ["--format", "progress"]
    ours = shlex.join([*again, "--format", "json", "--out", f"{at.run_dir}/report.json"])
    return Ask(
        "rspec-json",
        ("report.json",),
        {"SPEC_OPTS": f"{given} {ours}".strip()},
        said="SPEC_OPTS=--format json",
    )


def _formatters(words: list[str]) -> list[str]:
    found: list[str] = []
    for place, word in enumerate(words):
        if word in ("-f", "--format", "-o", "--out"):
            found += words[place : place + 2]
        elif re.match(r"-[fo].|--(format|out)=", word):
            found.append(word)
    return found


def _ctest(at: Situation) -> Ask | None:
    if at.says(r"^(--output-junit|-N|-D|-S|-SP|-T|-M|--dashboard|--script|--build-and-test)"):
        return None
    return Ask(
        "junit", ("report.xml",), args=("--output-junit", f"{at.run_dir}/report.xml"), said="--output-junit"
    )


def _phpunit(at: Situation) -> Ask | None:
    if at.says(r"^(-c|--(configuration|log-junit)(=.*)?)$|<junit\b", *_PHPUNIT_FILES):
        return None
    return Ask("junit", ("report.xml",), args=("--log-junit", f"{at.run_dir}/report.xml"), said="--log-junit")


_PHPUNIT_FILES = ("phpunit.xml", "phpunit.dist.xml", "phpunit.xml.dist")


def _gotestsum(at: Situation) -> Ask | None:
    if not at.reaches("GOTESTSUM_JSONFILE") or at.says("^--jsonfile") or "GOTESTSUM_JSONFILE" in at.env:
        return None
    return Ask(
        "gojson", ("report.json",), {"GOTESTSUM_JSONFILE": f"{at.run_dir}/report.json"},
        said="GOTESTSUM_JSONFILE",
    )  # fmt: skip


def _deno(at: Situation) -> Ask | None:
    if at.says("^--(junit-path|reporter)"):
        return None
    return Ask(
        "junit", ("report.xml",), args=(f"--junit-path={at.run_dir}/report.xml",), skip=1, said="--junit-path"
    )


def _bun(at: Situation) -> Ask | None:
    if at.says(r"^--reporter|\breporter\b", "bunfig.toml"):
        return None
    args = ("--reporter=junit", f"--reporter-outfile={at.run_dir}/report.xml")
    return Ask("junit", ("report.xml",), args=args, skip=1, said="--reporter=junit")


def _maven(at: Situation) -> Ask:
    found = ("**/target/surefire-reports/TEST-*.xml", "**/target/failsafe-reports/TEST-*.xml")
    return Ask("junit", found, in_worktree=True, due=False)


def _gradle(at: Situation) -> Ask:
    return Ask("junit", ("**/build/test-results/**/TEST-*.xml",), in_worktree=True, due=False)


def _gtest(at: Situation) -> Ask | None:
    """A program of the user's own may be a GoogleTest; any other leaves the variable alone."""
    if not at.reaches("GTEST_OUTPUT") or "GTEST_OUTPUT" in at.env or at.says("^--gtest_output"):
        return None
    return Ask(
        "junit",
        ("gtest/*.xml",),
        {"GTEST_OUTPUT": f"xml:{at.run_dir}/gtest/"},
        due=False,
        said="GTEST_OUTPUT=xml",
    )


RUNNERS: tuple[Runner, ...] = (
    Runner(
        "pytest", frozenset({"pytest", "py.test", "pytest-3"}), ask=_pytest, select=selectors.pytest,
        tried="9.2: one line more at the end of its output",
    ),
    Runner(
        "node", frozenset({"node", "tsx"}), options=frozenset({"--test"}), ask=_node, select=selectors.node,
        tried="18.20, 20.20, 22.23, 24.21: same output; below 18.17 nothing is asked (documented, not tried)",
    ),
    Runner(
        "jest", frozenset({"jest"}), ask=_jest, select=selectors.jest,
        tried="30: the user's reporters stay, one line more at the end of its output",
    ),
    Runner(
        "vitest", frozenset({"vitest"}), ask=_vitest, select=selectors.jest,
        tried="3 and 4: --reporter replaces the reporters of a configuration, so not where one names some",
    ),
    Runner(
        "playwright", frozenset({"playwright"}), frozenset({"test"}), ask=_playwright,
        select=selectors.playwright, tried="1.65: same output; --reporter replaces those of a configuration",
    ),
    Runner(
        "mocha", frozenset({"mocha", "_mocha"}), select=selectors.mocha,
        plain="it has one reporter at a time",
    ),
    Runner(
        "bun", frozenset({"bun"}), frozenset({"test"}), ask=_bun, select=selectors.bun,
        tried="1.4: same output",
    ),
    Runner(
        "deno", frozenset({"deno"}), frozenset({"test"}), ask=_deno, select=selectors.deno,
        tried="2.9: same output",
    ),
    Runner(
        "rspec", frozenset({"rspec"}), ask=_rspec, select=selectors.rspec,
        tried="3.12: same output with the formatters that there were",
    ),
    Runner(
        "phpunit", frozenset({"phpunit", "phpunit.phar", "pest"}), ask=_phpunit, select=selectors.phpunit,
        tried="9.6: same output",
    ),
    Runner(
        "ctest", frozenset({"ctest"}), ask=_ctest, select=selectors.ctest,
        tried="3.25: same output; 3.20 ignores the option",
    ),
    Runner(
        "gotestsum", frozenset({"gotestsum"}), ask=_gotestsum,
        tried="not tried: documented as an environment variable of the option --jsonfile",
    ),
    Runner("maven", frozenset({"mvn", "mvnw"}), ask=_maven, tried="not tried: documented as written always"),
    Runner("gradle", frozenset({"gradle", "gradlew"}), ask=_gradle,
        tried="not tried: documented as written always",),
    Runner(
        "go", frozenset({"go"}), frozenset({"test"}), select=selectors.go, plain="-json replaces the output"
    ),
    Runner(
        "cargo", frozenset({"cargo"}), frozenset({"test", "t"}), select=selectors.cargo,
        plain="libtest's formats replace the output, and its JSON is for nightly compilers only",
    ),
    Runner("unittest", frozenset({"unittest"}), select=selectors.unittest,
        plain="it has no format but its own",),
    Runner(
        "bats", frozenset({"bats"}), select=selectors.bats,
        plain="off a terminal it prints TAP; --report-formatter adds timings to it (1.8)",
    ),
)  # fmt: skip
PROGRAM = Runner(
    "program",
    frozenset(),
    ask=_gtest,
    select=selectors.gtest,
    tried="GoogleTest 1.12: same output, a file each",
)
"""A test program of the user's own."""


def _appended(env: Mapping[str, str], name: str, more: str) -> str:
    return f"{env[name]} {more}" if env.get(name, "").strip() else more


def _older(version: str | None, than: tuple[int, int]) -> bool:
    """Whether a version is known and older."""
    match = re.match(r"v?(\d+)\.(\d+)", version or "")
    return match is not None and (int(match[1]), int(match[2])) < than


def runner_of(found: list[Command]) -> tuple[Runner, Command] | None:
    """The one runner among the programs of a task; None if there is none, or several."""
    known = [(row, command) for command in found for row in RUNNERS if row.runs(command)]
    if len(known) == 1:
        return known[0]
    if not known and len(found) == 1 and found[0].at is not None and _own_program(found[0]):
        return PROGRAM, found[0]
    return None


def _own_program(command: Command) -> bool:
    """Whether a command may be a compiled test of the user's: its name has no ending and tells of tests."""
    if any(command.program in row.programs for row in RUNNERS):
        return False
    return re.fullmatch(r"[^.]*test[^.]*", command.program, re.IGNORECASE) is not None


__all__ = ["PROGRAM", "RUNNERS", "Ask", "Runner", "Selection", "Situation", "runner_of"]
