"""The planner: every verb is a wanted state, and a plan from a half-made state finishes it."""

from __future__ import annotations

import itertools

import pytest

from devbay.bays.plan import Known, Step, Wanted, WantedService, disrupts, plan
from devbay.runtimes.base import ObservedBay, ObservedService

DB = WantedService("db", config_hash="d1", routed=True)
MIGRATE = WantedService("migrate", oneshot=True, needs=("db",), config_hash="m1")
API = WantedService("api", needs=("db", "migrate"), config_hash="a1", installs=True, routed=True)
ALL = (DB, MIGRATE, API)


def running(*services: WantedService, **others: str) -> Wanted:
    return Wanted("running", services or ALL)


def observed(network: bool = True, **states: str) -> ObservedBay:
    hashes = {"db": "d1", "migrate": "m1", "api": "a1"}
    found = {}
    for name, state in states.items():
        word, _, code = state.partition(":")
        found[name] = ObservedService(
            name, word, ref=f"c-{name}", config_hash=hashes[name], exit_code=int(code) if code else None
        )  # type: ignore[arg-type]
    return ObservedBay(network=network, services=found)


def ids(steps: tuple[Step, ...]) -> list[str]:
    return [step.id for step in steps]


def before(steps: tuple[Step, ...], first: str, second: str) -> bool:
    """Whether `second` waits for `first`, directly or not."""
    by_id = {step.id: step for step in steps}
    waits = set(by_id[second].after)
    while waits:
        if first in waits:
            return True
        waits = set(itertools.chain.from_iterable(by_id[name].after for name in waits))
    return False


UP = observed(db="running", migrate="exited:0", api="running")
KNOWN_UP = Known(healthy=frozenset({"db", "api"}), published=True)


def test_an_empty_machine_gets_everything_in_dependency_order() -> None:
    steps = plan(running(), ObservedBay(), Known())
    assert {"network", "publish"} <= set(ids(steps))
    assert before(steps, "probe:db", "start:migrate")
    assert before(steps, "finish:migrate", "start:api")
    assert before(steps, "install:api", "create:api")
    assert before(steps, "network", "start:db")


def test_images_and_installs_do_not_wait_for_other_services() -> None:
    steps = {step.id: step for step in plan(running(), ObservedBay(), Known())}
    assert steps["image:api"].after == frozenset()
    assert steps["install:api"].after == {"image:api"}


def test_what_is_there_and_healthy_needs_no_step() -> None:
    assert plan(running(), UP, KNOWN_UP) == ()


def test_running_is_not_healthy_until_a_probe_said_so() -> None:
    steps = plan(running(), UP, Known(healthy=frozenset({"api"}), published=True))
    assert ids(steps) == ["probe:db"]


def test_a_changed_configuration_replaces_the_container_but_only_after_the_new_one_can_be_made() -> None:
    changed = WantedService("api", needs=("db",), config_hash="a2", installs=True)
    steps = plan(running(DB, changed), UP, KNOWN_UP)
    assert before(steps, "install:api", "remove:api")
    assert before(steps, "remove:api", "create:api")
    assert disrupts(steps)


def test_a_service_that_stopped_is_started_again_and_probed() -> None:
    steps = plan(running(DB), observed(db="exited:137"), Known(published=True))
    assert ids(steps) == ["start:db", "probe:db"]


def test_a_container_that_was_created_but_never_started_counts_as_a_first_start() -> None:
    steps = plan(running(DB), observed(db="created"), Known(published=True))
    assert [step.first for step in steps] == [False, True]


def test_a_paused_service_is_thawed_and_probed() -> None:
    steps = plan(running(DB), observed(db="paused"), Known(published=True))
    assert ids(steps) == ["unpause:db", "probe:db"]


def test_a_one_shot_that_succeeded_is_not_run_again_and_one_that_failed_is_made_anew() -> None:
    done = plan(running(DB, MIGRATE), UP, KNOWN_UP)
    failed = plan(running(DB, MIGRATE), observed(db="running", migrate="exited:1"), KNOWN_UP)
    assert done == ()
    assert before(failed, "remove:migrate", "create:migrate")
    assert failed[-1].id == "finish:migrate"


