"""Programs that no container file runs: processes, package scripts and servers, on official images."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from posixpath import join

from devbay.detect import ecosystems, families, node, ports, python, servers, versions, words
from devbay.detect.draft import Draft
from devbay.detect.facts import Origin, slug
from devbay.detect.facts_of import Facts
from devbay.detect.files import normal

MAX_APPS = 12
_PORT_HINT = re.compile(
    r"\bPORT\b[\"'\])]*\s*(?:\|\||\?\?|,)\s*[\"']?(\d{2,5})|\.listen\(\s*(\d{2,5})\b|\bport\s*[:=]\s*(\d{2,5})\b"
)
_FRAMEWORK_PORTS = (
    ("next", 3000), ("nuxt", 3000), ("@remix-run/dev", 3000), ("@nestjs/core", 3000), ("react-scripts", 3000),
    ("astro", 4321), ("@angular/cli", 4200), ("@sveltejs/kit", 5173), ("vite", 5173), ("gatsby", 8000),
)  # fmt: skip
"""Where the development servers listen unless told otherwise (their documentation)."""
_COMPILED = frozenset({"go", "rust", "java", "elixir"})


@dataclass
class App:
    """A program that became a service. folder: of the repository that it belongs to."""

    name: str
    folder: str
    env: dict[str, str] = field(default_factory=dict)
    origin: Origin | None = None
    origins: dict[str, Origin] = field(default_factory=dict)


def place(facts: Facts, draft: Draft) -> list[App]:
    """Put services for the Procfile's processes, else for the packages that have a server to start."""
    found = _procfile(facts, draft) or [*_packages(facts, draft), *_servers(facts, draft)]
    if facts.editor is not None:
        for app in found:
            app.env = {**facts.editor.env, **app.env}
            app.origins |= {key: facts.editor.origin(key) for key in facts.editor.env}
        own = [port for port in facts.editor.ports if port not in families.PORTS.values() or port == 8080]
        if len(found) == 1 and own and "port" not in draft.services[found[0].name]:
            draft.put(("services", found[0].name, "port"), own[0], facts.editor.origin("forwardPorts"))
    return found


def starts(facts: Facts) -> bool:
    """Whether a file says how a program is started."""
    processes = (each for each in facts.processes if each.name not in ("release", "postdeploy"))
    return (
        any(_language(facts, each.argv, ".") for each in processes)
        or any(_script(each) for each in facts.packages)
        or any(each.argv is not None for each in facts.servers)
    )


def _servers(facts: Facts, draft: Draft) -> list[App]:
    apps: list[App] = []
    for server in facts.servers[:MAX_APPS]:
        where = "" if server.folder == "." else f" in {server.folder}"
        if server.argv is None:
            text = f"no file says how the {server.language} server{where} is started"
            draft.ask("services", text, *server.candidates, origin=server.origin)
            continue
        plain = "web" if server.folder == "." else slug(server.folder.rsplit("/", 1)[-1], "web")
        names = (plain, f"{plain}-{server.language}", *(f"{plain}-{count}" for count in range(2, 99)))
        name = next(each for each in names if each not in draft.services)
        app = App(name, server.folder, dict(server.env), server.origin)
        here = ("services", name)
        draft.services[name] = {}
        draft.say(here, server.origin)
        toolchain(facts, draft, here, server.language, server.folder)
        draft.put((*here, "start"), list(server.argv), server.origin)
        if server.port is not None:
            draft.put((*here, "port"), server.port, server.port_at)
            app.env |= {"PORT": str(server.port)} if server.reads_port else {}
            if server.language in _COMPILED:
                probe = {"tcp": server.port, "timeout": "600s"}
                draft.put((*here, "health"), probe, "its port must answer; it is compiled first")
        if server.loopback is not None:
            text = (
                f"{name} listens on localhost, where only its own container reaches it: let it listen on all"
            )
            draft.ask("/".join((*here, "port")), text, origin=server.loopback)
        app.origins = dict.fromkeys(app.env, server.origin)
        apps.append(app)
    return apps


