"""Tools about bays: create, list, status, up, rest, url, destroy."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from devbay.answers import BayInfo, BayList, DestroyAnswer, UrlAnswer
from devbay.bays.create import Request
from devbay.tools.fields import DEFAULT_WAIT_S, BayArgument, Repo, Services, WaitS
from devbay.tools.registry import Annotations, Arguments, Call, Tool


class BayCreateArguments(Arguments):
    name: Annotated[str | None, Field(description="a-z, 0-9 and single hyphens (default: from branch)")] = (
        None
    )
    branch: Annotated[str | None, Field(description="Used if it exists, else made (default: name)")] = None
    repo: Repo = None
    from_branch: Annotated[str | None, Field(description="Start of a new branch (default: your HEAD)")] = None
    alias: Annotated[str | None, Field(description="A second, short name")] = None
    adopt: Annotated[bool, Field(description="Use the checkout that already has the branch")] = False
    boot: Annotated[bool, Field(description="Start services")] = True
    services: Services = None
    wait_s: WaitS = DEFAULT_WAIT_S


class BayListArguments(Arguments):
    repo: Repo = None
    all: Annotated[bool, Field(description="Bays of every repository")] = False


class BayStatusArguments(Arguments):
    bay: BayArgument
    repo: Repo = None
    wait_s: Annotated[float, Field(ge=0, le=3600, description="Wait this long for work under way")] = 0.0


class BayUpArguments(Arguments):
    bay: BayArgument
    repo: Repo = None
    services: Services = None
    restart: Annotated[
        bool | list[str], Field(description="Restart: true for what `services` names (or all), or a list")
    ] = False
    wait_s: WaitS = DEFAULT_WAIT_S


class BayRestArguments(Arguments):
    bay: BayArgument
    state: Annotated[
        Literal["cool", "freeze", "thaw"],
        Field(description="cool frees memory and keeps data; freeze pauses; thaw undoes both"),
    ]
    repo: Repo = None
    force: Annotated[bool, Field(description="Cancel runs that are going")] = False


class BayUrlArguments(Arguments):
    bay: BayArgument
    service: Annotated[str | None, Field(description="Default: the primary service")] = None
    repo: Repo = None


class BayDestroyArguments(Arguments):
    bay: BayArgument
    repo: Repo = None
    force: Annotated[bool, Field(description="Also if work would be lost; it goes to a trash")] = False
    dry_run: Annotated[bool, Field(description="Only list what would go and what stays")] = False


def tools(core: Any) -> list[Tool[Any, Any]]:
    def create(call: Call, given: BayCreateArguments) -> BayInfo:
        request = Request(given.name, given.branch, given.from_branch, given.alias, given.adopt)
        return core.bays.create(  # type: ignore[no-any-return]
            core.caller(call), request, repo=given.repo, boot=given.boot, services=given.services,
            wait_s=given.wait_s,
        )  # fmt: skip

    def list_(call: Call, given: BayListArguments) -> BayList:
        return core.bays.list_bays(core.caller(call), repo=given.repo, everywhere=given.all)  # type: ignore[no-any-return]

    def status(call: Call, given: BayStatusArguments) -> BayInfo:
        caller = core.caller(call)
        return core.bays.status(caller, core.bays.open(caller, given.bay, given.repo), wait_s=given.wait_s)  # type: ignore[no-any-return]

    def up(call: Call, given: BayUpArguments) -> BayInfo:
        caller = core.caller(call)
        bay = core.bays.open(caller, given.bay, given.repo)
        core.bays.touch(bay)
        if isinstance(given.restart, list):
            restart = given.restart
        else:
            restart = (given.services or core.bays.long_running(bay)) if given.restart else []
        return core.bays.up(  # type: ignore[no-any-return]
            caller, bay, services=given.services, restart=restart, wait_s=given.wait_s
        )

    def rest(call: Call, given: BayRestArguments) -> BayInfo:
        caller = core.caller(call)
        bay = core.bays.open(caller, given.bay, given.repo)
        return core.bays.rest(caller, bay, given.state, force=given.force)  # type: ignore[no-any-return]

    def url(call: Call, given: BayUrlArguments) -> UrlAnswer:
        return core.bays.url(core.bays.open(core.caller(call), given.bay, given.repo), given.service)  # type: ignore[no-any-return]

    def destroy(call: Call, given: BayDestroyArguments) -> DestroyAnswer:
        caller = core.caller(call)
        bay = core.bays.open(caller, given.bay, given.repo)
        return core.bays.destroy(caller, bay, force=given.force, dry=given.dry_run)  # type: ignore[no-any-return]

    return [
        Tool(
            name="bay_create",
            title="Create a bay",
            description="Make an isolated running copy of the repository on a branch: worktree, containers,"
            " database, ports, site. Edit code only in the worktree it answers. Next: bay_run_task.",
            arguments=BayCreateArguments,
            answer=BayInfo,
            run=create,
            text=bay_text,
        ),
        Tool(
            name="bay_list",
            title="List bays",
            description="The bays of this repository with state and URL.",
            arguments=BayListArguments,
            answer=BayList,
            run=list_,
            text=lambda answer: "\n".join(map(_bay_line, answer.bays)) or "no bays; bay_create makes one",
            annotations=Annotations(read_only=True, idempotent=True),
        ),
        Tool(
            name="bay_status",
            title="Bay status",
            description="One bay in full: health and last reason per service, commit, dirty state, memory.",
            arguments=BayStatusArguments,
            answer=BayInfo,
            run=status,
            text=bay_text,
            annotations=Annotations(read_only=True, idempotent=True),
        ),
        Tool(
            name="bay_up",
            title="Start or restart services",
            description="Start what is down, apply an edited devbay.yaml, or restart services after an edit"
            " that they do not pick up themselves.",
            arguments=BayUpArguments,
            answer=BayInfo,
            run=up,
            text=bay_text,
            annotations=Annotations(idempotent=True),
        ),
        Tool(
            name="bay_rest",
            title="Cool, freeze or thaw a bay",
            description="Free a bay's memory and keep its data (cool), pause it (freeze), or bring it back"
            " (thaw).",
            arguments=BayRestArguments,
            answer=BayInfo,
            run=rest,
            text=bay_text,
            annotations=Annotations(idempotent=True),
        ),
        Tool(
            name="bay_url",
            title="Addresses of a service",
            description="`url` for code and curl on this machine, `public_url` for a browser; never guess"
            " a port.",
            arguments=BayUrlArguments,
            answer=UrlAnswer,
            run=url,
            text=lambda answer: f"url: {answer.url}\npublic_url: {answer.public_url or 'none'}",
            annotations=Annotations(read_only=True, idempotent=True),
        ),
        Tool(
            name="bay_destroy",
            title="Destroy a bay",
            description="Remove a bay that you made: containers, data, worktree. Refuses if uncommitted work"
            " would be lost; a branch with commits of its own is kept.",
            arguments=BayDestroyArguments,
            answer=DestroyAnswer,
            run=destroy,
            text=_destroy_text,
            annotations=Annotations(destructive=True, idempotent=False),
        ),
    ]


def _bay_line(bay: BayInfo) -> str:
    reason = f" ({bay.reason})" if bay.reason else ""
    return f"{bay.name}: {bay.state}{reason} on {bay.branch}, {bay.public_url or 'no site'}"


def bay_text(bay: BayInfo) -> str:
    lines = [_bay_line(bay), f"worktree: {bay.worktree}"]
    for service in bay.services:
        health = f" {service.health}" if service.health not in {"none", "unknown"} else ""
        reason = f": {service.reason}" if service.reason else ""
        url = f" {service.url}" if service.url else ""
        lines.append(f"  {service.name} {service.state}{health}{url}{reason}")
    lines += [f"waits for approval: {each}" for each in bay.pending_approvals]
    lines += [f"warning: {each}" for each in bay.warnings]
    if bay.next:
        lines.append(f"next: {bay.next}")
    return "\n".join(lines)


def _destroy_text(answer: DestroyAnswer) -> str:
    lines = [
        f"{answer.bay}: destroyed" if answer.destroyed else f"{answer.bay}: would be destroyed (dry run)",
        *(f"removed: {each}" if answer.destroyed else f"would remove: {each}" for each in answer.removed),
        *(f"kept: {each}" for each in answer.kept),
        *(f"refuses because of: {each}" for each in answer.blockers),
    ]
    if answer.trash:
        lines.append(f"trash, kept seven days: {answer.trash}")
    return "\n".join(lines)
