"""Which keys demand or exclude which others: one statement that both the models and the JSON Schema use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import (
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError

Fragment = Mapping[str, Any]


def fault(rule: str, message: str, fix: str) -> PydanticCustomError:
    """A validation error that carries the rule's id and what to write instead."""
    return PydanticCustomError(rule, "{message}", {"message": message, "fix": fix})


@dataclass(frozen=True)
class Condition:
    """Where `when` holds of a mapping, one of `requires` must be there and none of `forbids`.

    `when` is a JSON Schema of the words `required`, `properties`, `const`, `not` and `anyOf`; an empty one
    always holds. `message` may name the forbidden key as `{key}`.
    """

    rule: str
    message: str
    fix: str
    when: Fragment
    requires: tuple[str, ...] = ()
    forbids: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        """The same as an `if`/`then` of JSON Schema."""
        then: dict[str, Any] = {}
        if self.requires:
            then["anyOf"] = [{"required": [key]} for key in self.requires]
        if self.forbids:
            then["properties"] = dict.fromkeys(self.forbids, False)
        return {"if": dict(self.when), "then": then} if self.when else then

    def problems(self, data: Mapping[str, Any]) -> list[tuple[tuple[str, ...], PydanticCustomError]]:
        """What is wrong with `data`, each with the path below it."""
        if not holds(self.when, data):
            return []
        found: list[tuple[tuple[str, ...], PydanticCustomError]] = [
            ((key,), fault(self.rule, self.message.format(key=key), self.fix.format(key=key)))
            for key in self.forbids
            if key in data
        ]
        if self.requires and not any(key in data for key in self.requires):
            found.append(((), fault(self.rule, self.message, self.fix)))
        return found


def holds(fragment: Fragment, value: object) -> bool:
    """Whether `value` meets the schema `fragment` (only the words that `Condition.when` uses)."""
    mapping: Mapping[str, Any] | None = value if isinstance(value, Mapping) else None
    for word, operand in fragment.items():
        match word:
            case "required":
                met = mapping is None or all(key in mapping for key in operand)
            case "properties":
                met = mapping is None or all(
                    holds(inner, mapping[key]) for key, inner in operand.items() if key in mapping
                )
            case "type":
                met = mapping is not None if operand == "object" else False
            case "const":
                met = bool(value == operand)
            case "not":
                met = not holds(operand, value)
            case "anyOf":
                met = any(holds(inner, value) for inner in operand)
            case _:
                raise ValueError(f"a condition cannot use {word!r}")
        if not met:
            return False
    return True


class Part(BaseModel):
    """Base of every mapping in the manifest: frozen, no unknown keys, no empty values, its conditions met."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    CONDITIONS: ClassVar[tuple[Condition, ...]] = ()
    NOT_YET: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="wrap")
    @classmethod
    def _check(cls, data: Any, handler: ModelWrapValidatorHandler[Any]) -> Any:
        """Reports broken conditions together with what is wrong inside, so that one reading finds both."""
        if not isinstance(data, Mapping):
            return handler(data)
        errors: list[InitErrorDetails] = []
        for key, value in data.items():
            if value is None:
                problem = fault("empty", f"`{key:.60}` has no value", "give it a value or remove the line")
                errors.append(InitErrorDetails(type=problem, loc=(key,), input=value))
        for condition in cls.CONDITIONS:
            for loc, problem in condition.problems(data):
                errors.append(InitErrorDetails(type=problem, loc=loc, input=None))
        result = None
        try:
            result = handler({key: value for key, value in data.items() if value is not None})
        except ValidationError as error:
            errors.extend(_details(error, {str(key) for key, value in data.items() if value is None}))
        if errors:
            raise ValidationError.from_exception_data(cls.__name__, errors)
        return result

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        if cls.CONDITIONS:
            handler.resolve_ref_schema(schema)["allOf"] = [each.schema() for each in cls.CONDITIONS]
        return schema


def _details(error: ValidationError, empty: set[str]) -> Sequence[InitErrorDetails]:
    """The errors of a validation in the form that makes a new one; a key said to be empty is not missing."""
    details: list[InitErrorDetails] = []
    for each in error.errors(include_url=False):
        context = each.get("ctx", {})
        if each["type"] == "missing" and str(each["loc"][-1]) in empty and len(each["loc"]) == 1:
            continue
        kind = fault(each["type"], each["msg"], context["fix"]) if "fix" in context else each["type"]
        details.append(InitErrorDetails(type=kind, loc=each["loc"], input=each["input"], ctx=context))
    return details
