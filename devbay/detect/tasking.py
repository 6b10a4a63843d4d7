"""Where a found task runs and what it needs: in the container of its folder, or on its language's image."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from posixpath import join

from devbay.detect import dockerfile, envfiles, environment, families, recipes, stacks, testing
from devbay.detect.apps import App, toolchain
from devbay.detect.containers import Placed, build_data
from devbay.detect.draft import Draft
from devbay.detect.facts import Origin, is_secret, slug
from devbay.detect.facts_of import Facts
from devbay.detect.files import normal
from devbay.detect.stack import BuildFact, Part
from devbay.manifest import images

_LANGUAGES = (
    (r"python|pytest|ruff|mypy|flake8|pylint|black|tox|uv$|poetry$|coverage$", "python"),
    (r"(node|npx|tsc|eslint)$", "node"),
    (r"(go|gotestsum|golangci-lint)$", "go"),
    (r"cargo$", "rust"),
    (r"(bundle|rspec|rake|rubocop)$", "ruby"),
    (r"mix$", "elixir"),
    (r"(mvnw?|gradlew?)$", "java"),
    (r"(phpunit|pest|php)$", "php"),
)


@dataclass(frozen=True)
class Home:
    """A container that tasks may run in. service: None for one that is no service, such as a test container.

    at: folder of the repository that the image's working directory holds, as far as its Dockerfile tells.
    """

    name: str
    service: str | None
    folders: tuple[str, ...]
    part: Part | None = None
    build: BuildFact | None = None
    stage: dockerfile.Stage | None = None
    app: bool = False


def homes(
    facts: Facts, draft: Draft, placed: Mapping[str, Placed], parts: tuple[Part, ...], apps: list[App]
) -> list[Home]:
    """Every container of the user's own programs: services first, then those that only tasks use."""
    found = [Home(app.name, app.name, (app.folder,), app=True) for app in apps]
    for one in placed.values():
        if one.build is not None and not one.oneshot and one.name in draft.services:
            folders = _folders(facts, one.part, one.build, one.stage)
            found.append(Home(one.name, one.name, folders, one.part, one.build, one.stage))
    built: dict[str, BuildFact] = {part.image: part.build for part in parts if part.build and part.image}
    for part in parts:
        build = part.build or built.get(part.image or "")
        if part.name not in placed and build and not build.remote and not build.inline:
            text = facts.view.text(normal(join(build.context, build.dockerfile)))
            args = {key: value for key, value in build.args.items() if value is not None}
            stage = dockerfile.stage_of(text, build.target, args) if text else None
            found.append(Home(part.name, None, _folders(facts, part, build, stage), part, build, stage))
    for one in placed.values():  # what the editor pulls as it is
        if one.build is None and one.name in draft.services and not stacks.is_infrastructure(one.part):
            found.append(Home(one.name, one.name, (), one.part))
    return found


def _folders(facts: Facts, part: Part, build: BuildFact, stage: dockerfile.Stage | None) -> tuple[str, ...]:
    """Folders that an image is made from: what the Dockerfile copies, its own place, its context."""
    copied: list[str] = []
    for source, _ in stage.copied if stage else ():
        path = normal(join(build.context, source.lstrip("/")))
        folder = path if facts.view.is_folder(path) else path.rpartition("/")[0] or "."
        copied.append(folder)
    own = stacks.folders_of(facts, replace(part, build=build))
    return tuple(dict.fromkeys([each for each in (*copied, *own) if not each.startswith("..")]))


def put(
    facts: Facts,
    draft: Draft,
    all_homes: list[Home],
    placed: Mapping[str, Placed],
    around: environment.Around,
) -> None:
    """Put every task that the files name into the draft."""
    for found in testing.find(facts):
        home = _home(found, all_homes, draft)
        if home is None and not _language(facts, found):
            draft.ask(
                "tasks", f"`{' '.join(found.argv)}` runs on nothing that a file names", origin=found.origin
            )
            continue
        name = slug(found.name, "task")
        while name in draft.tasks:
            name = f"{name}-2"
        here = ("tasks", name)
        draft.tasks[name] = {}
        argv = _argv(facts, found, home)
        draft.put((*here, "run"), list(argv), found.origin)
        needs, source = _needs(found, home, draft, placed)
        draft.put((*here, "needs"), needs, source)
        _container(facts, draft, here, found, home)
        if found.env:
            for key, value in found.env.items():
                if not is_secret(key):
                    draft.put((*here, "env", key), value.replace("${", "$${"), found.origin)
        _variables(facts, draft, name, found, home, needs, around)
        report = testing.report(facts, found, argv, _starts_in(found, home))
        if report is not None:
            draft.put((*here, "report"), report, None)
        if found.left:
            draft.note(
                f"tasks/{name}: {', '.join(found.left)} of {found.origin} needs the runner's values: left out"
            )


def _home(found: testing.Found, all_homes: list[Home], draft: Draft) -> Home | None:
    if found.container is not None:
        return next((home for home in all_homes if home.part and home.part.name == found.container), None)
    exact = [home for home in all_homes if found.folder in home.folders]
    if exact:
        best = min(home.folders.index(found.folder) for home in exact)
        return _first([home for home in exact if home.folders.index(found.folder) == best], draft)
    above = [home for home in all_homes if any(holds(folder, found.folder) for folder in home.folders)]
    if above:
        return _first(above, draft)
    editor = [home for home in all_homes if not home.folders]
    return editor[0] if len(editor) == 1 else None


def _first(fitting: list[Home], draft: Draft) -> Home:
    """The primary service among homes that fit alike, else the first."""
    primary = (home for home in fitting if home.service and draft.services[home.service].get("primary"))
    return next(primary, fitting[0])


