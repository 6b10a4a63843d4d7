"""Which stack a bay runs where there are several: the default, or what people start by script."""

from __future__ import annotations

import re
from dataclasses import dataclass
from posixpath import join

from devbay.detect import actions, devcontainer, families, words
from devbay.detect.compose import finding
from devbay.detect.draft import Draft
from devbay.detect.facts import Origin, slug
from devbay.detect.facts_of import Facts
from devbay.detect.files import folder_of, normal
from devbay.detect.recipes import ComposeCall
from devbay.detect.stack import BuildFact, Part, PortFact, Value
from devbay.manifest import images

_DEVELOPS = re.compile(
    r"(^|[:_./-])(dev|develop|development|local|start|up|infra|serve)([:_./-]|$)", re.IGNORECASE
)
_OTHERWISE = re.compile(
    r"prod|release|deploy|test|e2e|check|(^|[:_-])ci([:_-]|$)|staging|images|cluster", re.IGNORECASE
)


@dataclass(frozen=True)
class Choice:
    """files: what compose reads together; empty for its own default. others: stacks that are not proposed."""

    files: tuple[str, ...] = ()
    origin: Origin | None = None
    others: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        return bool(self.files)


def choose(facts: Facts) -> Choice:
    """The files of the proposed stack, relative to the root."""
    view = facts.view
    every = finding.alternatives(view, ())
    default = finding.default_files(view)
    called = [call for call in facts.calls if _starts(call)]
    for call in sorted(called, key=_rank):
        files = tuple(normal(name) for name in call.files)
        if files and all(view.exists(name) for name in files):
            return Choice(files, call.origin, tuple(name for name in every if name not in files))
    if default:
        return Choice(default, Origin(default[0]), tuple(name for name in every if name not in default))
    edited = next((each for each in facts.devcontainers if each.compose), None)
    if edited is not None and all(view.exists(name) for name in edited.compose):
        others = tuple(name for name in every if name not in edited.compose)
        return Choice(edited.compose, edited.origin("dockerComposeFile"), others)
    below = sorted(
        (name for name in every if not _OTHERWISE.search(name)), key=lambda name: (name.count("/"), name)
    )
    if below:
        return Choice((below[0],), Origin(below[0]), tuple(name for name in every if name != below[0]))
    return Choice((), None, every)


def _starts(call: ComposeCall) -> bool:
    names = " ".join((*call.files, call.named))
    return (
        call.verb == "up"
        and bool(call.files)
        and not _OTHERWISE.search(names)
        and bool(_DEVELOPS.search(names))
    )


def _rank(call: ComposeCall) -> tuple[int, int, str]:
    """Scripts with a name before CI and shell scripts; more files before fewer."""
    return (
        0 if "package.json" in call.origin.file or "/" not in call.origin.file else 1,
        -len(call.files),
        call.named,
    )


def say(choice: Choice, draft: Draft) -> None:
    """Tell which stack is proposed and which are not."""
    if not choice.others:
        return
    shown = ", ".join(choice.others[:12]) + (
        f" and {len(choice.others) - 12} more" if len(choice.others) > 12 else ""
    )
    taken = " + ".join(choice.files) or "none of them"
    text = f"the stack of {taken} is proposed; other compose files are left alone: {shown}"
    draft.ask("services", text, *choice.others[:12], origin=choice.origin)


def from_devcontainer(config: devcontainer.Devcontainer, draft: Draft) -> Part:
    """The editor's container as a part of its own."""
    name = slug(config.name, "app")
    build = None
    if config.build is not None:
        build = BuildFact(
            config.build["context"], config.build["dockerfile"], config.build["target"], config.build["args"]
        )
    started = config.commands.get("postStartCommand") or config.commands.get("postAttachCommand") or ""
    argv, env = words.argv(started.rstrip().removesuffix("&"))
    command = argv if started and argv[:2] != ("sh", "-c") else None
    about = f"services/{name}/start"
    if command:
        text = "the editor starts the server after it opens; is this the bay's command?"
        draft.ask(about, text, " ".join(command), origin=config.origin("postStartCommand"))
    else:
        draft.ask(about, f"no file says what starts the server of {name}", origin=Origin(config.file))
    values = {key: Value(value, (), config.origin(key)) for key, value in {**config.env, **env}.items()}
    return Part(
        name=name, origin=Origin(config.file), image=config.image, build=build, command=command, env=values,
        ports=tuple(PortFact(port) for port in config.ports), workdir="/workspace",
    )  # fmt: skip


def from_ci(jobs: tuple[actions.CiJob, ...], draft: Draft) -> list[Part]:
    """The service containers of CI, each family once; those that an expression decides are asked about."""
    parts: list[Part] = []
    seen: set[str] = set()
    for job in jobs:
        for service in job.services:
            if service.image is None:
                text = f"the image of {service.name} is an expression (a matrix or a condition): which one?"
                draft.ask("services", text, origin=service.origin)
                continue
            kind = images.family(service.image) or service.image
            if kind in seen:
                continue
            seen.add(kind)
            if service.credentials:
                text = f"{service.image} is pulled with credentials of CI: is there one that a bay may pull?"
                official = service.image.rsplit("/", 1)[-1]
                draft.ask(f"services/{slug(service.name)}/image", text, official, origin=service.origin)
            env = {key: Value(value, (), service.origin) for key, value in service.env.items()}
            env |= {key: Value(None, (asked,), service.origin) for key, asked in service.asked.items()}
            ports = tuple(PortFact(port) for port in service.ports)
            parts.append(Part(service.name, service.origin, image=service.image, env=env, ports=ports))
    return parts


def runs_the_app(parts: list[Part]) -> bool:
    """Whether the containers are more than what the program uses."""
    started = [part for part in parts if not part.profiles] or parts
    return any(part.build is not None or images.family(part.image) is None for part in started)


def is_infrastructure(part: Part) -> bool:
    return part.build is None and (families.is_store(part.image) or images.family(part.image) is not None)


def folders_of(facts: Facts, part: Part) -> tuple[str, ...]:
    """The folders of the repository that a part's image is built from, the closest first."""
    build = part.build
    if build is None or build.remote or build.inline:
        return ()
    file = normal(join(build.context, build.dockerfile))
    return tuple(dict.fromkeys((folder_of(file), normal(build.context))))
