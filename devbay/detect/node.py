"""package.json files: packages, workspaces, the package manager, scripts and what they come down to."""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from posixpath import join

from devbay.detect import documents
from devbay.detect.facts import Origin, line_of
from devbay.detect.files import View, folder_of

LOCKS = {
    "pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun",
    "package-lock.json": "npm", "npm-shrinkwrap.json": "npm",
}  # fmt: skip
MAX_PACKAGES = 300
_RUNS_OTHERS = re.compile(
    r"\b(turbo|nx|lerna|wsrun|moon)\b|\bpnpm\b.*\s(-r|--recursive|--filter\b|-F\b)|\bnpm\b.*\s(-w|-ws|--workspaces?)\b"
    r"|\byarn workspaces?\b|\bbun\b.*--filter\b|\bnpm-run-all\b|\bconcurrently\b"
)


@dataclass(frozen=True)
class Package:
    """One package. folder: `.` for the root. root: folder of its workspace, its own folder without one."""

    folder: str
    name: str
    manager: str
    scripts: Mapping[str, str]
    dependencies: frozenset[str]
    root: str = "."
    lock: str | None = None
    manager_version: str | None = None
    node: str | None = None
    repository: str = ""
    member_folders: tuple[str, ...] = field(default=(), compare=False)
    text: str = field(default="", repr=False, compare=False)

    @property
    def file(self) -> str:
        return join(self.folder, "package.json") if self.folder != "." else "package.json"

    def origin(self, script: str) -> Origin:
        start = self.text.find('"scripts"')
        line = line_of(self.text[max(start, 0) :], f'"{script}"')
        return Origin(self.file, line and line + self.text.count("\n", 0, max(start, 0)), f"scripts.{script}")

    def runs_others(self, script: str) -> bool:
        """Whether a script only hands on to the scripts of other packages."""
        return bool(_RUNS_OTHERS.search(self.scripts.get(script, "")))

    def argv(self, script: str, *, at_home: bool) -> tuple[str, ...]:
        """The command of a script; `at_home`: it starts in the package's folder, else in the root."""
        place = () if at_home else self._place()
        if script == "test" and self.manager != "bun":
            return (self.manager, *place, "test")
        return (
            (self.manager, *place, script)
            if self.manager == "yarn"
            else (self.manager, *place, "run", script)
        )

    def install(self) -> tuple[str, ...]:
        """Installs what the lock file says, or resolves anew without one."""
        pinned = f"@{self.manager_version}" if self.manager_version else ""
        locked, place = self.lock is not None, self._place()
        if self.manager == "npm":
            new = ("install", "--no-audit", "--no-fund", "--no-package-lock")
            return ("npm", *place, *(("ci",) if locked else new))
        frozen = " --frozen-lockfile" if locked else ""
        run = shlex.join((self.manager, *place, "install"))
        if self.manager == "yarn" and self.manager_version and not self.manager_version.startswith("1."):
            return ("sh", "-c", f"corepack enable && {run}{' --immutable' if locked else ''}")
        package = {"pnpm": f"pnpm{pinned}", "yarn": f"yarn{pinned}", "bun": f"bun{pinned}"}[self.manager]
        force = " --force" if self.manager == "yarn" else ""
        return ("sh", "-c", f"npm install -g{force} {package} && {run}{frozen}")

    def _place(self) -> tuple[str, ...]:
        """The words that have the manager work in the package's folder instead of the root."""
        if self.folder == ".":
            return ()
        flag = {"npm": "--prefix", "pnpm": "--dir", "yarn": "--cwd", "bun": "--cwd"}[self.manager]
        return (flag, self.folder)


def packages(view: View) -> tuple[Package, ...]:
    """Every package of the repository, the root first."""
    files = view.named("package.json")
    if len(files) > MAX_PACKAGES:
        view.skip("package.json", f"only the first {MAX_PACKAGES} of {len(files)} are read")
    read = {folder_of(file): documents.json_object(view, file) for file in files[:MAX_PACKAGES]}
    roots = {folder: globs for folder, data in read.items() if (globs := _members(view, folder, data))}
    found = []
    for folder, data in read.items():
        if not data:
            continue
        root = next(
            (top for top, globs in roots.items() if top != folder and _is_member(folder, top, globs)), folder
        )
        lock = _lock(view, folder, root)
        manager, version = _manager(data, read.get(root, {}), lock)
        scripts = documents.mapping(data.get("scripts"))
        repository = data.get("repository")
        found.append(Package(
            folder=folder,
            name=str(data.get("name") or ""),
            manager=manager,
            scripts={str(key): value for key, value in scripts.items() if isinstance(value, str)},
            dependencies=_dependencies(data),
            root=root,
            lock=lock,
            manager_version=version,
            node=_text(documents.mapping(data.get("engines")).get("node")),
            repository=str(documents.mapping(repository).get("url") or repository or ""),
            member_folders=tuple(
                sorted(other for other in read if _is_member(other, folder, roots.get(folder, ())))
            ),
            text=view.text(join(folder, "package.json")) or "",
        ))  # fmt: skip
    return tuple(found)


def _dependencies(data: Mapping[str, object]) -> frozenset[str]:
    keys = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
    return frozenset(str(name) for key in keys for name in documents.mapping(data.get(key)))


def _members(view: View, folder: str, data: Mapping[str, object]) -> tuple[str, ...]:
    given = data.get("workspaces")
    globs = documents.texts(
        documents.mapping(given).get("packages") or ([] if isinstance(given, dict) else given)
    )
    file = join(folder, "pnpm-workspace.yaml")
    if view.exists(file):
        globs += documents.texts(documents.mapping(documents.yaml(view, file)).get("packages") or [])
    return tuple(globs)


def _is_member(folder: str, top: str, globs: tuple[str, ...]) -> bool:
    if top != "." and not folder.startswith(f"{top}/"):
        return False
    relative = folder if top == "." else folder[len(top) + 1 :]
    included = False
    for glob in globs:
        pattern = glob.removeprefix("!").removeprefix("./").rstrip("/")
        if _matches(relative, pattern):
            included = not glob.startswith("!")
    return included and folder != top


def _matches(path: str, pattern: str) -> bool:
    if "**" in pattern:
        return fnmatch.fnmatchcase(path, pattern.replace("**/", "*").replace("**", "*"))
    return path.count("/") == pattern.count("/") and fnmatch.fnmatchcase(path, pattern)


def _lock(view: View, folder: str, root: str) -> str | None:
    for place in dict.fromkeys((folder, root)):
        for name in LOCKS:
            if view.exists(join(place, name)):
                return join(place, name).removeprefix("./")
    return None


def _manager(
    data: Mapping[str, object], root: Mapping[str, object], lock: str | None
) -> tuple[str, str | None]:
    for each in (data, root):
        match = re.match(r"(npm|pnpm|yarn|bun)@([0-9][\w.-]*)", str(each.get("packageManager") or ""))
        if match:
            return match[1], match[2]
    return (LOCKS[lock.rsplit("/", 1)[-1]] if lock else "npm"), None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
