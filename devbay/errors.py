"""The one error type that crosses module borders, and the few kinds callers tell apart."""

from __future__ import annotations

from typing import Any

DONE, WORK_FAILED, WRONG_CALL, PERSON_NEEDED = 0, 1, 2, 3


class DevbayError(Exception):
    """A failure that a caller can act on.

    code: a stable snake_case word (`unknown_bay`, `engine_unreachable`, ...).
    message: what is wrong and where, one or a few sentences.
    next: the next command or tool call, or what a person must do; empty if there is none.
    exit_code: 1 the work failed, 2 the call was wrong, 3 a person must act first.
    data: further JSON fields for the caller (candidates, lists of files, ...).
    """

    def __init__(
        self, code: str, message: str, *, next: str = "", exit_code: int = WRONG_CALL, **data: Any
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.next = next
        self.exit_code = exit_code
        self.data = data

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: `{"code", "message", "next", ...data}`."""
        return {"code": self.code, "message": self.message, "next": self.next, **self.data}


class Cancelled(DevbayError):
    """The work was cancelled by the one who asked for it."""

    def __init__(self, message: str = "cancelled") -> None:
        super().__init__("cancelled", message, exit_code=WORK_FAILED)
