"""Compose files read together: variables, `extends`, `include` and overrides, all inside the view."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from devbay.detect.compose import interpolation, yaml
from devbay.detect.compose.canonical import canonical, is_remote, place, placed
from devbay.detect.compose.merging import Fault, merged, unique
from devbay.detect.compose.model import Refusal, Variable
from devbay.detect.compose.tree import Map, Path, Place, Text, copied, mapping, sequence, shown, size
from devbay.detect.facts import Origin
from devbay.detect.files import Skipped, View, folder_of, normal

MAX_FILES = 100
"""Files of one stack, the included and the extended counted."""
MAX_CHAIN = 100
MAX_WORK = 200_000
"""Values read and copied for one stack, what is extended or included with it; a document counts as 50."""
PROJECT = "COMPOSE_PROJECT_NAME"
_TOGETHER = ("services", "volumes", "networks", "secrets", "configs")


@dataclass
class Loader:
    """Reads files of one view; collects on the way what they say and what is wrong with them."""

    view: View
    known: Mapping[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    remote: bool = False
    _readings: dict[str, yaml.Reading | None] = field(default_factory=dict)
    _bases: dict[str, tuple[Map, list[Path]]] = field(default_factory=dict)
    _work: int = 0

    def name(self, files: Iterable[str]) -> str | None:
        """The project's name as the files give it, the last one first; None if none does."""
        found = None
        for file in files:
            reading = self._reading(file)
            for document in reading.documents if reading else ():
                if isinstance(document.data, Map) and document.data.get("name"):
                    found = document.data["name"]
        if found is None:
            return None
        text = interpolation.substitute(shown(found), {}, interpolation.Found())
        return plain_name(text) or None

    def model(self, files: Iterable[str], work: str, chain: tuple[str, ...] = ()) -> Map:
        """The files as one model in long forms, its paths relative to the root of the view."""
        model = Map()
        for file in files:
            model, _ = self._onto(model, file, work, (*chain, file))
        for service in mapping(model.get("services")).values():
            if "build" in mapping(service):
                mapping(service["build"]).setdefault("context", Text("."))
        placed(model, work)
        return model

    def _onto(
        self, model: Map, file: str, work: str, chain: tuple[str, ...], *, as_base: bool = False
    ) -> tuple[Map, list[Path]]:
        """`model` with the documents of `file` merged onto it, and what the last of them resets."""
        reading = self._reading(file)
        resets: list[Path] = []
        for document in reading.documents if reading else ():
            if not isinstance(document.data, Map):
                self.refuse("the file must be a mapping", Origin(file, 1))
                continue
            if not self._affords(document.data, Origin(file)):
                break
            resets, faults = document.resets, list[Fault]()
            part = self._interpolated(document.data, (), Origin(file, 1))
            if not as_base:
                self._extend(part, file, work, resets)
                _reset(model, resets, ())
                self._include(part, file, work, chain)
            model = unique(merged(model, part, faults))
            canonical(model, faults)
            model = unique(model)
            for text, path in faults:
                self.refuse(f"{'.'.join(path)}: {text}", origin_at(model, path) or Origin(file))
        return model, resets

    def refuse(self, text: str, origin: Origin | None) -> None:
        """Record why compose would not take the files."""
        refusal = Refusal(text, origin)
        if refusal not in self.refusals:
            self.refusals.append(refusal)

    def _reading(self, file: str) -> yaml.Reading | None:
        if file in self._readings:
            return self._readings[file]
        self._readings[file] = reading = self._read(file)
        if reading is not None:
            self.files.append(file)
            for text, origin in reading.faults:
                self.refuse(text, origin)
        return reading

    def _read(self, file: str) -> yaml.Reading | None:
        if len(self.files) >= MAX_FILES:
            self._without(file, f"was not read: a stack has at most {MAX_FILES} files")
            return None
        text = self.view.text(file) if (self.view.root / file).is_file() else None
        if text is None:
            told = next((each.why for each in self.view.skipped if each.file == file), "is not there")
            self._without(file, told)
            return None
        try:
            return yaml.read(text, file)
        except yaml.Broken as error:
            self._without(file, str(error))
            return None

    def _without(self, file: str, why: str) -> None:
        self.skipped.append(Skipped(file, why))
        self.refuse(f"{file} {why}", Origin(file))

    def _interpolated(self, value: Any, path: Path, origin: Origin) -> Any:
        if isinstance(value, Map):
            return Map(
                (
                    (key, self._interpolated(each, (*path, key), value.at.get(key, origin)))
                    for key, each in value.items()
                ),
                value.at,
            )
        if isinstance(value, list):
            return [self._interpolated(each, (*path, "[]"), origin) for each in value]
        if not isinstance(value, Text) or "$" not in value:
            return value
        return self._substituted(value, path, value.origin or origin)

    def _substituted(self, value: Text, path: Path, origin: Origin) -> Text:
        found = interpolation.Found()
        text = interpolation.substitute(value, self.known, found)
        place = ".".join(path)
        if found.broken:
            self.refuse(f"{place}: a `$` that starts no variable; `$$` stands for one", origin)
        for needed in found.needed:
            said = f": {needed.message}" if needed.message else ""
            self.refuse(f"{place}: the required variable {needed.name} has no value{said}", origin)
        missing = (
            *(Variable(name, place, origin) for name in found.unset),
            *(Variable(each.name, place, origin, True, each.message) for each in found.needed),
        )
        given = (Variable(name, place, origin, default=text) for name, text in found.defaults.items())
        for variable in (*missing, *given):
            if variable not in self.variables:
                self.variables.append(variable)
        return Text(text, origin, tuple(dict.fromkeys(each.name for each in missing)))

    def _extend(self, model: Map, file: str, work: str, resets: list[Path]) -> None:
        services = mapping(model.get("services"))
        for name in services:
            services[name] = self._extended(name, services, file, work, resets, ())

    def _extended(
        self,
        name: str,
        services: Map,
        file: str,
        work: str,
        resets: list[Path],
        chain: tuple[tuple[str, str], ...],
    ) -> Any:
        service = services[name]
        if not isinstance(service, Map) or "extends" not in service:
            return service
        extends = service["extends"]
        service = Map(((key, each) for key, each in service.items() if key != "extends"), service.at)
        origin = service.at.get("extends") or Origin(file)
        wanted = shown(extends.get("service") if isinstance(extends, Map) else extends)
        other = extends.get("file") if isinstance(extends, Map) else None
        about = f"services.{name}.extends"
        if (file, name) in chain or len(chain) > MAX_CHAIN:
            self.refuse(f"{about}: services extend each other in a circle", origin)
            return service
        chain = (*chain, (file, name))
        if other is not None:
            source = self._inside(other, work, about, origin)
            if source is None:
                return service
            file, work = source, folder_of(source)
            bases, further = self._base(source)
            services, resets = mapping(bases.get("services")), [*resets, *further]
        if wanted not in services:
            self.refuse(f"{about}: {file} has no service {wanted}", origin)
            return service
        base = self._extended(wanted, services, file, work, resets, chain)
        if not isinstance(base, Map) or not self._affords(base, origin):
            return service
        base = copied(base)
        _reset(Map([("services", Map([(name, base)]))]), resets, ())
        faults: list[Fault] = []
        result = merged(base, service, faults, ("services", name))
        for text, path in faults:
            self.refuse(f"{'.'.join(path)}: {text}", origin)
        return result

    def _base(self, file: str) -> tuple[Map, list[Path]]:
        """A file that services of another one extend."""
        if file not in self._bases:
            model, resets = self._onto(Map(), file, folder_of(file), (file,), as_base=True)
            placed(model, folder_of(file))
            self._bases[file] = model, resets
        return self._bases[file]

    def _affords(self, value: Map, origin: Origin) -> bool:
        self._work += size(value) + 50
        if self._work > MAX_WORK:
            self.refuse(f"the files make more than {MAX_WORK} values", Origin(origin.file))
        return self._work <= MAX_WORK

    def _inside(self, path: Any, work: str, about: str, origin: Origin) -> str | None:
        """A file that another one names, if it lies in the view."""
        text = path if isinstance(path, Place) else place(Text(shown(path)), work)
        if is_remote(text):
            self.remote = True
            self.skipped.append(Skipped(str(text), "is fetched from elsewhere; only the repository is read"))
            self.refuse(f"{about}: {text} is not in the repository, and was not fetched", origin)
            return None
        if text.startswith(("/", "~", "../")) or text == ".." or not self.view.inside(text):
            self.remote = True
            self.skipped.append(Skipped(str(text), "lies outside the repository"))
            self.refuse(f"{about}: {text} lies outside the repository, and was not read", origin)
            return None
        if text.rsplit("/", 1)[-1].startswith(".env"):
            self.remote = True
            self.refuse(f"{about}: {text} is a file of variables, and was not read", origin)
            return None
        return normal(text)

    def _include(self, model: Map, file: str, work: str, chain: tuple[str, ...]) -> None:
        if "include" not in model:
            return
        entries, origin = model.pop("include"), model.at.get("include") or Origin(file)
        if not isinstance(entries, list):
            self.refuse("include: a list is wanted", origin)
        for entry in sequence(entries):
            long = entry if isinstance(entry, Map) else Map([("path", entry)])
            files = [self._inside(path, work, "include", origin) for path in sequence(long.get("path"))]
            found = [each for each in files if each is not None]
            if not found or found[0] != files[0]:
                continue
            if found[0] in chain or len(chain) > MAX_CHAIN:
                self.refuse(f"include: {' includes '.join((*chain, found[0]))}", origin)
                continue
            for env_file in sequence(long.get("env_file")):
                self.skipped.append(Skipped(shown(env_file), "gives variables to an include; never read"))
            where = long.get("project_directory")
            inner = str(place(Text(shown(where)), work)) if where else folder_of(found[0])
            self._import(self.model(found, inner, chain), model, origin)

    def _import(self, source: Map, target: Map, origin: Origin) -> None:
        for kind in _TOGETHER:
            for name, each in mapping(source.get(kind)).items():
                present = target.get(kind)
                if present is None:
                    target[kind] = present = Map()
                    target.at[kind] = origin
                if not isinstance(present, Map) or (name in present and present[name] != each):
                    self.refuse(f"{kind}.{name} is declared again by what is included", origin)
                    continue
                present[name] = each
                present.at[name] = source[kind].at.get(name, origin)


def _reset(value: Any, resets: list[Path], path: Path) -> None:
    """Take away what `!reset` and `!override` of a later document name."""
    if isinstance(value, Map):
        for key in [*value]:
            if (*path, key) in resets:
                del value[key]
            elif resets:
                _reset(value[key], resets, (*path, key))


def origin_at(model: Any, path: Path) -> Origin | None:
    """Where the deepest known key of a path stands."""
    found = None
    for key in path:
        if not isinstance(model, Map) or key not in model:
            break
        found = model.at.get(key) or found
        model = model[key]
    return found


def plain_name(text: str) -> str:
    """A project's name as compose derives it: small letters, digits, `_` and `-`, no dash in front."""
    return "".join(re.findall(r"[a-z0-9_-]", text.lower())).lstrip("_-")
