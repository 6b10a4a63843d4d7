"""Runs: started by a request, kept in the store, waited for, cancelled, and found again after a restart."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from devbay.answers import RunResult
from devbay.bays.boot import Boot
from devbay.bays.parts import Bay, Parts, now
from devbay.bays.verbs import Caller
from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job
from devbay.reports import present
from devbay.reports.records import TestCase
from devbay.runtimes.base import Runtime
from devbay.store import BayRecord, RunRecord
from devbay.tasks.history import Baseline, last_failures, recalled, remember, told
from devbay.tasks.log import RunLog
from devbay.tasks.queues import Queues
from devbay.tasks.run import (
    LOG_NAME,
    OUTDATED,
    Run,
    RunRequest,
    bring_up,
    foreseen,
    make_folders,
    pending_for,
    perform,
    written,
)
from devbay.works import Work

logger = logging.getLogger(__name__)
OpenRecord = Callable[[BayRecord], Bay]
GOING = ("queued", "running")


class Runs:
    """Every run of this home. A run lives on after the request that started it was answered."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._works: dict[str, Work[RunResult]] = {}
        self._queues = Queues()

    # -- verbs -----------------------------------------------------------------------------------------

    def start(
        self,
        caller: Caller,
        bay: Bay,
        task: str,
        *,
        args: tuple[str, ...],
        timeout_s: float | None,
        wait_s: float,
        only_failed: bool = False,
        against: Baseline | None = None,
    ) -> RunResult:
        """Start a run and wait at most `wait_s` for its result; then answer `running` with its id.

        only_failed: of the tests, those that failed in the task's last run here. against: the run that the
        result is compared with (`history.baseline`).
        """
        self._check(bay, task)
        only = tuple(last_failures(self.parts.store, bay, task)) if only_failed else ()
        foreseen(bay, task, args, only)
        request = RunRequest(_new_id(), task, args, timeout_s, only)
        pending = pending_for(bay, task, args)
        if pending:
            return RunResult(
                run=None, bay=bay.record.name, task=task, status="error", reason="approval_required",
                parsed=False, counts=None, pending_approvals=pending,
                next="a person must run `devbay approve`",
            )  # fmt: skip
        folder = self.parts.home.runs / request.id
        make_folders(folder)
        details = {"part": True} if args or only else {}
        record = RunRecord(request.id, bay.record.id, task, "running", now(), str(folder), details=details)
        self.parts.store.add_run(record)
        run = Run(bay, request, folder)
        work = Work(f"run-{request.id}", lambda job: self._body(run, record, against, job))
        self._works[request.id] = work
        work.start()
        over = work.wait_or_cancel(None if wait_s == float("inf") else wait_s, caller.job)
        return present(work.result()) if over else self._going(request.id)

    def result(self, caller: Caller, run: str, *, wait_s: float, failures_from: int) -> RunResult:
        """The result of a run, or where it stands after at most `wait_s`."""
        record = self.parts.store.run(run)
        if record is None:
            raise DevbayError(
                "unknown_run",
                f"there is no run {run[:80]!r}",
                next="bay_run_task starts one; its answer has the id",
            )
        work = self._works.get(run)
        if work is not None and not work.finished and not work.wait(wait_s, caller.job):
            return self._going(run)
        record = self.parts.store.run(run) or record
        if record.result is None:
            return self._going(run)
        return present(RunResult.model_validate(record.result), failures_from)

    def full_result(self, run: str) -> tuple[RunResult, list[TestCase]]:
        """Everything a finished run found, ungrouped and uncut, and its tests; raises `unknown_run`."""
        record = self.parts.store.run(run)
        if record is None or record.result is None:
            raise DevbayError("unknown_run", f"there is no finished run {run[:80]!r}", next="bay_run_result")
        return RunResult.model_validate(record.result), recalled(self.parts.store, run)

    def cancel(self, run: str) -> bool:
        """Cancel a run that is going; False if it is not."""
        work = self._works.get(run)
        if work is None or work.finished:
            return False
        work.job.cancel()
        return True

    def cancel_bay(self, bay_id: str) -> None:
        """Cancel every run that is going in a bay."""
        for record in self.parts.store.runs(bay_id, GOING):
            work = self._works.get(record.id)
            if work is not None:
                work.job.cancel()

    def going(self) -> list[str]:
        return [run for run, work in self._works.items() if not work.finished]

    # -- one run ---------------------------------------------------------------------------------------

    def _body(self, run: Run, record: RunRecord, against: Baseline | None, job: Job) -> RunResult:
        try:
            result = self._in_turn(run, job)
        except Cancelled:
            result = run.base("cancelled", reason="cancelled")
        except DevbayError as error:
            run.bay.scrub_error(error)
            result = run.base(
                "error", reason="services_failed", detail=error.message, next=error.next or None
            )
        except Exception as error:
            logger.exception("run %s failed inside devbay", run.request.id)
            self._finish(record, run.base("error", detail=f"devbay failed: {type(error).__name__}: {error}"))
            raise
        whole = not run.request.args and not run.request.only
        result = told(self.parts.store, result, run.tests, against, whole=whole)
        remember(self.parts.store, record, run.tests)
        self._finish(record, result)
        return result

    def _in_turn(self, run: Run, job: Job) -> RunResult:
        """Wait for the report's turn, for changes of the bay to end, then bring up the needs and perform."""
        bay = run.bay
        key = (bay.record.id, written(run) or run.request.id)

        def position(before: int) -> None:
            status = "queued" if before else "running"
            self.parts.store.update_run(run.request.id, status=status, details={"position": before})

        with (
            self._queues.turn(key, run.request.id, job, position),
            self.parts.locks.run(bay.record.id, run.request.id, job),
        ):
            run.bay = bay.reload()
            needs = run.bay.manifest.tasks[run.request.task].needs
            problem = self._bring_up(run, needs, job)
            if problem is not None:
                return problem
            try:
                return perform(run, job)
            except DevbayError as error:
                host = run.bay.manifest.task_service(run.request.task)
                if error.code != OUTDATED or host is None:
                    raise
                return self._bring_up(run, (host,), job) or perform(run, job)

    def _bring_up(self, run: Run, needs: Sequence[str], job: Job) -> RunResult | None:
        """Start these services; one that another run uses is replaced only after that run."""
        bay_id = run.bay.record.id
        while needs:
            with self.parts.locks.change(bay_id, "up", job):
                users = self.parts.locks.in_use(bay_id)
                if not users or not Boot(run.bay, job).planned_disruption(needs):
                    problem = bring_up(run, needs, job)
                    if problem is None:
                        self.parts.locks.begin_use(bay_id, run.request.id)
                    return problem
            job.progress(f"waiting for {', '.join(users)}: services they use must be replaced")
            self.parts.locks.wait_until_unused(bay_id, job)
        return None

    def _finish(self, record: RunRecord, result: RunResult) -> None:
        tree = result.tree
        self.parts.store.update_run(
            record.id,
            status=result.status,
            finished_at=now(),
            result=result.as_json(),
            details=record.details,
            tree_commit=tree.commit if tree else None,
            tree_dirty=tree.dirty if tree else True,
        )

    def _going(self, run: str) -> RunResult:
        record = self.parts.store.run(run)
        assert record is not None
        bay = self.parts.store.bay(record.bay)
        work = self._works.get(run)
        fields: dict[str, object] = {
            "run": run,
            "bay": bay.name if bay else record.bay,
            "task": record.task,
            "status": record.status if record.status in GOING else "running",
            "parsed": False,
            "log": str(Path(record.folder) / LOG_NAME),
            "next": f"bay_run_result(run={run!r}, wait_s=45)",
        }
        if work is not None and work.step:
            fields["detail"] = work.step
        if record.status == "queued":
            fields["position"] = record.details.get("position", 1)
        return RunResult.model_validate(fields)

    def _check(self, bay: Bay, task: str) -> None:
        if bay.record.phase != "ready":
            raise DevbayError(
                "half_made",
                f"bay {bay.record.name!r} is {bay.record.phase}",
                next=f"bay_status(bay={bay.record.name!r}, wait_s=45)",
                exit_code=1,
            )
        tasks = bay.manifest.tasks
        if task not in tasks:
            raise DevbayError(
                "unknown_task",
                f"{task[:80]!r} is no task of {bay.record.project}",
                next=f"choose one of: {', '.join(tasks) or 'there are none; add one to devbay.yaml'}",
                candidates=list(tasks),
            )

    # -- after a restart -------------------------------------------------------------------------------

    def recover(self, open_record: OpenRecord) -> None:
        """End what a killed daemon left running: kill its container, keep its output, say `lost`."""
        for record in self.parts.store.runs(statuses=GOING):
            bay = self.parts.store.bay(record.bay)
            ended = False
            if bay is not None:
                opened = open_record(bay)
                places = {each.key: each for each in (opened.on_this_machine, opened.runtime)}
                ended = any(self._collect(record, opened, each) for each in places.values())
            self._lose(record, bay, ended)

    def _collect(self, record: RunRecord, bay: Bay, runtime: Runtime) -> bool:
        folder = Path(record.folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{LOG_NAME}.whole"
        log = RunLog(path, lambda: self.parts.scrub.stream(record.bay))
        try:
            return runtime.end_run(bay.ref, record.id, log.write) is not None
        except DevbayError as error:
            logger.warning("run %s: %s", record.id, error.message)
            return False
        finally:
            log.close()
            if path.exists() and path.stat().st_size:
                path.replace(folder / LOG_NAME)  # the engine had it all; what was written is a part of it
            else:
                path.unlink(missing_ok=True)

    def _lose(self, record: RunRecord, bay: BayRecord | None, ended: bool) -> None:
        result = RunResult(
            run=record.id,
            bay=bay.name if bay else record.bay,
            task=record.task,
            runtime=bay.runtime if bay else None,
            status="lost",
            reason="daemon_restarted",
            detail="the daemon was restarted during the run"
            + ("; its container was killed" if ended else ""),
            parsed=False,
            counts=None,
            log=str(Path(record.folder) / LOG_NAME),
            next=f"bay_run_task(bay={bay.name!r}, task={record.task!r})" if bay else None,
        )
        self.parts.store.update_run(record.id, status="lost", finished_at=now(), result=result.as_json())


def _new_id() -> str:
    """`r` with the time in base 36 and random hex: short, sortable, unique across daemons."""
    digits, number = "", int(time.time())
    while number:
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return f"r{digits}{secrets.token_hex(2)}{os.getpid() % 36:x}"
