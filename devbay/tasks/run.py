"""One run, from its services to its result. Every step that can fail ends in a RunResult, not in silence."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from devbay.answers import Failure, RunResult, Tree
from devbay.bays.boot import Boot
from devbay.bays.execute import Outcome
from devbay.bays.hostapprovals import WorktreeFiles
from devbay.bays.parts import Bay
from devbay.bays.specs import service_spec, task_spec
from devbay.errors import PERSON_NEEDED, Cancelled, DevbayError
from devbay.jobs import Job
from devbay.manifest import Report, Task
from devbay.manifest.models import HOST
from devbay.reports import Judged, RunReport, judge
from devbay.reports.judge import NamedReport
from devbay.reports.records import TestCase
from devbay.runtimes.base import Exit, ServiceSpec
from devbay.security.host_commands import not_covered
from devbay.tasks.artifacts import RUN_DIR_PREFIX, Mark, ReportPlace, digests, ensure_parent, report_place
from devbay.tasks.asking import Asked, asked, put_files, reader, start_folder
from devbay.tasks.log import RunLog
from devbay.worktrees import untracked_files, worktree_state

LOG_NAME = "output.log"
RUN_DIR_NAME = "out"
OUTDATED = "volume_in_use"
Marks = dict[Path, Mark]


@dataclass(frozen=True)
class RunRequest:
    """What is to be run. timeout_s: None takes the task's own limit. only: run these tests (not all)."""

    id: str
    task: str
    args: tuple[str, ...] = ()
    timeout_s: float | None = None
    only: tuple[Failure, ...] = ()


@dataclass
class Run:
    """A run in progress; it fills up as it goes, so that an early end still says what is known."""

    bay: Bay
    request: RunRequest
    folder: Path
    started_services: list[str] = field(default_factory=list)
    tree: Tree | None = None
    tests: tuple[TestCase, ...] = ()

    @property
    def on_host(self) -> bool:
        """Whether the task runs on this machine beside the bay's containers."""
        loaded = self.bay.loaded_or_none()
        task = loaded.manifest.tasks.get(self.request.task) if loaded and loaded.manifest else None
        return task is not None and task.in_ == "host"

    @property
    def run_dir(self) -> Path:
        return self.folder / RUN_DIR_NAME

    @property
    def log_path(self) -> Path:
        return self.folder / LOG_NAME

    def base(self, status: str, **fields: object) -> RunResult:
        """A result with what every result of this run says."""
        known: dict[str, object] = {
            "run": self.request.id,
            "bay": self.bay.record.name,
            "task": self.request.task,
            "runtime": "host" if self.on_host else self.bay.record.runtime,
            "status": status,
            "started_services": self.started_services,
            "parsed": False,
            "counts": None,
            "log": str(self.log_path),
            **fields,
        }
        if self.tree is not None:
            known["tree"] = self.tree
        return RunResult.model_validate(known)


def make_folders(folder: Path) -> None:
    """The run's own folder (private) and in it the one the task may write, whoever it runs as."""
    folder.mkdir(mode=0o700, parents=True)
    run_dir = folder / RUN_DIR_NAME
    run_dir.mkdir()
    run_dir.chmod(0o777)


def foreseen(bay: Bay, task_name: str, args: Sequence[str], only: Sequence[Failure]) -> Asked:
    """What will be asked of the task's runner, as far as it is known before there is an image.

    Raises `no_selector` if these tests cannot be handed to the task's command.
    """
    task = bay.manifest.tasks[task_name]
    host = bay.manifest.task_service(task_name)
    service = bay.manifest.services[host] if host else None
    workdir = task.workdir or (service.workdir if service else None)
    worktree = Path(bay.record.worktree)
    return asked(
        (*task.run, *args),
        env={**(service.env if service else {}), **task.env},
        folder=start_folder(workdir, worktree),
        run_dir=str(worktree),
        read=reader(worktree),
        report=not isinstance(task.report, Report),
        only=only,
    )


def written(run: Run) -> str | None:
    """The report in the worktree that a run will write, by which runs go one after another; None if none."""
    bay, request = run.bay, run.request
    report = bay.manifest.tasks[request.task].report
    if isinstance(report, Report):
        return None if report.path.startswith(RUN_DIR_PREFIX) else report.path
    ask = foreseen(bay, request.task, request.args, request.only).ask
    return " ".join(ask.reports) if ask is not None and ask.in_worktree else None


