"""Templates in the home's store: the `TemplateStore` of the installer over the store's records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from devbay.runtimes.docker.templates import Template
from devbay.store import Store, TemplateRecord


class StoredTemplates:
    """`clock` gives the present moment as ISO 8601 UTC."""

    def __init__(self, store: Store, clock: Callable[[], str]) -> None:
        self._store = store
        self._clock = clock

    def template(self, key: str) -> Template | None:
        record = self._store.template(key)
        return _template(record) if record else None

    def templates(self) -> list[Template]:
        return [_template(record) for record in self._store.templates()]

    def begin_template(self, key: str) -> None:
        self._store.put_template(TemplateRecord(key, "building", self._clock()))

    def finish_template(self, template: Template) -> None:
        details: dict[str, Any] = {
            "image": template.image,
            "committed": template.committed,
            "volumes": dict(template.volumes),
            "notes": list(template.notes),
        }
        self._store.put_template(TemplateRecord(template.key, "ready", self._clock(), details, template.size))

    def hold_template(self, key: str, bay: str, holder: str) -> Template | None:
        record = self._store.hold_template(key, bay, holder, self._clock())
        return _template(record) if record else None

    def held(self, key: str) -> int:
        return self._store.holders(key)

    def forget_template(self, key: str) -> bool:
        return self._store.forget_template(key)

    def release_templates(self, bay: str, *, service: str = "", keep: str = "") -> None:
        self._store.release_templates(bay, service=service, keep=keep)


def _template(record: TemplateRecord) -> Template:
    details = record.details
    return Template(
        key=record.key,
        state=record.state,
        image=details.get("image", ""),
        committed=details.get("committed", False),
        volumes=details.get("volumes", {}),
        notes=tuple(details.get("notes", ())),
        size=record.size,
        last_used_at=record.last_used_at,
    )
