"""Tasks: the finite commands that scripts, CI steps and build files name; none is made up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from posixpath import join

from devbay.detect import actions, node, recipes, words
from devbay.detect.facts import Origin
from devbay.detect.facts_of import Facts
from devbay.detect.files import normal
from devbay.runners.commands import commands
from devbay.runners.table import runner_of

TESTS = re.compile(
    r"^(test|tests|unit|e2e|integration|spec|specs|check:test)$|^(test|tests|unit|e2e)[:-](?!watch|ui|debug|open)[\w:-]+$"
)
CHECKS = re.compile(
    r"^(lint|typecheck|type-check|check-types|types|check|format:check|fmt:check|check:\w+|lint:\w+)$"
)
MAX_TASKS = 60
_PLACEHOLDER = re.compile(r"no test specified|^\s*(echo\b[^&|;]*|exit 0|true)\s*$")
_WATCHES = re.compile(r"--watch(All)?\b(?!=false)|\bwatch\b|nodemon|--ui\b|cypress open|--inspect")
_MUTATES = re.compile(r"--(write|fix|unsafe|update-snapshot|apply)\b|\s-w\b|\bprettier\b(?!.*--check)")
_CHECKERS = frozenset({
    "ruff", "mypy", "pyright", "flake8", "pylint", "black", "isort", "eslint", "tsc", "biome",
    "golangci-lint", "rubocop", "phpstan", "clippy", "staticcheck", "bandit",
})  # fmt: skip
_PYTEST_FILE = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.py$")
_DJANGO_FILE = re.compile(r"(^|/)tests?(/[^/]+)?\.py$|/test_[^/]*\.py$")
_JUNIT = re.compile(r"^--junit-?xml=(.+)$")


@dataclass
class Found:
    """A task. folder: of the repository, where it runs. kind: `test` or `check`. key: what is the same.

    job: the CI job that runs it. container: the part of a stack that it runs in. left: flags cut off.
    """

    name: str
    argv: tuple[str, ...]
    folder: str
    origin: Origin
    kind: str
    key: tuple[str, str]
    package: node.Package | None = None
    script: str = ""
    env: dict[str, str] = field(default_factory=dict)
    job: actions.CiJob | None = None
    container: str | None = None
    left: tuple[str, ...] = ()


def find(facts: Facts) -> list[Found]:
    """Every task that the files name, each program and folder once; CI's command counts before others."""
    found: dict[tuple[str, str], Found] = {}
    named: list[Found] = [
        *_ci(facts),
        *_packages(facts),
        *_app_json(facts),
        *_targets(facts),
        *_python(facts),
        *_builds(facts),
    ]
    for each in named:
        known = found.get(each.key)
        if known is None:
            found[each.key] = each
        elif known.job is None and each.job is not None:
            known.job = each.job
        elif known.package is None and each.package is not None and known.argv == each.argv:
            known.package, known.script = each.package, each.script
    return list(found.values())[:MAX_TASKS]


def _runner(facts: Facts, argv: tuple[str, ...], folder: str) -> str | None:
    """The name of the test runner that a command comes down to."""
    start = "" if folder == "." else folder
    known = runner_of(commands(argv, start, facts.view.text))
    return known[0].name if known else None


def recognised(facts: Facts, argv: tuple[str, ...], folder: str) -> bool:
    """Whether devbay knows the runner behind a command, so that it can ask it for a report."""
    return _runner(facts, argv, folder) is not None


def _ci(facts: Facts) -> Iterator[Found]:
    for job in facts.jobs:
        if job.deploys:
            continue
        for step in job.steps:
            found = _step(facts, job, step)
            if found is not None:
                yield found


def _step(facts: Facts, job: actions.CiJob, step: actions.CiStep) -> Found | None:
    if step.argv is None or recipes_call(step.text):
        return None
    folder = normal(step.folder)
    called = _script_call(facts, step.argv, folder)
    if called is not None:
        package, script = called
        found = _of_package(package, script, step.origin)
        if found is not None:
            found.job = job
        return found
    program = step.argv[0].rsplit("/", 1)[-1]
    if program in ("make", "just", "task") and folder == ".":
        named = [each for each in facts.targets if each.runs[1:] == step.argv[1:2]]
        of_target = _target(facts, named[0]) if named else None
        if of_target is not None:
            of_target.job = job
        return of_target
    runner = _runner(facts, step.argv, folder)
    if runner is not None and runner != "program":
        argv = tuple(step.argv)
        return Found(
            "test",
            argv,
            folder,
            step.origin,
            "test",
            (runner, folder),
            env=dict(step.env),
            job=job,
            left=step.left,
        )
    unwrapped = commands(step.argv, "", facts.view.text)
    if len(unwrapped) == 1 and unwrapped[0].program in _CHECKERS and not _MUTATES.search(step.text):
        name = unwrapped[0].program
        return Found(
            name, step.argv, folder, step.origin, "check", (name, folder), env=dict(step.env), job=job
        )
    return None


def recipes_call(text: str) -> bool:
    """Whether a text drives an engine itself."""
    return bool(re.search(r"\bdocker\b|\bpodman\b|\bkubectl\b", text))


