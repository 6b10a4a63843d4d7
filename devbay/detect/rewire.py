"""Addresses in variables: text that names a service becomes a reference, on the plane of whoever reads it.

A server reaches a service at its own port (`url`, `host`, `port`); a person's browser at what devbay
publishes (`public_url`). All that is not the address itself (scheme, path, database number) stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from devbay.detect import families
from devbay.detect.envfiles import Variable
from devbay.manifest import images

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:(?P<login>[^@/\s\"']*)@)?"
    r"(?P<host>localhost|127\.0\.0\.1|0\.0\.0\.0|[A-Za-z0-9_][A-Za-z0-9_.-]*)(?::(?P<port>\d+))?(?P<name>/[^\s?#\"'{},;]*)?"
)
_HOST_PORT = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*):(\d+)")
_HOSTLIKE = re.compile(
    r"(host(s|name)?|server(s)?|addr(ess)?|endpoint|broker(s)?|node(s)?|upstream)$", re.IGNORECASE
)
_SERVER_SIDE = re.compile(r"(^|_)(INTERNAL|SSR|SERVER|BACKEND_INTERNAL|PRIVATE|UPSTREAM|PROXY)(_|$)")
LOCAL = ("localhost", "127.0.0.1", "0.0.0.0")  # noqa: S104 - compared, not bound


@dataclass(frozen=True)
class Target:
    """A service as others address it. ports: number to field (`port` or `ports.<name>`)."""

    name: str
    image: str | None
    ports: Mapping[int, str]
    access: images.Access
    oneshot: bool = False

    @property
    def family(self) -> str | None:
        return images.family(self.image)


@dataclass(frozen=True)
class Map:
    """hosts: name to service. published: host port to (service, container port)."""

    targets: Mapping[str, Target]
    hosts: Mapping[str, str]
    published: Mapping[int, tuple[str, int]] = field(default_factory=dict)


def escaped(text: str) -> str:
    """Text that only looks like a reference, so that devbay leaves it alone."""
    return text.replace("${", "$${")


def value(text: str, variable: str, own: str, places: Map) -> str:
    """The value of a service's variable, with every address of a service turned into a reference."""
    host = places.hosts.get(text)
    if host is not None and host != own and _HOSTLIKE.search(variable):
        return f"${{bay.{host}.host}}"
    pair = _HOST_PORT.fullmatch(text)
    if pair and (found := places.hosts.get(pair[1])) and found != own:
        return f"${{bay.{found}.host}}:{_port(places.targets[found], int(pair[2]))}"
    end = 0
    done: list[str] = []
    for match in _URL.finditer(text):
        done += [escaped(text[end : match.start()]), _url(match, variable, own, places)]
        end = match.end()
    return "".join([*done, escaped(text[end:])])


def _url(match: re.Match[str], variable: str, own: str, places: Map) -> str:
    scheme, host, path = match["scheme"].lower(), match["host"], match["name"] or ""
    port = int(match["port"]) if match["port"] else None
    web = scheme in ("http", "https", "ws", "wss")
    found = places.hosts.get(host)
    if found is not None and found != own:
        return _inner(match, places.targets[found], port, path, web)
    if host not in LOCAL:
        return escaped(match[0])
    meant = places.published.get(port or 80)
    if meant is None and port is not None and web and _listens(own, port, places):
        meant = (own, port)
    if meant is None:
        return escaped(match[0])
    target = places.targets[meant[0]]
    if web and not _SERVER_SIDE.search(variable.upper()):
        return _public(target, meant[1], path, match[0])
    return escaped(match[0]) if target.name == own else _inner(match, target, meant[1], path, web)


def _listens(own: str, port: int, places: Map) -> bool:
    """Whether it is a service with that port itself; a task is none."""
    return own in places.targets and port in places.targets[own].ports


def _public(target: Target, port: int, path: str, otherwise: str) -> str:
    if target.oneshot or target.ports.get(port) != "port" or not images.speaks_http(target.image):
        return escaped(otherwise)
    return f"${{bay.{target.name}.public_url}}{escaped(path)}"


def _inner(match: re.Match[str], target: Target, port: int | None, path: str, web: bool) -> str:
    plain = web and match["scheme"].lower() == "http" and images.speaks_http(target.image)
    if plain and target.ports.get(port if port is not None else 80) == "port":
        return f"${{bay.{target.name}.url}}{escaped(path)}"
    where = f"${{bay.{target.name}.host}}" + (f":{_port(target, port)}" if port is not None else "")
    if web:
        return f"{match['scheme']}://{where}{escaped(path)}"
    user, colon, password = (match["login"] or "").partition(":")
    login = _credential(user, "user", target) if user else ""
    if colon:
        login += f":{_credential(password, 'password', target)}"
    elif match["login"] is None:
        login = ""
    name, slash = path.removeprefix("/"), "/" if path.startswith("/") else ""
    sql = target.family in families.SQL and name
    name = _credential(name, "name", target) if sql else escaped(name)
    return f"{match['scheme']}://{login}{'@' if match['login'] is not None else ''}{where}{slash}{name}"


def _credential(text: str, field_name: str, target: Target) -> str:
    known = getattr(target.access, field_name)
    if known and text in ("", known):
        return f"${{bay.{target.name}.{field_name}}}"
    return escaped(text)


def _port(target: Target, port: int | None) -> str:
    known = target.ports.get(port or 0)
    return f"${{bay.{target.name}.{known}}}" if known else str(port)


