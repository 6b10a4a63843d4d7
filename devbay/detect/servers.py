"""Servers in Go, Rust, Ruby, Java, PHP and Elixir that no container file runs: the command that starts each.

A recipe, script, `bin/dev` or Dockerfile that names the command counts first. A single program that listens
on a port, or a plugin that a build file declares, stands for its tool's own way to run it; else it is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from posixpath import join

from devbay.detect import dockerfile, documents, node, ports, recipes, words
from devbay.detect.facts import Origin, line_of
from devbay.detect.files import View, folder_of, normal

MAX_PROJECTS = 20
MAX_SOURCES = 400
_RUNS = {
    "go": r"\bgo\s+run\b",
    "rust": r"\bcargo\s+run\b",
    "ruby": r"\brails\s+s(erver)?\b|\bpuma\b|\brackup\b|\bfalcon\b|\bruby\s+\S+\.rb\b",
    "java": r"\bspring-boot:run\b|\bbootRun\b|\bquarkus:dev\b|\bquarkusDev\b",
    "php": r"\bartisan\s+serve\b|\bphp\s+-S\b|\bfrankenphp\b|\bsymfony\s+serve\b",
    "elixir": r"\bmix\s+phx\.server\b|\bmix\s+run\b.*--no-halt",
}
"""How a command line that starts a server from its sources looks."""
_RECIPES = re.compile(r"^(run|serve|server|dev|start|up|web|api)([:-](dev|local|server|web|api))?$")
_ELSEWHERE = re.compile(r"\bdocker\b|\bkubectl\b")
_GO_LISTENS = re.compile(
    r"(?:ListenAndServe(?:TLS)?|net\.Listen|\.Run|\.Start|\.Listen|Addr)\b\W{0,4}(?:\"tcp\",\s*)?\"([\w.-]*):(\d{2,5})\""
)
_GO_SERVES = re.compile(
    r"\bListenAndServe\b|\bgin\.(Default|New)\(|\becho\.New\(|\bfiber\.New\(|\bnet\.Listen\("
)
_RUST_LISTENS = re.compile(
    r"\"((?:\d+\.){3}\d+|\[::\]|localhost):(\d{2,5})\"|\(\[(\d+, ?\d+, ?\d+, ?\d+)\], ?(\d{2,5})\)"
)
_RUST_WEB = re.compile(r"^\s*(axum|actix-web|rocket|warp|poem|tide|salvo|hyper)\b", re.MULTILINE)
_GO_MAIN = re.compile(r"^package main$.*^func main\(", re.MULTILINE | re.DOTALL)
_LOOPBACK = re.compile(r"localhost|127[., ]+0[., ]+0[., ]+1")


@dataclass(frozen=True)
class Server:
    """argv: None where no file shows it. reads_port: it takes its port from PORT.

    loopback: where it is told to listen for its own machine only.
    """

    language: str
    folder: str
    origin: Origin
    argv: tuple[str, ...] | None = None
    port: int | None = None
    port_at: Origin | str | None = None
    env: dict[str, str] = field(default_factory=dict)
    candidates: tuple[str, ...] = ()
    loopback: Origin | None = None
    reads_port: bool = False


def runs(language: str, text: str) -> bool:
    """Whether a command line starts a server of a language from its sources."""
    return re.search(_RUNS[language], text) is not None


def servers(
    view: View, packages: tuple[node.Package, ...], targets: tuple[recipes.Recipe, ...]
) -> tuple[Server, ...]:
    """The servers of every such language, each folder and language once."""
    found: list[Server] = []
    for read in (_go, _rust, _ruby, _java, _php, _elixir):
        found += [_named(view, server, packages, targets) for server in list(read(view))[:MAX_PROJECTS]]
    return tuple(found)


def _named(
    view: View, server: Server, packages: tuple[node.Package, ...], targets: tuple[recipes.Recipe, ...]
) -> Server:
    """The server as the repository itself starts it, if a file says; its port, as far as files tell."""
    exposed = _exposed(view, server.folder)
    for argv, origin in _commands(view, server, packages, targets):
        server = replace(server, argv=argv, origin=origin)
        break
    told = ports.in_command(" ".join(server.argv or ()))
    if told is not None:
        return replace(server, port=told, port_at=server.origin)
    if exposed is not None and (server.port is None or not isinstance(server.port_at, Origin)):
        return replace(server, port=exposed[0], port_at=exposed[1])
    return server


def _commands(
    view: View, server: Server, packages: tuple[node.Package, ...], targets: tuple[recipes.Recipe, ...]
) -> Iterator[tuple[tuple[str, ...], Origin]]:
    shape = re.compile(_RUNS[server.language])
    if server.folder == ".":
        for recipe in targets:
            lines = [line for line in recipe.text.splitlines() if line.strip()]
            if _RECIPES.match(recipe.name) and len(lines) == 1 and _plain(lines[0], shape):
                yield words.argv(lines[0].strip().lstrip("@-"))[0], recipe.origin
    for package in packages:
        for name, text in package.scripts.items():
            if package.folder == server.folder and _RECIPES.match(name) and _plain(text, shape):
                yield words.argv(text)[0], package.origin(name)
    file = normal(join(server.folder, "bin/dev"))
    if _plain(view.text(file) or "", shape):
        yield ("bin/dev",), Origin(file)
    file = normal(join(server.folder, "Dockerfile"))
    stage = dockerfile.stage_of(view.text(file) or "")
    if stage is not None and stage.cmd and shape.search(" ".join(stage.cmd)):
        yield stage.cmd, Origin(file, stage.lines.get("CMD", 0), "CMD")


def _plain(text: str, shape: re.Pattern[str]) -> bool:
    return shape.search(text) is not None and not _ELSEWHERE.search(text)


def _exposed(view: View, folder: str) -> tuple[int, Origin] | None:
    file = normal(join(folder, "Dockerfile"))
    stage = dockerfile.stage_of(view.text(file) or "")
    exposed = [port for port in stage.expose if port not in ports.DEBUG] if stage else []
    if not stage or not exposed:
        return None
    return exposed[0], Origin(file, stage.lines.get("EXPOSE", 0), "EXPOSE")


def _go(view: View) -> Iterator[Server]:
    modules = [folder_of(file) for file in view.named("go.mod")]
    for folder in modules:
        inner = tuple(f"{each}/" for each in modules if each != folder and _is_below(each, folder))
        sources = [
            each for each in view.below(folder)
            if each.endswith(".go") and not each.endswith("_test.go") and not each.startswith(inner)
        ][:MAX_SOURCES]  # fmt: skip
        texts = {each: view.text(each) or "" for each in sources}
        listening = [each for each, text in texts.items() if _GO_SERVES.search(text)]
        mains = [each for each, text in texts.items() if _GO_MAIN.search(text)]
        if not listening or not mains:
            continue
        runs = [("go", "run", _package_of(each, folder)) for each in mains]
        server = Server("go", folder, Origin(mains[0]), None, candidates=tuple(map(" ".join, runs)))
        for each in dict.fromkeys([*mains, *listening]):
            if match := _GO_LISTENS.search(texts[each]):
                at = Origin(each, texts[each].count("\n", 0, match.start()) + 1, "listens")
                loopback = at if _LOOPBACK.search(match[1]) else None
                server = replace(server, port=int(match[2]), port_at=at, loopback=loopback)
                break
        if any(re.search(r'Getenv\("PORT"\)', texts[each]) for each in (*mains, *listening)):
            server = replace(server, reads_port=True)
        known = server.port is not None or _exposed(view, folder) is not None
        yield replace(server, argv=runs[0]) if len(runs) == 1 and known else server


def _is_below(inner: str, outer: str) -> bool:
    return outer == "." or inner.startswith(f"{outer}/")


def _package_of(file: str, folder: str) -> str:
    place = folder_of(file)
    if place == folder:
        return "."
    return f"./{place if folder == '.' else place.removeprefix(f'{folder}/')}"


def _rust(view: View) -> Iterator[Server]:
    for file in view.named("Cargo.toml"):
        folder, main = folder_of(file), normal(join(folder_of(file), "src/main.rs"))
        text = view.text(main)
        if text is None or not _RUST_WEB.search(view.text(file) or ""):
            continue
        server = Server("rust", folder, Origin(file), None, candidates=("cargo run",))
        if match := _RUST_LISTENS.search(text):
            at = Origin(main, text.count("\n", 0, match.start()) + 1, "listens")
            loopback = at if _LOOPBACK.search(match[1] or match[3]) else None
            server = replace(server, port=int(match[2] or match[4]), port_at=at, loopback=loopback)
        known = server.port is not None or _exposed(view, folder) is not None
        yield replace(server, argv=("cargo", "run")) if known else server


def _ruby(view: View) -> Iterator[Server]:
    for file in view.named("Gemfile"):
        folder, text = folder_of(file), view.text(file) or ""
        match = re.search(r"^\s*gem\s+[\"'](rails|sinatra|roda|hanami|rack)[\"']", text, re.MULTILINE)
        rack = normal(join(folder, "config.ru"))
        if match is None or not view.exists(rack):
            continue
        origin = Origin(file, text.count("\n", 0, match.start()) + 1, match[1])
        if match[1] == "rails":
            # `rails server` listens on localhost in development unless BINDING says otherwise (railties).
            env = {"BINDING": "0.0.0.0"}  # noqa: S104 - in a container
            line = (
                "bin/rails server"
                if view.exists(normal(join(folder, "bin/rails")))
                else "bundle exec rails server"
            )
            yield Server("ruby", folder, origin, None, 3000, "the default of Rails", env, (line,))
        else:
            line = "bundle exec rackup --host 0.0.0.0 --port 9292"
            yield Server("ruby", folder, origin, None, None, None, {}, (line,))


def _java(view: View) -> Iterator[Server]:
    for file in view.named("pom.xml", "build.gradle", "build.gradle.kts"):
        folder, text = folder_of(file), view.text(file) or ""
        maven = file.endswith("pom.xml")
        needle = "spring-boot-maven-plugin" if maven else "org.springframework.boot"
        if needle not in text or not re.search(r"spring-boot-starter-web(flux)?\b", text):
            continue
        wrapper = "mvnw" if maven else "gradlew"
        argv = (f"./{wrapper}", "spring-boot:run" if maven else "bootRun")
        own = view.exists(normal(join(folder, wrapper)))
        port, at = _spring_port(view, folder)
        origin = Origin(file, line_of(text, needle), needle)
        yield Server("java", folder, origin, argv if own else None, port, at, {}, (" ".join(argv),))


def _spring_port(view: View, folder: str) -> tuple[int, Origin | str]:
    base = normal(join(folder, "src/main/resources"))
    file = f"{base}/application.properties"
    for number, line in enumerate(view.lines(file), 1):
        if match := re.match(r"\s*server\.port\s*[=:]\s*(?:\$\{\w+:)?(\d{2,5})", line):
            return int(match[1]), Origin(file, number, "server.port")
    for name in ("application.yml", "application.yaml"):
        file = f"{base}/{name}"
        data = documents.mapping(documents.yaml(view, file)) if view.exists(file) else {}
        server = documents.mapping(data.get("server"))
        if match := re.search(r"(\d{2,5})\}?$", str(server.get("port", ""))):
            return int(match[1]), Origin(file, documents.line(server, "port"), "server.port")
    return 8080, "the default of Spring Boot"


def _php(view: View) -> Iterator[Server]:
    for file in view.named("composer.json"):
        folder, text = folder_of(file), view.text(file) or ""
        origin = Origin(file, line_of(text, '"laravel/framework"'), "laravel/framework")
        if '"laravel/framework"' in text and view.exists(normal(join(folder, "artisan"))):
            line = "php artisan serve --host=0.0.0.0 --port=8000"
            argv, at = _composer(view, file)
            port = (8000, "the default of Laravel")
            yield Server("php", folder, at or origin, argv, *port, {}, (line,))
        elif view.exists(normal(join(folder, "public/index.php"))):
            line = "php -S 0.0.0.0:8000 -t public"
            yield Server("php", folder, Origin(file), None, None, None, {}, (line,))


def _composer(view: View, file: str) -> tuple[tuple[str, ...] | None, Origin | None]:
    """A script of composer.json that is one plain server, open to the container's network."""
    scripts = documents.mapping(documents.json_object(view, file).get("scripts"))
    for name, given in scripts.items():
        lines = [line for line in documents.texts(given) if not line.startswith("Composer\\")]
        if _RECIPES.match(str(name)) and len(lines) == 1 and re.search(r"\bartisan serve\b", lines[0]):
            argv = words.argv(lines[0].replace("@php ", "php "))[0]
            origin = Origin(file, line_of(view.text(file) or "", f'"{name}"'), f"scripts.{name}")
            if argv[:2] != ("sh", "-c"):
                return (argv if "--host" in lines[0] else (*argv, "--host=0.0.0.0")), origin
    return None, None


def _elixir(view: View) -> Iterator[Server]:
    for file in view.named("mix.exs"):
        folder, text = folder_of(file), view.text(file) or ""
        if not re.search(r"\{:phoenix,", text):
            continue
        config = normal(join(folder, "config/dev.exs"))
        source = view.text(config) or ""
        port = re.search(r"\bport:[^\n]*?(\d{2,5})", source)
        at = (
            Origin(config, source.count("\n", 0, port.start()) + 1, "port")
            if port
            else "the default of Phoenix"
        )
        bound = re.search(r"\bip:\s*\{127, ?0, ?0, ?1\}", source)
        loopback = Origin(config, source.count("\n", 0, bound.start()) + 1, "ip") if bound else None
        origin = Origin(file, line_of(text, ":phoenix,"), "phoenix")
        number = int(port[1]) if port else 4000
        yield Server("elixir", folder, origin, None, number, at, {}, ("mix phx.server",), loopback)