def holds(folder: str, inner: str) -> bool:
    return folder == "." or inner.startswith(f"{folder}/")


def _language(facts: Facts, found: testing.Found) -> str | None:
    if found.package is not None:
        return "node"
    for build in facts.builds:
        if (build.folder, build.argv) == (found.folder, found.argv):
            return build.language
    program = found.argv[0].rsplit("/", 1)[-1]
    return next((language for pattern, language in _LANGUAGES if re.match(pattern, program)), None)


def _argv(facts: Facts, found: testing.Found, home: Home | None) -> tuple[str, ...]:
    package = found.package
    if package is None:
        return found.argv
    inside = _inside(found, home)
    text = package.scripts[found.script]
    direct = re.fullmatch(r"node\s+--test(\s+[\w./-]+)*", text.strip())
    if inside and home and direct and package.manager != "npm" and not _has_manager(home, package.manager):
        return tuple(text.split())
    return package.argv(found.script, at_home=inside)


def _starts_in(found: testing.Found, home: Home | None) -> str:
    """The folder of the repository that a task's command starts in."""
    return found.folder if found.package is None or _inside(found, home) else "."


def _inside(found: testing.Found, home: Home | None) -> bool:
    """Whether the working directory of a container is the task's folder, as far as its Dockerfile tells."""
    return home is not None and not home.app and (found.folder in home.folders or not home.folders)


def _has_manager(home: Home, manager: str) -> bool:
    return any(manager in run or "corepack" in run for run in (home.stage.runs if home.stage else ()))


def _needs(
    found: testing.Found, home: Home | None, draft: Draft, placed: Mapping[str, Placed]
) -> tuple[list[str], Origin | str | None]:
    """What CI starts for a task, else what its container declares, else nothing."""
    declared = _declared(home, draft, placed)
    job = found.job
    if job is None:
        return declared, "what its container needs" if declared else None
    where = Origin(job.file, 0, f"jobs.{job.name}")
    if job.services:
        kinds = {images.family(service.image) or service.image for service in job.services if service.image}
        names = [
            name for name, data in draft.services.items()
            if data.get("image") and (images.family(data["image"]) or data["image"]) in kinds
        ]  # fmt: skip
        return names, where
    if job.composes:
        named: list[str] = []
        for text in job.composes:
            for call in recipes.compose_calls(text, where):
                named += [word for word in call.words if not word.startswith("-")]
        names = [
            one.name for one in placed.values() if not one.oneshot and (not named or one.part.name in named)
        ]
        return [name for name in names if name in draft.services], where
    if job.stores:
        stores = [name for name in declared if families.is_store(draft.services[name].get("image"))]
        return stores or declared, where
    return [], where


def _declared(home: Home | None, draft: Draft, placed: Mapping[str, Placed]) -> list[str]:
    if home is None or home.app:
        return []
    if home.service is not None:
        return [need for need in draft.services[home.service].get("needs", []) if need in draft.services]
    needs = home.part.needs if home.part else {}
    return [placed[need].name for need in needs if need in placed and placed[need].name in draft.services]


def _container(
    facts: Facts, draft: Draft, here: tuple[str, ...], found: testing.Found, home: Home | None
) -> None:
    language = _language(facts, found)
    if home is None:
        toolchain(facts, draft, here, language or "python", found.folder)
    elif home.service is not None:
        draft.put((*here, "in"), home.service, None)
    elif home.build is not None:
        draft.put(
            (*here, "build"),
            build_data(home.name, home.build, draft),
            home.part.at("build") if home.part else None,
        )
    if (
        home is not None
        and not home.app
        and language == "python"
        and found.container is None
        and not mounted(home, draft)
    ):
        draft.put(
            (*here, "workdir"), "/workspace" if found.folder == "." else f"/workspace/{found.folder}", None
        )
    if home is None and language == "python":
        draft.put(
            (*here, "env", "PYTHONPATH"),
            "/workspace" if found.folder == "." else f"/workspace/{found.folder}",
            None,
        )


def mounted(home: Home, draft: Draft) -> bool:
    """Whether a stack lays the sources over the image's working directory itself."""
    if home.service is None:
        return False
    data = draft.services[home.service]
    work = data.get("workdir") or (home.stage.workdir if home.stage else None)
    return work == "/workspace" or any(
        work == mount["target"] or (work or "").startswith(f"{mount['target']}/")
        for mount in data.get("mounts", [])
    )


def _variables(
    facts: Facts, draft: Draft, name: str, found: testing.Found, home: Home | None, needs: list[str],
    around: environment.Around,
) -> None:  # fmt: skip
    """What CI and example files name for a task on an image of its own, as references to what it needs."""
    if home is not None and home.service is not None:
        return
    env = environment.Env()
    for key, value in (home.part.env if home and home.part else {}).items():
        if value.text:
            env.texts[key] = value.text
            env.origins[key] = value.origin or found.origin
    names = {variable.name: variable for variable in facts.shapes} if needs else {}
    for key in found.job.asked if found.job and home is None else ():
        names.setdefault(key, envfiles.Variable(key, Origin(found.job.file if found.job else "", 0, "env")))
    reachable = {need: around.places.targets[need] for need in needs if need in around.places.targets}
    for key, variable in names.items():
        env.named[key] = replace(variable, scheme=None) if variable.scheme in ("http", "https") else variable
    inside = replace(around, reachable=reachable)
    environment.write(name, env, inside, draft)
    for key, variable in env.named.items():
        if key not in draft.tasks[name].get("env", {}) and found.job is not None and key in found.job.asked:
            text = f"CI gives {key} to `{' '.join(found.argv[:2])}`; its value is not copied"
            draft.ask(f"tasks/{name}/env/{key}", text, origin=variable.origin)
