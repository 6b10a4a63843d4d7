"""Installed templates: made once per content, held by bays, evicted when nobody holds them (decision 25)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.docker import containers, volumes
from devbay.runtimes.docker.builds import TEMPLATE_LABEL, build_labels
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.images import ImageInfo, find_image
from devbay.runtimes.docker.installrun import Names, run_install
from devbay.runtimes.docker.templates import (
    InstallPlan,
    Template,
    TemplateStore,
    placed,
    plan_install,
    read_inputs,
)
from devbay.runtimes.docker.users import Identity
from devbay.runtimes.locks import file_lock, try_file_lock
from devbay.runtimes.outbound import Outbound

CACHE_LABEL = "dev.devbay.cache"
BAY_LABEL = "dev.devbay.bay"
DEFAULT_MAX_BYTES = 20 * 1024**3


def cache_labels(spec: ServiceSpec, path: str) -> dict[str, str]:
    labels = build_labels(spec)
    del labels["dev.devbay.service"]
    return {**labels, CACHE_LABEL: placed(path, spec)}


def cache_volume(spec: ServiceSpec, path: str) -> str:
    """The volume behind an entry of `caches`: one per home, repository and path, shared by all bays. Below
    the worktree, whose own path differs from bay to bay, it is the path below `/workspace` that counts.
    """
    digest = hashlib.sha256(f"{spec.bay.repository}\0{placed(path, spec)}".encode()).hexdigest()[:12]
    return f"devbay-{spec.bay.home[:8]}-cache-{digest}"


@dataclass(frozen=True)
class Installer:
    """Installs on one engine, remembered in the store of one home.

    locks: a private folder for lock files. salt: a secret of the home (keys cover environments). max_bytes:
    what templates may use together before the least recently used ones that nobody holds go.
    """

    engine: Engine
    store: TemplateStore
    home: str
    locks: Path
    salt: str
    outbound: Outbound
    max_bytes: int = DEFAULT_MAX_BYTES

    def ensure(self, spec: ServiceSpec, image: ImageInfo, identity: Identity, job: Job) -> Template:
        """The template for the install inputs as they are now, installed if there is none, and held for the
        bay's service until `release_older` or `release` lets older ones go.

        Raises `install_failed`, `unsafe_install_input`, `install_inputs_too_big`, `Cancelled`.
        """
        files, source = read_inputs(spec, image)
        plan = plan_install(spec, image, identity, files, source, salt=self.salt)
        key = self._usable_key(self._engine_mark + plan.key)
        bay, holder = spec.bay.id, self.holder(spec, key)
        if held := self._hold(key, bay, holder):
            return held
        with file_lock(self.locks, f"install-{key}", job):
            if held := self._hold(key, bay, holder):
                return held
            made = self._install(key, plan, spec, image, job)
            self.store.finish_template(made)
            held = self.store.hold_template(key, bay, holder)
        self.evict(job)
        return held or made

    @staticmethod
    def holder(spec: ServiceSpec, key: str) -> str:
        return f"{spec.bay.id}/{spec.name}/{key}"

    def release_older(self, spec: ServiceSpec, template: Template | None) -> None:
        """The service's volumes are forks of this template now, or of none."""
        keep = self.holder(spec, template.key) if template else ""
        self.store.release_templates(spec.bay.id, service=spec.name, keep=keep)

    def release(self, bay: str) -> None:
        """The bay is gone, with its forks."""
        self.store.release_templates(bay)

    def evict(self, job: Job) -> list[str]:
        """Remove templates that nobody holds, least recently used first, until the rest fits `max_bytes`."""
        mine = self._own_templates()
        removed: list[str] = []
        excess = sum(template.size for template in mine) - self.max_bytes
        for template in mine:
            if excess <= 0:
                break
            gone = self._remove(template, job)
            excess -= template.size if gone else 0
            removed += gone
        return removed

    def gc(self, job: Job, *, all: bool = False) -> list[str]:
        """Remove what killed installs left and what no record knows; with `all` also templates that nobody
        holds, and caches that no container mounts. Returns `<kind> <name>` of each.
        """
        removed: list[str] = []
        for template in self._own_templates(states=("building", "ready") if all else ("building",)):
            removed += self._remove(template, job)
        known = {template.key for template in self._own_templates(states=("building", "ready"))}
        for key in self._labelled_keys() - known:
            with try_file_lock(self.locks, f"install-{key}") as free:
                if free and self.store.template(key) is None:
                    removed += self._clean(key)
        if all:
            for volume in volumes.find(self.engine, {"dev.devbay.home": self.home}):
                if CACHE_LABEL in volume.labels and _removed(self.engine, volume.name):
                    removed.append(f"volume {volume.name}")
        return removed

    @property
    def _engine_mark(self) -> str:
        """Templates of several engines share a store, so the key says whose it is."""
        return hashlib.sha256(self.engine.endpoint.host.encode()).hexdigest()[:4]

    def _own_templates(self, states: tuple[str, ...] = ("ready",)) -> list[Template]:
        mine = (item for item in self.store.templates() if item.key.startswith(self._engine_mark))
        return [template for template in mine if template.state in states]

    def _usable_key(self, key: str) -> str:
        """The key, or the first variant of it that may be made anew: bays hold forks of what is left of a
        template that a person has pruned in part, so that must not be touched.
        """
        for number in range(256):
            variant = hashlib.sha256(f"{key} {number}".encode()).hexdigest()[: len(key) - 4]
            candidate = key[:4] + variant if number else key
            known = self.store.template(candidate)
            if known is None or known.state == "building" or self._is_there(known):
                return candidate
            if self.store.held(candidate) == 0:
                return candidate
        raise DevbayError(
            "install_failed", f"the template {key} was damaged 256 times", next="devbay gc --all"
        )

    def _hold(self, key: str, bay: str, holder: str) -> Template | None:
        held = self.store.hold_template(key, bay, holder)
        return held if held and self._is_there(held) else None

    def _is_there(self, template: Template) -> bool:
        """Whether the engine still has what the record promises: a person may have pruned it."""
        if find_image(self.engine, template.image) is None:
            return False
        return all(volumes.inspect(self.engine, name) for name in template.volumes.values())

    def _install(
        self, key: str, plan: InstallPlan, spec: ServiceSpec, image: ImageInfo, job: Job
    ) -> Template:
        self._clean(key)  # what an install that was killed left, or what a person left of a template
        self.store.begin_template(key)
        try:
            made = run_install(
                self.engine, plan, self._names(key, plan, spec), spec, image, self.outbound, job
            )
        except DevbayError:
            self._clean(key)
            self.store.forget_template(key)
            raise
        return replace(made, key=key)

    def _names(self, key: str, plan: InstallPlan, spec: ServiceSpec) -> Names:
        prefix = f"devbay-{self.home[:8]}"
        paths = (*plan.volumes, *plan.scratch)
        return Names(
            container=f"{prefix}-install-{key[:12]}",
            image=f"{prefix}-installed:{key[:16]}",
            volumes={path: f"{prefix}-template-{key[:12]}-{n}" for n, path in enumerate(paths)},
            caches={path: cache_volume(spec, path) for path in plan.caches},
            labels={**build_labels(spec), TEMPLATE_LABEL: key},
            cache_labels={path: cache_labels(spec, path) for path in plan.caches},
        )

    def _remove(self, template: Template, job: Job) -> list[str]:
        """Remove a template unless it is held or being made; the record goes first, so that none can take
        hold of what is about to vanish, and the objects are found again by label if we die in between.
        """
        with try_file_lock(self.locks, f"install-{template.key}") as free:
            if not free or not self.store.forget_template(template.key):
                return []
            job.progress(f"removing the template {template.key[:12]}")
            return self._clean(template.key)

    def _clean(self, key: str) -> list[str]:
        """Remove every object that carries the template's label, which bays' containers inherit from it."""
        labels = {"dev.devbay.home": self.home, TEMPLATE_LABEL: key}
        removed: list[str] = []
        for container in containers.find(self.engine, labels):
            if BAY_LABEL in container.labels:
                continue
            containers.remove(self.engine, container.id)
            removed.append(f"container {container.name}")
        for volume in volumes.find(self.engine, labels):
            volumes.remove(self.engine, volume.name)
            removed.append(f"volume {volume.name}")
        for image in self._images(labels):
            self.engine.call("DELETE", f"/images/{image['Id']}", params={"force": "1"})
            removed.append(f"image {image['Id']}")
        return removed

    def _images(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        wanted = json.dumps({"label": [f"{name}={value}" for name, value in labels.items()]})
        found: list[dict[str, Any]] = self.engine.call("GET", "/images/json", params={"filters": wanted})
        return found

    def _labelled_keys(self) -> set[str]:
        """The keys of all templates of this home that the engine has anything of."""
        home = {"dev.devbay.home": self.home}
        found = (container.labels for container in containers.find(self.engine, home))
        labels = [labels for labels in found if BAY_LABEL not in labels]
        labels += [volume.labels for volume in volumes.find(self.engine, home)]
        labels += [image.get("Labels") or {} for image in self._images(home)]
        mine = {found[TEMPLATE_LABEL] for found in labels if TEMPLATE_LABEL in found}
        return {key for key in mine if key.startswith(self._engine_mark)}


def _removed(engine: Engine, volume: str) -> bool:
    try:
        volumes.remove(engine, volume)
    except DevbayError as error:
        if error.code != "volume_in_use":
            raise
        return False
    return True
