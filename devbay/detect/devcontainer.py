"""devcontainer.json: where the editor's container comes from, its ports, and all that it asks of its host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from posixpath import join
from typing import Any

from devbay.detect import documents
from devbay.detect.facts import Origin, Question, line_of
from devbay.detect.files import View, folder_of, normal

_PLACE = re.compile(r"(\.devcontainer/([^/]+/)?devcontainer\.json|\.devcontainer\.json)$")
COMMANDS = (
    "initializeCommand", "onCreateCommand", "updateContentCommand", "postCreateCommand", "postStartCommand",
    "postAttachCommand",
)  # fmt: skip


@dataclass(frozen=True)
class Devcontainer:
    """One configuration. One of image, build and compose is set, or none where it says nothing.

    build: context, dockerfile (relative to the context), target, args. compose: files relative to the root.
    service: the one that the editor opens. env: values that no host gives. commands: lifecycle name to text.
    """

    file: str
    name: str
    image: str | None = None
    build: Mapping[str, Any] | None = None
    compose: tuple[str, ...] = ()
    service: str | None = None
    ports: tuple[int, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    folder: str | None = None
    commands: Mapping[str, str] = field(default_factory=dict)
    questions: tuple[Question, ...] = ()
    text: str = field(default="", repr=False)

    def origin(self, key: str) -> Origin:
        return Origin(self.file, line_of(self.text, f'"{key}"'), key)


def configurations(view: View, folder: str = ".") -> tuple[Devcontainer, ...]:
    """Those of the folder: the usual place first, then the named ones."""
    prefix = "" if folder == "." else f"{folder}/"
    files = [
        file for file in view.files() if file.startswith(prefix) and _PLACE.fullmatch(file[len(prefix) :])
    ]
    files.sort(key=lambda file: (file.count("/") - (file == f"{prefix}.devcontainer.json"), file))
    found = [_read(view, file, folder) for file in files]
    return tuple(each for each in found if each is not None)


def _read(view: View, file: str, top: str) -> Devcontainer | None:
    data = documents.json_object(view, file, comments=True)
    if not data:
        return None
    text = view.text(file) or ""
    here = folder_of(file)
    build = documents.mapping(data.get("build"))
    dockerfile = build.get("dockerfile") or data.get("dockerFile")
    made: dict[str, Any] | None = None
    if isinstance(dockerfile, str):
        context = normal(join(here, str(build.get("context") or data.get("context") or ".")))
        path = normal(join(here, dockerfile))
        inside = path.removeprefix(f"{context}/") if context != "." else path
        args = {str(key): str(value) for key, value in documents.mapping(build.get("args")).items()
                if "${" not in str(value)}  # fmt: skip
        made = {"context": context, "dockerfile": inside, "target": build.get("target"), "args": args}
    composed = data.get("dockerComposeFile")
    files = tuple(normal(join(here, name)) for name in documents.texts(composed)) if composed else ()
    image = data.get("image")
    values = {str(key): str(value) for key, value in documents.mapping(data.get("containerEnv")).items()}
    usable = {key: value for key, value in values.items() if "${" not in value and not _local(value)}
    work = data.get("workspaceFolder")
    return Devcontainer(
        file=file,
        name=str(data.get("name") or ""),
        image=image if isinstance(image, str) and not files and made is None else None,
        build=made if not files else None,
        compose=files,
        service=str(data["service"]) if isinstance(data.get("service"), str) else None,
        ports=tuple(_ports(data)),
        env=usable,
        folder=work if isinstance(work, str) and "${" not in work else None,
        commands={key: shown for key in COMMANDS if (shown := _shown(data.get(key)))},
        questions=tuple(_questions(data, values, file, text)),
        text=text,
    )


def _ports(data: Mapping[str, Any]) -> list[int]:
    found: list[int] = []
    for key in ("forwardPorts", "appPort"):
        for each in documents.texts(data.get(key) or []):
            number = each.rsplit(":", 1)[-1]
            if number.isdigit() and 0 < int(number) < 65536 and int(number) not in found:
                found.append(int(number))
    return found


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_shown(each)}" for name, each in value.items())
    return " ".join(documents.texts(value)) if value else ""


def _local(value: str) -> bool:
    return bool(re.search(r"(@|//)(localhost|127\.0\.0\.1)\b", value))


def _questions(data: Mapping[str, Any], env: Mapping[str, str], file: str, text: str) -> list[Question]:
    def ask(about: str, words: str, candidates: tuple[str, ...] = ()) -> None:
        found.append(Question(about, words, candidates, Origin(file, line_of(text, f'"{about}"'), about)))

    found: list[Question] = []
    for name in documents.mapping(data.get("features")):
        ask("features", f"the feature {name} is not installed by devbay: add what it brings to the image")
    if flags := documents.texts(data.get("runArgs") or []):
        names = ", ".join(flag.partition("=")[0] for flag in flags if flag.startswith("-"))
        ask(
            "runArgs",
            f"options of the engine are not taken over: {names} (host network, capabilities and the like)",
        )
    mounts = data.get("mounts")
    for mount in mounts if isinstance(mounts, list) else []:
        kind, target = _mount(mount)
        if kind != "volume":
            ask(
                "mounts",
                f"a host path outside the repository is not mounted at {target}: does the program need it?",
            )
    for key in ("containerEnv", "remoteEnv"):
        for name, value in documents.mapping(data.get(key)).items():
            shell = re.search(r"\$\{localEnv:(\w+)", str(value))
            if shell:
                ask(
                    key, f"{name} comes from {shell[1]} of the developer's shell: give it a value or a secret"
                )
    for name, value in env.items():
        if _local(value):
            ask(
                "containerEnv",
                f"{name} points at localhost, where a bay has nothing: which service is meant?",
            )
    for key in COMMANDS:
        if shown := _shown(data.get(key)):
            ask(
                key,
                "this command is not run in a bay: make it an image step, an `install` or a one-shot",
                (shown,),
            )
    return found


def _mount(mount: Any) -> tuple[str, str]:
    """Type and last folder of the target of a mount."""
    if isinstance(mount, dict):
        parts = {str(key): str(value) for key, value in mount.items()}
    else:
        parts = dict(part.partition("=")[::2] for part in str(mount).split(","))
    source = parts.get("source") or parts.get("src") or ""
    kind = parts.get("type") or "bind"
    if kind == "bind" and source.startswith("${localWorkspaceFolder}"):
        return "volume", ""
    target = parts.get("target") or parts.get("dst") or parts.get("destination") or "?"
    return kind, target.rsplit("/", 1)[-1]
