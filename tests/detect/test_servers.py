"""Servers of compiled and scripted languages without a stack: started as files say, else asked about."""

import pytest

from devbay.detect.init import init

GO = 'package main\nimport "net/http"\nfunc main() {\n\thttp.ListenAndServe(":8080", nil)\n}\n'
RAILS = {"Gemfile": "source 'x'\ngem 'rails'\n", "config.ru": "", "bin/rails": ""}
LARAVEL = '{"require": {"laravel/framework": "1"}, "scripts": {"serve": "@php artisan serve"}}'
SERVE = ["php", "artisan", "serve", "--host=0.0.0.0"]
POM = "<plugin>spring-boot-maven-plugin</plugin> <artifactId>spring-boot-starter-web</artifactId>"


def proposed(repo, files):
    found = init(repo(files).root)
    assert found.valid, found.diagnostics
    return found


@pytest.mark.parametrize(
    ("files", "image", "start", "port"),
    [
        ({"go.mod": "module x\n", "cmd/api/main.go": GO}, "golang", ["go", "run", "./cmd/api"], 8080),
        ({"go.mod": "module x\n", "main.go": GO.replace('":8080"', "addr"),
          "Dockerfile": "FROM golang\nEXPOSE 9090\n"}, "golang", ["go", "run", "."], 9090),
        ({"go.mod": "module x\n", "a/main.go": GO, "b/main.go": GO, "Makefile": "run:\n\t@go run ./a -v\n"},
         "golang", ["go", "run", "./a", "-v"], 8080),
        ({"Cargo.toml": "[dependencies]\naxum = '1'\n", "src/main.rs": 'bind("0.0.0.0:3000")'},
         "rust", ["cargo", "run"], 3000),
        ({**RAILS, "bin/dev": "#!/bin/sh\nexec bin/rails server\n"}, "ruby", ["bin/dev"], 3000),
        ({**RAILS, "Procfile.dev": "web: bin/rails server -p 3100\n"}, "ruby",
         ["bin/rails", "server", "-p", "3100"], 3100),
        ({"pom.xml": POM, "mvnw": "", "src/main/resources/application.properties": "server.port=9000\n"},
         "eclipse-temurin", ["./mvnw", "spring-boot:run"], 9000),
        ({"composer.json": LARAVEL, "artisan": ""}, "php", SERVE, 8000),
        ({"mix.exs": "{:phoenix, 1}", "package.json": '{"scripts": {"dev": "mix phx.server"}}'},
         "elixir", ["mix", "phx.server"], 4000),
    ],
)  # fmt: skip
def test_a_server_is_started_as_the_files_say(repo, files, image, start, port):
    services = proposed(repo, files).manifest["services"]
    (web,) = services.values()
    assert (web["image"].split(":")[0], web["start"], web["port"]) == (image, start, port)
    assert web["health"]["tcp"] == port


@pytest.mark.parametrize(
    ("files", "candidate"),
    [
        ({"go.mod": "module x\n", "a/main.go": GO, "b/main.go": GO}, "go run ./b"),
        ({"go.mod": "module x\n", "main.go": GO.replace('":8080"', "addr")}, "go run ."),
        ({"Cargo.toml": "[dependencies]\naxum = '1'\n", "src/main.rs": "bind(addr)"}, "cargo run"),
        (RAILS, "bin/rails server"),
        ({"pom.xml": POM}, "./mvnw spring-boot:run"),
        ({"composer.json": '{"require": {"laravel/framework": "1"}}', "artisan": ""}, "php artisan serve"),
        ({"mix.exs": "{:phoenix, 1}"}, "mix phx.server"),
    ],
)
def test_a_server_of_which_no_file_shows_the_start_is_asked_about(repo, files, candidate):
    found = proposed(repo, files)
    assert not found.manifest.get("services")
    assert any(candidate in " ".join(each.candidates) and each.source for each in found.undecided)


@pytest.mark.parametrize(
    "files",
    [
        {"go.mod": "module x\n", "main.go": "package main\nfunc main() {}\n"},
        {"Cargo.toml": "[dependencies]\nclap = '1'\n", "src/main.rs": "fn main() {}"},
        {"pom.xml": "<project/>", "src/main/java/A.java": ""},
        {"Gemfile": "gem 'rake'\n"},
    ],
)
def test_a_program_that_serves_nothing_is_no_service(repo, files):
    found = proposed(repo, files)
    assert not found.manifest.get("services")
    assert not [each for each in found.undecided if each.candidates]


def test_a_rails_server_listens_outside_of_its_container(repo):
    found = proposed(repo, {**RAILS, "bin/dev": "#!/bin/sh\nexec bin/rails server\n"})
    assert found.manifest["services"]["web"]["env"]["BINDING"] == "0.0.0.0"


def test_a_server_that_listens_on_localhost_is_asked_about_with_its_place(repo):
    found = proposed(repo, {"go.mod": "module x\n", "main.go": GO.replace(":8080", "localhost:8080")})
    assert any("main.go:4" in (each.source or "") for each in found.undecided)


def test_a_server_that_reads_its_port_is_given_it(repo):
    source = GO.replace("http.Listen", 'p := os.Getenv("PORT")\n\thttp.Listen')
    assert proposed(repo, {"go.mod": "module x\n", "main.go": source}).manifest["services"]["web"]["env"] == {
        "PORT": "8080"
    }
