"""The JSON Schema of `devbay.yaml` (draft 2020-12), generated from the models."""

from __future__ import annotations

from typing import Any

from devbay.manifest.models import Manifest


def json_schema() -> dict[str, Any]:
    """The schema that `devbay schema` prints; what it refuses, the models refuse."""
    generated = _strict(Manifest.model_json_schema(mode="validation", by_alias=True))
    generated["title"] = "devbay.yaml"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **generated}


def _strict(node: Any) -> Any:
    """Pydantic's schema without what the models do not accept.

    An absent key is no null, so null alternatives go; a default that is no value of the file (seconds, bytes)
    goes; a pattern on keys becomes one that every key must
    meet; titles made from field names say nothing.
    """
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    result = {
        key: ({name: _strict(inner) for name, inner in value.items()} if key in _NAMED else _strict(value))
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
        and not (key == "default" and not isinstance(value, str | bool))
    }
    if patterns := result.pop("patternProperties", None):
        ((pattern, value),) = patterns.items()
        names = {"pattern": pattern, **result.get("propertyNames", {})}
        result |= {"propertyNames": names, "additionalProperties": value}
    if "anyOf" in result:
        rest = [each for each in result["anyOf"] if each != {"type": "null"}]
        result["anyOf"] = rest
        if len(rest) == 1 and len(node["anyOf"]) > 1:
            del result["anyOf"]
            result = {**rest[0], **result}
    return result


_NAMED = frozenset({"properties", "$defs", "patternProperties"})
"""Words of JSON Schema whose value maps names of the user's to schemas."""
