"""Declared containers as services of a manifest: image or build, commands, needs; names made safe."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from devbay.detect import dockerfile, ports
from devbay.detect.draft import Draft
from devbay.detect.facts import Origin, slug
from devbay.detect.files import View, normal
from devbay.detect.stack import BuildFact, Part, Stack


@dataclass
class Placed:
    """A part that is in the draft. stage: of its Dockerfile."""

    name: str
    part: Part
    build: BuildFact | None
    stage: dockerfile.Stage | None
    chosen: ports.Chosen = field(default_factory=lambda: ports.Chosen(None))
    oneshot: bool = False


@dataclass(frozen=True)
class Context:
    """own_images: names of this repository. run_by: parts that files run as tasks (`compose run`)."""

    view: View
    own_images: frozenset[str]
    run_by: Mapping[str, Origin]


def place(stack: Stack, draft: Draft, context: Context) -> dict[str, Placed]:
    """Put every part that a bay can run into the draft, ask about the others. Keyed by the part's name."""
    wanted = _without_profiles(stack, draft)
    finished = {need for part in wanted for need, how in part.needs.items() if "completed" in how}
    needed = {need for part in wanted for need in part.needs}
    built = {_image_name(part.image): part.build for part in stack.parts if part.build and part.image}
    placed: dict[str, Placed] = {}
    taken: set[str] = set()
    for part in wanted:
        idle = not part.ports and part.name not in needed and part.restart is None
        if part.name in context.run_by and idle:
            where = context.run_by[part.name]
            draft.note(f"{part.name} is run by {where} as a task, so it is no service")
            continue
        build = _build(part, built, draft, context)
        if build is None and not _pullable(part, draft):
            continue
        if idle and build is not None and _starts_nothing(part, build, context.view):
            draft.note(f"{part.name} starts nothing ({part.origin}): its image is used by tasks only")
            continue
        name = slug(part.name, "service")
        while name in taken:
            name = f"{name}-2"
        taken.add(name)
        ends = part.restart in ("no", "false") and not part.ports and part.name not in needed
        oneshot = part.name in finished or ends
        stage = _stage(build, draft, context.view, name)
        placed[part.name] = Placed(name, part, build, stage, oneshot=oneshot)
        if ends and part.name not in finished:
            draft.ask(
                f"services/{name}/kind",
                f"{part.name} is not restarted (`restart: no`), nothing waits for it: does it end or serve?",
                "oneshot", "service", origin=part.at("restart"),
            )  # fmt: skip
    for one in placed.values():
        _service(one, placed, draft)
    return {key: one for key, one in placed.items() if one.name in draft.services}


def _without_profiles(stack: Stack, draft: Draft) -> list[Part]:
    """The parts that start by default, with what they need; all of them where every one has a profile."""
    names = sorted({profile for part in stack.parts for profile in part.profiles})
    plain = [part for part in stack.parts if not part.profiles]
    if not plain:
        if names:
            text = f"every service has a profile ({', '.join(names)}): all are proposed"
            draft.ask("services", text, *names, origin=stack.parts[0].at("profiles"))
        return list(stack.parts)
    by_name = {part.name: part for part in stack.parts}
    wanted = {part.name for part in plain}
    waiting = list(plain)
    while waiting:
        for need in waiting.pop().needs:
            if need in by_name and need not in wanted:
                wanted.add(need)
                waiting.append(by_name[need])
    for part in stack.parts:
        if part.name not in wanted:
            text = f"{part.name} starts only with the profile {', '.join(part.profiles)} and is left out"
            draft.ask(
                f"services/{slug(part.name)}", f"{text}: does a bay need it?", origin=part.at("profiles")
            )
    return [part for part in stack.parts if part.name in wanted]


def _image_name(image: str | None) -> str:
    return re.sub(r"^((index\.)?docker\.io/)?(library/)?", "", image or "").removesuffix(":latest")


def _build(
    part: Part, built: Mapping[str, BuildFact | None], draft: Draft, context: Context
) -> BuildFact | None:
    build, name = part.build, slug(part.name)
    if build is None and part.image:
        build = built.get(_image_name(part.image))
        if build is None and _is_own(part.image, context):
            text = f"the stack pulls the released image {part.image} of this repository; a bay must run this"
            draft.ask(
                f"services/{name}/build", f"{text} branch, so it is built from ./Dockerfile", part.image,
                origin=part.at("image"),
            )  # fmt: skip
            return BuildFact(".")
    if build is None:
        return None
    where = part.at("build")
    if build.secrets:
        text = f"build secrets and ssh are not given to a build: {', '.join(build.secrets)}"
        draft.ask(f"services/{name}/build", text, origin=where)
    if build.remote:
        text = f"{part.name} is built from a remote context: use an image, or a folder of the repository"
        draft.ask(f"services/{name}", text, origin=where)
        return None
    if build.inline:
        text = f"{part.name} has a dockerfile_inline: write it into a file of the repository"
        draft.ask(f"services/{name}", text, origin=where)
        return None
    return build


def _is_own(image: str, context: Context) -> bool:
    path = image.partition("@")[0]
    if "/" not in path or not context.view.exists("Dockerfile"):
        return False
    return path.rsplit("/", 1)[-1].partition(":")[0].lower() in context.own_images


def _pullable(part: Part, draft: Draft) -> bool:
    if part.build is not None:
        return False
    if part.image and not re.search(r"[$\s]|:$|^:", part.image):
        return True
    text = f"{part.name} has no image that a file names"
    draft.ask(f"services/{slug(part.name)}", text, origin=part.at("image"))
    return False