def test_a_set_up_step_that_has_run_in_the_bay_never_runs_again_even_when_its_container_is_gone() -> None:
    seed = WantedService("seed", oneshot=True, needs=("db",), config_hash="new", once=True)
    known = Known(healthy=frozenset({"db"}), done=frozenset({"seed"}), published=True)
    assert plan(running(DB, seed), observed(db="running"), known) == ()


def test_a_restart_stops_and_starts_the_same_container() -> None:
    wanted = Wanted("running", ALL, restart=frozenset({"api"}))
    assert ids(plan(wanted, UP, KNOWN_UP)) == ["stop:api", "start:api", "probe:api"]


def test_a_service_that_waits_for_a_person_keeps_what_needs_it_waiting_and_nothing_else() -> None:
    wanted = Wanted("running", ALL, blocked={"migrate": "approval_required"})
    services = {step.service for step in plan(wanted, ObservedBay(), Known())}
    assert services == {"", "db"}


def test_a_missing_network_is_made_only_if_something_starts() -> None:
    assert "network" in ids(plan(running(DB), observed(network=False, db="exited:0"), Known()))
    assert "network" not in ids(
        plan(running(DB), observed(network=False, db="running"), Known(frozenset({"db"})))
    )


def test_cooling_stops_dependants_first_and_gives_the_network_back_last() -> None:
    steps = plan(Wanted("cold", ALL), UP, KNOWN_UP)
    assert before(steps, "stop:api", "stop:db")
    assert before(steps, "stop:db", "detach")
    assert steps[-1].id == "drop_network"
    assert "stop:migrate" not in ids(steps)


def test_freezing_pauses_dependants_first() -> None:
    steps = plan(Wanted("frozen", ALL), UP, KNOWN_UP)
    assert ids(steps) == ["pause:api", "pause:db"]
    assert before(steps, "pause:api", "pause:db")


def test_cooling_what_is_cold_does_nothing_but_withdraw() -> None:
    assert ids(plan(Wanted("cold", ALL), observed(network=False, db="exited:0"), Known())) == ["withdraw"]


@pytest.mark.parametrize("kill_after", range(14))
def test_a_plan_made_after_a_crash_at_any_step_finishes_the_work(kill_after: int) -> None:
    """Execute `kill_after` steps on a model of the engine, plan anew, and end in the same state."""
    model = Model()
    for step in ordered(plan(running(), model.observe(), model.known()))[:kill_after]:
        model.do(step)
    model.forget_health()
    for step in ordered(plan(running(), model.observe(), model.known())):
        model.do(step)
    assert model.states == {"db": "running", "migrate": "exited:0", "api": "running"}
    assert model.network
    assert plan(running(), model.observe(), model.known()) == ()


def ordered(steps: tuple[Step, ...]) -> list[Step]:
    """The steps in an order that respects what they wait for; fails on a cycle or a missing step."""
    left, done, result = list(steps), set(), []
    while left:
        ready = [step for step in left if step.after <= done]
        assert ready, f"nothing can go on: {left}"
        result.append(ready[0])
        done.add(ready[0].id)
        left.remove(ready[0])
    return result


class Model:
    """An engine in memory: just enough to say what a step changes."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {}
        self.network = False
        self.published = False
        self.healthy: set[str] = set()

    def observe(self) -> ObservedBay:
        return observed(self.network, **self.states)

    def known(self) -> Known:
        return Known(frozenset(self.healthy), published=self.published)

    def forget_health(self) -> None:
        self.healthy.clear()

    def do(self, step: Step) -> None:
        name = step.service
        match step.action:
            case "network":
                self.network = True
            case "publish":
                self.published = True
            case "create":
                assert self.network
                self.states[name] = "created"
            case "remove":
                del self.states[name]
            case "start":
                assert self.states[name] != "running"
                self.states[name] = "running"
            case "probe":
                assert self.states[name] == "running"
                self.healthy.add(name)
            case "finish":
                assert self.states[name] == "running"
                self.states[name] = "exited:0"


def test_a_service_that_left_the_manifest_is_removed_and_one_that_is_only_not_named_stays() -> None:
    there = observed(db="running", migrate="exited:0", api="running")
    gone = plan(Wanted("running", (DB,), gone=frozenset({"api"})), there, KNOWN_UP)
    assert ids(gone) == ["remove:api"]
    assert plan(Wanted("running", (DB,)), there, KNOWN_UP) == ()