def _procfile(facts: Facts, draft: Draft) -> list[App]:
    apps: list[App] = []
    for process in facts.processes[:MAX_APPS]:
        if process.name in ("release", "postdeploy"):
            if any(step.origin == process.origin for step in facts.steps):
                continue
            text = f"`{process.text}` runs before each release: is it a set-up step of a bay?"
            draft.ask("services", text, origin=process.origin)
            continue
        language = _language(facts, process.argv, ".")
        if language is None:
            text = f"no file says what `{process.text}` runs on"
            draft.ask(f"services/{slug(process.name)}", text, origin=process.origin)
            continue
        app = App(slug(process.name), ".", dict(process.env), process.origin)
        app.origins = dict.fromkeys(app.env, process.origin)
        here = ("services", app.name)
        draft.services[app.name] = {}
        draft.say(here, process.origin)
        toolchain(facts, draft, here, language, ".")
        draft.put((*here, "start"), list(process.argv), process.origin)
        if process.shell:
            text = (
                f"`{process.text}` needs a shell and is kept whole: write it as plain arguments if it can be"
            )
            draft.ask("/".join((*here, "start")), text, origin=process.origin)
        port, source = _python_port(facts, process.argv)
        uses = "$PORT" in process.text or "${PORT" in process.text
        if port is None and (uses or process.name == "web"):
            port, source = 8000, process.origin
            app.env["PORT"] = "8000"
            draft.ask(
                "/".join((*here, "port")), "the platform gives PORT; 8000 is set", origin=process.origin
            )
        if port is not None:
            draft.put((*here, "port"), port, source)
            app.env.setdefault("PORT", str(port))
        apps.append(app)
    return apps


def _language(facts: Facts, argv: tuple[str, ...], folder: str) -> str | None:
    text = " ".join(argv)
    hints = (
        ("python", r"\b(python3?|gunicorn|uvicorn|celery|flask|django-admin|hypercorn|daphne|waitress)\b"),
        ("node", r"\b(node|npm|npx|pnpm|yarn|next|vite|tsx|ts-node|nodemon)\b"),
        ("ruby", r"\b(bundle|ruby|rails|rake|puma|sidekiq|bin/rails)\b"),
        ("php", r"\b(php|composer|artisan)\b"), ("elixir", r"\b(mix|iex|elixir)\b"),
        ("java", r"\bjava\b|\b(mvnw|gradlew)\b"), ("go", r"\bgo run\b"), ("rust", r"\bcargo\b"),
    )  # fmt: skip
    for language, pattern in hints:
        if re.search(pattern, text):
            return language
    if facts.project(folder):
        return "python"
    return "node" if facts.package(folder) else None


def toolchain(facts: Facts, draft: Draft, here: tuple[str, ...], language: str, folder: str) -> None:
    """The image of a language and what installs the folder's dependencies there."""
    project, package = facts.project(folder), facts.package(folder)
    if facts.editor is None:
        _official(facts, draft, here, language, folder)
    elif facts.editor.image:
        draft.put((*here, "image"), facts.editor.image, facts.editor.origin("image"))
    else:
        made = {key: value for key, value in (facts.editor.build or {}).items() if value}
        made["context"] = made["context"] if made["context"] == "." else f"./{made['context']}"
        draft.put((*here, "build"), made, facts.editor.origin("build"))
        draft.put((*here, "workdir"), "/workspace", None)
    if language == "python" and project is not None and (install := project.install()):
        draft.put((*here, "install"), list(install), project.files[0] if project.files else None)
    elif language == "node" and package is not None:
        root = facts.package(package.root) or package
        draft.put((*here, "install"), list(root.install()), root.lock or root.file)
        folders = [root.folder, *root.member_folders] if root.member_folders else [package.folder]
        modules = [normal(join("/workspace", each, "node_modules")) for each in folders]
        draft.put((*here, "volumes"), modules, root.file)
    elif install := _install(facts, language, folder):
        draft.put((*here, "install"), list(install), None)
    elif language == "php" and facts.view.exists(normal(join(folder, "composer.json"))):
        text = "the official PHP image has no composer: use an image that has, or a build"
        draft.ask("/".join((*here, "install")), text)
    if folder != "." and language != "node":
        draft.put((*here, "workdir"), f"/workspace/{folder}", None)


def _official(facts: Facts, draft: Draft, here: tuple[str, ...], language: str, folder: str) -> None:
    """The official image of a language, in the version that files ask for."""
    asked, where = _asked(facts, language, facts.project(folder), facts.package(folder))
    version = versions.version(facts.view, language, folder, asked=asked, asked_in=where)
    draft.put((*here, "image"), version.image, version.origin or f"no file names a version of {language}")
    if version.origin is None:
        text = f"no file names a version of {language}; {version.number} is taken"
        draft.ask("/".join((*here, "image")), text)


def _install(facts: Facts, language: str, folder: str) -> tuple[str, ...] | None:
    if language == "ruby" and facts.view.exists(normal(join(folder, "Gemfile"))):
        return ("bundle", "install")
    if language == "elixir" and facts.view.exists(normal(join(folder, "mix.exs"))):
        return ecosystems.MIX_INSTALL
    if language == "go" and facts.view.exists(normal(join(folder, "go.mod"))):
        return ("go", "mod", "download")
    builds = (build for build in facts.builds if build.language == language and build.folder == folder)
    return next((build.install for build in builds), None)