def pending_for(bay: Bay, task_name: str, args: Sequence[str] = ()) -> list[str]:
    """Approvals without which the task may not run: its own, its services', the whole bay's.

    Raises `arguments_not_covered` if further arguments have it run on this machine what its approval cannot
    cover.
    """
    manifest = bay.manifest
    task = manifest.tasks[task_name]
    if bay.record.runtime == "host" or task.in_ == HOST:
        more = not_covered(manifest, task_name, args, WorktreeFiles(Path(bay.record.worktree)))
        if more:
            raise DevbayError(
                "arguments_not_covered",
                f"with these arguments {task_name} would run on this machine what its approval does not"
                f" cover: {', '.join(more)}",
                next=f"run {task_name} without them, or declare a task of its own that a person approves",
                exit_code=PERSON_NEEDED,
            )
    services = set(manifest.subgraph(task.needs))
    host = manifest.task_service(task_name)
    if host:
        services.add(host)
    return [
        capability.summary
        for capability in bay.pending
        if capability.task == task_name
        or capability.service in services
        or (capability.task is None and capability.service is None)
    ]


def bring_up(run: Run, services: Sequence[str], job: Job) -> RunResult | None:
    """Start services with what they need (the bay's lock is held); a result if that failed."""
    boot = Boot(run.bay, job)
    try:
        outcome = boot.up(services)
    finally:
        run.started_services = sorted({*run.started_services, *boot.started})
    if outcome.ok:
        return None
    reasons, logs = _why(outcome)
    return run.base(
        "error",
        reason="services_failed",
        detail=run.bay.scrub("; ".join(reasons)),
        output=run.bay.scrub("\n".join(logs)) or None,
        next=f"bay_logs(bay={run.bay.record.name!r})",
    )


def perform(run: Run, job: Job) -> RunResult:
    """Run the task's container and read what came out; its needs are up.

    Raises `cancelled` if it was before the container ran, `volume_in_use` if a service runs on dependencies
    that the task's install has replaced by newer ones, and else only for defects.
    """
    bay, request = run.bay, run.request
    task, runtime = bay.manifest.tasks[request.task], bay.runtime_of(request.task)
    place = _place(task, run)
    places = [place] if place is not None else []
    if place is not None and place.in_worktree:
        ensure_parent(place)
    preparation = Asked(())
    before: Marks = {}
    untracked_before: set[str] | None = None
    clock = time.monotonic()
    log = RunLog(run.log_path, lambda: bay.parts.scrub.stream(bay.record.id))
    try:
        with ThreadPoolExecutor(max_workers=1) as pool:
            looking = pool.submit(_tree_before, run)
            spec, image = _prepare(run, job)
            preparation, spec = _asked(run, task, spec, runtime.image_env(image))
            places += preparation.places(Path(bay.record.worktree), run.run_dir)
            before = _marks(places)
            untracked_before = looking.result()
        timeout = request.timeout_s or task.timeout_s
        job.progress(f"running {request.task}")
        ended = runtime.run_task(spec, image, request.id, run.run_dir, log.write, timeout_s=timeout, job=job)
    except Cancelled:  # before the container ran: there is nothing to read
        raise
    except DevbayError as error:
        if error.code == OUTDATED:
            raise
        bay.scrub_error(error)
        lines = error.data.get("log") or []
        return run.base(
            "error",
            reason="services_failed",
            detail=error.message,
            output="\n".join(lines) or None,
            next=error.next or None,
            duration_ms=_ms(clock),
        )
    finally:
        log.close()
    duration = _ms(clock)
    job = Job()  # reading the results is not cancelled: what was printed is still wanted
    report = _report(task, places, before, preparation)
    judged = _judge(run, spec, report, ended)
    if untracked_before is not None:
        _remember_files(run, untracked_before)
    run.tests = _scrubbed_tests(judged.tests, bay)
    # the log was scrubbed as it came; what a report file says was not
    said = {name: _scrubbed(value, bay) for name, value in judged.fields.items()}
    return run.base(exit_code=ended.code, duration_ms=duration, **said)


def _asked(
    run: Run, task: Task, spec: ServiceSpec, image_env: Mapping[str, str]
) -> tuple[Asked, ServiceSpec]:
    """What is asked of the task's runner, and the container's spec with it."""
    worktree = Path(run.bay.record.worktree)
    preparation = asked(
        spec.command or (),
        env={**image_env, **spec.env},
        folder=start_folder(spec.workdir, worktree),
        run_dir=str(run.run_dir),
        read=reader(worktree),
        report=not isinstance(task.report, Report),
        only=run.request.only,
    )
    put_files(preparation.files, run.run_dir)
    return preparation, dataclasses.replace(
        spec, command=preparation.argv, env={**spec.env, **preparation.env}
    )


def _marks(places: Sequence[ReportPlace]) -> Marks:
    return {path: mark for place in places for path, mark in place.marks().items()}


