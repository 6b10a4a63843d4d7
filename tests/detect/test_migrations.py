"""Migration steps: proposed once where files show all of it, asked about where they do not, never dropped."""

import json

import pytest

from devbay.detect.init import init

STACK = "services:\n  db: {image: 'postgres:17'}\n  api: {build: ., ports: ['80:8000'], depends_on: [db]}\n"


def package(*depends: str, **scripts: str) -> str:
    return json.dumps({"name": "shop", "dependencies": dict.fromkeys(depends, "1"), "scripts": scripts})


def answer(repo, files, base="node:20", more=""):
    found = init(
        repo({"compose.yaml": STACK, "Dockerfile": f'FROM {base}\n{more}\nCMD ["x"]\n', **files}).root
    )
    assert found.valid, found.diagnostics
    return found


def asked(found) -> str:
    return "\n".join(f"{each.question} {each.candidates} {each.source}" for each in found.undecided)


@pytest.mark.parametrize(
    ("base", "files", "run"),
    [
        ("node:20", {
            "package.json": package("prisma"), "prisma/schema.prisma": "",
            "prisma/migrations/1_a/migration.sql": "",
        }, ["npx", "prisma", "migrate", "deploy"]),
        ("node:20", {
            "package.json": package("prisma", **{"db:deploy": "prisma migrate deploy", "start": "node x"}),
            "prisma/schema.prisma": "",
        }, ["npm", "run", "db:deploy"]),
        ("node:20", {"package.json": package("knex"), "knexfile.js": ""}, ["npx", "knex", "migrate:latest"]),
        ("node:20", {
            "package.json": package("drizzle-kit"), "drizzle.config.ts": "",
            "drizzle/meta/_journal.json": "{}",
        }, ["npx", "drizzle-kit", "migrate"]),
        ("node:20", {
            "package.json": package("typeorm", migrate="typeorm migration:run -d src/d.js"),
            "src/migrations/1.js": "",
        }, ["npm", "run", "migrate"]),
        ("node:20", {"package.json": package("sequelize-cli"), "migrations/1-a.js": ""},
         ["npx", "sequelize-cli", "db:migrate"]),
        ("ruby:3.3", {"Gemfile": "gem 'rails'\n", "db/migrate/1_a.rb": "", "bin/rails": ""},
         ["bin/rails", "db:prepare"]),
        ("php:8.3", {
            "composer.json": '{"require": {"laravel/framework": "1"}}', "artisan": "",
            "database/migrations/a.php": "",
        }, ["php", "artisan", "migrate", "--force"]),
        ("php:8.3", {"composer.json": '{"require": {"doctrine/doctrine-migrations-bundle": "1"}}',
                     "bin/console": ""},
         ["php", "bin/console", "doctrine:migrations:migrate", "--no-interaction"]),
        ("elixir:1.17", {"mix.exs": "{:ecto_sql, 1}", "priv/repo/migrations/1_a.exs": ""},
         ["mix", "do", "ecto.create,", "ecto.migrate"]),
        ("golang:1.23", {
            "go.mod": "module x\n", "sql/1.sql": "-- +goose Up\n",
            "Makefile": "migrate:\n\tgoose -dir sql up\n",
        }, ["goose", "-dir", "sql", "up"]),
    ],
)  # fmt: skip
def test_the_command_that_files_show_prepares_the_database_before_what_uses_it(repo, base, files, run):
    more = "RUN go install github.com/pressly/goose/v3/cmd/goose@v3" if base.startswith("golang") else ""
    found = answer(repo, files, base, more)
    step = found.manifest["services"]["migrate"]
    assert (step["kind"], step["run"], step["needs"]) == ("oneshot", run, ["db"])
    assert found.manifest["services"]["api"]["needs"] == ["db", "migrate"]


