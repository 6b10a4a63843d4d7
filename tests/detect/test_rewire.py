import pytest

from devbay.detect import rewire
from devbay.detect.envfiles import Variable
from devbay.detect.facts import Origin
from devbay.manifest import images

DB = rewire.Target("db", "postgres:16", {5432: "port"}, images.Access("postgres", "pw", "shop"))
CACHE = rewire.Target("cache", "redis:7", {6379: "port"}, images.Access())
API = rewire.Target("api", None, {8080: "port", 9000: "ports.metrics"}, images.Access())
WEB = rewire.Target("web", None, {3000: "port"}, images.Access())
PLACES = rewire.Map(
    {each.name: each for each in (DB, CACHE, API, WEB)},
    {"db": "db", "corp-db": "db", "cache": "cache", "api": "api", "web": "web"},
    {18080: ("api", 8080), 3000: ("web", 3000), 15432: ("db", 5432), 19000: ("api", 9000)},
)


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("DB_HOST", "corp-db", "${bay.db.host}"),
        ("POSTGRES_DB", "db", "db"),  # a name that is a service's by chance
        ("CACHE", "cache:6379", "${bay.cache.host}:${bay.cache.port}"),
        ("URL", "redis://cache:6379/3", "redis://${bay.cache.host}:${bay.cache.port}/3"),
        (
            "URL",
            "postgresql+psycopg://postgres:pw@db:5432/shop?sslmode=disable",
            "postgresql+psycopg://${bay.db.user}:${bay.db.password}@${bay.db.host}:${bay.db.port}/${bay.db.name}"
            "?sslmode=disable",
        ),
        ("URL", "postgres://other:x@db:5432/test", "postgres://other:x@${bay.db.host}:${bay.db.port}/test"),
        ("URL", "postgres://postgres@db/shop", "postgres://${bay.db.user}@${bay.db.host}/${bay.db.name}"),
        ("API_URL", "http://api:8080/v1", "${bay.api.url}/v1"),
        ("METRICS", "http://api:9000/m", "http://${bay.api.host}:${bay.api.ports.metrics}/m"),
        ("API_URL", "https://api:8080/v1", "https://${bay.api.host}:${bay.api.port}/v1"),
        ("VITE_API", "http://localhost:18080/v1", "${bay.api.public_url}/v1"),
        ("CORS_ORIGIN", "http://localhost:3000", "${bay.web.public_url}"),
        ("INTERNAL_API", "http://localhost:18080", "${bay.api.url}"),
        ("URL", "postgres://localhost:15432/shop", "postgres://${bay.db.host}:${bay.db.port}/${bay.db.name}"),
        ("URL", "https://example.com/x", "https://example.com/x"),
        ("URL", "http://localhost:9999", "http://localhost:9999"),
        ("TEXT", "x ${HOME} {y}", "x $${HOME} {y}"),
        ("BLOB", "Local url=http://api:8080/{path}", "Local url=${bay.api.url}/{path}"),
        ("SELF_HOST", "web", "web"),
    ],
)
def test_an_address_becomes_a_reference_and_the_rest_stays(variable, text, expected):
    assert rewire.value(text, variable, "web", PLACES) == expected


def test_ports_and_logins_beside_a_host_follow_it():
    texts = {
        "PG_HOST": "db",
        "PG_PORT": "5432",
        "PG_USER": "postgres",
        "PG_PASSWORD": "pw",
        "PG_X": "pw",
        "PORT": "5432",
    }
    env = {**texts, "PG_HOST": "${bay.db.host}"}
    assert rewire.grouped(env, texts, PLACES, "web") == {
        "PG_PORT": "${bay.db.port}", "PG_USER": "${bay.db.user}", "PG_PASSWORD": "${bay.db.password}",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        (Variable("DATABASE_URL", Origin("x")),
         "postgresql://${bay.db.user}:${bay.db.password}@${bay.db.host}:${bay.db.port}/${bay.db.name}"),
        (Variable("PGHOST", Origin("x")), "${bay.db.host}"),
        (Variable("POSTGRES_PASSWORD", Origin("x")), "${bay.db.password}"),
        (Variable("REDIS_URL", Origin("x")), "redis://${bay.cache.host}:${bay.cache.port}"),
        (Variable("CACHE_HOST", Origin("x"), host="127.0.0.1", local=True), "${bay.cache.host}"),
        (Variable("SITE", Origin("x"), "http", "localhost", 3000, local=True), "${bay.web.public_url}"),
        (Variable("API_INTERNAL_URL", Origin("x"), "http", "localhost", 18080, local=True), "${bay.api.url}"),
        (Variable("MONGO_URL", Origin("x")), None),
        (Variable("SECRET_KEY", Origin("x")), None),
    ],
)  # fmt: skip
def test_a_variable_known_by_name_alone_refers_to_the_one_service_it_can_mean(variable, expected):
    reachable = {"db": DB, "cache": CACHE}
    assert rewire.by_name(variable, reachable, "postgresql", "web", PLACES) == expected


def test_of_two_datastores_of_a_kind_none_is_guessed():
    other = rewire.Target("jobs", "redis:7", {6379: "port"}, images.Access())
    found = rewire.by_name(
        Variable("REDIS_URL", Origin("x")), {"cache": CACHE, "jobs": other}, "x", "web", PLACES
    )
    assert found is None


def test_an_address_of_this_machine_that_a_task_names_is_left_as_it_is():
    assert rewire.value("http://localhost:3999/a", "URL", "test", PLACES) == "http://localhost:3999/a"
