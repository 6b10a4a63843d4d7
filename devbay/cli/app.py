"""Which module a command is, and how every command ends: exit codes, errors, `--json`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import typer

from devbay.cli import out
from devbay.errors import WORK_FAILED, WRONG_CALL, DevbayError

COMMANDS = (
    "new", "up", "ls", "status", "run", "logs", "url", "open", "exec", "restart", "cool", "thaw", "freeze",
    "rm", "gc", "init", "validate", "approve", "schema", "doctor", "report", "daemon", "mcp", "demo",
    "version",
)  # fmt: skip
TAKES_REST = ("run", "exec")
"""Commands whose words after `--` belong to another program."""


def run(arguments: Sequence[str]) -> int:
    """Run one command; the process's exit code. Prints every error in the one form there is for it."""
    out.prepare()
    words, rest = _split(["version"] if list(arguments) == ["--version"] else list(arguments))
    json = "--json" in words
    try:
        code = build(words)(args=words, prog_name="devbay", standalone_mode=False, obj={"rest": rest})
        out.flush()
        return code if isinstance(code, int) else 0
    except DevbayError as error:
        return out.failure(error, json=json)
    except typer.TyperException as error:
        if not json:
            out.usage(error)
            return error.exit_code
        message = error.format_message()
        return out.failure(
            DevbayError("bad_arguments", message, next=f"devbay {' '.join(words[:1])} --help"), json=True
        )
    except (typer.Abort, KeyboardInterrupt):
        out.note("interrupted")
        return 130
    except OSError as error:
        return out.failure(DevbayError("failed", str(error), exit_code=WORK_FAILED), json=json)


def build(words: Sequence[str]) -> typer.Typer:
    """A Typer application of the command that `words` name, or of all where none is named."""
    named = next((word for word in words if not word.startswith("-")), "")
    app = typer.Typer(
        name="devbay",
        help="A running, isolated instance of your repository for every branch.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name in (named,) if named in COMMANDS else COMMANDS:
        command: Any = importlib.import_module(f"devbay.cli.{name}").command
        app.command(name, context_settings={"help_option_names": ["-h", "--help"]})(command)
    return app


def _root() -> None:
    """A running, isolated instance of your repository for every branch."""


def _split(words: list[str]) -> tuple[list[str], list[str] | None]:
    """The words before `--`, and those after it for a command that hands them on (None without `--`)."""
    named = next((word for word in words if not word.startswith("-")), "")
    if named in TAKES_REST and "--" in words:
        at = words.index("--")
        return words[:at], words[at + 1 :]
    return words, None


def wrong(message: str, next: str = "") -> DevbayError:
    """A wrong call found by a command itself."""
    return DevbayError("bad_arguments", message, next=next, exit_code=WRONG_CALL)