def _starts_nothing(part: Part, build: BuildFact, view: View) -> bool:
    """Whether neither the stack nor the Dockerfile says what runs in a container."""
    text = view.text(normal(posixpath.join(build.context, build.dockerfile)))
    if part.command is not None or part.entrypoint or text is None:
        return False
    args = {key: value for key, value in build.args.items() if value is not None}
    stage = dockerfile.stage_of(text, build.target, args)
    base = re.sub(r"^(docker\.io/)?(library/)?", "", stage.base) if stage else ""
    language = re.match(
        r"(node|python|ruby|golang|php|rust|openjdk|eclipse-temurin|debian|ubuntu|alpine)\b", base
    )
    return stage is not None and not stage.cmd and not stage.entrypoint and language is not None


def _stage(build: BuildFact | None, draft: Draft, view: View, name: str) -> dockerfile.Stage | None:
    if build is None:
        return None
    file = normal(posixpath.join(build.context, build.dockerfile))
    text = view.text(file)
    if text is None:
        draft.ask(f"services/{name}/build", f"the Dockerfile {file} is not in the repository")
        return None
    args = {key: value for key, value in build.args.items() if value is not None}
    return dockerfile.stage_of(text, build.target, args)


def _service(one: Placed, placed: Mapping[str, Placed], draft: Draft) -> None:
    part, here = one.part, ("services", one.name)
    draft.services[one.name] = {}
    draft.say(here, part.origin)
    if one.build is not None:
        draft.put((*here, "build"), build_data(one.name, one.build, draft), part.at("build"))
    else:
        draft.put((*here, "image"), part.image, part.at("image"))
    if not _commands(one, draft):
        del draft.services[one.name]
        return
    needs = [placed[need].name for need in part.needs if need in placed and need != part.name]
    if needs:
        draft.put((*here, "needs"), needs, part.at("depends_on"))
    for key, value in (("platform", part.platform), ("workdir", part.workdir), ("shm_size", part.shm_size)):
        if value:
            draft.put((*here, key), value, part.at({"workdir": "working_dir"}.get(key, key)))
    if part.user:
        _user(one, draft)
    if part.restart in ("always", "unless-stopped", "on-failure") and not one.oneshot:
        draft.put((*here, "restart"), part.restart, part.at("restart"))
    if part.network_mode:
        text = (
            f"network_mode {part.network_mode} is not taken over: services of a bay reach each other by name"
        )
        draft.ask(f"services/{one.name}", text, origin=part.at("network_mode"))
    shown = [alias for alias in part.aliases if slug(alias) != one.name]
    if shown:
        draft.note(
            f"{one.name} is also known as {', '.join(shown)} ({part.origin}); in a bay only {one.name}, so"
            " files that use another name must be changed"
        )


def build_data(name: str, build: BuildFact, draft: Draft) -> str | dict[str, object]:
    """`build` as the manifest writes it; arguments without a value are asked about."""
    context = build.context if build.context == "." else f"./{build.context.removeprefix('./')}"
    args = {key: value for key, value in build.args.items() if value is not None}
    for key, value in build.args.items():
        if value is None:
            text = f"the build argument {key} comes from the shell and has no value in any file"
            draft.ask(f"services/{name}/build/args/{key}", text)
    if build.dockerfile == "Dockerfile" and not build.target and not args:
        return context
    data: dict[str, object] = {"context": context}
    if build.dockerfile != "Dockerfile":
        data["dockerfile"] = build.dockerfile
    if build.target:
        data["target"] = build.target
    if args:
        data["args"] = dict(args)
    return data


def _commands(one: Placed, draft: Draft) -> bool:
    """Put entrypoint and command; False where a one-shot has nothing to run."""
    part, here = one.part, ("services", one.name)
    entrypoint, command = part.entrypoint, part.command
    if entrypoint == () and command:
        entrypoint, command = command[:1], command[1:]  # clears the image's entrypoint by being one
    elif entrypoint == ():
        entrypoint = None
    if one.oneshot:
        draft.put((*here, "kind"), "oneshot", part.at("restart"))
        if not command and entrypoint is None and one.stage is not None:
            command = one.stage.cmd or one.stage.entrypoint
        if not command and entrypoint:
            command, entrypoint = entrypoint, None
        if not command:
            text = f"no file says what {part.name} runs"
            draft.ask(f"services/{one.name}/run", text, origin=part.origin)
            return False
    if entrypoint:
        source = part.at("entrypoint" if part.entrypoint else "command")
        draft.put((*here, "entrypoint"), list(entrypoint), source)
    if command and (one.oneshot or not sleeps(command)):
        draft.put((*here, "run" if one.oneshot else "start"), list(command), part.at("command"))
    elif command:
        text = f"the command of {part.name} is `{' '.join(command)}`: what starts the server?"
        draft.ask(f"services/{one.name}/start", text, origin=part.at("command"))
    return True


def sleeps(command: Sequence[str]) -> bool:
    """Whether a command only keeps a container alive for an editor."""
    text = " ".join(command)
    return bool(re.search(r"\bsleep\s+(infinity|inf)\b|\btail\s+-f\s+/dev/null|while\s+(true|:|sleep)", text))


def _user(one: Placed, draft: Draft) -> None:
    user = {"root": "0"}.get(one.part.user or "", one.part.user or "")
    if re.fullmatch(r"\d+(:\d+)?", user):
        draft.put(("services", one.name, "user"), user, one.part.at("user"))
    else:
        text = f"the user {user} is named; devbay takes `uid[:gid]` or `image`"
        draft.ask(f"services/{one.name}/user", text, origin=one.part.at("user"))
