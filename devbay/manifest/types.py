"""The scalar types of the manifest: what a name, a path, a size, a duration or an argv may be."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from devbay.manifest.conditions import fault
from devbay.manifest.shapes import LONGEST_TEXT, ArgvShape, Converted, NameShape, Shape, as_text, shown

Text = Annotated[str, Strict()]

Name = Annotated[Text, NameShape()]
ServiceName = Annotated[Text, NameShape(reserved=("xn", "host"))]

# A path segment that is neither `.` nor `..` (no lookahead, so that every regex engine reads it alike).
_SEGMENT = r"(?:\.{0,2}[^/.\x00-\x1f][^/\x00-\x1f]*|\.{3,}[^/\x00-\x1f]*)"
_PLAIN = r"(?:\.{0,2}[^/.:\x00-\x1f][^/:\x00-\x1f]*|\.{3,}[^/:\x00-\x1f]*)"
_ABSOLUTE = rf"(?:/{_PLAIN})+/?"
_RELATIVE = rf"(?:\./)*(?:\.|{_SEGMENT}(?:/{_SEGMENT})*)/?"

RepoPath = Annotated[
    Text,
    Shape(
        _RELATIVE,
        "is no path inside the repository",
        "write a path relative to devbay.yaml, without `..`, such as `backend`",
        rule="path",
    ),
]
ContainerPath = Annotated[
    Text,
    Shape(
        _ABSOLUTE,
        "is no absolute path of a file or folder in the container",
        "write an absolute path without `:` and `..`, such as `/srv/app`",
        rule="path",
    ),
]
VolumePath = Annotated[
    Text,
    Shape(
        rf"(?:\./)?{_PLAIN}(?:/{_PLAIN})*/?|{_ABSOLUTE}",
        "is no path in the container",
        "write only the path, such as `node_modules` or `/var/lib/data`; devbay names the volume",
        rule="path",
    ),
]
MountSource = Annotated[
    Text,
    Shape(
        rf"{_RELATIVE}|(?:/{_SEGMENT})+/?",
        "is neither a path inside the repository nor an absolute one",
        "write a path relative to devbay.yaml, without `..`, such as `./backend`",
        rule="path",
    ),
]
ReportPath = Annotated[
    Text,
    Shape(
        rf"(?:\$\{{run\.dir\}}/)?{_RELATIVE}",
        "is no path inside the repository or the run's own folder",
        "write a relative path without `..`, such as `${run.dir}/junit.xml`",
        rule="path",
    ),
]
Glob = Annotated[
    Text,
    Shape(
        _RELATIVE,
        "is no pattern inside the repository",
        "write a pattern relative to devbay.yaml, without `..`, such as `packages/*/package.json`",
        rule="path",
    ),
]

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
ImageRef = Annotated[
    Text,
    Shape(
        rf"(?:[A-Za-z0-9.-]+(?::[0-9]{{1,5}})?/)?{_COMPONENT}(?:/{_COMPONENT})*"
        r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[a-f0-9]{64})?",
        "is no image reference",
        "write `name:tag`, such as `postgres:16-alpine`",
        longest=512,
    ),
]
EnvName = Annotated[
    Text,
    Shape(
        r"[A-Za-z_][A-Za-z0-9_.]*",
        "is no name of an environment variable",
        "use letters, digits and `_`, such as `DATABASE_URL`",
        longest=256,
    ),
]
LabelName = Annotated[
    Text,
    Shape(r"[!-~]+", "is no label name", "use printable ASCII without spaces, such as `com.example.team`"),
]
EgressHost = Annotated[
    Text,
    Shape(
        r"[^/:\s\x00-\x1f]+",
        "is no host name",
        "write the bare name, such as `api.example.com`",
        rule="R4",
        longest=253,
    ),
]
HttpPath = Annotated[
    Text,
    Shape(
        r"/[!-~]*",
        "is no path of an HTTP probe",
        "write a path that starts with `/` and is percent-encoded, such as `/healthz`",
        rule="R5",
        longest=2048,
    ),
]
Platform = Annotated[
    Text,
    Shape(r"[a-z0-9_]+(?:/[a-z0-9_]+){0,2}", "is no platform", "write one such as `linux/amd64`", longest=64),
]

Port = Annotated[int, Strict(), Field(ge=1, le=65535)]


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise fault(
            "R5", f"{shown(pattern)} is no regular expression: {error}", "correct the pattern"
        ) from None
    return pattern


LogPattern = Annotated[Text, Field(min_length=1, max_length=500), AfterValidator(_compiles)]

_ShortText = Annotated[str, Field(max_length=LONGEST_TEXT)]
Plain = Annotated[
    Text,
    Field(max_length=LONGEST_TEXT),
    BeforeValidator(as_text, json_schema_input_type=_ShortText | int | float | bool),
]
"""Text, or a number or boolean that stands for its own spelling in the file."""


def _seconds(text: str) -> float:
    number = int(text.rstrip("ms"))
    return number / 1000 if text.endswith("ms") else number * (60.0 if text.endswith("m") else 1.0)


Seconds = Annotated[
    float,
    Converted(
        Shape(
            r"[0-9]{1,9}(?:ms|s|m)", "is no duration", "write a number and `ms`, `s` or `m`, such as `30s`"
        ),
        _seconds,
    ),
]
SomeSeconds = Annotated[
    float,
    Converted(
        Shape(
            r"0{0,8}[1-9][0-9]{0,8}(?:ms|s|m)",
            "is no duration above zero",
            "write a number and `ms`, `s` or `m`, such as `30s`",
        ),
        _seconds,
    ),
]


def _bytes(text: str) -> int:
    match = re.fullmatch(r"([0-9.]+)([kmgt]?)i?b?", text.lower())
    if match is None:
        raise ValueError(text)
    return int(float(match[1]) * 1024 ** " kmgt".index(match[2] or " "))


Size = Annotated[
    int,
    Converted(
        Shape(
            r"[0-9]{0,8}[1-9][0-9]{0,8}(?:\.[0-9]{1,3})?(?:[kKmMgGtT]i?)?[bB]?",
            "is no size",
            "write bytes or a number with `k`, `m` or `g`, such as `512m`",
        ),
        _bytes,
        whole=(1, 2**50),
    ),
]
"""Bytes; the units are powers of 1024, as the container engine counts."""

User = Annotated[
    str,
    Converted(
        Shape(
            r"[0-9]{1,10}(?::[0-9]{1,10})?|image",
            "is no user",
            'write "uid", "uid:gid" or `image`, such as "1000:1000"',
        ),
        str,
        whole=(0, 2**32 - 2),
    ),
]


def _status_range(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    first, last = int(low), int(high or low)
    if first > last:
        raise fault("R5", f"the range {text} runs backwards", f"write {last}-{first}")
    return first, last


StatusRange = Annotated[
    tuple[int, int],
    Converted(
        Shape(
            r"[1-5][0-9]{2}(?:-[1-5][0-9]{2})?",
            "is no range of HTTP status codes",
            "write codes or ranges, such as `[200-399, 401]`",
            rule="R5",
        ),
        _status_range,
        whole=(100, 599),
    ),
]

Argv = Annotated[tuple[str, ...], ArgvShape()]
