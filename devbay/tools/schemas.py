"""JSON Schemas of tools, made small: an agent pays for every byte of the tool list on every turn."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from pydantic import BaseModel


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The arguments' schema: no titles, no nulls for what may be left out, unknown names refused."""
    return {**_compact(model, nullable=False), "additionalProperties": False}


def output_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The answer's schema, which an error's `{"error": {...}}` meets too.

    Clients built on the TypeScript SDK check `structuredContent` of failed calls as well
    (modelcontextprotocol/typescript-sdk#1943), so at the root nothing is required and `error` is declared.
    Further fields are allowed: the contract lets us add some.
    """
    schema = _compact(model, nullable=True)
    schema.pop("required", None)
    schema["properties"] = {**schema.get("properties", {}), "error": {"type": "object"}}
    return schema


def _compact(model: type[BaseModel], *, nullable: bool) -> dict[str, Any]:
    full = model.model_json_schema(mode="validation")
    definitions = full.pop("$defs", {})
    uses = Counter(_references([full, definitions]))
    kept: dict[str, Any] = {}

    def shrink(node: Any, inside: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [shrink(item, inside) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            name = node["$ref"].rsplit("/", 1)[-1]
            rest = {"description": node["description"]} if "description" in node else {}
            if name in inside or name in kept or _worth_sharing(definitions[name], uses[name]):
                if name not in kept:
                    kept[name] = {}
                    kept[name] = shrink(definitions[name], (*inside, name))
                return {"$ref": f"#/$defs/{name}"} | rest
            return shrink(definitions[name], (*inside, name)) | rest
        is_object = "properties" in node
        result: dict[str, Any] = {}
        for key, value in node.items():
            if key == "properties":
                result[key] = {name: shrink(item, inside) for name, item in value.items()}
            elif not _droppable(key, value, is_object=is_object, nullable=nullable):
                result[key] = shrink(value, inside)
        return _merge_null(result, nullable=nullable)

    schema: dict[str, Any] = shrink(full, ())
    if kept:
        schema["$defs"] = kept
    return schema


def _droppable(key: str, value: Any, *, is_object: bool, nullable: bool) -> bool:
    """Titles, a class's docstring, closed objects, and defaults that say nothing (all, in an answer)."""
    if key == "title" or (key == "description" and is_object):
        return True
    return (key == "additionalProperties" and value is False) or (
        key == "default" and (nullable or value is None)
    )


def _merge_null(node: dict[str, Any], *, nullable: bool) -> dict[str, Any]:
    """`anyOf: [X, null]` as X, or as X with `null` among its types."""
    options = node.get("anyOf")
    if not options or {"type": "null"} not in options:
        return node
    rest: list[dict[str, Any]] = [option for option in options if option != {"type": "null"}]
    others = {key: value for key, value in node.items() if key != "anyOf"}
    if not nullable:
        return others | (rest[0] if len(rest) == 1 else {"anyOf": rest})
    if len(rest) == 1 and isinstance(rest[0].get("type"), str) and "enum" not in rest[0]:
        return others | rest[0] | {"type": [rest[0]["type"], "null"]}
    if len(rest) == 1 and "enum" in rest[0]:
        return others | {"enum": [*rest[0]["enum"], None]}
    return node


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [name for item in node for name in _references(item)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"].rsplit("/", 1)[-1]] if isinstance(node.get("$ref"), str) else []
    return own + [name for value in node.values() for name in _references(value)]


def _worth_sharing(definition: Any, uses: int) -> bool:
    size = len(json.dumps(definition))
    return uses > 1 and size * (uses - 1) > 60 + 30 * uses
