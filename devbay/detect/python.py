"""Python projects: what they depend on, how they install, and which framework and migrations they have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from posixpath import join
from typing import Any

from devbay.detect import documents
from devbay.detect.facts import Origin, line_of
from devbay.detect.files import View, folder_of, normal

MARKERS = (
    "pyproject.toml",
    "requirements.txt",
    "Pipfile",
    "setup.py",
    "setup.cfg",
    "manage.py",
    "alembic.ini",
)
MAX_PROJECTS = 100
_NAME = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_GROUPS = re.compile(r"^(tests?|testing|dev|develop|development|ci|all)$", re.IGNORECASE)


@dataclass(frozen=True)
class Project:
    """One Python project. depends: normalised names of everything any file of it lists.

    extras, groups: those with what tests need. requirements: files relative to the folder, the fullest last.
    """

    folder: str
    name: str
    depends: frozenset[str]
    files: tuple[str, ...]
    requires_python: str | None = None
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    lock: str | None = None
    manage: str | None = None
    alembic: str | None = None
    pytest: Origin | None = None

    def install(self) -> tuple[str, ...] | None:
        """Installs the dependencies alone, from files that list them; None where no file does."""
        if self.lock in ("poetry.lock", "Pipfile.lock", "pdm.lock"):
            tool = {"poetry.lock": "poetry", "Pipfile.lock": "pipenv", "pdm.lock": "pdm"}[self.lock]
            how = {
                "poetry": "POETRY_VIRTUALENVS_CREATE=false poetry install --no-root --no-interaction",
                "pipenv": "pipenv install --system --deploy --dev",
                "pdm": "pdm export --dev --without-hashes -o /tmp/requirements.txt && pip install -q -r"
                " /tmp/requirements.txt",
            }[tool]
            return ("sh", "-c", f"pip install -q {tool} && {how}")
        if self.lock == "uv.lock":
            export = (
                "uv export -q --frozen --no-emit-project --all-extras --all-groups -o /tmp/requirements.txt"
            )
            return (
                "sh",
                "-c",
                f"pip install -q uv && {export} && uv pip install -q --system -r /tmp/requirements.txt",
            )
        if self.requirements:
            return ("pip", "install", "-q", *(word for file in self.requirements for word in ("-r", file)))
        if any(file.endswith("pyproject.toml") for file in self.files):
            more = "".join(f" --extra {name}" for name in self.extras)
            more += "".join(f" --group {name}" for name in self.groups)
            listed = " -r pyproject.toml" if self.name or not self.groups else ""
            return ("sh", "-c", f"pip install -q uv && uv pip install -q --system{listed}{more}")
        return None


def projects(view: View) -> tuple[Project, ...]:
    """Every folder that says something of Python dependencies, the root first."""
    folders = dict.fromkeys(folder_of(file) for file in view.named(*MARKERS))
    if len(folders) > MAX_PROJECTS:
        view.skip(
            "pyproject.toml", f"only the first {MAX_PROJECTS} of {len(folders)} Python projects are read"
        )
    return tuple(_project(view, folder) for folder in list(folders)[:MAX_PROJECTS])


def _project(view: View, folder: str) -> Project:
    def at(name: str) -> str:
        return normal(join(folder, name))

    data = documents.toml(view, at("pyproject.toml"))
    meta = documents.mapping(data.get("project"))
    poetry = documents.mapping(documents.mapping(data.get("tool")).get("poetry"))
    extras = documents.mapping(meta.get("optional-dependencies"))
    groups = documents.mapping(data.get("dependency-groups"))
    listed: list[str] = [*_names(meta.get("dependencies"))]
    for each in (*extras.values(), *groups.values()):
        listed += _names(each)
    listed += [str(name) for name in documents.mapping(poetry.get("dependencies"))]
    for group in documents.mapping(poetry.get("group")).values():
        listed += [str(name) for name in documents.mapping(documents.mapping(group).get("dependencies"))]
    listed += [str(name) for name in documents.mapping(poetry.get("dev-dependencies"))]
    pipfile = documents.toml(view, at("Pipfile"))
    for key in ("packages", "dev-packages"):
        listed += [str(name) for name in documents.mapping(pipfile.get(key))]
    requirements = _requirement_files(view, folder)
    for file in requirements:
        listed += _names(view.lines(file))
    listed += re.findall(r"[\"']([A-Za-z][\w.-]*)\s*(?:[<>=!~\[][^\"']*)?[\"']", _setup(view, at("setup.py")))
    files = tuple(at(name) for name in MARKERS if view.exists(at(name)))
    locks = (name for name in ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock") if view.exists(at(name)))
    fullest = [file if folder == "." else file[len(folder) + 1 :] for file in _complete(view, requirements)]
    manage = at("manage.py")
    depends = frozenset(_normal(name) for name in listed)
    return Project(
        folder=folder,
        name=str(meta.get("name") or poetry.get("name") or ""),
        depends=depends,
        files=files,
        requires_python=_requires(meta, poetry, pipfile),
        extras=tuple(name for name in extras if _GROUPS.match(str(name))),
        groups=tuple(name for name in groups if _GROUPS.match(str(name))),
        requirements=tuple(fullest),
        lock=next(locks, None),
        manage=manage if view.exists(manage) and "django" in (view.text(manage) or "") else None,
        alembic=at("alembic.ini") if view.exists(at("alembic.ini")) else None,
        pytest=_pytest_origin(view, (*files, *requirements)) if "pytest" in depends else None,
    )  # fmt: skip


def _setup(view: View, path: str) -> str:
    text = view.text(path) or ""
    return "\n".join(
        re.findall(
            r"(?:install_requires|tests_require|extras_require)\s*=\s*([\[{].*?[\]}])", text, re.DOTALL
        )
    )


def _names(items: Any) -> list[str]:
    if not isinstance(items, Iterable) or isinstance(items, str | dict):
        return []
    found = []
    for item in items:
        text = str(item).split("#")[0]
        if isinstance(item, str) and not text.lstrip().startswith("-") and (match := _NAME.match(text)):
            found.append(match[1])
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _requirement_files(view: View, folder: str) -> tuple[str, ...]:
    prefix = "" if folder == "." else f"{folder}/"
    shape = re.compile(
        re.escape(prefix) + r"(requirements[\w.-]*\.txt|requirements/[\w.-]+\.txt|dev-requirements\.txt)"
    )
    return tuple(file for file in view.below(folder) if shape.fullmatch(file))


def _complete(view: View, files: tuple[str, ...]) -> tuple[str, ...]:
    """The plain file and the one for development; the latter alone where it includes the former."""
    kept = [file for file in files if re.search(r"(^|/)requirements(/base)?\.txt$", file)]
    more = [
        file for file in files if re.search(r"(dev|develop|test|tests|testing|ci|local)[\w.-]*\.txt$", file)
    ]
    for file in more[:2]:
        if re.search(r"^\s*-(r|-requirement)\b", view.text(file) or "", re.MULTILINE):
            return (file,)
        kept.append(file)
    return tuple(kept or files[:1])


def _requires(meta: dict[Any, Any], poetry: dict[Any, Any], pipfile: dict[str, Any]) -> str | None:
    given = meta.get("requires-python") or documents.mapping(poetry.get("dependencies")).get("python")
    given = given or documents.mapping(pipfile.get("requires")).get("python_version")
    return given if isinstance(given, str) else None


def _pytest_origin(view: View, files: tuple[str, ...]) -> Origin | None:
    for file in files:
        if line := line_of(view.text(file) or "", "pytest"):
            return Origin(file, line, "pytest")
    return None
