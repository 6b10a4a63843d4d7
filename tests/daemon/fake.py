"""The one fake behind the daemon's tests: services without an engine, and a few tools to call.

As a program (`python -c "from tests.daemon.fake import main; main()"`) it is a real daemon process on them.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

import devbay
from devbay.answers import Answer, BayInfo, BayList, DestroyAnswer, LogsAnswer, RunResult, UrlAnswer
from devbay.daemon.lifecycle import IDLE_S, run
from devbay.errors import DevbayError
from devbay.home import Home
from devbay.tools.registry import Annotations, Arguments, Call, PrivateHandler, Tool

ROOT = Path(__file__).resolve().parents[2]


class EchoArguments(Arguments):
    text: str = Field(description="what to say")
    times: int = 1
    service: str | None = None


class EchoAnswer(Answer):
    text: str
    cwd: str
    env: dict[str, str] = Field(default_factory=dict)
    peer_pid: int | None = None


class WaitArguments(Arguments):
    seconds: float
    mark: str | None = Field(
        default=None, description="file to write `cancelled` or `done` to; FILE.started appears before"
    )


class FailArguments(Arguments):
    how: str = "devbay"


class ListArguments(Arguments):
    count: int = 10


def echo(call: Call, arguments: EchoArguments) -> EchoAnswer:
    return EchoAnswer(
        text=arguments.text * arguments.times,
        cwd=str(call.cwd),
        env=dict(call.env),
        peer_pid=call.peer_pid,
    )


def wait(call: Call, arguments: WaitArguments) -> EchoAnswer:
    mark = Path(arguments.mark) if arguments.mark else None
    if mark:
        mark.with_suffix(".started").touch()
    steps = max(1, int(arguments.seconds / 0.02))
    try:
        for step in range(steps):
            if step % 5 == 0:
                call.job.progress(f"step {step}", step / steps)
            call.job.sleep(0.02)
    except DevbayError:
        if mark:
            mark.write_text("cancelled")
        raise
    if mark:
        mark.write_text("done")
    return EchoAnswer(text="waited", cwd=str(call.cwd))


def fail(call: Call, arguments: FailArguments) -> EchoAnswer:
    if arguments.how == "bug":
        raise RuntimeError("a bug with a secret path /x/y")
    if arguments.how == "print":
        print("printed by a library")
        logging.getLogger("fake").info("a line")
        return EchoAnswer(text="printed", cwd="")
    raise DevbayError("refused_dirty", "the bay holds work", next="commit it", exit_code=3, files=["a.py"])


def bay_list(call: Call, arguments: ListArguments) -> BayList:
    return BayList(bays=[bay(f"bay-{number}") for number in range(arguments.count)])


def bay(name: str) -> BayInfo:
    return BayInfo(
        id="0123abcd", name=name, project="shop", repository="/r", branch=name, worktree=f"/r/{name}",
        state="running", public_url=f"http://{name}--shop.localhost", created_at="2026-01-01T00:00:00Z",
        last_used_at="2026-01-01T00:00:00Z", as_of="2026-01-01T00:00:00Z",
    )  # fmt: skip


TOOLS: list[Tool[Any, Any]] = [
    Tool("echo", "Echo", "Say it again.", EchoArguments, EchoAnswer, echo, lambda a: a.text,
         Annotations(read_only=True, idempotent=True)),
    Tool("wait", "Wait", "Take a while.", WaitArguments, EchoAnswer, wait, lambda a: a.text),
    Tool("fail", "Fail", "Fail.", FailArguments, EchoAnswer, fail, lambda a: a.text),
    Tool("bay_list", "Bays", "List bays.", ListArguments, BayList, bay_list, lambda a: f"{len(a.bays)} bays"),
]  # fmt: skip


class AnyArguments(BaseModel):
    model_config = ConfigDict(extra="allow")


class Script:
    """Answers written by a test: `script.json` maps a tool or method to its answers, given one by one.

    The last answer is given again and again; `{"raise": {...}}` is an error. Calls go to `calls.jsonl`.
    """

    tools: ClassVar = {
        "bay_create": BayInfo, "bay_status": BayInfo, "bay_up": BayInfo, "bay_rest": BayInfo,
        "bay_run_task": RunResult, "bay_run_result": RunResult, "bay_logs": LogsAnswer,
        "bay_url": UrlAnswer, "bay_destroy": DestroyAnswer,
    }  # fmt: skip
    methods = (
        "gc",
        "doctor",
        "approve.list",
        "approve.grant",
        "exec",
        "logs.follow",
        "run.cancel",
        "run.junit",
    )

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._given: dict[str, int] = {}

    def answer(self, name: str, arguments: dict[str, Any]) -> Any:
        with (self._folder / "calls.jsonl").open("a") as calls:
            calls.write(json.dumps([name, arguments]) + "\n")
        path = self._folder / "script.json"
        answers = json.loads(path.read_text()).get(name) if path.exists() else None
        if not answers:
            raise DevbayError("unknown_bay", f"no script for {name}", next="devbay ls", candidates=["a", "b"])
        number = self._given[name] = self._given.get(name, -1) + 1
        answer = answers[min(number, len(answers) - 1)]
        if "raise" in answer:
            raise DevbayError(**answer["raise"])
        return answer

    def tool(self, name: str, kind: type[Answer]) -> Tool[Any, Any]:
        def run(call: Call, arguments: AnyArguments) -> Answer:
            call.job.progress(f"working on {name}", None)
            return kind.model_validate(self.answer(name, arguments.model_dump()))

        return Tool(name, name, name, AnyArguments, kind, run, lambda answer: "scripted")

    def method(self, name: str) -> PrivateHandler:
        def run(call: Call, params: dict[str, Any]) -> dict[str, Any] | Iterator[dict[str, Any]]:
            answer = self.answer(name, params)
            return iter(answer) if isinstance(answer, list) else answer

        return run


class FakeCore:
    """Services whose behaviour the environment of the test's daemon decides."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.private: dict[str, PrivateHandler] = {
            "devbay/count": self._count,
            "devbay/refuse": self._refuse,
            "devbay/bug": self._bug,
        }
        self.script = Script(home.state_dir)
        self.private |= {f"devbay/{name}": self.script.method(name) for name in Script.methods}
        self.tools = TOOLS + [self.script.tool(name, kind) for name, kind in Script.tools.items()]

    def start(self) -> None:
        if failure := os.environ.get("LC_FAKE_FAIL"):
            if failure == "typed":
                raise DevbayError("store_too_new", "the store is newer than this devbay", next="upgrade")
            raise RuntimeError(failure)

    def close(self, *, stop_proxy: bool) -> None:
        (self.home.state_dir / "closed").write_text(f"{stop_proxy}")

    def idle(self) -> bool:
        return not (self.home.state_dir / "has-bays").exists()

    def busy(self) -> list[str]:
        path = self.home.state_dir / "busy"
        return path.read_text().split() if path.exists() else []

    def _count(self, call: Call, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
        mark = params.get("mark")
        try:
            for number in range(params.get("to", 3)):
                yield {"number": number}
                if params.get("slow"):
                    call.job.sleep(0.02)
        finally:
            if mark:
                Path(mark).write_text("closed")

    def _refuse(self, call: Call, params: dict[str, Any]) -> dict[str, Any]:
        call.job.progress("thinking", 0.5)
        raise DevbayError("no_terminal", "a person must do this", next="use a terminal", exit_code=3)

    def _bug(self, call: Call, params: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("a bug")


def argv(**options: str) -> list[str]:
    """The command that starts the fake daemon; `version="0.0.1"` makes it an old one."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        f"from tests.daemon.fake import main; main({options!r})"
    )
    return [sys.executable, "-P", "-c", code]


def make(home: Home) -> tuple[FakeCore, list[Tool[Any, Any]]]:
    core = FakeCore(home)
    return core, core.tools


def main(options: dict[str, str]) -> None:
    devbay.__version__ = options.get("version", devbay.__version__)
    if "slow_start" in options:
        time.sleep(float(options["slow_start"]))
    ready = int(sys.argv[sys.argv.index("--ready-fd") + 1]) if "--ready-fd" in sys.argv else None
    home = Home.from_environment(os.environ)
    idle_s = float(options.get("idle_s", IDLE_S))
    code = run(make, home=home, ready_fd=ready, idle_s=idle_s)
    logging.shutdown()
    os._exit(code)