@pytest.mark.parametrize(
    ("files", "candidate"),
    [
        ({"package.json": package("prisma"), "prisma/schema.prisma": ""}, "npx prisma db push"),
        ({"package.json": package("drizzle-kit"), "drizzle.config.ts": ""}, "npx drizzle-kit push"),
        ({"package.json": package("typeorm"), "src/migrations/1.ts": "", "src/d.ts": "new DataSource({})"},
         "migration:run -d src/d.ts"),
        ({"go.mod": "module x\n", "sql/1.sql": "-- +goose Up\n"}, "goose -dir sql up"),
        ({"go.mod": "require github.com/golang-migrate/migrate/v4", "m/1.up.sql": ""}, "migrate -path m"),
        ({"Cargo.toml": "[dependencies]\nsqlx = '1'\n", "migrations/1_a.sql": ""}, "sqlx migrate run"),
        ({"Cargo.toml": "[dependencies]\ndiesel = '1'\n", "migrations/a/up.sql": ""}, "diesel migration run"),
        ({"db/migrations/1.sql": "-- migrate:up\n"}, "dbmate up"),
        ({"flyway.conf": ""}, "flyway migrate"),
        ({"pom.xml": "<a>flyway-core spring-boot</a>", "src/main/resources/db/migration/V1__a.sql": ""},
         "does the program run them"),
    ],
)  # fmt: skip
def test_a_tool_of_which_files_show_no_whole_command_is_asked_about(repo, files, candidate):
    found = answer(repo, files, "debian:12")
    assert "migrate" not in found.manifest["services"]
    assert candidate in asked(found)


def test_a_command_that_waits_for_an_answer_is_no_step(repo):
    scripts = {"db:migrate": "prisma migrate dev"}
    found = answer(repo, {"package.json": package("prisma", **scripts), "prisma/schema.prisma": ""})
    assert "migrate" not in found.manifest["services"]
    assert "npm run db:migrate" in asked(found)


def test_of_two_tools_for_one_database_one_is_proposed_and_the_other_asked_about(repo):
    found = answer(repo, {"package.json": package("knex", "sequelize-cli"), "knexfile.js": "",
                          "migrations/1-a.js": ""})  # fmt: skip
    assert [name for name, data in found.manifest["services"].items() if data.get("kind")] == ["migrate"]
    assert "Sequelize migrations for db stand beside those of Knex" in asked(found)


@pytest.mark.parametrize(
    ("more", "files"),
    [
        (
            'ENTRYPOINT ["/rails/bin/docker-entrypoint"]',
            {"bin/docker-entrypoint": "./bin/rails db:prepare\n"},
        ),
        ('ENTRYPOINT ["sh", "-c", "bin/rails db:migrate && exec bin/rails server"]', {}),
    ],
)
def test_what_a_service_does_as_it_starts_is_not_done_twice(repo, more, files):
    rails = {"Gemfile": "gem 'rails'\n", "db/schema.rb": "", "bin/rails": "", **files}
    found = answer(repo, rails, "ruby:3.3", more)
    assert "migrate" not in found.manifest["services"]
    assert any("as it starts" in note for note in found.notes)


def test_a_container_of_another_language_is_not_given_the_step(repo):
    found = answer(repo, {"Gemfile": "gem 'rails'\n", "db/schema.rb": ""}, "python:3.12")
    assert "migrate" not in found.manifest["services"]
    assert "Rails migrations" in asked(found)


def test_what_a_procfile_does_before_a_release_is_the_step(repo):
    ci = "jobs: {t: {services: {db: {image: 'postgres:17'}}, steps: [{run: pytest}]}}"
    found = init(repo({
        "Procfile": "release: python manage.py migrate --noinput\nweb: gunicorn x\n",
        "manage.py": "import django", "requirements.txt": "django\n", "a/migrations/0001_x.py": "",
        ".env.example": "DATABASE_URL=postgres://db", ".github/workflows/c.yml": ci,
    }).root)  # fmt: skip
    step = found.manifest["services"]["migrate"]
    assert step["run"] == ["python", "manage.py", "migrate", "--noinput"] and step["needs"] == ["db"]
    assert "set-up step" not in asked(found)
