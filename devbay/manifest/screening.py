"""What texts in a manifest say: credentials (R3), references (R7) and unusual programs (R2).

R2 is a notice, no boundary: a listed program runs code of its own, and a command inside an ordinary bay
container needs no approval (decision 20).
"""

from __future__ import annotations

from collections.abc import Iterator

from devbay.manifest import interpolate
from devbay.manifest.credentials import credential
from devbay.manifest.diagnostics import Finding, Path
from devbay.manifest.models import Container, Manifest, Service, Task

USUAL_PROGRAMS = frozenset({
    "npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "node", "pip", "pip3", "python",
    "python3", "poetry", "uv", "uvx", "pytest", "gunicorn", "uvicorn", "celery", "alembic", "bundle",
    "bundler", "ruby", "rake", "rails", "rspec", "puma", "sidekiq", "go", "gofmt", "cargo", "php",
    "composer", "phpunit", "artisan", "make", "just", "mise", "task", "jest", "vitest", "playwright",
    "cypress", "prisma", "knex", "sequelize", "typeorm", "drizzle-kit", "atlas", "migrate", "goose",
    "dbmate", "psql", "pg_isready", "mysql", "mysqladmin", "redis-cli", "true",
})  # fmt: skip
_MOVE_IT = "remove it from the file, revoke it, and write `${secret:<name>}` in `env`"
_LITERAL = ("${bay.", "${secret:", "${run.dir}")


def check(manifest: Manifest) -> Iterator[Finding]:
    """The findings about every text of a manifest."""
    yield from _secrets(("project",), manifest.project, argv=False)
    for name, service in manifest.services.items():
        yield from _container(manifest, ("services", name), service)
    for name, task in manifest.tasks.items():
        yield from _container(manifest, ("tasks", name), task)


def _container(manifest: Manifest, path: Path, container: Container) -> Iterator[Finding]:
    in_task = isinstance(container, Task)
    for variable, value in container.env.items():
        where = (*path, "env", variable)
        yield from _secrets(where, value, argv=False)
        for reference in interpolate.references(value):
            if problem := interpolate.problem(reference, manifest, in_task=in_task):
                yield Finding("error", "R7", where, *problem)
                break  # the next one shows when this one is right
    for where, argv in _commands(path, container):
        if not (where[-1] in {"start", "run"} and getattr(container, "entrypoint", None)):  # an argument then
            yield from _program(where, argv)
        for index, argument in enumerate(argv):
            yield from _secrets((*where, index), argument, argv=True)
            yield from _literal((*where, index), argument)
    for where, text in _texts(path, container):
        yield from _secrets(where, text, argv=False)
        yield from _literal(where, text)


def _commands(path: Path, container: Container) -> Iterator[tuple[Path, tuple[str, ...]]]:
    for key in ("entrypoint", "install", "start", "run"):
        if argv := getattr(container, key, None):
            yield (*path, key), argv
    if isinstance(container, Service) and container.health and container.health.cmd:
        yield (*path, "health", "cmd"), container.health.cmd


def _texts(path: Path, container: Container) -> Iterator[tuple[Path, str]]:
    """Texts that are neither env values nor arguments and could still carry something."""
    if container.build:
        yield from (((*path, "build", "args", name), value) for name, value in container.build.args.items())
    if isinstance(container, Service):
        yield from (((*path, "labels", name), value) for name, value in container.labels.items())
    for index, mount in enumerate(container.mounts):
        yield (*path, "mounts", index, "source"), mount.source
        yield (*path, "mounts", index, "target"), mount.target
    if container.workdir:
        yield (*path, "workdir"), container.workdir


def _secrets(path: Path, text: str, *, argv: bool) -> Iterator[Finding]:
    if kind := credential(text):
        where = "this argument" if argv else f"`{path[-1]}`"
        yield Finding("error", "R3", path, f"{where} looks like {kind}", _MOVE_IT)


def _literal(path: Path, text: str) -> Iterator[Finding]:
    if any(start in text for start in _LITERAL):
        message = "`${...}` is taken literally here; only values of `env` are filled in"
        yield Finding("warning", "R7", path, message, "set a variable in `env` and let the command read it")


def _program(path: Path, argv: tuple[str, ...]) -> Iterator[Finding]:
    program = argv[0]
    if program.startswith("-"):
        message = f"`{program[:60]}` is an argument of the image's entrypoint"
        yield Finding("warning", "R2", path, message, "name the program first, if it is not meant so")
    elif program not in USUAL_PROGRAMS:
        message = f"`{program[:60]}` is no usual development tool"
        yield Finding("notice", "R2", path, message, "nothing, if it is meant; it runs inside the bay only")
