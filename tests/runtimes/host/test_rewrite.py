"""Commands and values for containers, as they are for this machine."""

from __future__ import annotations

import shlex

import pytest

from devbay.runtimes.host.rewrite import Given, argv, env

PORTS = Given({8000: 20001, 3000: 20002, 5173: 20003, 9292: 20004, 8080: 20005, 6379: 20006})


def written(command: str, given: Given = PORTS) -> str:
    return shlex.join(argv(shlex.split(command), given).argv)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("uvicorn app:app --host 0.0.0.0 --port 8000", "uvicorn app:app --host 127.0.0.1 --port 20001"),
        ("uvicorn app:app --host=:: --port=8000", "uvicorn app:app --host=127.0.0.1 --port=20001"),
        ("gunicorn -w 4 -b 0.0.0.0:8000 app", "gunicorn -w 4 -b 127.0.0.1:20001 app"),
        ("gunicorn --bind=[::]:8000 app", "gunicorn --bind=127.0.0.1:20001 app"),
        ("gunicorn -b :8000 app", "gunicorn -b :20001 app"),
        ("flask run -h 0.0.0.0 -p 3000", "flask run -h 127.0.0.1 -p 20002"),
        ("flask run --host 0.0.0.0 --port=3000", "flask run --host 127.0.0.1 --port=20002"),
        ("python manage.py runserver 0.0.0.0:8000", "python manage.py runserver 127.0.0.1:20001"),
        ("python manage.py runserver --noreload 8000", "python manage.py runserver --noreload 20001"),
        ("bin/rails server -p 3000 -b 0.0.0.0", "bin/rails server -p 20002 -b 127.0.0.1"),
        ("rails s -p3000", "rails s -p20002"),
        ("vite --host 0.0.0.0 --port 5173", "vite --host 127.0.0.1 --port 20003"),
        ("next dev -p 3000 -H 0.0.0.0", "next dev -p 20002 -H 127.0.0.1"),
        ("node server.js", "node server.js"),
        ("python -m http.server 8000", "python -m http.server 20001"),
        (
            "python3 -m http.server --bind :: -d dist 8000",
            "python3 -m http.server --bind 127.0.0.1 -d dist 20001",
        ),
        ("php -S 0.0.0.0:8000 -t public", "php -S 127.0.0.1:20001 -t public"),
        ("php artisan serve --host=0.0.0.0 --port=8000", "php artisan serve --host=127.0.0.1 --port=20001"),
        ("puma -b tcp://0.0.0.0:9292", "puma -b tcp://127.0.0.1:20004"),
        ("java -Dserver.port=8080 -jar a.jar", "java -Dserver.port=20005 -jar a.jar"),
        ("java -jar a.jar --server.port=8080", "java -jar a.jar --server.port=20005"),
        ("./api -addr=:8080", "./api -addr=:20005"),
        ("./api -port 8080", "./api -port 20005"),
        ("caddy file-server --listen :8080", "caddy file-server --listen :20005"),
        ("serve -l 3000 dist", "serve -l 20002 dist"),
        ("env PORT=3000 node server.js", "env PORT=20002 node server.js"),
        ("redis-cli -h localhost -p 6379 ping", "redis-cli -h localhost -p 20006 ping"),
        ("nc -z localhost 8000", "nc -z localhost 20001"),
        ("curl -fsS http://localhost:8000/health?a=b", "curl -fsS 'http://localhost:20001/health?a=b'"),
        ("curl http://[::1]:8000/", "curl http://127.0.0.1:20001/"),
        ("gunicorn -b *:8000 app", "gunicorn -b 127.0.0.1:20001 app"),
    ],
)
def test_a_server_is_told_the_port_it_was_given_on_the_loopback_address(command: str, expected: str) -> None:
    assert shlex.split(written(command)) == shlex.split(expected)


@pytest.mark.parametrize(
    "command",
    [
        "gunicorn --max-requests 8000 app",
        "gunicorn --max-requests=8000 --workers=8000 app",
        "uvicorn app:app --port 18000",
        "java -Xmx8000m -jar a.jar",
        "head -c8000 /dev/urandom",
        "sleep 8000",
        "report --report=8000 --support 8000 --viewport=8000",
        "curl http://example.org:8000/",
        "curl http://localhost:80001/",
        "curl http://mylocalhost:8000/",
        "node a.js 8000",
        "app 10.0.0.1:8000",
        "test test:* a::b",
        "rsync /src host:8000",
    ],
)
def test_a_number_that_is_no_port_of_the_service_stays(command: str) -> None:
    done = argv(shlex.split(command), PORTS)
    assert list(done.argv) == shlex.split(command)
    assert done.changes == ()


