"""How a scalar or argv of the manifest is checked, stated once for the check and for the JSON Schema."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, ValidationError, core_schema

from devbay.manifest.conditions import fault
from devbay.names import MAX_NAME, NAME, name_problem

LONGEST_TEXT = 128 * 1024 - 1
"""What Linux lets one argument or environment variable be (MAX_ARG_STRLEN)."""


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
            wanted = as_text(self.value)
            raise fault(self.rule, f"{shown(value)} is not {wanted}", f"write {wanted} without quotes")
        return self.value


class NotEmpty:
    """A list with items; counts what was written, so that a bad item is not also a missing one."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(core), "minItems": 1}

    def check(self, value: Any) -> Any:
        if isinstance(value, list | tuple) and not value:
            raise fault("empty", "the list is empty", "remove the key, or list something")
        return value


def shown(value: object) -> str:
    """A value as messages quote it: at most 60 characters, escapes visible."""
    text = repr(value)
    return text if len(text) <= 62 else f"{text[:58]}...{text[0]}"


def _slug(text: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower())[:MAX_NAME].strip("-")
    return plain if plain and name_problem(plain) is None and plain != "host" else "api"


def as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(getattr(value, "written", value))
    return value


class ArgvShape:
    """A list of text scalars, not empty, whose first one is not empty (rule R1)."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        text = {"type": "string", "maxLength": LONGEST_TEXT}
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
            written = as_text(item)
            return f"the argument {written} is a {_kind(item)}, not a text", f'quote it: "{written}"'
        if len(item) > LONGEST_TEXT:
            return f"an argument has {len(item)} characters", "put it into a file of the repository"
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
