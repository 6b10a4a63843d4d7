"""What devbay knows of a repository: its manifest, what waits for a person, its bays, the next step."""

from __future__ import annotations

from devbay.answers import ManifestAnswer, RepoStatus
from devbay.bays.parts import Parts
from devbay.bays.verbs import Bays, Caller
from devbay.errors import DevbayError
from devbay.manifest import Capability, Loaded, load, parse
from devbay.security.approvals import pending
from devbay.worktrees import Repository

MAX_DIAGNOSTICS = 20
NO_MANIFEST_NEXT = "repo_init (`devbay init`) proposes devbay.yaml; `devbay schema` describes it"


class Repositories:
    def __init__(self, parts: Parts, bays: Bays) -> None:
        self.parts = parts
        self.bays = bays

    def status(self, caller: Caller, repo: str | None) -> RepoStatus:
        """Never raises for a bad manifest or a missing engine: both are part of the answer."""
        repository = self.bays.repository(caller, repo)
        loaded = load_for(repository)
        fields: dict[str, object] = {
            "repository": str(repository.main_worktree or repository.common_dir),
            "has_manifest": loaded is not None,
        }
        names = [record.name for record in self.parts.store.bays(repository.id)]
        if names:
            fields["bays"] = names
        warnings: list[str] = []
        try:
            declared = loaded.manifest.runtime if loaded is not None and loaded.manifest else "auto"
            fields["engine"] = self.parts.runtimes.check(caller.env, declared)
        except DevbayError as error:
            warnings.append(error.message)
        waiting: list[str] = []
        if loaded is not None:
            fields |= {"manifest": str(loaded.path), "valid": loaded.valid}
            shown = [d.info() for d in loaded.diagnostics if d.severity in {"error", "warning"}]
            if shown:
                fields["diagnostics"] = shown[:MAX_DIAGNOSTICS]
            if loaded.valid:
                manifest = loaded.require()
                fields |= {
                    "project": manifest.project,
                    "services": list(manifest.services),
                    "tasks": list(manifest.tasks),
                }
                grants = self.parts.store.grants(repository.id)
                waiting = [c.summary for c in pending(self.asked(loaded, fields.get("engine")), grants)]
                known = self.parts.store.repository(repository.id)
                if known is not None and known.shared_name != manifest.project:
                    warnings.append(
                        f"another repository on this machine has the project name {manifest.project!r};"
                        f" this one appears as {known.shared_name!r}"
                    )
        if waiting:
            fields["pending_approvals"] = waiting
        if warnings:
            fields["warnings"] = warnings
        fields["ready"] = bool(loaded and loaded.valid and "engine" in fields)
        fields["next"] = _next(loaded, waiting, names, engine="engine" in fields)
        return RepoStatus.model_validate(fields)

    def asked(self, loaded: Loaded, runtime: object) -> list[Capability]:
        """All that a checkout's valid manifest would have approved for a bay of this runtime."""
        if loaded.path is None:
            return list(loaded.capabilities)
        folder, whole = loaded.path.parent, runtime == "host"
        return [*loaded.capabilities, *self.parts.host_approvals.capabilities(loaded, folder, whole=whole)]

    def validate(self, caller: Caller, yaml: str | None, repo: str | None) -> ManifestAnswer:
        """The findings about a text, or about the repository's file."""
        if yaml is not None:
            return manifest_answer(parse(yaml))
        repository = self.bays.repository(caller, repo)
        loaded = load_for(repository)
        if loaded is None:
            raise DevbayError(
                "no_manifest", f"{repository.toplevel} has no devbay.yaml", next=NO_MANIFEST_NEXT
            )
        return manifest_answer(loaded)


def load_for(repository: Repository) -> Loaded | None:
    """The manifest of the checkout the caller stands in, else the main one's; None if there is none."""
    for folder in dict.fromkeys((repository.toplevel, repository.main_worktree)):
        if folder is None:
            continue
        try:
            return load(folder)
        except DevbayError as error:
            if error.code != "no_manifest":
                raise
    return None


def manifest_answer(loaded: Loaded) -> ManifestAnswer:
    """What was found, as the tool and `devbay validate` answer it."""
    fields: dict[str, object] = {
        "valid": loaded.valid,
        "parses": loaded.parses,
        "source": str(loaded.path) if loaded.path else loaded.source,
    }
    if loaded.diagnostics:
        fields["diagnostics"] = [each.info() for each in loaded.diagnostics]
    return ManifestAnswer.model_validate(fields)


def _next(loaded: Loaded | None, waiting: list[str], bays: list[str], *, engine: bool) -> str:
    if loaded is None:
        return NO_MANIFEST_NEXT
    if not loaded.valid:
        return "correct devbay.yaml, then manifest_validate"
    if not engine:
        return "start a container engine (`devbay doctor` says what is missing)"
    if waiting:
        return "a person must run `devbay approve`; services that need none can be used before"
    if bays:
        return f"bay_status(bay={bays[-1]!r}), or bay_create(name='...') for another branch"
    return "bay_create(name='...')"