def test_an_address_of_every_interface_becomes_the_loopback_one_whatever_its_port() -> None:
    assert (
        written("app --metrics 0.0.0.0:9100 --web 0.0.0.0") == "app --metrics 127.0.0.1:9100 --web 127.0.0.1"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "cd  api &&\texec gunicorn -b 0.0.0.0:8000 app;  # on 8000, don't ask",
            "cd  api &&\texec gunicorn -b 127.0.0.1:20001 app;  # on 8000, don't ask",
        ),
        ('gunicorn --bind "0.0.0.0:8000" app', "gunicorn --bind 127.0.0.1:20001 app"),
        ("gunicorn -b 0.0.0.0:$PORT app", "gunicorn -b 127.0.0.1:$PORT app"),
        ('gunicorn --bind="0.0.0.0:${PORT:-8000}" app', 'gunicorn --bind="127.0.0.1:${PORT:-8000}" app'),
        ("PORT=3000 npm start", "PORT=20002 npm start"),
        ("sleep 8000; nc -l 8000", "sleep 8000; nc -l 20001"),
        ("echo 8000 | head -c 8000", "echo 8000 | head -c 8000"),
        ("curl -f http://localhost:8000/ || exit 1", "curl -f http://localhost:20001/ || exit 1"),
        ("bash -c 'vite --port 5173'", "bash -c 'vite --port 20003'"),
        ("cat <<E\n--port 8000\nE\n", "cat <<E\n--port 8000\nE\n"),
        ("echo 'unclosed --port 8000", "echo 'unclosed --port 8000"),
        ("x=$(cat a) && app --port 8000 *.js", "x=$(cat a) && app --port 20001 *.js"),
    ],
)
def test_only_whole_words_of_a_shell_text_change(text: str, expected: str) -> None:
    assert argv(["sh", "-ec", text], PORTS).argv == ("sh", "-ec", expected)
    assert argv(["env", "A=b", "/bin/bash", "-l", "-c", text], PORTS).argv[-1] == expected


def test_a_url_in_a_program_text_is_the_services_own() -> None:
    text = "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health')"
    assert argv(["python", "-c", text], PORTS).argv[2] == text.replace("8000", "20001")
    assert (
        argv(["node", "-e", "fetch('http://localhost:3000')"], PORTS).argv[2]
        == "fetch('http://localhost:20002')"
    )


def test_values_change_as_a_whole_only() -> None:
    values = {
        "PORT": "8000",
        "HOST": "0.0.0.0",
        "ADDR": ":8080",
        "BASE_URL": "http://localhost:8000/api",
        "MAX_REQUESTS": "8000",
        "PORTAL": "8000",
        "PAGE": "8000",
        "GUNICORN_CMD_ARGS": "--bind 0.0.0.0:8000",
        "ALLOWED_HOSTS": "*",
    }
    done = env(values, PORTS)
    assert done.env == values | {
        "PORT": "20001",
        "HOST": "127.0.0.1",
        "ADDR": ":20005",
        "BASE_URL": "http://localhost:20001/api",
    }
    assert done.changes[0] == ("PORT=8000", "PORT=20001")
    assert len(done.changes) == 4


def test_what_changed_is_said_once() -> None:
    done = argv(["sh", "-c", "a --port 8000; b --port 8000"], PORTS)
    assert done.changes == (("8000", "20001"),)


@pytest.mark.parametrize("worktree", ["/work/b", "/work/it's a bay"])
def test_workspace_is_the_worktree_where_no_sandbox_makes_it_so(worktree: str) -> None:
    given = Given({}, worktree)
    words = ["/workspace/run", "--dir=/workspace", "a:/workspace/b", "-I/workspace/inc"]
    expected = (f"{worktree}/run", f"--dir={worktree}", f"a:{worktree}/b", f"-I{worktree}/inc")
    assert argv(words, given).argv == expected
    assert argv(["/workspaces", "x/workspace/y"], given).argv == ("/workspaces", "x/workspace/y")
    text = argv(["sh", "-c", "cat /workspace/a; X=/workspace/b run '/workspace/c d'"], given).argv[2]
    assert shlex.split(text.replace(";", " ;")) == [
        "cat", f"{worktree}/a", ";", f"X={worktree}/b", "run", f"{worktree}/c d",
    ]  # fmt: skip
    assert (
        env({"PYTHONPATH": "/workspace/src:/workspace"}, given).env["PYTHONPATH"]
        == f"{worktree}/src:{worktree}"
    )


def test_workspace_stays_where_the_sandbox_has_it() -> None:
    assert argv(["/workspace/run"], PORTS).argv == ("/workspace/run",)


def test_workspace_beside_a_variable_is_the_worktree() -> None:
    text = argv(
        ["sh", "-c", 'PYTHONPATH=/workspace:$P "/workspace/$X" /workspace/*.js'], Given({}, "/w")
    ).argv[2]
    assert text == 'PYTHONPATH=/w:$P "/w/$X" /w/*.js'
