"""Variables of services: literals kept, addresses referred to, everything unknown asked about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from devbay.detect import envfiles, families, rewire
from devbay.detect.containers import Placed
from devbay.detect.draft import Draft
from devbay.detect.facts import Origin, is_secret
from devbay.detect.files import View
from devbay.manifest import images

_STORE_LOGIN = ("POSTGRES_", "MYSQL_", "MARIADB_", "MONGO_INITDB_", "RABBITMQ_DEFAULT_", "MINIO_ROOT_")
_LOCAL = re.compile(r"(//|@)(localhost|127\.0\.0\.1)(?=[:/]|$)")
_TOOLS_OWN = ("COMPOSE_", "DOCKER_")


@dataclass
class Env:
    """texts: what the stack says. secrets, named: what is known by name alone; the first are secrets."""

    texts: dict[str, str] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    secrets: dict[str, Origin] = field(default_factory=dict)
    named: dict[str, envfiles.Variable] = field(default_factory=dict)


def read(one: Placed, draft: Draft, view: View, shapes: tuple[envfiles.Variable, ...]) -> Env:
    """What is known of a service's variables, before addresses are looked at."""
    env = Env()
    store = families.is_store(one.part.image) and one.build is None
    for name, value in one.part.env.items():
        origin = value.origin or one.part.at("environment")
        if value.text is None or (value.text == "" and value.unset):
            wanted = next(iter(value.unset), name)
            _unknown(env, one, draft, name, wanted, origin, passed=value.text is None, store=store)
            continue
        env.texts[name] = value.text
        env.origins[name] = origin
        for each in value.unset:
            text = f"{name} is made with {each}, which has no value in any file"
            draft.ask(f"services/{one.name}/env/{name}", text, origin=origin)
    for file, there in one.part.env_files:
        _env_file(env, one, draft, view, file, shapes if not there else None, store=store)
    missing = families.missing_password(one.part.image, env.texts) if store else None
    if missing:
        env.texts[missing] = families.THROWAWAY
        draft.note(f"{one.name}: {missing} is a throwaway value for the bay's own data, as no file gives one")
    return env


def _unknown(
    env: Env, one: Placed, draft: Draft, name: str, wanted: str, origin: Origin, *, passed: bool, store: bool
) -> None:
    about = f"services/{one.name}/env/{name}"
    if store and is_secret(name):
        env.texts[name] = families.THROWAWAY
        env.origins[name] = origin
        draft.ask(
            about, f"{wanted} has no value in any file; the bay's own gets a throwaway one", origin=origin
        )
    elif store and name.startswith(_STORE_LOGIN):
        draft.ask(about, f"{wanted} has no value in any file; the image's default is used", origin=origin)
    elif is_secret(name) or is_secret(wanted):
        env.secrets[name] = origin
        text = f"{wanted} has no value in any file: store the secret, or write a harmless value"
        draft.ask(about, text, origin=origin)
    elif passed:
        env.named[name] = envfiles.Variable(name, origin)
        draft.ask(about, f"{name} comes from the shell and has no value in any file", origin=origin)
    else:
        env.texts[name] = ""
        env.origins[name] = origin
        env.named[name] = envfiles.Variable(name, origin)
        draft.ask(about, f"{wanted} has no value in any file, so {name} is left empty", origin=origin)


def _env_file(
    env: Env, one: Placed, draft: Draft, view: View, file: str,
    shapes: tuple[envfiles.Variable, ...] | None, *, store: bool,
) -> None:  # fmt: skip
    """An env_file by the names in it; of one that is missing, by those of example files."""
    variables = envfiles.names(view, file) if shapes is None else shapes
    listed = ", ".join(each.name for each in variables) or "nothing"
    text = f"the env_file {file} is not copied; it names {listed}"
    if shapes is not None:
        text = f"the env_file {file} is not in the repository" + (
            f"; an example names {listed}" if shapes else ""
        )
    draft.ask(f"services/{one.name}/env", text, origin=one.part.at("env_file"))
    for variable in variables:
        name = variable.name
        if name in env.texts or name in env.secrets or name.startswith(_TOOLS_OWN):
            continue
        if not store:
            env.named.setdefault(name, variable)
        elif is_secret(name):
            env.texts[name] = families.THROWAWAY
            env.origins[name] = variable.origin


@dataclass(frozen=True)
class Around:
    """What a service's variables may refer to.

    reachable: the services that it uses. shared: throwaway values of datastores by variable. sql_scheme: how
    the program's database driver writes the scheme of a URL.
    """

    places: rewire.Map
    reachable: Mapping[str, rewire.Target]
    shared: Mapping[str, str] = field(default_factory=dict)
    sql_scheme: str = "postgresql"


def write(name: str, env: Env, around: Around, draft: Draft) -> None:
    """Put the variables of a service or task into the draft."""
    here = ("services" if name in draft.services else "tasks", name, "env")
    done = {key: rewire.value(text, key, name, around.places) for key, text in env.texts.items()}
    done |= rewire.grouped(done, env.texts, around.places, name)
    sources: dict[str, Origin | str] = dict(env.origins)
    for key, variable in env.named.items():
        found = rewire.by_name(variable, around.reachable, around.sql_scheme, name, around.places)
        found = found or (around.shared.get(key) if is_secret(key) else None)
        if found is not None:
            done[key] = found
        elif is_secret(key) and key not in done and here[0] == "services":
            env.secrets[key] = variable.origin
            text = f"{key} is a secret: store it, or write a harmless value"
            draft.ask("/".join((*here, key)), text, origin=variable.origin)
        sources.setdefault(key, variable.origin)
    for key, origin in env.secrets.items():
        variable = envfiles.Variable(key, origin)
        found = rewire.by_name(variable, around.reachable, around.sql_scheme, name, around.places)
        secret = f"${{secret:{key.lower().replace('_', '-').replace('.', '-')}}}"
        done[key] = found or around.shared.get(key) or secret
        sources[key] = origin
    for key in done:
        source = sources.get(key)
        if done[key] == "" and key in env.named:
            source = f"{source}; {key} has no value in any file"
        draft.put((*here, key), done[key], source)
        if _LOCAL.search(done[key]):
            text = f"{key} points at localhost, where a bay has nothing: which service is meant?"
            draft.ask("/".join((*here, key)), text, origin=env.origins.get(key))


def targets(draft: Draft) -> dict[str, rewire.Target]:
    """Every service of the draft as others address it."""
    found: dict[str, rewire.Target] = {}
    for name, data in draft.services.items():
        numbers: dict[int, str] = {data["port"]: "port"} if isinstance(data.get("port"), int) else {}
        for label, number in data.get("ports", {}).items():
            numbers.setdefault(number, f"ports.{label}")
        image = data.get("image")
        env = {key: str(value) for key, value in data.get("env", {}).items()}
        access = images.access(image, env)
        found[name] = rewire.Target(name, image, numbers, access, data.get("kind") == "oneshot")
    return found
