"""One request from a socket to a worker thread and back: caller, job, progress, cancellation."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio import to_thread

from devbay.jobs import Job
from devbay.tools.registry import Call, Services

logger = logging.getLogger(__name__)
CWD_KEY, ENV_KEY = "dev.devbay/cwd", "dev.devbay/env"
SendProgress = Callable[[float, float | None, str], Awaitable[None]]
T = TypeVar("T")


class Requests:
    """The requests of one daemon: makes their calls, runs them in threads, counts those still at work."""

    def __init__(self, core: Services, *, threads: int = 256) -> None:
        self.core = core
        self._limiter = anyio.CapacityLimiter(threads)
        self._jobs: set[Job] = set()
        self._lock = threading.Lock()

    @property
    def active(self) -> int:
        """How many functions are running in threads, those of callers who left included."""
        with self._lock:
            return len(self._jobs)

    def cancel_all(self) -> None:
        """Cancel every running job (from a thread: callbacks may block)."""
        with self._lock:
            jobs = list(self._jobs)
        for job in jobs:
            job.cancel()

    def call(self, params: Mapping[str, Any] | None, peer_pid: int | None, job: Job) -> Call:
        """The caller as the request's `_meta` tells it; without one: `/`, and no environment."""
        meta = (params or {}).get("_meta")
        meta = meta if isinstance(meta, Mapping) else {}
        cwd, env = meta.get(CWD_KEY), meta.get(ENV_KEY)
        known = cwd if isinstance(cwd, str) and cwd.startswith("/") and "\0" not in cwd else "/"
        pairs = env.items() if isinstance(env, Mapping) else ()
        clean = {key: value for key, value in pairs if isinstance(key, str) and isinstance(value, str)}
        return Call(job, Path(known), clean, self.core, peer_pid)

    async def in_thread(self, work: Callable[[Job], T], send_progress: SendProgress | None) -> T:
        """`work(job)` in a thread. Cancelling the awaiting task cancels the job and does not wait for it."""
        if send_progress is None:
            return await self._run(work, Job())
        pump = ProgressPump(send_progress)
        async with anyio.create_task_group() as group:
            group.start_soon(pump.run)
            try:
                outcome = await self._run(lambda job: _settled(work, job), Job(pump))
            finally:
                pump.close()
        return outcome()

    async def _run(self, work: Callable[[Job], T], job: Job) -> T:
        def counted() -> T:
            with self._lock:
                self._jobs.add(job)
            try:
                return work(job)
            finally:
                with self._lock:
                    self._jobs.discard(job)

        try:
            return await to_thread.run_sync(counted, abandon_on_cancel=True, limiter=self._limiter)
        except anyio.get_cancelled_exc_class():
            # callbacks of a job may block (they kill containers), so they get a thread of their own
            threading.Thread(target=job.cancel, name="cancel", daemon=True).start()
            raise


def _settled(work: Callable[[Job], T], job: Job) -> Callable[[], T]:
    """The result or the error of `work` as a function, so that a task group does not wrap the error."""
    try:
        result = work(job)
    except Exception as caught:  # noqa: BLE001 - raised again by the function
        error = caught

        def fail() -> T:
            raise error

        return fail
    return lambda: result


class ProgressPump:
    """Carries progress from worker threads to a caller; a slow caller loses some, the work goes on."""

    def __init__(self, send: SendProgress) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._in, self._out = anyio.create_memory_object_stream[tuple[str, float | None]](256)
        self._last = 0.0

    def __call__(self, message: str, fraction: float | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._push, message, fraction)
        except RuntimeError:  # the loop ended: the daemon is going down, nobody listens
            logger.debug("progress after the end: %s", message)

    def _push(self, message: str, fraction: float | None) -> None:
        try:
            self._in.send_nowait((message, fraction))
        except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            logger.debug("progress dropped: %s", message)

    async def run(self) -> None:
        """Send what comes until closed. The protocol wants `progress` to grow with every message."""
        async with self._out:
            async for message, fraction in self._out:
                self._last = max(self._last + 0.001, fraction or 0.0)
                await self._send(self._last, None if fraction is None else 1.0, message)

    def close(self) -> None:
        self._in.close()
