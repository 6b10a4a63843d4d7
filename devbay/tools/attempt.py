"""One verification: a throwaway bay is booted and probed, runs one test task, and is removed."""

from __future__ import annotations

import contextlib
import datetime
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devbay.answers import RunResult
from devbay.bays.boot import Boot
from devbay.bays.create import THROWAWAY, Request, build, put_manifest, reserve
from devbay.bays.execute import Outcome
from devbay.bays.parts import Bay
from devbay.bays.verbs import Caller
from devbay.detect.answers import Verification, VerifyFailure, VerifyTry
from devbay.detect.apply import edited, plain_data
from devbay.detect.facts_of import Facts, gather
from devbay.detect.files import View
from devbay.detect.repair import Problem, Repair, repair
from devbay.detect.verify import stamped, task_to_run
from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job
from devbay.manifest import parse
from devbay.manifest.load import NAMES
from devbay.store import BayRecord
from devbay.tools.verifying import Verified, remove
from devbay.worktrees import Repository
from devbay.worktrees.state import changes

MAX_TRIES = 3
LOG_LINES = 40
TASK_LIMIT_S = 1800.0


@dataclass
class Attempt:
    """One verification, as it goes."""

    core: Any
    caller: Caller
    repository: Repository
    text: str
    tries: list[VerifyTry] = field(default_factory=list)
    known: dict[str, object] = field(default_factory=dict)
    passed: RunResult | None = None

    def perform(self, job: Job) -> Verified:
        """Never raises for what is the manifest's, the repository's or the engine's; only `Cancelled`."""
        given = self.text
        record: BayRecord | None = None
        try:
            with contextlib.suppress(
                DevbayError
            ):  # its first start chooses the port, also of a bay without a site
                self.core.parts.proxy.ensure()
            request = self._request()
            record = reserve(self.core.parts, self.repository, request, self.caller.env)
            with self.core.parts.locks.change(record.id, "create", job):
                bay = build(self.core.parts, record, request, self.caller.env, job)
            outcome = self._bay(bay, job)
        except Cancelled:
            raise
        except DevbayError as error:
            outcome = "error"
            self.known["reason"] = error.message + (f" ({error.next})" if error.next else "")
        finally:
            left = None if record is None else remove(self.core, record, self.caller.env)
            if left:
                self.known["notes"] = [*_texts(self.known.get("notes")), left]
        found = Verification.model_validate({"outcome": outcome, "tries": self.tries, **self.known})
        return Verified(self._stamped(found) if outcome == "verified" else given, found)

    def _request(self) -> Request:
        name = f"{THROWAWAY}{secrets.token_hex(4)}"
        while self.repository.has_branch(name):
            name = f"{THROWAWAY}{secrets.token_hex(4)}"
        return Request(name=name, branch=name, yaml=self.text)

    def _bay(self, bay: Bay, job: Job) -> str:
        """Boot and run until it works, nothing is left to repair, or three tries are over."""
        record, manifest = bay.record, bay.manifest
        self.known |= {"runtime": record.runtime, "commit": record.base_commit}
        self._note_uncommitted()
        if not manifest.services and not manifest.tasks:
            return "nothing_to_verify"
        changes: list[str] = []
        facts: Facts | None = None
        for number in range(1, MAX_TRIES + 1):
            bay = bay.reload()
            if bay.pending:
                self.known["pending_approvals"] = [each.summary for each in bay.pending]
                return "approval_required"
            outcome, failures, problems = self._try(bay, job)
            self.tries.append(_made(changes, outcome, failures))
            if outcome in ("verified", "approval_required") or number == MAX_TRIES:
                return outcome
            facts = facts or gather(View(self.repository.toplevel))
            repairs = self._repairs(problems, facts)
            if not repairs:
                return outcome
            changes = [each.why for each in repairs]
            job.progress(f"trying again: {'; '.join(changes)}")
            put_manifest(Path(bay.record.worktree), self.text)
        return outcome

    def _try(self, bay: Bay, job: Job) -> tuple[str, list[VerifyFailure], list[Problem]]:
        """One boot and, if all came up, one run."""
        parts = self.core.parts
        for each in ("services", "task", "result", "log"):  # of the try before
            self.known.pop(each, None)
        with parts.locks.change(bay.record.id, "verify", job):
            outcome = Boot(bay, job).up(None)
        self.core.bays.watch.changed(bay.runtime.key, "", "")
        if not outcome.ok:
            return "boot_failed", *_seen(bay, outcome)
        self.known["services"] = list(bay.manifest.services)
        task = task_to_run(bay.manifest)
        if task is None:
            return "verified", [], []
        job.progress(f"running {task}")
        result = self.core.runs.start(
            Caller(job, self.caller.cwd, self.caller.env), bay.reload(), task, args=(),
            timeout_s=min(bay.manifest.tasks[task].timeout_s or TASK_LIMIT_S, TASK_LIMIT_S),
            wait_s=float("inf"),
        )  # fmt: skip
        return self._judged(bay, task, result)

    def _judged(
        self, bay: Bay, task: str, result: RunResult
    ) -> tuple[str, list[VerifyFailure], list[Problem]]:
        self.known |= {"task": task, "result": _told(result)}
        if result.status == "passed":
            self.passed = result
            return "verified", [], []
        if result.reason == "approval_required":
            self.known["pending_approvals"] = result.pending_approvals
            return "approval_required", [], []
        log = self._run_log(bay, result)
        self.known["log"] = log
        place = bay.manifest.task_service(task) or ""
        said = "; ".join(each.message for each in result.failures)
        code = result.reason or result.status
        failure = VerifyFailure(service=place, code=code, reason=result.detail or f"task {task}: {code}")
        return "task_failed", [failure], [Problem(place, code, said, tuple(log))]

    def _run_log(self, bay: Bay, result: RunResult) -> list[str]:
        if result.run is None:
            return []
        try:
            page = self.core.logs.read(
                bay, service=None, run=result.run, lines=LOG_LINES, since=None, grep=None, cursor=None
            )
        except DevbayError as error:
            return [f"(no output: {error.message})"]
        return [line.text for line in page.lines]

    def _repairs(self, problems: Sequence[Problem], facts: Facts) -> list[Repair]:
        """What mends them; `text` is then the repaired manifest. One that would not be valid is not taken."""
        found: list[Repair] = []
        for problem in problems:
            manifest = plain_data(self.text)
            one = repair(manifest, problem, facts)
            if one is None:
                continue
            text = edited(self.text, one.changes)
            if parse(text).valid:
                self.text = text
                found.append(one)
        return found

    def _stamped(self, found: Verification) -> str:
        up = f"{', '.join(found.services)} came up" if found.services else "it has no services"
        what = [up]
        if self.passed is None:
            what.append("it has no test task to run")
        else:
            counts = self.passed.counts
            passed = f" ({counts.passed} passed)" if counts else ""
            what.append(f"task {found.task} passed{passed}")
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        return stamped(self.text, date=today, runtime=str(found.runtime), what="; ".join(what))

    def _note_uncommitted(self) -> None:
        found = changes(self.repository.toplevel, self.repository.git_dir, {}, hidden=False)
        if {*found.changed, *found.untracked} - set(NAMES):
            note = "the bay was made of the last commit: what is not committed was not tried"
            self.known["notes"] = [note]