def grouped(env: Mapping[str, str], texts: Mapping[str, str], places: Map, own: str) -> dict[str, str]:
    """Ports and logins that stand beside a host's variable: `CACHE_PORT` beside `CACHE_HOST`.

    env: as rewired so far. texts: the values as they were.
    """
    changed: dict[str, str] = {}
    for name, text in env.items():
        host = re.fullmatch(r"\$\{bay\.([\w-]+)\.host\}", text)
        if host is None or host[1] == own:
            continue
        target = places.targets[host[1]]
        stem = _HOSTLIKE.sub("", name)
        for other, written in texts.items():
            if other == name or not other.startswith(stem) or not written or "${" in env[other]:
                continue
            rest = other[len(stem) :].lower().strip("_")
            if rest == "port" and written.isdigit() and int(written) in target.ports:
                changed[other] = f"${{bay.{target.name}.{target.ports[int(written)]}}}"
            for kind, words in _LOGIN.items():
                if rest in words and written == getattr(target.access, kind):
                    changed[other] = f"${{bay.{target.name}.{kind}}}"
    return changed


_LOGIN = {
    "user": ("user", "username"),
    "password": ("password", "pass", "passwd", "pw"),
    "name": ("name", "database", "db", "dbname"),
}
_KINDS: tuple[tuple[re.Pattern[str], frozenset[str]], ...] = (
    (re.compile(
        r"^(DB|DATABASE|SQL|POSTGRES|POSTGRESQL|PG|MYSQL|MARIADB|SQLALCHEMY_DATABASE|SQLALCHEMY)_?(?P<rest>\w*)$"
    ), families.SQL),
    (re.compile(
        r"^(REDIS|VALKEY|CACHE|CELERY_BROKER|BROKER|CELERY_RESULT_BACKEND)_?(?P<rest>\w*)$"
    ), families.REDIS),
    (re.compile(r"^(MONGO|MONGODB)_?(?P<rest>\w*)$"), frozenset({"mongo"})),
    (re.compile(r"^(RABBITMQ|AMQP)_?(?P<rest>\w*)$"), frozenset({"rabbitmq"})),
)  # fmt: skip


def by_name(
    variable: Variable, reachable: Mapping[str, Target], sql_scheme: str, own: str, places: Map
) -> str | None:
    """A reference for a variable of which only its name, or the shape of an example, is known; else None.

    reachable: the services that its program may use. sql_scheme: how its driver writes the scheme.
    """
    name = variable.name.upper()
    if variable.local and variable.scheme in ("http", "https"):
        return _site(variable, own, places)
    target = _meant(name, variable, reachable, places)
    if target is None:
        return None
    rest = _rest(name, target)
    if rest in ("url", "uri", "dsn", "connection_string") or variable.scheme:
        return _store_url(target, variable.scheme or sql_scheme)
    if rest in ("host", "hostname", "server", "addr", "address"):
        return f"${{bay.{target.name}.host}}"
    if rest == "port" and "port" in target.ports.values():
        return f"${{bay.{target.name}.port}}"
    for kind, words in _LOGIN.items():
        if rest in words and getattr(target.access, kind):
            return f"${{bay.{target.name}.{kind}}}"
    return None


def _site(variable: Variable, own: str, places: Map) -> str | None:
    port = variable.port or 80
    meant = places.published.get(port)
    if meant is None and _listens(own, port, places):
        meant = (own, port)
    if meant is None:
        return None
    target = places.targets[meant[0]]
    if target.ports.get(meant[1]) != "port" or not images.speaks_http(target.image):
        return None
    inner = _SERVER_SIDE.search(variable.name.upper()) and target.name != own
    return f"${{bay.{target.name}.{'url' if inner else 'public_url'}}}"


def _meant(name: str, variable: Variable, reachable: Mapping[str, Target], places: Map) -> Target | None:
    for target in reachable.values():
        stem = target.name.upper().replace("-", "_")
        if name.startswith(f"{stem}_") and (families.is_store(target.image) or variable.local):
            return target
    for pattern, kinds in _KINDS:
        if pattern.match(name):
            fitting = [each for each in reachable.values() if each.family in kinds]
            return fitting[0] if len(fitting) == 1 else None
    if variable.local and variable.port is not None and (meant := places.published.get(variable.port)):
        return reachable.get(meant[0])
    return None


def _rest(name: str, target: Target) -> str:
    stem = target.name.upper().replace("-", "_")
    if name.startswith(f"{stem}_"):
        return name[len(stem) + 1 :].lower()
    for pattern, kinds in _KINDS:
        match = pattern.match(name)
        if match and target.family in kinds:
            return match["rest"].lower() or "url"
    return ""


def _store_url(target: Target, scheme: str) -> str | None:
    if "port" not in target.ports.values():
        return None
    at = f"${{bay.{target.name}.host}}:${{bay.{target.name}.port}}"
    if target.family not in families.SQL:
        login = ""
        if target.access.user and target.access.password:
            login = f"${{bay.{target.name}.user}}:${{bay.{target.name}.password}}@"
        own = images.scheme(target.image)
        return f"{own}://{login}{at}" if own != "http" else f"${{bay.{target.name}.url}}"
    login = f"${{bay.{target.name}.user}}" if target.access.user else ""
    login += f":${{bay.{target.name}.password}}" if target.access.password else ""
    name = f"/${{bay.{target.name}.name}}" if target.access.name else ""
    return f"{scheme}://{login}{'@' if login else ''}{at}{name}"