def _script_call(facts: Facts, argv: tuple[str, ...], folder: str) -> tuple[node.Package, str] | None:
    """The package and script that a call of a package manager means."""
    if argv[0] not in ("npm", "pnpm", "yarn", "bun"):
        return None
    rest = list(argv[1:])
    package = facts.package(folder)
    script: str | None = None
    while rest:
        word = rest.pop(0)
        flag, equals, value = word.partition("=")
        if flag in ("--filter", "-F", "--workspace", "-w", "--prefix", "-C", "--dir", "--cwd", "workspace"):
            wanted = value if equals else (rest.pop(0) if rest else "")
            package = next(
                (each for each in facts.packages if wanted in (each.name, each.folder, f"./{each.folder}")),
                None,
            )
        elif word in ("run", "run-script", "exec") or word.startswith("-"):
            continue
        else:
            script = {"t": "test"}.get(word, word)
            break
    return (package, script) if package is not None and script and script in package.scripts else None


def _of_package(package: node.Package, script: str, origin: Origin | None = None) -> Found | None:
    text = package.scripts[script]
    kind = "test" if TESTS.match(script) else "check" if CHECKS.match(script) else None
    if kind is None or _PLACEHOLDER.search(text) or recipes_call(text) or _WATCHES.search(text):
        return None
    if kind == "check" and _MUTATES.search(text):
        return None
    title = script if package.folder == "." else f"{package.folder.rsplit('/', 1)[-1]}-{script}"
    argv = package.argv(script, at_home=False)
    where = origin or package.origin(script)
    return Found(
        title, argv, package.folder, where, kind, (f"script {script}", package.folder), package, script
    )


def _packages(facts: Facts) -> Iterator[Found]:
    """Tests of each package; a check of the root stands for those of its members."""
    for package in facts.packages:
        root = facts.package(package.root)
        for script in package.scripts:
            found = _of_package(package, script)
            if found is None:
                continue
            others = package.runs_others(script) and package.member_folders
            if (
                found.kind == "test"
                and others
                and any(
                    script in each.scripts for each in facts.packages if each.folder in package.member_folders
                )
            ):
                continue
            if found.kind == "check" and root is not None and root is not package and script in root.scripts:
                continue
            yield found


def _app_json(facts: Facts) -> Iterator[Found]:
    if facts.app.test:
        argv, env = words.argv(facts.app.test)
        runner = _runner(facts, argv, ".") or "test"
        yield Found("test", argv, ".", facts.app.origin, "test", (runner, "."), env=env)


def _targets(facts: Facts) -> Iterator[Found]:
    for target in facts.targets:
        found = _target(facts, target)
        if found is not None:
            yield found


def _target(facts: Facts, target: recipes.Recipe) -> Found | None:
    """A target of a Makefile, justfile or Taskfile as the one command it runs; None where it is no task."""
    kind = "test" if TESTS.match(target.name) else "check" if CHECKS.match(target.name) else None
    lines = [line.strip().lstrip("@-+") for line in target.text.splitlines() if line.strip()]
    if kind is None or _MUTATES.search(target.text):
        return None
    calls = recipes.compose_calls(target.text, target.origin, target.name)
    inside = [call for call in calls if call.verb in ("run", "exec")]
    if inside:
        return _in_container(inside[-1], target, kind)
    plain = words.plain(lines[0]) if len(lines) == 1 and not recipes_call(target.text) else None
    if plain is None:
        return None
    argv, env = words.with_env(plain)
    called = _script_call(facts, argv, ".")
    if called is not None:
        return _of_package(*called, target.origin)
    runner = _runner(facts, argv, ".")
    program = argv[0].rsplit("/", 1)[-1]
    if runner is None and program not in _CHECKERS and kind != "test":
        return None
    return Found(target.name, argv, ".", target.origin, kind, (runner or program, "."), env=env)


def _in_container(call: recipes.ComposeCall, target: recipes.Recipe, kind: str) -> Found | None:
    """`docker compose run --rm SERVICE CMD` as the command in that service's container."""
    rest = list(call.words)
    valued = (
        "-e",
        "--env",
        "-u",
        "--user",
        "-w",
        "--workdir",
        "--name",
        "-v",
        "--volume",
        "-p",
        "--publish",
        "--entrypoint",
    )
    while rest and rest[0].startswith("-"):
        flag = rest.pop(0)
        if flag in valued and rest:
            rest.pop(0)
    command = words.plain(" ".join(rest[1:])) if len(rest) > 1 else None
    if command is None:
        return None
    argv, env = words.with_env(command)
    return Found(target.name, argv, ".", target.origin, kind, (argv[0], "."), env=env, container=rest[0])


def _python(facts: Facts) -> Iterator[Found]:
    """The runner that a project declares as a dependency, and Django's own, where there are tests."""
    for project in facts.projects:
        files = facts.view.below(project.folder)
        if project.pytest and any(map(_PYTEST_FILE.search, files)):
            key = ("pytest", project.folder)
            yield Found("test", ("pytest",), project.folder, project.pytest, "test", key)
        elif project.manage and any(map(_DJANGO_FILE.search, files)):
            argv, key = ("python", "manage.py", "test"), ("django", project.folder)
            yield Found("test", argv, project.folder, Origin(project.manage), "test", key)


def _builds(facts: Facts) -> Iterator[Found]:
    for build in facts.builds:
        yield Found("test", build.argv, build.folder, build.origin, "test", (build.runner, build.folder))


def report(facts: Facts, found: Found, argv: tuple[str, ...], folder: str) -> dict[str, str] | str | None:
    """Where a task's results are: the file that its command names, else `auto` for a runner devbay knows."""
    for word in argv:
        match = _JUNIT.match(word)
        if match and not match[1].startswith(("/", "..")) and "$" not in match[1]:
            return {"format": "junit", "path": normal(join(folder, match[1]))}
    return "auto" if recognised(facts, argv, folder) else None