def _asked(
    facts: Facts, language: str, project: python.Project | None, package: node.Package | None
) -> tuple[str | None, Origin | None]:
    """A version that CI or a project file asks for."""
    for job in facts.jobs:
        number = {"python": job.python, "node": job.node}.get(language)
        if number:
            return number, Origin(job.file, 0, f"jobs.{job.name}")
        image = re.fullmatch(rf"(?:.*/)?{language}:(\d[\w.]*)\S*", job.image or "")
        if image:
            return image[1], Origin(job.file, 0, f"jobs.{job.name}.container")
    if language == "python" and project is not None and project.requires_python:
        return project.requires_python, Origin(project.files[0])
    if language == "node" and package is not None:
        root = facts.package(package.root)
        for each in (package, root):
            if each is not None and each.node:
                return each.node, Origin(each.file, 0, "engines.node")
    return None, None


def _python_port(facts: Facts, argv: tuple[str, ...]) -> tuple[int | None, Origin | str | None]:
    told = ports.in_command(" ".join(argv))
    if told is not None:
        return told, "its command"
    if "gunicorn" in argv[:1]:
        named = (value for flag, value in pairwise(argv) if flag in ("-c", "--config"))
        file = next(named, "gunicorn.conf.py")
        for number, line in enumerate(facts.view.lines(file), 1):
            match = re.match(r"\s*bind\b.*?(\d{2,5})\D*$", line)
            if match:
                return int(match[1]), Origin(normal(file), number, "bind")
    return None, None


def _packages(facts: Facts, draft: Draft) -> list[App]:
    apps: list[App] = []
    for package in facts.packages:
        script = next((name for name in ("dev", "start", "serve") if _serves(package, name)), None)
        if script is not None and any(
            server.folder == package.folder and servers.runs(server.language, package.scripts[script])
            for server in facts.servers
        ):
            continue  # it starts the program of another language
        if script is None or (package.member_folders and package.runs_others(script)):
            continue
        if len(apps) >= MAX_APPS:
            draft.ask(
                "services", f"{package.file} has a script `{script}` as well", origin=package.origin(script)
            )
            continue
        name = slug((package.name or package.folder).rsplit("/", 1)[-1], "web")
        name = "web" if name == slug(draft.project) and "web" not in draft.services else name
        while name in draft.services:
            name = f"{name}-app"
        here = ("services", name)
        draft.services[name] = {}
        draft.say(here, package.origin(script))
        toolchain(facts, draft, here, "node", package.folder)
        argv = list(package.argv(script, at_home=False))
        if (
            "vite" in package.dependencies
            and "--host" not in package.scripts[script]
            and "vite" in package.scripts[script]
        ):
            argv += [*(["--"] if package.manager == "npm" else []), "--host", "0.0.0.0"]  # noqa: S104 - in a container
        draft.put((*here, "start"), argv, package.origin(script))
        app = App(name, package.folder, {}, package.origin(script))
        port, source = _node_port(facts, package, script)
        if port is not None:
            draft.put((*here, "port"), port, source)
        apps.append(app)
    return apps


def _script(package: node.Package) -> str | None:
    """The script that starts a package's own server."""
    script = next((name for name in ("dev", "start", "serve") if _serves(package, name)), None)
    return None if script and package.member_folders and package.runs_others(script) else script


def _serves(package: node.Package, script: str) -> bool:
    text = package.scripts.get(script)
    return bool(text) and not re.search(
        r"docker[ -]compose|storybook|tsc\b.*--?w(atch)?\b|\bexpo\b|electron", text or ""
    )


def _node_port(facts: Facts, package: node.Package, script: str) -> tuple[int | None, Origin | str | None]:
    text = package.scripts[script]
    told = ports.in_command(text)
    if told is not None:
        return told, package.origin(script)
    plain, env = words.argv(text)
    if env.get("PORT", "").isdigit():
        return int(env["PORT"]), package.origin(script)
    for name in ("vite.config.ts", "vite.config.js", "vite.config.mjs"):
        file = normal(join(package.folder, name))
        for number, line in enumerate(facts.view.lines(file), 1):
            if "vite" in text and (match := re.search(r"\bport\s*:\s*(\d{2,5})", line)):
                return int(match[1]), Origin(file, number, "server.port")
    for word in plain[1:] if plain[:1] in (("node",), ("nodemon",), ("tsx",), ("ts-node",)) else ():
        file = normal(join(package.folder, word))
        for number, line in enumerate(facts.view.lines(file) if not word.startswith("-") else (), 1):
            if match := _PORT_HINT.search(line):
                return int(next(group for group in match.groups() if group)), Origin(file, number)
    for name, port in _FRAMEWORK_PORTS:
        if name in package.dependencies:
            return port, f"the default of {name}"
    return None, None
