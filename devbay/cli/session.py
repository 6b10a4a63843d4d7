"""A command's conversation with the daemon: the options all commands share, calls, and waiting."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from devbay.cli import out
from devbay.client import Client, Items
from devbay.errors import DevbayError
from devbay.home import Home

Repo = Annotated[
    str | None, typer.Option("--repo", metavar="DIR", help="A path in the repository; default: here.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the structured result as one JSON document.")]
Bay = Annotated[str, typer.Argument(metavar="BAY", help="Name, alias, <bay>--<project> or id of a bay.")]

WAIT_S = 45
BOOTING = ("creating", "starting")
GOING = ("queued", "running")


class Session:
    """One command's connection; `repo` is added to every call. Use as a context manager."""

    def __init__(self, repo: str | None = None, *, start: bool = True) -> None:
        try:
            cwd = os.getcwd()  # noqa: PTH109 - no pathlib needed at start
        except FileNotFoundError as error:
            raise DevbayError("no_directory", "the current directory was removed", next="cd /") from error
        self._repo = os.path.abspath(os.path.join(cwd, repo)) if repo else None  # noqa: PTH100, PTH118
        self._client = Client(Home.from_environment(os.environ), os.environ, cwd, start=start)
        self.progress = out.Progress()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.__exit__()
        self._client.__exit__()

    def tool(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """A tool's structured answer; arguments that are None are left out."""
        return self._client.tool(name, self._given(arguments), self.progress)

    def private(self, method: str, /, *, on_item: Items | None = None, **params: Any) -> dict[str, Any]:
        """The result of `devbay/<method>`."""
        return self._client.private(f"devbay/{method}", self._given(params), self.progress, on_item)

    def until_gone(self) -> None:
        """Wait until the daemon hung up and let go of its home."""
        self._client.until_gone()

    def until_booted(self, info: dict[str, Any]) -> dict[str, Any]:
        """Wait until the bay is no longer being made or started; the last BayInfo."""
        while info["state"] in BOOTING:
            info = self._unhurried("bay_status", bay=info["id"], wait_s=WAIT_S)
        return info

    def until_over(self, result: dict[str, Any]) -> dict[str, Any]:
        """Wait until a run is over; the last RunResult. Ctrl-c cancels the run."""
        try:
            while result["status"] in GOING and result.get("run"):
                result = self._unhurried("bay_run_result", run=result["run"], wait_s=WAIT_S)
        except KeyboardInterrupt:
            self.private("run.cancel", run=result["run"])
            raise
        return result

    def _unhurried(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """A call that may answer at once with nothing new: never more than about four a second."""
        began = time.monotonic()
        answer = self.tool(name, **arguments)
        time.sleep(max(0.0, 0.25 - (time.monotonic() - began)) if _unsettled(answer) else 0.0)
        return answer

    def _given(self, arguments: dict[str, Any]) -> dict[str, Any]:
        given = {key: value for key, value in arguments.items() if value is not None}
        return given if self._repo is None else {"repo": self._repo, **given}


def _unsettled(answer: dict[str, Any]) -> bool:
    return answer.get("state") in BOOTING or answer.get("status") in GOING


def boot_code(info: dict[str, Any]) -> int:
    """0 for a bay as wanted, 3 if a person must approve something, 1 if it did not come up."""
    if info.get("pending_approvals"):
        return 3
    return 1 if info["state"] in ("degraded", "failed", "unknown") else 0


def run_code(result: dict[str, Any]) -> int:
    """0 for a passed run, 3 if a person must approve something, 1 for anything else."""
    if result["status"] == "passed":
        return 0
    return 3 if result.get("reason") == "approval_required" else 1


def lines(items: Iterable[Any], indent: str = "  ") -> str:
    """One item a line."""
    return "\n".join(f"{indent}{item}" for item in items)
