"""Compose services in the form that all declared containers share, and what a bay has none of."""

from __future__ import annotations

from dataclasses import replace

from devbay.detect import compose
from devbay.detect.compose import model
from devbay.detect.compose.ports import Port
from devbay.detect.draft import Draft
from devbay.detect.facts import slug
from devbay.detect.files import View, folder_of
from devbay.detect.stack import BuildFact, HealthFact, Part, PortFact, Stack, Value, VolumeFact
from devbay.detect.stacks import Choice

_NOT_TAKEN = (
    "privileged", "cap_add", "devices", "security_opt", "sysctls", "dns", "extra_hosts", "external_links",
    "volumes_from", "pid", "ipc", "post_start", "pre_stop", "group_add",
)  # fmt: skip
"""What changes how a container meets its machine; a bay's containers are ordinary ones."""


def read(view: View, choice: Choice, draft: Draft) -> Stack:
    """The stack of the chosen files; what compose would refuse and what has no value is asked about."""
    folder = folder_of(choice.files[0])
    result = compose.resolve(view, "" if folder == "." else folder, choice.files)
    for skipped in result.skipped:
        view.skip(skipped.file, skipped.why)
    for refusal in result.refusals:
        draft.note(f"compose itself refuses this stack: {refusal}")
    draft.notes += [note for note in result.notes if note not in draft.notes]
    _resources(result, draft)
    for service in result.services:
        _unsupported(service, draft)
    _missing(result, draft)
    parts = tuple(_part(service, result, view) for service in result.services)
    return Stack(parts, choice.files, result.name)


def _part(service: model.Service, result: model.ComposeResult, view: View) -> Part:
    aliases = [alias for names in service.networks.values() for alias in names]
    aliases += [name for name in (service.container_name, service.hostname) if name]
    return Part(
        name=service.name,
        origin=replace(service.origin, key=f"services.{service.name}"),
        image=service.image,
        build=_build(service.build) if service.build else None,
        command=service.command,
        entrypoint=service.entrypoint,
        env={name: Value(each.text, each.unset, each.origin) for name, each in service.environment.items()},
        env_files=tuple((each.path, each.exists) for each in service.env_files),
        ports=tuple(_port(port) for port in service.ports),
        expose=tuple(_port(port) for port in service.expose),
        needs={name: each.condition for name, each in service.depends_on.items()},
        health=_health(service.healthcheck) if service.healthcheck else None,
        volumes=tuple(_volume(each, view) for each in service.volumes),
        aliases=tuple(dict.fromkeys(aliases)),
        links={alias: name for name, alias in service.links if alias != name},
        profiles=service.profiles,
        secrets=tuple(_secret(each, result) for each in (*service.secrets, *service.configs)),
        user=service.user,
        workdir=service.working_dir,
        platform=service.platform,
        restart=service.restart,
        network_mode=service.network_mode,
        shm_size=service.shm_size,
        tmpfs=service.tmpfs,
        lines={key: place.line for key, place in service.lines.items() if place.file == service.origin.file},
    )


def _build(build: model.Build) -> BuildFact:
    args = {name: each.text for name, each in build.args.items()}
    inline = build.inline is not None
    return BuildFact(
        build.context, build.dockerfile, build.target, args, inline, build.is_remote, build.secrets
    )


def _port(port: Port) -> PortFact:
    published = int(port.published) if port.published.isdigit() else None
    return PortFact(port.target, port.protocol, published, port.name or None)


def _health(check: model.Health) -> HealthFact:
    argv: tuple[str, ...] = ()
    if not check.disabled and check.test[:1] == ("CMD",):
        argv = check.test[1:]
    elif not check.disabled and check.test[:1] == ("CMD-SHELL",):
        argv = ("sh", "-c", *check.test[1:2])
    return HealthFact(argv, check.interval, check.timeout, check.start_period, check.retries)


def _volume(volume: model.Volume, view: View) -> VolumeFact:
    if volume.type == "bind":
        inside = volume.is_inside and view.inside(volume.source or ".")
        return VolumeFact("bind", volume.target, volume.source or ".", inside, unset=volume.unset)
    kind = "tmpfs" if volume.type == "tmpfs" else "volume" if volume.source else "anonymous"
    return VolumeFact(kind, volume.target, volume.source, unset=volume.unset)


def _secret(mount: model.Mount, result: model.ComposeResult) -> tuple[str | None, str]:
    declared = result.secrets.get(mount.source) or result.configs.get(mount.source)
    return (declared.file if declared else None), mount.target


def _resources(result: model.ComposeResult, draft: Draft) -> None:
    for kind, declared in (("network", result.networks), ("volume", result.volumes)):
        for name, each in declared.items():
            if each.external:
                title = name if each.name in (None, name) else f"{name} ({each.name})"
                text = f"the external {kind} {title} belongs to something else; a bay has its own instead"
                draft.ask("services", text, origin=each.origin)


def _unsupported(service: model.Service, draft: Draft) -> None:
    found = [key for key in _NOT_TAKEN if getattr(service, key)]
    if found:
        text = f"{', '.join(found)} of {service.name} are not taken over: does it work without?"
        draft.ask(f"services/{slug(service.name)}", text, origin=service.at(found[0]))


def _missing(result: model.ComposeResult, draft: Draft) -> None:
    """Variables without a value outside of `environment`, where each is asked about by itself."""
    for variable in result.missing:
        if ".environment" not in variable.place:
            text = f"{variable.name} has no value in any file, and {variable.place} is made with it"
            draft.ask(variable.place.replace(".", "/"), text, origin=variable.origin)
