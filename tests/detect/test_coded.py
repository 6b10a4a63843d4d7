"""Addresses that stand in code: rewired through their variable, or asked about."""

from devbay.detect.propose import propose

API = {
    "api/package.json": '{"name": "api", "scripts": {"start": "node server.js"}}',
    "api/server.js": "require('http').createServer().listen(process.env.PORT || 4000)",
    "web/package.json": '{"name": "web", "scripts": {"dev": "vite"}, "devDependencies": {"vite": "6"}}',
}


def test_a_server_side_variable_that_falls_back_on_another_program_reaches_its_container(repo):
    config = 'export default {server: {proxy: {"/a": process.env.API || "http://localhost:4000/v1"}}}'
    draft = propose(repo({**API, "web/vite.config.js": config}), "shop")
    assert draft.services["web"]["env"]["API"] == "${bay.api.url}/v1"
    assert draft.sources["services", "web", "env", "API"] == "web/vite.config.js:1 API"


def test_what_a_browser_reads_gets_the_published_address(repo):
    source = 'fetch(import.meta.env.VITE_API ?? "http://localhost:4000")'
    draft = propose(repo({**API, "web/src/main.ts": source}), "shop")
    assert draft.services["web"]["env"]["VITE_API"] == "${bay.api.public_url}"


def test_a_proxy_without_a_variable_is_a_question(repo):
    config = "export default {\n  server: {proxy: {'/a': 'http://localhost:4000'}}}"
    draft = propose(repo({**API, "web/vite.config.js": config}), "shop")
    (question,) = (each for each in draft.questions if "localhost:4000" in each.text)
    assert (question.about, question.candidates) == ("services/web", ("${bay.api.url}",))
    assert str(question.origin) == "web/vite.config.js:2"


def test_an_address_of_the_program_itself_and_one_in_tests_change_nothing(repo):
    files = {
        "api/own.js": 'const own = process.env.SELF || "http://localhost:4000"',
        "web/main.test.js": 'const api = process.env.API || "http://localhost:4000"',
    }
    draft = propose(repo({**API, **files}), "shop")
    assert "SELF" not in draft.services["api"].get("env", {})
    assert "API" not in draft.services["web"].get("env", {})


def test_a_store_that_only_the_code_names_is_wired_and_needed(repo):
    files = {
        "compose.yaml": "services:\n  cache:\n    image: redis:7\n    ports: ['6379:6379']\n",
        "requirements.txt": "redis\n",
        "Procfile": "web: python app.py --port 8000\n",
        "app.py": "import os\nurl = os.environ.get('REDIS_URL', 'redis://localhost:6379')\n",
    }
    web = propose(repo(files), "shop").services["web"]
    assert web["env"]["REDIS_URL"] == "redis://${bay.cache.host}:${bay.cache.port}"
    assert web["needs"] == ["cache"]


def test_an_install_works_in_the_folder_of_its_package(repo):
    draft = propose(repo(API), "shop")
    assert draft.services["web"]["install"][:4] == ["npm", "--prefix", "web", "install"]


def test_a_store_that_ci_names_for_its_jobs_is_wired_and_no_value_is_copied(repo):
    workflow = """\
on: push
jobs:
  test:
    services: {db: {image: "postgres:17", env: {POSTGRES_PASSWORD: pw}}}
    env: {DATABASE_URL: "postgres://x:hidden@localhost/x", MODE: hidden, API_TOKEN: hidden}
    steps: [{run: pytest}]
"""
    files = {".github/workflows/ci.yml": workflow, "Procfile": "web: gunicorn app\n"}
    draft = propose(repo({**files, "requirements.txt": "gunicorn\npytest\n"}), "shop")
    env = draft.services["web"]["env"]
    assert env["DATABASE_URL"].startswith("postgresql://${bay.db.user}:${bay.db.password}@")
    assert env.keys() == {"PORT", "DATABASE_URL"}
    assert "hidden" not in str(draft)


def test_a_recipe_that_starts_the_server_is_offered_where_nothing_else_does(repo):
    files = {
        "Makefile": "dev:\n\t@flask run\n",
        "compose.yaml": "services: {db: {image: 'postgres:17'}}\n",
        "requirements.txt": "flask\n",
    }
    (question,) = (each for each in propose(repo(files), "shop").questions if "server starts" in each.text)
    assert question.candidates == ("flask run",)
