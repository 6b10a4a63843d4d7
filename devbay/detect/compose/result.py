"""From a view to the stack of one folder: our own reading, and the real compose's where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from devbay.detect.compose import asking, checks, envnames, finding, scalars
from devbay.detect.compose.load import PROJECT, Loader, origin_at, plain_name
from devbay.detect.compose.merging import Fault
from devbay.detect.compose.model import ComposeResult, FileObject, Refusal, Resource, Service
from devbay.detect.compose.services import service
from devbay.detect.compose.tree import Map, mapping
from devbay.detect.facts import Origin
from devbay.detect.files import View, folder_of, normal


def resolve(view: View, folder: str = "", files: Sequence[str] = (), *, ask: bool = True) -> ComposeResult:
    """The stack that compose would run in `folder`, as in an empty environment without `.env`.

    files: those of `-f`, relative to the root, in place of the ones compose finds itself; `folder` is then
    the project's, and blank for the first file's. ask: whether the real compose is asked as well; what it
    gives otherwise than our reading is told in `notes` and holds. Never raises for what files hold.
    """
    chosen = tuple(normal(file) for file in files) or finding.default_files(view, folder)
    if not chosen:
        return ComposeResult(alternatives=finding.alternatives(view, ()))
    work = normal(folder) if folder or not files else folder_of(chosen[0])
    loader = Loader(view)
    name = loader.name(chosen)
    project = name or plain_name(work.rsplit("/", 1)[-1] if work != "." else view.root.resolve().name)
    loader.known = {PROJECT: project}
    model = loader.model(chosen, work)
    read = _from_model(model, loader, view)
    result = replace(
        read,
        name=name,
        files=tuple(loader.files),
        chosen=tuple(file for file in chosen if file in loader.files),
        variables=tuple(loader.variables),
        skipped=tuple(sorted(set(loader.skipped))),
        alternatives=finding.alternatives(view, (*loader.files, *chosen)),
    )
    if not model and not loader.refusals:
        loader.refuse("the file is empty", Origin(chosen[0], 1))
    told = (*loader.refusals, *checks.unknown(model), *checks.refusals(result))
    result = replace(result, refusals=tuple(dict.fromkeys(told)))
    if not ask or loader.remote or not result.chosen:
        return result
    answer = asking.ask(view, result, chosen, work)
    return result if answer is None else _settled(result, answer)


def _from_model(model: Map, loader: Loader, view: View) -> ComposeResult:
    services: list[Service] = []
    declared = mapping(model.get("services"))
    for name, data in declared.items():
        if isinstance(data, Map) or data is None:
            faults: list[Fault] = []
            at = declared.at.get(name) or Origin("")
            made = service(name, mapping(data), Origin(at.file, at.line, f"services.{name}"), faults)
            services.append(_with_env_files(made, view))
            for text, path in faults:
                loader.refuse(f"{'.'.join(path)}: {text}", origin_at(model, path))
    return ComposeResult(
        services=tuple(services),
        volumes={name: _resource(data, at) for name, data, at in _section(model, "volumes")},
        networks={name: _resource(data, at) for name, data, at in _section(model, "networks")},
        secrets={name: _file_object(data, at) for name, data, at in _section(model, "secrets")},
        configs={name: _file_object(data, at) for name, data, at in _section(model, "configs")},
    )


def _with_env_files(made: Service, view: View) -> Service:
    files = tuple(
        replace(file, exists=view.exists(file.path), names=envnames.names(view, file.path))
        for file in made.env_files
    )
    return replace(made, env_files=files)


def _section(model: Map, kind: str) -> list[tuple[str, Map, Origin | None]]:
    section = mapping(model.get(kind))
    return [(name, mapping(each), section.at.get(name)) for name, each in section.items()]


def _resource(data: Map, origin: Origin | None) -> Resource:
    external = data.get("external")
    inner = mapping(external)
    return Resource(
        name=scalars.text(data.get("name") or inner.get("name")),
        external=isinstance(external, Map) or _switch(external),
        driver=scalars.text(data.get("driver")),
        device=scalars.text(mapping(data.get("driver_opts")).get("device")),
        internal=_switch(data.get("internal")),
        origin=origin,
    )


def _file_object(data: Map, origin: Origin | None) -> FileObject:
    return FileObject(
        file=scalars.text(data.get("file")),
        environment=scalars.text(data.get("environment")),
        content=scalars.text(data.get("content")),
        external=isinstance(data.get("external"), Map) or _switch(data.get("external")),
        origin=origin,
    )


def _switch(value: Any) -> bool:
    try:
        return bool(scalars.switch(value))
    except ValueError:
        return False


def _settled(result: ComposeResult, answer: asking.Answer) -> ComposeResult:
    """Our reading with the real compose's where the two differ."""
    if answer.refusal is not None:
        ours = result.refusals or (Refusal(f"compose says: {answer.refusal}"),)
        return replace(result, refusals=ours, asked=True)
    services, notes = [], list(result.notes)
    for mine in result.services:
        theirs = answer.services.get(mine.name)
        differing = asking.differences(mine, theirs) if theirs is not None else {}
        for key, value in differing.items():
            notes.append(
                f"services.{mine.name}.{key}: compose itself reads it otherwise, and its reading is taken"
            )
            mine = replace(mine, **{key: value})
        services.append(mine)
    return replace(result, services=tuple(services), notes=tuple(notes), asked=True)
