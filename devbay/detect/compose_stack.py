"""Compose services in the form that all declared containers share."""

from __future__ import annotations

from devbay.detect.draft import Draft
from devbay.detect.files import View
from devbay.detect.stack import Stack
from devbay.detect.stacks import Choice


def read(view: View, choice: Choice, draft: Draft) -> Stack:
    """The stack of the chosen files."""
    return Stack()