def _told(result: RunResult) -> dict[str, Any]:
    """A run's result without what leads to its folder and its bay, which are gone when it is read."""
    return {key: value for key, value in result.as_json().items() if key not in ("log", "next")}


def _made(changes: list[str], outcome: str, failures: list[VerifyFailure]) -> VerifyTry:
    said = {"approval_required": "booted"}.get(outcome, outcome)
    fields: dict[str, object] = {"outcome": said}
    if changes:
        fields["changes"] = changes
    if failures:
        fields["failures"] = failures
    return VerifyTry.model_validate(fields)


def _seen(bay: Bay, outcome: Outcome) -> tuple[list[VerifyFailure], list[Problem]]:
    """Every step that failed, with its log, and what the service listens on."""
    failures: list[VerifyFailure] = []
    problems: list[Problem] = []
    for step, raised in outcome.failed.items():
        error = bay.scrub_error(raised)
        service = step.partition(":")[2]
        log = [str(line) for line in error.data.get("log") or _tail(bay, service)][-LOG_LINES:]
        failures.append(VerifyFailure(service=service, code=error.code, reason=error.message, log=log))
        heard = bay.runtime.listening(bay.ref, service) if service else []
        reason = str(error.data.get("reason") or error.message)
        on_host = bay.record.runtime == "host"
        problems.append(Problem(service, error.code, reason, tuple(log), tuple(heard), on_host))
    return failures, problems


def _tail(bay: Bay, service: str) -> list[str]:
    if not service:
        return []
    return [bay.scrub(entry.text) for entry in bay.runtime.logs(bay.ref, service, lines=LOG_LINES)]


def _texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []
