"""The scalar types of the manifest: what a name, a path, a size, a duration or an argv may be.

Each type states its pattern once; the check and the JSON Schema are both made from it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, ValidationError, core_schema

from devbay.manifest.conditions import fault
from devbay.names import MAX_NAME, NAME, name_problem


@dataclass(frozen=True)
class Shape:
    """A text that matches `pattern` as a whole; `says` completes "`<text>` ..."."""

    pattern: str
    says: str
    fix: str
    rule: str = "shape"
    longest: int = 4096

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(core), "pattern": self.anchored, "maxLength": self.longest}

    @property
    def anchored(self) -> str:
        return f"^(?:{self.pattern})$"

    def check(self, text: str) -> str:
        if len(text) > self.longest or not re.fullmatch(self.pattern, text):
            raise fault(self.rule, f"{shown(text)} {self.says}", self.fix)
        return text


@dataclass(frozen=True)
class Converted:
    """A text of a shape that becomes another value; with `whole`, an integer in that range does as well."""

    shape: Shape
    convert: Callable[[str], Any]
    whole: tuple[int, int] | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        text = {"type": "string", "pattern": self.shape.anchored, "maxLength": self.shape.longest}
        if self.whole is None:
            return text
        low, high = self.whole
        return {"anyOf": [{"type": "integer", "minimum": low, "maximum": high}, text]}

    def read(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.convert(self.shape.check(value))
        if isinstance(value, int) and not isinstance(value, bool) and self.whole is not None:
            low, high = self.whole
            if low <= value <= high:
                return self.convert(str(int(value)))
        raise fault(self.shape.rule, f"{shown(value)} {self.shape.says}", self.shape.fix)


@dataclass(frozen=True)
class NameShape:
    """A name as `devbay.names` defines it, and none of `reserved`."""

    reserved: tuple[str, ...] = ("xn",)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        pattern = f"^{NAME.pattern}$"
        return {
            **handler(core),
            "pattern": pattern,
            "maxLength": MAX_NAME,
            "not": {"enum": list(self.reserved)},
        }

    def check(self, text: str) -> str:
        problem = name_problem(text) or ("is reserved" if text in self.reserved else None)
        if problem:
            raise fault("name", f"the name {shown(text)} {problem}", f"write a name such as {_slug(text)!r}")
        return text


@dataclass(frozen=True)
class NotYet:
    """Values that a later version will take: refused with the reason, never ignored."""

    values: tuple[str, ...]
    reason: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.check, handler(source))

    def check(self, value: Any) -> Any:
        if isinstance(value, str) and value in self.values:
            raise fault("not-yet", f"`{value}` is not yet supported: {self.reason}", "remove it")
        return value


@dataclass(frozen=True)
class Exactly:
    """One value of one type: Python's `True == 1 == 1.0` does not hold here."""

    value: int
    rule: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.check, handler(source))

    def check(self, value: Any) -> Any:
        if isinstance(value, bool) is not isinstance(self.value, bool) or value != self.value:
            wanted = _as_text(self.value)
            raise fault(self.rule, f"{shown(value)} is not {wanted}", f"write {wanted} without quotes")
        return self.value


def shown(value: object) -> str:
    """A value as messages quote it: at most 60 characters, escapes visible."""
    text = repr(value)
    return text if len(text) <= 62 else f"{text[:58]}...{text[0]}"


def _slug(text: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower())[:MAX_NAME].strip("-")
    return plain if plain and name_problem(plain) is None and plain != "host" else "api"


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


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(getattr(value, "written", value))
    return value


Plain = Annotated[Text, BeforeValidator(_as_text, json_schema_input_type=str | int | float | bool)]
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


class ArgvShape:
    """A list of text scalars, not empty, whose first one is not empty (rule R1)."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        text = {"type": "string"}
        return {"type": "array", "minItems": 1, "prefixItems": [{**text, "minLength": 1}], "items": text}

    def check(self, value: Any) -> tuple[str, ...]:
        if isinstance(value, str):
            raise fault("R1", "a command is a list of arguments, not a text", f"write {_as_argv(value)}")
        if not isinstance(value, list | tuple) or not value:
            raise fault("R1", "a command is a list of at least one argument", "write a list: [npm, test]")
        problems = [
            InitErrorDetails(type=fault("R1", *problem), loc=(index,), input=item)
            for index, item in enumerate(value)
            if (problem := self._item_problem(index, item))
        ]
        if problems:
            raise ValidationError.from_exception_data("argv", problems)
        return tuple(value)

    def _item_problem(self, index: int, item: Any) -> tuple[str, str] | None:
        if item is None:
            return "an argument is missing", 'write the text in quotes ("" or "null"), or remove the item'
        if isinstance(item, list | tuple | Mapping):
            return "an argument is a text, not a list or mapping", "quote it, or write one flat list"
        if not isinstance(item, str):
            written = _as_text(item)
            return f"the argument {written} is a {_kind(item)}, not a text", f'quote it: "{written}"'
        if index == 0 and not item:
            return "the first argument is empty", "name the program to run"
        return None


def _kind(value: object) -> str:
    return "boolean" if isinstance(value, bool) else "number"


def _as_argv(command: str) -> str:
    """A shell command line as the list that does the same, as YAML flow text."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words or re.search(r"[|&;<>()$`*?~\n\\]", command):
        words = ["sh", "-c", command]
    return json.dumps(words, ensure_ascii=False)


Argv = Annotated[tuple[str, ...], ArgvShape()]
