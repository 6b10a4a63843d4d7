"""`devbay.yaml`: models, rules, capabilities, interpolation, JSON Schema, and the one load path."""

from devbay.manifest.capabilities import Capability, capabilities
from devbay.manifest.diagnostics import Diagnostic
from devbay.manifest.interpolate import Addresses, resolve, secret_refs, service_url
from devbay.manifest.load import Loaded, load, parse
from devbay.manifest.models import Build, Container, Health, Limits, Manifest, Mount, Report, Service, Task
from devbay.manifest.paths import confined
from devbay.manifest.schema import json_schema

__all__ = [
    "Addresses",
    "Build",
    "Capability",
    "Container",
    "Diagnostic",
    "Health",
    "Limits",
    "Loaded",
    "Manifest",
    "Mount",
    "Report",
    "Service",
    "Task",
    "capabilities",
    "confined",
    "json_schema",
    "load",
    "parse",
    "resolve",
    "secret_refs",
    "service_url",
]
