"""Servers that check the host name: told a bay's where a variable does it, else asked about."""

import json

import pytest

from devbay.detect.init import init


def web(repo, files, **depends: str):
    scripts = {"dev": "serve --port 3000"}
    manifest = json.dumps({"name": "x", "scripts": scripts, "dependencies": depends}, indent=1)
    found = init(repo({"package.json": manifest, **files}).root)
    assert found.valid, found.diagnostics
    (name,) = found.manifest["services"]
    said = [f"{each.question} [{each.source}]" for each in found.undecided if "host" in each.question]
    return found.manifest["services"][name].get("env", {}), said


@pytest.mark.parametrize(
    "depends",
    [
        {"vite": "6"}, {"nuxt": "3"}, {"@angular/build": "20"}, {"@angular-devkit/build-angular": "^17.1.0"},
    ],
)  # fmt: skip
def test_every_server_with_vite_inside_is_told_the_host_by_its_variable(repo, depends):
    env, said = web(repo, {}, **depends)
    assert env["__VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS"].endswith(".public_host}") and not said


@pytest.mark.parametrize(
    ("depends", "file", "text", "line"),
    [
        ({"webpack-dev-server": "^3.11.0"}, "webpack.config.js", "x = {\n devServer: {\n  port: 1\n }}", 2),
        ({"webpack-dev-server": "3"}, "webpack.config.js", "devServer: {\nallowedHosts: ['a.test']}", 2),
        ({"@vue/cli-service": "~4.5.0"}, "vue.config.js", "devServer: {}", 1),
        ({"@angular-devkit/build-angular": "~0.1102.0"}, "angular.json", '{\n"serve": {}}', 2),
    ],
)
def test_an_old_webpack_server_is_asked_about_with_file_and_line(repo, depends, file, text, line):
    env, said = web(repo, {file: text}, **depends)
    assert env == {} and len(said) == 1 and f"[{file}:{line} " in said[0]


@pytest.mark.parametrize(
    ("depends", "text"),
    [
        ({"webpack-dev-server": "^5.0.0"}, "devServer: {}"),
        ({"webpack-dev-server": "3"}, "devServer: {disableHostCheck: true}"),
        ({"webpack-dev-server": "3"}, "devServer: {allowedHosts: ['.localhost']}"),
        ({"next": "15"}, "allowedDevOrigins: ['a.test']"),
    ],
)
def test_a_server_that_takes_names_below_localhost_is_left_alone(repo, depends, text):
    assert web(repo, {"webpack.config.js": text, "next.config.js": text}, **depends) == ({}, [])


def test_create_react_app_checks_hosts_only_with_a_proxy(repo):
    manifest = {
        "name": "x",
        "scripts": {"start": "react-scripts start"},
        "dependencies": {"react-scripts": "5"},
    }
    quiet = init(repo({"package.json": json.dumps(manifest)}).root)
    assert "DANGEROUSLY" not in quiet.yaml
    text = json.dumps({**manifest, "proxy": "http://api:1"}, indent=1)
    told = init(repo({"package.json": text}).root)
    assert 'DANGEROUSLY_DISABLE_HOST_CHECK: "true"' in told.yaml
    assert any("DANGEROUSLY" in each.question and "package.json:" in each.source for each in told.undecided)


def test_laravel_is_asked_about_where_it_trusts_some_hosts_only(repo):
    stack = "services: {app: {build: ., ports: ['80:8000']}}"
    app = "<?php\n  ->withMiddleware(function ($middleware) {\n    $middleware->trustHosts(at: ['a.test']);\n"
    found = init(repo({"compose.yaml": stack, "Dockerfile": "FROM php:8.3\n", "bootstrap/app.php": app}).root)
    (said,) = [each for each in found.undecided if "TrustHosts" in each.question]
    assert said.source == "bootstrap/app.php:3 TrustHosts"