def _report(task: Task, places: Sequence[ReportPlace], before: Marks, preparation: Asked) -> RunReport:
    """The reports that the run wrote; what it left as it was is stale, and no report unless one is due."""
    after = _marks(places)
    fresh = tuple(path for path, mark in after.items() if before.get(path) != mark)
    ask = preparation.ask
    due = ask is None or ask.due
    if not places or not (fresh or due):
        return RunReport(auto=task.report == "auto")
    place = places[0]
    return RunReport(
        declared=NamedReport(place.format, place.label),
        path=place.path,
        beneath=place.base,
        fresh=bool(fresh) or not after,
        auto=task.report == "auto",
        files=fresh or tuple(after),
        asked=ask.said if ask is not None else "",
        due=due,
    )


def _judge(run: Run, spec: ServiceSpec, report: RunReport, ended: Exit) -> Judged:
    """Read the report and the output, and judge the run by both."""
    worktree = Path(run.bay.record.worktree)
    mounts = {m.target: Path(m.source) for m in spec.mounts if Path(m.source).is_relative_to(worktree)}
    return judge(
        ended, report, log=run.log_path, argv=spec.command or (), root=worktree,
        cwd=spec.workdir or str(worktree), mounts=mounts,
    )  # fmt: skip


def _place(task: Task, run: Run) -> ReportPlace | None:
    if not isinstance(task.report, Report):
        return None
    return report_place(task.report, Path(run.bay.record.worktree), run.run_dir)


def _prepare(run: Run, job: Job) -> tuple[ServiceSpec, str]:
    """Image, dependencies, volumes and network of the task's container."""
    bay = run.bay
    around = bay.surroundings()
    if run.on_host:
        around = dataclasses.replace(around, plane="host")
    spec = task_spec(bay.manifest, run.request.task, run.request.args, around, run_dir=run.run_dir)
    if run.on_host:
        return spec, bay.on_this_machine.ensure_image(spec, job)
    host = bay.manifest.task_service(run.request.task)
    # what is installed is the service's, whatever the task's own environment adds
    made_by = service_spec(bay.manifest, host, around) if host else spec
    image = bay.runtime.ensure_image(made_by, job)
    if made_by.install:
        image = bay.runtime.ensure_installed(made_by, image, job)
    bay.runtime.ensure_volumes(made_by, image, job)
    Boot(bay, job).ensure_network()
    return spec, image


def _tree_before(run: Run) -> set[str]:
    """The commit and dirty state that is being run, and the untracked files there are before."""
    record = run.bay.record
    worktree, git_dir = Path(record.worktree), Path(record.git_dir)
    submodules = {path: Path(d) for path, d in record.submodules.items()}
    state = worktree_state(worktree, git_dir, submodules)
    run.tree = Tree(commit=state.commit or "", dirty=state.dirty)
    return set(untracked_files(worktree, git_dir))


def _scrubbed_tests(tests: tuple[TestCase, ...], bay: Bay) -> tuple[TestCase, ...]:
    """The tests with names that hold no secret; nearly always they are as they were."""
    names = "\n".join(f"{test.name}\n{test.suite or ''}\n{test.file or ''}" for test in tests)
    if bay.scrub(names) == names:
        return tests
    return tuple(
        replace(
            test,
            name=bay.scrub(test.name),
            suite=test.suite and bay.scrub(test.suite),
            file=test.file and bay.scrub(test.file),
        )
        for test in tests
    )


def _scrubbed(value: Any, bay: Bay) -> Any:
    """A result's field without secrets, whatever it is made of."""
    if isinstance(value, str):
        return bay.scrub(value)
    if isinstance(value, list):
        return [_scrubbed(each, bay) for each in value]
    if isinstance(value, Failure):
        return value.model_copy(
            update={name: _scrubbed(getattr(value, name), bay) for name in value.model_fields_set}
        )
    return value


def _remember_files(run: Run, before: set[str]) -> None:
    """Files that appeared during the run may be destroyed with the bay as long as nobody touches them."""
    record = run.bay.record
    worktree = Path(record.worktree)
    appeared = sorted(set(untracked_files(worktree, Path(record.git_dir))) - before)
    if appeared:
        run.bay.parts.store.add_run_files(record.id, digests(worktree, appeared))


def _why(outcome: Outcome) -> tuple[list[str], list[str]]:
    reasons: list[str] = []
    logs: list[str] = []
    for step, error in outcome.failed.items():
        reasons.append(f"{step.rpartition(':')[2]}: {error.message}")
        logs += error.data.get("log") or []
    return reasons, logs[-40:]


def _ms(since: float) -> int:
    return int((time.monotonic() - since) * 1000)
