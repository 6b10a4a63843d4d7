"""The one load path: whoever reads a manifest, from wherever, gets it validated."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from devbay.errors import WORK_FAILED, DevbayError
from devbay.manifest import rules, source
from devbay.manifest.capabilities import Capability, capabilities
from devbay.manifest.diagnostics import Diagnostic, Finding, from_validation
from devbay.manifest.models import Manifest

NAMES = ("devbay.yaml", "devbay.yml")
MAX_DIAGNOSTICS = 100
MAX_MESSAGE = 600
MAX_KEY = 100


@dataclass(frozen=True)
class Loaded:
    """What a manifest's text says.

    manifest: None if the text cannot be read as one. parses: whether it is YAML at all. digest: SHA-256 (hex)
    of its bytes. source: its name in messages. path: the file, if there is one.
    """

    manifest: Manifest | None
    diagnostics: tuple[Diagnostic, ...]
    digest: str
    source: str
    path: Path | None = None
    parses: bool = True

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong; warnings, notices and pending approvals do not count."""
        return self.manifest is not None and not self.errors

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(each for each in self.diagnostics if each.severity == "error")

    @cached_property
    def capabilities(self) -> tuple[Capability, ...]:
        """What it asks for beyond the bay's containers, worked out once; raises `invalid_manifest`."""
        return capabilities(self.require())

    def require(self) -> Manifest:
        """The manifest, if it is valid; else raises `invalid_manifest` with every error in its message."""
        if self.manifest is None or self.errors:
            raise DevbayError(
                "invalid_manifest",
                "\n".join(str(each) for each in self.errors),
                next="devbay validate",
                exit_code=WORK_FAILED,
                diagnostics=[each.info().as_json() for each in self.errors],
            )
        return self.manifest


def parse(text: bytes | str, *, source: str = "devbay.yaml", root: Path | None = None) -> Loaded:
    """Read and check a manifest; whatever is wrong is a diagnostic, never an exception.

    With `root`, the folder of the repository, paths are also checked for symlinks that leave it.
    """
    return _parse(text, name=source, root=root, path=None)


def load(directory: Path) -> Loaded:
    """The manifest of a repository or worktree: `devbay.yaml`, else `devbay.yml`.

    Raises `no_manifest` if there is neither and `bad_manifest_file` if it cannot be read as a file of the
    directory's own.
    """
    for name in NAMES:
        path = directory / name
        if os.path.lexists(path):
            return _parse(_content(path, directory), name=name, root=directory, path=path)
    raise DevbayError("no_manifest", f"{directory} has no devbay.yaml", next="devbay init")


def _parse(text: bytes | str, *, name: str, root: Path | None, path: Path | None) -> Loaded:
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    digest = hashlib.sha256(raw).hexdigest()
    try:
        tree = source.read(text)
    except source.Unreadable as error:
        return Loaded(None, (_from_text(error.problem, name),), digest, name, path, parses=False)
    manifest: Manifest | None = None
    try:
        manifest = Manifest.model_validate(tree.data)
        findings = rules.check(manifest, root)
    except ValidationError as error:
        findings = from_validation(error)
    diagnostics = [_from_text(problem, name) for problem in tree.problems]
    diagnostics += [_placed(finding, tree, name) for finding in findings]
    diagnostics.sort(key=lambda each: (each.severity != "error", each.line, each.column))
    return Loaded(manifest, _capped(diagnostics), digest, name, path)


def _capped(diagnostics: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    more = len(diagnostics) - MAX_DIAGNOSTICS
    if more <= 0:
        return tuple(diagnostics)
    first = diagnostics[0]
    note = Diagnostic(
        first.severity, "limit", f"{more} further findings are not shown", first.file, 1, 1, "",
        "correct these first",
    )  # fmt: skip
    return (*diagnostics[:MAX_DIAGNOSTICS], note)


def _from_text(problem: source.Problem, name: str) -> Diagnostic:
    finding = Finding("error", problem.rule, problem.path, problem.message, problem.fix)
    return _diagnostic(finding, problem.line, problem.column, name)


def _placed(finding: Finding, tree: source.Tree, name: str) -> Diagnostic:
    return _diagnostic(finding, *tree.locate(finding.path), name)


def _diagnostic(finding: Finding, line: int, column: int, name: str) -> Diagnostic:
    """Bounded: what is quoted from a hostile file must not flood an agent."""
    where = "/".join(str(part)[:MAX_KEY] for part in finding.path)
    message, fix = finding.message[:MAX_MESSAGE], finding.fix[:MAX_MESSAGE]
    return Diagnostic(finding.severity, finding.rule, message, name, line, column, where, fix)


def _content(path: Path, directory: Path) -> bytes:
    """The bytes of a regular file inside `directory`, at most one more than is allowed."""
    try:
        resolved = path.resolve(strict=True)
        if not resolved.is_relative_to(directory.resolve(strict=True)):
            raise _bad_file(path, "is a symlink that leaves the repository")
        descriptor = os.open(resolved, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of symlinks
        raise _bad_file(path, f"cannot be read: {error}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _bad_file(path, "is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(source.MAX_BYTES + 1)
    finally:
        os.close(descriptor)


def _bad_file(path: Path, problem: str) -> DevbayError:
    return DevbayError(
        "bad_manifest_file",
        f"{path} {problem}",
        next=f"make {path.name} a regular file",
        exit_code=WORK_FAILED,
    )
