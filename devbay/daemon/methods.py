"""The `devbay/*` methods: what people do through the command line and agents may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from devbay.bays.gc import collect
from devbay.bays.parts import Bay, now
from devbay.bays.repositories import load_for
from devbay.bays.shipped import difference
from devbay.daemon.doctor import checks
from devbay.errors import PERSON_NEEDED, DevbayError
from devbay.manifest import Capability
from devbay.reports.write_junit import to_junit
from devbay.security.approvals import may_grant, pending
from devbay.security.display import plain
from devbay.store import GrantRecord
from devbay.templates import template
from devbay.tools.registry import Call, PrivateHandler


def private_methods(core: Any) -> Mapping[str, PrivateHandler]:
    """Every private method by full name. `core`: `devbay.core.Core`."""

    def bay(call: Call, params: Mapping[str, Any]) -> Bay:
        opened: Bay = core.bays.open(core.caller(call), _text(params, "bay"), params.get("repo"))
        return opened

    def approvals(call: Call, params: dict[str, Any]) -> dict[str, Any]:
        return {"items": list(_pending(core, call, params.get("repo")).values())}

    def grant(call: Call, params: dict[str, Any]) -> dict[str, Any]:
        may_grant(call.peer_pid, call.env)
        repository = core.bays.repository(core.caller(call), params.get("repo"))
        item = _pending(core, call, params.get("repo")).get(_text(params, "key"))
        if item is None:
            raise DevbayError(
                "nothing_pending", "this no longer waits for approval", next="devbay approve shows what does"
            )
        core.parts.store.add_grant(
            GrantRecord(repository.id, item["key"], item["kind"], item["summary"], now())
        )
        return {"granted": item["key"]}

    def grant_demo(call: Call, params: dict[str, Any]) -> dict[str, Any]:
        """Nobody is asked about what devbay itself ships, as long as it is exactly that."""
        repository = core.bays.repository(core.caller(call), params.get("repo"))
        differs = difference(repository, template("demo"))
        loaded = load_for(repository)
        if differs or loaded is None:
            raise DevbayError(
                "not_the_demo",
                f"{repository.toplevel} is not the demo's repository as devbay ships it: {differs}",
                next="a person runs `devbay approve` there",
                exit_code=PERSON_NEEDED,
            )
        granted = [each for each in core.repositories.asked(loaded, "host") if each.kind == "host"]
        for each in granted:
            core.parts.store.add_grant(
                GrantRecord(repository.id, each.key, each.kind, plain(each.summary), now())
            )
        return {"granted": [each.key for each in granted]}

    def execute(call: Call, params: dict[str, Any]) -> dict[str, Any]:
        opened = bay(call, params)
        service = (
            params.get("service") or opened.manifest.primary() or next(iter(opened.manifest.services), "")
        )
        argv = [str(word) for word in params.get("argv") or ()]
        target = opened.runtime.exec_argv(opened.ref, service, argv, tty=bool(params.get("tty")))
        core.bays.touch(opened)
        return {"argv": target, "env": {}}

    def follow(call: Call, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
        opened = bay(call, params)
        lines = core.logs.follow(
            opened,
            service=params.get("service"),
            run=params.get("run"),
            lines=int(params.get("lines", 100)),
            job=call.job,
        )
        return (line.as_json() for line in lines)

    def cancel_run(call: Call, params: dict[str, Any]) -> dict[str, Any]:
        return {"cancelled": core.runs.cancel(_text(params, "run"))}

    def junit(call: Call, params: dict[str, Any]) -> dict[str, Any]:
        result, tests = core.runs.full_result(_text(params, "run"))
        return {"xml": to_junit(result, tests).decode()}

    def gc(call: Call, params: dict[str, Any]) -> dict[str, Any]:
        core.caller(call)
        removed = collect(core.parts, dict(call.env), call.job, everything=bool(params.get("all")))
        return {"removed": removed}

    def doctor(call: Call, params: dict[str, Any]) -> dict[str, Any]:
        return checks(core.parts, core.caller(call).env)

    handlers: dict[str, Callable[[Call, dict[str, Any]], Any]] = {
        "approve.list": approvals,
        "approve.grant": grant,
        "approve.demo": grant_demo,
        "exec": execute,
        "logs.follow": follow,
        "run.cancel": cancel_run,
        "run.junit": junit,
        "gc": gc,
        "doctor": doctor,
    }
    return {f"devbay/{name}": handler for name, handler in handlers.items()}


def _pending(core: Any, call: Call, repo: str | None) -> dict[str, dict[str, Any]]:
    """What waits for approval in this repository: by the caller's manifest and by those of its bays."""
    repository = core.bays.repository(core.caller(call), repo)
    grants = core.parts.store.grants(repository.id)
    found: dict[str, dict[str, Any]] = {}
    loaded = load_for(repository)
    if loaded is not None and loaded.valid:
        chosen = core.parts.runtimes.choose(call.env, loaded.require().runtime)[0]
        for each in pending(core.repositories.asked(loaded, chosen), grants):
            found.setdefault(each.key, _item(each))
    for record in core.parts.store.bays(repository.id):
        bay = core.opened(record, call.env)
        for each in bay.pending if bay.is_valid() else ():
            found.setdefault(each.key, {**_item(each), "bay": record.name})
    return found


def _item(asked: Capability) -> dict[str, Any]:
    """As a terminal may show it: manifests and scripts are written by others."""
    return {
        "key": asked.key,
        "kind": asked.kind,
        "path": plain(asked.path),
        "summary": plain(asked.summary),
        "detail": plain(asked.detail),
    }


def _text(params: Mapping[str, Any], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str) or not value:
        raise DevbayError("bad_arguments", f"{name!r} is required", next=f"give {name!r} as text")
    return value
