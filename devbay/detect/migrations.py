"""Migration tools: which a repository has, and the command that brings an empty database up to date.

A command that a script, recipe or Procfile of the repository names counts before the tool's own default. What
asks before it acts (`prisma migrate dev`) has nobody to answer in a set-up step and is a candidate at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from posixpath import join

from devbay.detect import node, procfile, python, recipes, words
from devbay.detect.facts import Origin, line_of
from devbay.detect.files import View, folder_of, normal

FORWARD = {
    "Alembic": r"\balembic\b.*\bupgrade\b|\bflask\b.*\bdb\s+upgrade\b",
    "Diesel": r"\bdiesel\s+(migration\s+run|setup|database\s+setup)\b",
    "Django": r"\bmanage\.py\s+migrate\b|\bdjango-admin\s+migrate\b",
    "Doctrine": r"\bdoctrine:migrations:migrate\b",
    "Drizzle": r"\bdrizzle-kit\s+(migrate|push)\b",
    "Ecto": r"\bmix\b.*\becto\.(setup|migrate)\b",
    "Flyway": r"\bflyway(:|\s+(\S+\s+)*)migrate\b|\bflywayMigrate\b",
    "golang-migrate": r"\bmigrate\s.*-(path|source)\b.*\bup\b",
    "Goose": r"\bgoose\b.*\bup\b",
    "Knex": r"\bknex\b.*\bmigrate:(latest|up)\b",
    "Laravel": r"\bartisan\s+migrate(?!:)",
    "Prisma": r"\bprisma\s+(migrate\s+deploy|db\s+push)\b",
    "Rails": r"\b(rails|rake)\s+db:(prepare|migrate|setup|schema:load)(?![:\w])",
    "Sequelize": r"\bsequelize(-cli)?\b.*\bdb:migrate(?![:\w])",
    "TypeORM": r"\btypeorm\S*\b.*\bmigration:run\b",
    "dbmate": r"\bdbmate\b.*\b(up|migrate)\b",
    "sqlx": r"\bsqlx\s+(migrate\s+run|database\s+setup)\b",
}
"""How a command line that brings a database up to date looks (the tools' own documentation)."""
OUTSIDE = {
    "dbmate": "dbmate", "Diesel": "diesel", "Flyway": "flyway", "golang-migrate": "migrate", "Goose": "goose",
    "sqlx": "sqlx",
}  # fmt: skip
"""Tools that are programs of their own, which no image of a language has."""
_STARTS = re.compile(r"^(start|dev|serve|build|ci|deploy|release|pre|post|test)", re.IGNORECASE)
_ELSEWHERE = re.compile(r"\bdocker\b|\bkubectl\b|\bheroku\b|\bfly\b|\bssh\b")
MAX_FILES = 400


@dataclass(frozen=True)
class Step:
    """How data is prepared. argv: None where no file and no convention of the tool gives a whole command.

    candidates: other command lines. at_start: the program itself does it as it starts. package, script: where
    argv is a script of a package.
    """

    tool: str
    language: str
    folder: str
    origin: Origin
    argv: tuple[str, ...] | None = None
    candidates: tuple[str, ...] = ()
    at_start: bool = False
    package: node.Package | None = None
    script: str = ""

    @property
    def text(self) -> str:
        return " ".join(self.argv or ())


def moves(tool: str, text: str) -> bool:
    """Whether a command line, or a script's text, runs a tool's migrations."""
    return re.search(FORWARD[tool], text) is not None


def steps(
    view: View,
    packages: tuple[node.Package, ...],
    projects: tuple[python.Project, ...],
    targets: tuple[recipes.Recipe, ...],
    processes: tuple[procfile.Process, ...],
) -> tuple[Step, ...]:
    """Every migration tool with migrations, each folder once, with the repository's own command for it."""
    found: list[Step] = [*_python(view, projects)]
    for package in packages:
        found += _node(view, package)
    for read in (_ruby, _php, _elixir, _rust, _go, _java, _dbmate):
        found += read(view)
    return tuple(_named(step, packages, targets, processes) for step in found)


def _named(
    step: Step,
    packages: tuple[node.Package, ...],
    targets: tuple[recipes.Recipe, ...],
    processes: tuple[procfile.Process, ...],
) -> Step:
    """The step as the repository itself calls it, if it does."""
    candidates = list(step.candidates)
    best: list[tuple[int, Step]] = []
    for package in packages:
        if package.folder not in (step.folder, "."):
            continue
        for name, text in package.scripts.items():
            if _STARTS.match(name) or _ELSEWHERE.search(text):
                continue
            if moves(step.tool, text):
                argv = package.argv(name, at_home=True)
                near = 0 if package.folder == step.folder else 2
                rank = near + (0 if "migrat" in name else 1)
                one = replace(step, argv=argv, origin=package.origin(name), package=package, script=name)
                best.append((rank, one))
            elif step.tool == "Prisma" and re.search(r"\bprisma\s+migrate\s+dev\b", text):
                candidates.append(" ".join(package.argv(name, at_home=True)))
    for recipe in targets:
        lines = [line for line in recipe.text.splitlines() if moves(step.tool, line)]
        if len(lines) == 1 and not _ELSEWHERE.search(lines[0]):
            best.append(
                (3, replace(step, argv=words.argv(lines[0].strip().lstrip("@-"))[0], origin=recipe.origin))
            )
    for process in processes:
        if process.name in ("release", "postdeploy") and moves(step.tool, process.text):
            best.append((4, replace(step, argv=process.argv, origin=process.origin)))
    if not best:
        return replace(step, candidates=tuple(dict.fromkeys(candidates)))
    best.sort(key=lambda each: each[0])
    chosen = best[0][1]
    others = [one.text for _, one in best[1:]] + candidates
    others = [text for text in dict.fromkeys(others) if text != chosen.text]
    return replace(chosen, candidates=tuple(others), at_start=False)


def _python(view: View, projects: tuple[python.Project, ...]) -> Iterator[Step]:
    for project in projects:
        if project.alembic:
            argv = ("alembic", "upgrade", "head")
            yield Step("Alembic", "python", project.folder, Origin(project.alembic), argv)
        elif project.manage and _any(view, project.folder, r"(^|/)migrations/\d{4}_\w+\.py$"):
            argv = ("python", "manage.py", "migrate")
            yield Step("Django", "python", project.folder, Origin(project.manage), argv)


def _node(view: View, package: node.Package) -> Iterator[Step]:
    folder, depends = package.folder, package.dependencies

    def step(tool: str, needle: str, *argv: str, candidates: tuple[str, ...] = (), file: str = "") -> Step:
        origin = Origin(file) if file else Origin(package.file, line_of(package.text, f'"{needle}"'), needle)
        return Step(tool, "node", folder, origin, argv or None, candidates, package=package)

    if depends & {"prisma", "@prisma/client"} and (
        schema := _first(view, folder, r"(^|/)\w[\w.-]*\.prisma$")
    ):
        if _any(view, folder, r"/migrations/[^/]+/migration\.sql$"):
            yield step("Prisma", "prisma", "npx", "prisma", "migrate", "deploy", file=schema)
        else:
            yield step("Prisma", "prisma", candidates=("npx prisma db push",), file=schema)
    if "knex" in depends and (config := _first(view, folder, r"(^|/)knexfile\.[cm]?[jt]s$")):
        at = () if folder_of(config) == folder else ("--knexfile", _below(config, folder))
        yield step("Knex", "knex", "npx", "knex", *at, "migrate:latest", file=config)
    if "drizzle-kit" in depends and (config := _first(view, folder, r"(^|/)drizzle\.config\.[cm]?[jt]s$")):
        if _any(view, folder, r"/meta/_journal\.json$"):
            yield step("Drizzle", "drizzle-kit", "npx", "drizzle-kit", "migrate", file=config)
        else:
            yield step("Drizzle", "drizzle-kit", candidates=("npx drizzle-kit push",), file=config)
    if "typeorm" in depends and _any(view, folder, r"(^|/)migrations?/[^/]+\.[jt]s$"):
        source = _with(view, folder, r"\.[jt]s$", "new DataSource(")
        program = "typeorm-ts-node-commonjs" if source and source.endswith(".ts") else "typeorm"
        line = f"npx {program} migration:run -d {_below(source, folder)}" if source else ""
        yield step("TypeORM", "typeorm", candidates=(line,) if line else ())
    if "sequelize-cli" in depends and _any(view, folder, r"(^|/)migrations/[^/]+\.c?js$"):
        yield step("Sequelize", "sequelize-cli", "npx", "sequelize-cli", "db:migrate")


def _ruby(view: View) -> Iterator[Step]:
    for file in view.named("Gemfile"):
        folder, text = folder_of(file), view.text(file) or ""
        match = re.search(r"^\s*gem\s+[\"']rails[\"']", text, re.MULTILINE)
        if match and _any(view, folder, r"(^|/)db/(migrate/[^/]+\.rb|schema\.rb|structure\.sql)$"):
            own = view.exists(normal(join(folder, "bin/rails")))
            argv = ("bin/rails" if own else "rails", "db:prepare")
            origin = Origin(file, text.count("\n", 0, match.start()) + 1, "rails")
            yield Step("Rails", "ruby", folder, origin, argv if own else ("bundle", "exec", *argv))


def _php(view: View) -> Iterator[Step]:
    for file in view.named("composer.json"):
        folder, text = folder_of(file), view.text(file) or ""
        if '"laravel/framework"' in text and view.exists(normal(join(folder, "artisan"))):
            if _any(view, folder, r"(^|/)database/migrations/[^/]+\.php$"):
                origin = Origin(file, line_of(text, '"laravel/framework"'), "laravel/framework")
                yield Step("Laravel", "php", folder, origin, ("php", "artisan", "migrate", "--force"))
        elif "doctrine-migrations-bundle" in text and view.exists(normal(join(folder, "bin/console"))):
            argv = ("php", "bin/console", "doctrine:migrations:migrate", "--no-interaction")
            origin = Origin(file, line_of(text, "doctrine-migrations-bundle"), "doctrine-migrations-bundle")
            yield Step("Doctrine", "php", folder, origin, argv)


def _elixir(view: View) -> Iterator[Step]:
    for file in view.named("mix.exs"):
        folder, text = folder_of(file), view.text(file) or ""
        if "ecto_sql" in text and _any(view, folder, r"(^|/)priv/\w+/migrations/[^/]+\.exs$"):
            seeded = ("mix ecto.setup",) if '"ecto.setup"' in text else ()
            argv = ("mix", "do", "ecto.create,", "ecto.migrate")
            yield Step("Ecto", "elixir", folder, Origin(file, line_of(text, "ecto_sql")), argv, seeded)


def _rust(view: View) -> Iterator[Step]:
    for file in view.named("Cargo.toml"):
        folder, text = folder_of(file), view.text(file) or ""
        if re.search(r"^\s*sqlx\b", text, re.MULTILINE) and _any(
            view, folder, r"(^|/)migrations/\d+_[^/]+\.sql$"
        ):
            itself = _with(view, folder, r"\.rs$", "migrate!(") is not None
            origin = Origin(file, line_of(text, "sqlx"), "sqlx")
            yield Step("sqlx", "rust", folder, origin, None, ("sqlx migrate run",), itself)
        if re.search(r"^\s*diesel\b", text, re.MULTILINE) and _any(
            view, folder, r"(^|/)migrations/[^/]+/up\.sql$"
        ):
            itself = _with(view, folder, r"\.rs$", "run_pending_migrations(") is not None
            origin = Origin(file, line_of(text, "diesel"), "diesel")
            yield Step("Diesel", "rust", folder, origin, None, ("diesel migration run",), itself)


def _go(view: View) -> Iterator[Step]:
    for file in view.named("go.mod"):
        folder, text = folder_of(file), view.text(file) or ""
        sql = _with(view, folder, r"\.sql$", "+goose Up")
        if sql is not None:
            line = f"goose -dir {_below(folder_of(sql), folder)} up"
            itself = _with(view, folder, r"\.go$", "goose.Up(") is not None
            yield Step("Goose", "go", folder, Origin(sql, 1, "+goose Up"), None, (line,), itself)
        pair = _first(view, folder, r"\.up\.sql$")
        if "golang-migrate/migrate" in text and pair is not None:
            line = f'migrate -path {_below(folder_of(pair), folder)} -database "$DATABASE_URL" up'
            itself = _with(view, folder, r"\.go$", "golang-migrate/migrate") is not None
            origin = Origin(file, line_of(text, "golang-migrate"), "golang-migrate")
            yield Step("golang-migrate", "go", folder, origin, None, (line,), itself)


def _java(view: View) -> Iterator[Step]:
    for file in view.named("pom.xml", "build.gradle", "build.gradle.kts"):
        folder, text = folder_of(file), view.text(file) or ""
        if "flyway" not in text or not _any(view, folder, r"(^|/)[VR]\d*[\d_.]*__[^/]+\.(sql|java)$"):
            continue
        maven = file.endswith("pom.xml")
        plugin = "flyway-maven-plugin" in text if maven else "org.flywaydb.flyway" in text
        wrapper = "./mvnw" if maven else "./gradlew"
        line = f"{wrapper} {'flyway:migrate' if maven else 'flywayMigrate'}" if plugin else "flyway migrate"
        origin = Origin(file, line_of(text, "flyway"), "flyway")
        itself = "spring-boot" in text or "org.springframework.boot" in text
        yield Step("Flyway", "java", folder, origin, None, (line,), itself)
    for file in view.named("flyway.toml", "flyway.conf"):
        yield Step("Flyway", "", folder_of(file), Origin(file), None, ("flyway migrate",))


def _dbmate(view: View) -> Iterator[Step]:
    sql = _with(view, ".", r"(^|/)db/migrations/[^/]+\.sql$", "-- migrate:up")
    if sql is not None:
        folder = folder_of(folder_of(folder_of(sql)))
        yield Step("dbmate", "", folder, Origin(sql, 1, "migrate:up"), None, ("dbmate up",))


def _first(view: View, folder: str, pattern: str) -> str | None:
    shape = re.compile(pattern)
    found = (file for file in view.below(folder) if shape.search(file))
    return min(found, key=lambda file: (file.count("/"), file), default=None)


def _any(view: View, folder: str, pattern: str) -> bool:
    shape = re.compile(pattern)
    return any(shape.search(file) for file in view.below(folder))


def _with(view: View, folder: str, pattern: str, text: str) -> str | None:
    """The first of a bounded number of files with a text in it."""
    shape = re.compile(pattern)
    files = [file for file in view.below(folder) if shape.search(file)][:MAX_FILES]
    return next((file for file in files if text in (view.text(file) or "")), None)


def _below(file: str, folder: str) -> str:
    return file if folder == "." else file.removeprefix(f"{folder}/")
