"""Everything that the evidence sources say, gathered once; a source that breaks is skipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from devbay.detect import (
    actions,
    devcontainer,
    ecosystems,
    envfiles,
    migrations,
    node,
    procfile,
    python,
    recipes,
    servers,
)
from devbay.detect.facts import Origin
from devbay.detect.files import View

T = TypeVar("T")
UNFORESEEN = (
    ValueError, TypeError, LookupError, AttributeError, RuntimeError, ArithmeticError, OSError, StopIteration,
)  # fmt: skip
"""What reading strange input ends in, where the code that reads it did not think of that input."""


@dataclass(frozen=True)
class Facts:
    """What the files say. calls: of `docker compose`, wherever they stand. shapes: of example files."""

    view: View
    devcontainers: tuple[devcontainer.Devcontainer, ...] = ()
    jobs: tuple[actions.CiJob, ...] = ()
    processes: tuple[procfile.Process, ...] = ()
    app: procfile.AppJson = field(default_factory=procfile.AppJson)
    packages: tuple[node.Package, ...] = ()
    projects: tuple[python.Project, ...] = ()
    targets: tuple[recipes.Recipe, ...] = ()
    calls: tuple[recipes.ComposeCall, ...] = ()
    shapes: tuple[envfiles.Variable, ...] = ()
    builds: tuple[ecosystems.Build, ...] = ()
    steps: tuple[migrations.Step, ...] = ()
    servers: tuple[servers.Server, ...] = ()

    @property
    def editor(self) -> devcontainer.Devcontainer | None:
        """The container that an editor opens, where it says what is in it and not what it starts."""
        first = next(iter(self.devcontainers), None)
        if first is None or first.compose or not (first.image or first.build):
            return None
        return None if first.commands.keys() & {"postStartCommand", "postAttachCommand"} else first

    def project(self, folder: str) -> python.Project | None:
        return next((each for each in self.projects if each.folder == folder), None)

    def package(self, folder: str) -> node.Package | None:
        return next((each for each in self.packages if each.folder == folder), None)


def gather(view: View) -> Facts:
    """All facts but those of compose."""
    devcontainers = _safely(view, "devcontainer.json", lambda: devcontainer.configurations(view))
    jobs = _safely(view, ".github/workflows", lambda: actions.jobs(view))
    packages = _safely(view, "package.json", lambda: node.packages(view))
    found = _safely(view, "Makefile", lambda: recipes.recipes(view))
    processes = _safely(view, "Procfile", lambda: procfile.processes(view))
    projects = _safely(view, "pyproject.toml", lambda: python.projects(view))
    return Facts(
        view=view,
        devcontainers=devcontainers,
        jobs=jobs,
        processes=processes,
        app=next(iter(_safely(view, "app.json", lambda: (procfile.app_json(view),))), procfile.AppJson()),
        packages=packages,
        projects=projects,
        targets=found,
        calls=_safely(view, "scripts", lambda: _calls(view, packages, found, jobs)),
        builds=_safely(view, "build files", lambda: ecosystems.builds(view)),
        steps=_safely(
            view, "migrations", lambda: migrations.steps(view, packages, projects, found, processes)
        ),
        servers=_safely(view, "servers", lambda: servers.servers(view, packages, found)),
        shapes=_safely(view, ".env.example", lambda: _shapes(view)),
    )


def _safely(view: View, source: str, read: Callable[[], tuple[T, ...]]) -> tuple[T, ...]:
    """A broken input that its module did not foresee costs that source, never the proposal."""
    try:
        return read()
    except UNFORESEEN as error:
        view.skip(source, misread(error))
        return ()


def misread(error: Exception) -> str:
    """Why a source or a part of the proposal is left out; the kind of error alone, as its text may quote."""
    return f"cannot be understood ({type(error).__name__}), so what it says is left out"


def _calls(
    view: View,
    packages: tuple[node.Package, ...],
    found: tuple[recipes.Recipe, ...],
    jobs: tuple[actions.CiJob, ...],
) -> tuple[recipes.ComposeCall, ...]:
    calls: list[recipes.ComposeCall] = []
    for package in packages:
        for name, text in package.scripts.items():
            calls += recipes.compose_calls(text, package.origin(name), name)
    for recipe in found:
        calls += recipes.compose_calls(recipe.text, recipe.origin, recipe.name)
    for file, text in recipes.scripts(view):
        calls += recipes.compose_calls(text, Origin(file), file)
    for job in jobs:
        for step in job.steps:
            calls += recipes.compose_calls(step.text, step.origin, "ci")
    return tuple(calls)


def _shapes(view: View) -> tuple[envfiles.Variable, ...]:
    seen: dict[str, envfiles.Variable] = {}
    for file in envfiles.examples(view):
        for variable in envfiles.shapes(view, file):
            seen.setdefault(variable.name, variable)
    return tuple(seen.values())
