import threading
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from devbay.daemon.requests import Requests
from devbay.errors import DevbayError
from devbay.jobs import Job
from tests.daemon.fake import FakeCore


def requests() -> Requests:
    return Requests(FakeCore.__new__(FakeCore))


def run(work: Any) -> tuple[Any, list[tuple[float, float | None, str]]]:
    """The result of `work` and the progress that was sent."""
    sent: list[tuple[float, float | None, str]] = []

    async def send(progress: float, total: float | None, message: str) -> None:
        sent.append((progress, total, message))

    async def main() -> Any:
        return await requests().in_thread(work, send)

    return anyio.run(main), sent


def test_progress_grows_whatever_the_fractions_say() -> None:
    def work(job: Job) -> str:
        for share in (None, 0.5, 0.2, None, 1.0, 1.0):
            job.progress("step", share)
        return "done"

    result, sent = run(work)
    values = [progress for progress, _, _ in sent]
    assert result == "done"
    assert values == sorted(set(values))
    assert [total for _, total, _ in sent] == [None, 1.0, 1.0, None, 1.0, 1.0]


def test_progress_of_a_thread_that_the_work_started_arrives() -> None:
    def work(job: Job) -> None:
        thread = threading.Thread(target=job.progress, args=("from a helper", None))
        thread.start()
        thread.join()

    assert run(work)[1][0][2] == "from a helper"


def test_an_error_comes_out_as_it_went_in() -> None:
    def work(job: Job) -> None:
        raise DevbayError("x", "y")

    with pytest.raises(DevbayError) as caught:
        run(work)
    assert caught.value.code == "x"


def test_a_flood_of_progress_loses_messages_but_stops_nothing() -> None:
    async def slow(progress: float, total: float | None, message: str) -> None:
        await anyio.sleep(0.001)

    def work(job: Job) -> float:
        began = time.monotonic()
        for number in range(20_000):
            job.progress(str(number))
        return time.monotonic() - began

    async def main() -> float:
        return await requests().in_thread(work, slow)

    assert anyio.run(main) < 3


def test_work_whose_caller_left_counts_until_it_ends() -> None:
    release = threading.Event()
    seen: list[Any] = []

    def work(job: Job) -> None:
        seen.append(job)
        release.wait(10)

    async def main() -> None:
        found = requests()
        async with anyio.create_task_group() as group:
            group.start_soon(found.in_thread, work, None)
            while not seen:
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        assert found.active == 1
        while not seen[0].cancelled:
            await anyio.sleep(0.01)
        release.set()
        while found.active:
            await anyio.sleep(0.01)

    anyio.run(main)


@pytest.mark.parametrize(
    "params", [None, {}, {"_meta": None}, {"_meta": []}, {"_meta": {"dev.devbay/env": []}}]
)
def test_a_request_without_a_caller_comes_from_the_root_with_no_environment(params: Any) -> None:
    call = requests().call(params, 7, Job())
    assert (call.cwd, dict(call.env), call.peer_pid) == (Path("/"), {}, 7)
