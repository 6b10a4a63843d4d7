"""How each runner is told to run certain tests again: by arguments, or by variables where these are exact.

The patterns name whole tests; where a runner only knows patterns that may fit more (a subtest's parent in Go,
a name in another file), those run too and nothing is left out.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from devbay.answers import Failure
from devbay.runners.commands import ALL, Command

MAX_SELECTOR = 60_000
"""Characters of arguments, well under what one argument may have (128 KiB on Linux)."""


@dataclass(frozen=True)
class Selection:
    """args: after `skip` words of the runner's own. env: whole values. files: by path in the run's folder."""

    args: tuple[str, ...] = ()
    skip: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


class NoSelector(Exception):
    """Why these tests cannot be named to the runner."""


Selector = Callable[[Command, Mapping[str, str], str, Sequence[Failure]], Selection]
"""(command, environment, the run's folder, failures of tests or suites) to a selection; may raise."""


def pytest(command: Command, env: Mapping[str, str], run_dir: str, failures: Sequence[Failure]) -> Selection:
    """Through pytest's own memory of failures, in the run's folder: it reaches pytest behind any wrapper."""
    if "PYTEST_ADDOPTS" in command.sets or ALL in command.sets:
        raise NoSelector("the command sets PYTEST_ADDOPTS itself")
    if any("no:cacheprovider" in text for text in (*command.words, env.get("PYTEST_ADDOPTS", ""))):
        raise NoSelector("pytest's cacheprovider is switched off")
    failed = {node: True for failure in failures for node in _node_ids(failure)}
    options = f"--lf --lfnf=none -o cache_dir={shlex.quote(run_dir)}/cache"
    return Selection(
        env={"PYTEST_ADDOPTS": f"{env.get('PYTEST_ADDOPTS', '')} {options}".strip()},
        files={"cache/v/cache/lastfailed": json.dumps(failed)},
    )


def _node_ids(failure: Failure) -> list[str]:
    """A test's id for every folder that pytest's root could be; those that do not exist do no harm."""
    if failure.file is None:
        raise NoSelector(f"no file is known of {failure.name}")
    parts = failure.file.split("/")
    tails = ["/".join(parts[place:]) for place in range(len(parts))]
    if failure.scope == "suite":
        return tails
    suite = failure.suite or ""
    dotted = failure.file.removesuffix(".py").replace("/", ".")
    module = next((t for t in _dotted_tails(dotted) if suite == t or suite.startswith(f"{t}.")), None)
    if module is not None:
        classes = suite[len(module) :].strip(".")
    else:
        classes = "" if suite in tails or suite.endswith(".py") else suite
    inner = "::".join(part for part in (*re.split(r"\.|::", classes), failure.name) if part)
    return [f"{tail}::{inner}" for tail in tails]


def _dotted_tails(dotted: str) -> list[str]:
    parts = dotted.split(".")
    return [".".join(parts[place:]) for place in range(len(parts))]


def jest(command: Command, env: Mapping[str, str], run_dir: str, failures: Sequence[Failure]) -> Selection:
    """The files, and of them the tests by their full names; a suite that did not load runs whole."""
    _unless(command, r"^(-t|--testNamePattern)")
    files = sorted({_near(command, failure.file) for failure in failures if failure.file})
    args = tuple(files)
    if all(failure.scope == "test" for failure in failures):
        names = (" ".join((*_describes(failure), failure.name)) for failure in failures)
        args = ("-t", _any_of(names), *args)
    skip = 1 if command.words[1:2] == ("run",) else 0
    return Selection(args=args, skip=skip)


def bun(command: Command, env: Mapping[str, str], run_dir: str, failures: Sequence[Failure]) -> Selection:
    _unless(command, r"^(-t|--test-name-pattern)")
    return Selection(
        args=(
            "-t",
            _any_of(failure.name for failure in _tests(failures)),
        ),
        skip=1,
    )


def deno(command: Command, env: Mapping[str, str], run_dir: str, failures: Sequence[Failure]) -> Selection:
    _unless(command, r"^--filter")
    return Selection(args=("--filter", f"/{_any_of(f.name for f in _tests(failures))}/"), skip=1)


def node(command: Command, env: Mapping[str, str], run_dir: str, failures: Sequence[Failure]) -> Selection:
    _unless(command, r"^--test-name-pattern")
    if command.at is None and any(not word.startswith("-") for word in command.words[1:]):
        raise NoSelector("Node takes options only before the files that the script names")
    return Selection(args=(f"--test-name-pattern={_any_of(f.name for f in _tests(failures))}",))


def mocha(command: Command, env: Mapping[str, str], run_dir: str, failures: Sequence[Failure]) -> Selection:
    _unless(command, r"^(-g|-f|--grep|--fgrep)")
    return Selection(args=("-g", _full_names(failures)))


def playwright(
    command: Command, env: Mapping[str, str], run_dir: str, failures: Sequence[Failure]
) -> Selection:
    """Titles end a name that starts with project and file."""
    _unless(command, r"^(-g|--grep|--last-failed)")
    return Selection(args=("-g", _full_names(failures).replace("^", " ", 1)), skip=1)


def rspec(command: Command, env: Mapping[str, str], run_dir: str, failures: Sequence[Failure]) -> Selection:
    if "SPEC_OPTS" in command.sets or ALL in command.sets:
        raise NoSelector("the command sets SPEC_OPTS itself")
    given = env.get("SPEC_OPTS", "")
    return Selection(env={"SPEC_OPTS": f"{given} {shlex.join(['-E', _full_names(failures)])}".strip()})


def phpunit(command: Command, env: Mapping[str, str], run_dir: str, failures: Sequence[Failure]) -> Selection:
    """Of a data set the plain output also tells the values, which are no part of its name."""
    _unless(command, r"^--filter")
    names = []
    for failure in _tests(failures):
        name = re.sub(r"( with data set (?:#\d+|\"[^\"]*\")) \(.*\)$", r"\1", failure.name, flags=re.DOTALL)
        names.append(f"{failure.suite}::{name}" if failure.suite else name)
    pattern = "|".join(re.escape(name).replace("/", r"\/") for name in _some(names))
    return Selection(args=("--filter", f"/(^|\\\\)({pattern})$/"))


def ctest(command: Command, env: Mapping[str, str], run_dir: str, failures: Sequence[Failure]) -> Selection:
    _unless(command, r"^(-R|--tests-regex|-I|--tests-information)")
    names = [re.sub(r"([][()*+?.^$|\\{}])", r"\\\1", failure.name) for failure in _tests(failures)]
    return Selection(args=("-R", f"^({'|'.join(_some(names))})$"))


def gtest(command: Command, env: Mapping[str, str], run_dir: str, failures: Sequence[Failure]) -> Selection:
    if "GTEST_FILTER" in env or any(word.startswith("--gtest_filter") for word in command.words):
        raise NoSelector("the command has a --gtest_filter of its own")
    names = [f"{failure.suite}.{failure.name}" for failure in _tests(failures) if failure.suite]
    return Selection(env={"GTEST_FILTER": ":".join(_some(names))})


def go(command: Command, env: Mapping[str, str], run_dir: str, failures: Sequence[Failure]) -> Selection:
    """One level of subtests at a time: all top-level names, and below one of them also its subtests.

    A package that did not build is built again with them.
    """
    _unless(command, r"^--?run\b")
    names = _some([failure.name for failure in failures if failure.scope == "test"])
    levels = [name.split("/") for name in names]
    pattern = f"^({'|'.join(sorted({re.escape(level[0]) for level in levels}))})$"
    if len({level[0] for level in levels}) == 1 and all(len(level) == 2 for level in levels):
        pattern += f"/^({'|'.join(sorted({re.escape(level[1]) for level in levels}))})$"
    return Selection(args=("-run", pattern), skip=1)


def cargo(command: Command, env: Mapping[str, str], run_dir: str, failures: Sequence[Failure]) -> Selection:
    if command.at is None:
        raise NoSelector("names of tests go to the end of the command, which is not in the task's own argv")
    names = _some([failure.name for failure in _tests(failures)])
    lead = () if "--" in command.words else ("--",)
    return Selection(args=(*lead, "--exact", *names), skip=len(command.words) - 1)


def unittest(
    command: Command, env: Mapping[str, str], run_dir: str, failures: Sequence[Failure]
) -> Selection:
    names = [
        f"{failure.suite}.{failure.name}" if failure.suite else failure.name for failure in _tests(failures)
    ]
    skip = 1 if command.words[1:2] == ("discover",) else 0
    return Selection(args=tuple(word for name in _some(names) for word in ("-k", name)), skip=skip)


def bats(command: Command, env: Mapping[str, str], run_dir: str, failures: Sequence[Failure]) -> Selection:
    _unless(command, r"^(-f|--filter)")
    return Selection(args=("-f", _any_of(failure.name for failure in _tests(failures))))


def _tests(failures: Sequence[Failure]) -> Sequence[Failure]:
    """The failures, if all are of tests: a file or block as a whole has no name that selects it."""
    other = next((failure for failure in failures if failure.scope != "test"), None)
    if other is not None:
        raise NoSelector(f"{other.name} failed as a whole, not as tests that have names")
    return failures


def _unless(command: Command, pattern: str) -> None:
    for word in command.words[1:]:
        if re.match(pattern, word):
            raise NoSelector(f"the command already selects tests with {word.split('=')[0]}")


def _describes(failure: Failure) -> list[str]:
    """The blocks around a test, outermost first; a suite that is a file's name is none."""
    suite = failure.suite or ""
    if not suite or (failure.file and failure.file.endswith(suite)):
        return []
    return re.split(r" › | > ", suite)


def _full_names(failures: Sequence[Failure]) -> str:
    return _any_of(" ".join((*_describes(f), f.name)) for f in _tests(failures))


def _some(names: Sequence[str]) -> Sequence[str]:
    """Names, if there are any and they fit."""
    if not names:
        raise NoSelector("what failed is no test that has a name of its own")
    if sum(map(len, names)) > MAX_SELECTOR:
        raise NoSelector(f"the names of {len(names)} tests are too long for arguments")
    return names


def _any_of(names: Iterable[str]) -> str:
    """A regular expression that JavaScript, Ruby and POSIX tools read alike."""
    some = _some(list(dict.fromkeys(names)))
    escaped = (re.sub(r"([][()*+?.^$|\\/{}])", r"\\\1", name) for name in some)
    return "^(" + "|".join(escaped) + ")$"


def _near(command: Command, path: str) -> str:
    """A file as the runner's folder names it."""
    return path.removeprefix(f"{command.folder}/") if command.folder else path
