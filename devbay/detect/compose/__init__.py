"""Compose files: what compose itself would run, read in an empty environment and never from `.env`."""

from devbay.detect.compose.model import ComposeResult, Service
from devbay.detect.compose.result import resolve

__all__ = ["ComposeResult", "Service", "resolve"]
