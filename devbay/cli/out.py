"""Where words go: results to stdout, progress and errors to stderr, colour only on a terminal."""

from __future__ import annotations

import json as _json
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from devbay.errors import WORK_FAILED, DevbayError

COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "dim": 2, "bold": 1}


def prepare() -> None:
    """Make both streams take any character, whatever the locale says."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def on_terminal(stream: TextIO | None) -> bool:
    """True for a terminal that takes control characters, outside of CI."""
    usable = os.environ.get("TERM") != "dumb" and "CI" not in os.environ
    return stream is not None and usable and stream.isatty()


def paint(text: str, colour: str) -> str:
    """`text` in a colour, if stdout is a terminal and NO_COLOR is not set."""
    if not os.environ.get("NO_COLOR") and on_terminal(sys.stdout):
        return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m"
    return text


def emit(text: str) -> None:
    """Print a result. A reader that left is no failure of the command: its exit code stays what it is."""
    _write(text + "\n")


def emit_json(data: Any) -> None:
    """Print one JSON document."""
    _write(_json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def flush() -> None:
    """Write what is buffered."""
    _write("")


def _write(text: str) -> None:
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # what stays in the buffer would fail again when Python ends
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
        if not isinstance(error, BrokenPipeError):
            raise


def note(text: str) -> None:
    """Say something beside the result."""
    if sys.stderr is not None:
        try:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
        except BrokenPipeError:
            sys.stderr = None


def failure(error: DevbayError, *, json: bool) -> int:
    """Show an error (decision 18) and give its exit code."""
    if json:
        emit_json({"error": error.as_dict()})
    else:
        note(f"error: {error.message} ({error.code})")
        for key, value in error.data.items():
            if not isinstance(value, list):
                continue
            # what the message says already is not said again; structures are for programs
            told = [each for each in value if isinstance(each, str) and not _says(error.message, each)]
            more = [f"... and {len(told) - 20} more"] if len(told) > 20 else []
            if told:
                note("\n".join([f"{key}:", *(f"  {item}" for item in told[:20] + more)]))
        if error.next:
            note(f"next: {error.next}")
    return error.exit_code or WORK_FAILED


def _says(message: str, item: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(item)}(?!\w)", message) is not None


def usage(error: Any) -> None:
    """Show a wrong call as Typer words it."""
    show = getattr(error, "show", None)
    if show is not None:
        show(file=sys.stderr)
    else:
        note(f"Error: {error.format_message()}")


def table(rows: Sequence[Sequence[str]], *, indent: str = "") -> str:
    """Rows with aligned columns; the last column keeps its own width."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)] if rows else []
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append((indent + "  ".join([*cells, row[-1]])).rstrip())
    return "\n".join(lines)


class Progress:
    """What is being done, on stderr: one changing line on a terminal, a line per step elsewhere.

    Use as a context manager, so that the changing line is gone before the result is printed.
    """

    def __init__(self) -> None:
        self._live = on_terminal(sys.stderr)
        self._last = ""

    def __call__(self, message: str, fraction: float | None) -> None:
        if message == self._last or sys.stderr is None:
            return
        self._last = message
        if not self._live:
            note(message)
            return
        share = f"{fraction:4.0%} " if fraction is not None else ""
        width = os.get_terminal_size(sys.stderr.fileno()).columns - 1
        line = (share + message.replace("\n", " "))[: max(width, 20)]
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live and self._last:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
