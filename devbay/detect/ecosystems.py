"""Go, Rust, Ruby, Java, PHP and Elixir: the test command that a language's own build file stands for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from devbay.detect import documents
from devbay.detect.facts import Origin, line_of
from devbay.detect.files import View, folder_of, normal

MAX_PROJECTS = 60
MIX_INSTALL = ("sh", "-c", "mix local.hex --force && mix local.rebar --force && mix deps.get")


@dataclass(frozen=True)
class Build:
    """A project with tests. argv: what its build tool runs them with. runner: as devbay names it."""

    language: str
    folder: str
    argv: tuple[str, ...]
    runner: str
    origin: Origin
    install: tuple[str, ...] | None = None


def builds(view: View) -> tuple[Build, ...]:
    """The projects whose build file, with test files or a declared runner beside it, says how tests run."""
    found: list[Build] = []
    for read in (_go, _rust, _ruby, _java, _php, _elixir):
        found += list(read(view))[:MAX_PROJECTS]
    return tuple(found)


def _has(view: View, folder: str, pattern: str) -> bool:
    shape = re.compile(pattern)
    return any(shape.search(file) for file in view.below(folder))


def _go(view: View) -> Iterator[Build]:
    for file in view.named("go.mod"):
        folder = folder_of(file)
        if _has(view, folder, r"_test\.go$"):
            install = ("go", "mod", "download")
            yield Build("go", folder, ("go", "test", "./..."), "go", Origin(file), install)


def _rust(view: View) -> Iterator[Build]:
    for file in view.named("Cargo.toml"):
        folder = folder_of(file)
        data = documents.toml(view, file)
        above = any(folder != "." and view.exists(normal(f"{up}/Cargo.toml")) for up in _above(folder))
        tested = _has(view, folder, r"(^|/)tests/[^/]+\.rs$") or any(
            "#[test]" in (view.text(each) or "") for each in view.below(folder)[:200] if each.endswith(".rs")
        )
        if data and tested and not above:
            yield Build("rust", folder, ("cargo", "test"), "cargo", Origin(file))


def _above(folder: str) -> list[str]:
    parts = folder.split("/")
    return [".", *("/".join(parts[:size]) for size in range(1, len(parts)))]


def _ruby(view: View) -> Iterator[Build]:
    for file in view.named("Gemfile"):
        folder, text = folder_of(file), view.text(file) or ""
        install = ("bundle", "install")
        if re.search(r"^\s*gem\s+[\"']rspec", text, re.MULTILINE) and _has(view, folder, r"_spec\.rb$"):
            origin = Origin(file, line_of(text, "rspec"), "rspec")
            yield Build("ruby", folder, ("bundle", "exec", "rspec"), "rspec", origin, install)
        elif re.search(r"^\s*gem\s+[\"']rails[\"']", text, re.MULTILINE) and _has(
            view, folder, r"_test\.rb$"
        ):
            origin = Origin(file, line_of(text, "rails"), "rails")
            yield Build("ruby", folder, ("bundle", "exec", "rails", "test"), "rails", origin, install)


def _java(view: View) -> Iterator[Build]:
    for names, wrapper, plain in (
        (("pom.xml",), "mvnw", ("mvn", "-B", "test")),
        (("build.gradle", "build.gradle.kts"), "gradlew", ("gradle", "test")),
    ):
        for file in view.named(*names):
            folder = folder_of(file)
            nested = any(view.exists(normal(f"{up}/{name}")) for up in _above(folder) for name in names)
            if (nested and folder != ".") or not _has(view, folder, r"src/test/"):
                continue
            own = view.exists(normal(f"{folder}/{wrapper}"))
            argv = (f"./{wrapper}", *plain[1:]) if own else plain
            yield Build("java", folder, argv, "maven" if "mvn" in plain else "gradle", Origin(file))


def _php(view: View) -> Iterator[Build]:
    for file in view.named("composer.json"):
        folder, data = folder_of(file), documents.json_object(view, file)
        listed = {**documents.mapping(data.get("require")), **documents.mapping(data.get("require-dev"))}
        text = view.text(file) or ""
        for package, program in (("pestphp/pest", "pest"), ("phpunit/phpunit", "phpunit")):
            if package in listed:
                origin = Origin(file, line_of(text, package), package)
                yield Build("php", folder, (f"vendor/bin/{program}",), "phpunit", origin)
                break


def _elixir(view: View) -> Iterator[Build]:
    for file in view.named("mix.exs"):
        folder = folder_of(file)
        if _has(view, folder, r"_test\.exs$") and not any(
            folder != "." and view.exists(normal(f"{up}/mix.exs")) for up in _above(folder)
        ):
            yield Build("elixir", folder, ("mix", "test"), "mix", Origin(file), MIX_INSTALL)
