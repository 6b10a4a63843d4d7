"""The executor: runs a plan's steps, each as soon as what it waits for is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from devbay.bays.plan import Action, Step
from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job

Handler = Callable[[Step], None]
MAX_PARALLEL = 16


@dataclass
class Outcome:
    """What became of a plan: errors by step id, and steps that never ran because of them."""

    failed: dict[str, DevbayError] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.failed and not self.skipped


def execute(steps: Sequence[Step], handlers: Mapping[Action, Handler], job: Job) -> Outcome:
    """Run the steps concurrently in dependency order; never raises for a failing step.

    Raises `Cancelled` once every started step has come to rest after a cancellation. A handler that
    raises anything but `DevbayError` is a defect and is raised as it is, also after the others rest.
    """
    outcome = Outcome()
    waiting = {step.id: step for step in steps}
    running: dict[Future[None], Step] = {}
    defect: BaseException | None = None
    total = len(steps)
    if not steps:
        return outcome
    with ThreadPoolExecutor(max_workers=min(MAX_PARALLEL, total), thread_name_prefix="step") as pool:
        while waiting or running:
            if not job.cancelled and defect is None:
                for step in _ready(waiting, outcome):
                    del waiting[step.id]
                    job.progress(_phrase(step), len(outcome.done) / total)
                    running[pool.submit(handlers[step.action], step)] = step
            if not running:
                break
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                step = running.pop(future)
                error = future.exception()
                if error is None:
                    outcome.done.append(step.id)
                elif isinstance(error, DevbayError):
                    outcome.failed[step.id] = error
                    _skip_dependants(step, waiting, outcome)
                else:
                    defect = defect or error
    if defect is not None:
        raise defect
    if job.cancelled:
        raise Cancelled
    return outcome


def _ready(waiting: Mapping[str, Step], outcome: Outcome) -> list[Step]:
    done = set(outcome.done)
    return [step for step in waiting.values() if step.after <= done]


def _skip_dependants(failed: Step, waiting: dict[str, Step], outcome: Outcome) -> None:
    """Move what waits for the failed step, directly or not, to `skipped` with the reason."""
    lost = {failed.id}
    changed = True
    while changed:
        changed = False
        for step in list(waiting.values()):
            if step.after & lost:
                del waiting[step.id]
                lost.add(step.id)
                culprit = failed.service or failed.action
                outcome.skipped[step.id] = f"waits for {culprit}, which failed"
                changed = True


def _phrase(step: Step) -> str:
    words = {
        "network": "making the network", "publish": "publishing the site", "image": "preparing the image of",
        "install": "installing dependencies of", "volumes": "preparing the volumes of",
        "create": "creating", "start": "starting", "probe": "waiting for", "finish": "running",
        "stop": "stopping", "pause": "freezing", "unpause": "thawing", "remove": "replacing",
        "withdraw": "withdrawing the site", "detach": "leaving the network",
        "drop_network": "removing the network",
    }  # fmt: skip
    return f"{words[step.action]} {step.service}".strip()
