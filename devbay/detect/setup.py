"""The set-up step of each database: a one-shot before all that use it, or the question which it is."""

from __future__ import annotations

import re
from posixpath import basename

from devbay.detect import families, migrations
from devbay.detect.draft import Draft
from devbay.detect.facts_of import Facts
from devbay.detect.migrations import OUTSIDE, Step
from devbay.detect.tasking import Home, holds, mounted
from devbay.manifest import images

_BASES = {
    "python": "python", "node": "node", "ruby": "ruby", "golang": "go", "rust": "rust", "php": "php",
    "eclipse-temurin": "java", "maven": "java", "gradle": "java", "openjdk": "java", "elixir": "elixir",
}  # fmt: skip


def put(facts: Facts, draft: Draft, homes: list[Home]) -> None:
    """One step for each set of databases; every further tool for the same is asked about."""
    taken: dict[tuple[str, ...], str] = {}
    for step in facts.steps:
        about = f"{step.tool} migrations"
        if any(
            data.get("kind") == "oneshot" and migrations.moves(step.tool, _words(data))
            for data in draft.services.values()
        ):
            draft.note(f"{about}: a one-shot of the stack runs them [{step.origin}]")
            continue
        fitting = [home for home in _fitting(step, homes) if _speaks(home, step.language, draft)]
        if any(_starts_with(facts, draft, home, step) for home in fitting):
            draft.note(f"{about} are run by the service itself as it starts [{step.origin}]")
            continue
        stores = tuple(dict.fromkeys(
            need for home in fitting for need in draft.services[home.service or ""].get("needs", [])
            if images.family(draft.services.get(need, {}).get("image")) in families.SQL
        ))  # fmt: skip
        if step.at_start and fitting:
            draft.ask(
                "services",
                f"{about}: does the program run them as it starts?",
                *_offers(step),
                origin=step.origin,
            )
        elif not fitting or not stores or step.argv is None or not _has_program(step, fitting):
            lines = " or ".join(f"`{line}`" for line in _offers(step)) or "a command that no file names"
            text = f"{about}: which service prepares the database with {lines}?"
            draft.ask("services", text, *_offers(step), origin=step.origin)
        elif stores in taken:
            text = f"{about} for {', '.join(stores)} stand beside those of {taken[stores]}: are both needed?"
            draft.ask("services", text, *_offers(step), origin=step.origin)
        else:
            taken[stores] = step.tool
            _place(draft, step, fitting, stores)


def _offers(step: Step) -> tuple[str, ...]:
    return tuple(filter(None, dict.fromkeys((step.text, *step.candidates))))


def _place(draft: Draft, step: Step, fitting: list[Home], stores: tuple[str, ...]) -> None:
    home = fitting[0]
    source = draft.services[home.service or ""]
    name = next(
        each for each in ("migrate", "migrate-database", *(f"migrate-{count}" for count in range(2, 99)))
        if each not in draft.services
    )  # fmt: skip
    here, argv = ("services", name), list(_argv(step, home))
    draft.services[name] = {"kind": "oneshot", "run": argv, "needs": list(stores)}
    draft.say(here, step.origin)
    for key in ("build", "image", "install", "env", "volumes", "mounts", "workdir"):
        if key in source:
            draft.services[name][key] = source[key]
    # What installs beside its sources (node_modules, vendor) is where the image or the service has it.
    if not mounted(home, draft) and (step.language == "python" or (home.app and step.package is None)):
        folder = "" if step.folder == "." else f"/{step.folder}"
        draft.put((*here, "workdir"), f"/workspace{folder}", step.origin)
    if home.stage and home.stage.entrypoint:
        draft.put((*here, "entrypoint"), argv[:1], "instead of the image's own")
        draft.services[name]["run"] = argv[1:]
    for each in fitting:
        service = draft.services[each.service or ""]
        if any(need in stores for need in service.get("needs", [])):
            service["needs"] = [*service["needs"], name]
    if step.candidates:
        text = f"{step.tool} migrations are run with `{step.text}`; these are there as well"
        draft.ask(f"services/{name}/run", text, *step.candidates, origin=step.origin)


def _argv(step: Step, home: Home) -> tuple[str, ...]:
    package, argv = step.package, step.argv or ()
    if package is None:
        return argv
    if step.script:
        return package.argv(step.script, at_home=not home.app and package.folder in home.folders)
    prefix = {"npm": "--prefix", "pnpm": "--dir", "yarn": "--cwd", "bun": "--cwd"}[package.manager]
    if not home.app or package.folder == "." or argv[:1] != ("npx",):
        return argv
    if package.manager == "npm":
        return ("npm", prefix, package.folder, "exec", "--", *argv[1:])
    return (package.manager, prefix, package.folder, "exec", *argv[1:])


def _fitting(step: Step, homes: list[Home]) -> list[Home]:
    exact = [home for home in homes if home.service and step.folder in home.folders]
    return exact or [
        home for home in homes
        if home.service and any(holds(folder, step.folder) for folder in home.folders)
    ]  # fmt: skip


def _speaks(home: Home, language: str, draft: Draft) -> bool:
    """Whether a container has a language, as far as its image tells; those that tell nothing may have any."""
    if not language:
        return True
    image = home.stage.base if home.stage else draft.services[home.service or ""].get("image")
    known = _BASES.get(basename(str(image or "")).split(":")[0].split("@")[0])
    return known is None or known == language


def _has_program(step: Step, fitting: list[Home]) -> bool:
    """Whether the first container has the tool: a package of its language, or put there by its Dockerfile."""
    program = OUTSIDE.get(step.tool)
    if (
        program is None
        or (step.argv or ("",))[0] in ("./mvnw", "./gradlew", "npx")
        or step.package is not None
    ):
        return True
    stage = fitting[0].stage
    return stage is not None and any(re.search(rf"\b{program}\b", run) for run in stage.runs)


def _words(data: dict[str, object]) -> str:
    parts = (data.get(key) for key in ("entrypoint", "start", "run"))
    return " ".join(str(word) for part in parts if isinstance(part, list | tuple) for word in part)


def _starts_with(facts: Facts, draft: Draft, home: Home, step: Step) -> bool:
    """Whether a service's own start runs them: its command, its image's, or a script that these call."""
    own = _words(draft.services[home.service or ""])
    stage = home.stage
    if stage is not None:
        own = " ".join((own, *(stage.entrypoint or ()), *(stage.cmd or ())))
    texts = [own]
    for package in facts.packages:
        if package.folder == step.folder:
            texts += [
                text for name, text in package.scripts.items() if re.search(rf"\b{re.escape(name)}\b", own)
            ]
    called = re.findall(r"[\w./-]*[\w-]+(?:\.sh|entrypoint[\w-]*)\b", own)
    for word in dict.fromkeys(map(basename, called)):
        texts += [facts.view.text(file) or "" for file in facts.view.named(word)[:3]]
    return any(migrations.moves(step.tool, text) for text in texts)
