import errno
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel, Field

from devbay import answers
from devbay.answers import Answer
from devbay.jobs import Job
from devbay.tools.registry import Arguments, Call, Outcome, Registry, Tool, UnknownTool, internal_error
from devbay.tools.schemas import input_schema, output_schema
from tests.daemon import fake

CALL = Call(Job(), Path("/"), {}, None)


def call(name: str, **raw: Any) -> Outcome:
    return Registry(fake.TOOLS).call(name, raw, CALL)


def error(outcome: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = outcome.structured["error"]
    return found


def test_an_answer_is_its_set_fields_and_its_text() -> None:
    outcome = call("echo", text="hi", times="2")
    assert outcome.structured == {"text": "hihi", "cwd": "/", "env": {}, "peer_pid": None}
    assert (outcome.text, outcome.exit_code, outcome.is_error) == ("hihi", 0, False)


def test_every_wrong_argument_is_named_with_what_it_may_be() -> None:
    outcome = call("echo", txt="hi", times="many", service={"a": 1})
    found = error(outcome)
    assert outcome.exit_code == 2
    assert found["code"] == "bad_arguments"
    for part in ("'text' is required", "'txt' is no argument, did you mean 'text'?", "'times'", "'service'"):
        assert part in found["message"]
    assert found["next"] == "arguments of echo: text, [times], [service]"


def test_an_error_keeps_its_exit_code_and_data() -> None:
    outcome = call("fail")
    assert outcome.exit_code == 3
    assert error(outcome)["files"] == ["a.py"]


def test_a_fault_is_an_internal_error(caplog: pytest.LogCaptureFixture) -> None:
    outcome = call("fail", how="bug")
    assert error(outcome)["code"] == "internal_error"
    assert "RuntimeError" in caplog.text


def test_a_full_disk_is_no_fault_of_devbay_and_names_the_file() -> None:
    told = internal_error("bay_create", OSError(errno.ENOSPC, "No space left on device", "/home/x/state.db"))
    assert told.code == "disk_failed"
    assert "No space left on device: /home/x/state.db" in told.message
    assert internal_error("bay_create", OSError(errno.ENOENT, "gone")).code == "internal_error"


def test_an_unknown_tool_names_near_ones() -> None:
    with pytest.raises(UnknownTool) as caught:
        call("ech")
    assert "echo" in caught.value.next


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="echo"):
        Registry([*fake.TOOLS, fake.TOOLS[0]])


def test_an_input_schema_has_no_titles_nulls_or_room_for_unknown_names() -> None:
    assert input_schema(fake.EchoArguments) == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "what to say"},
            "times": {"type": "integer", "default": 1},
            "service": {"type": "string"},
        },
        "required": ["text"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "model", [answers.BayInfo, answers.RunResult, answers.BayList, answers.DestroyAnswer]
)
def test_an_error_meets_every_output_schema(model: type[Answer]) -> None:
    schema = output_schema(model)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({"error": {"code": "x", "message": "y", "next": ""}}, schema)
    assert "$defs" not in schema
    assert "title" not in json.dumps(schema)


def test_an_answer_meets_its_output_schema_and_a_wrong_one_does_not() -> None:
    schema = output_schema(answers.BayList)
    found = answers.BayList(bays=[fake.bay("a")]).as_json()
    jsonschema.validate(found, schema)
    found["bays"][0]["state"] = "flying"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, schema)
    del found["bays"][0]["state"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, schema)


def test_fields_that_were_set_to_nothing_meet_the_output_schema() -> None:
    result = answers.RunResult(status="error", reason=None, counts=None, tree=None, failures=[
        answers.Failure(name="t", phase=None, file=None)
    ])  # fmt: skip
    jsonschema.validate(result.as_json(), output_schema(answers.RunResult))


class Leaf(BaseModel):
    a: int
    b: str = ""
    c: str = ""
    d: str = ""
    e: str = ""
    f: str = ""
    g: str = ""


class Twice(Arguments):
    """A docstring that no model pays for."""

    left: Leaf
    right: Leaf
    title: str = "a property may be called title"
    mapping: dict[str, int] = Field(default_factory=dict)


class Node(BaseModel):
    name: str
    children: list["Node"] = Field(default_factory=list)


class Tree(Arguments):
    root: Node


def test_a_part_used_often_is_shared_and_properties_keep_their_names() -> None:
    schema = input_schema(Twice)
    assert schema["properties"]["left"] == {"$ref": "#/$defs/Leaf"}
    assert "title" in schema["properties"]
    assert schema["properties"]["mapping"]["additionalProperties"] == {"type": "integer"}
    assert "docstring" not in json.dumps(schema)
    jsonschema.validate({"left": {"a": 1}, "right": {"a": 2}}, schema)


def test_a_recursive_model_keeps_its_reference() -> None:
    schema = input_schema(Tree)
    jsonschema.validate({"root": {"name": "a", "children": [{"name": "b", "children": []}]}}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"root": {"name": "a", "children": [{"nome": "b"}]}}, schema)


def test_a_tool_gives_its_own_schemas() -> None:
    tool: Tool[Any, Any] = fake.TOOLS[0]
    assert tool.input_schema()["required"] == ["text"]
    assert "text" in tool.output_schema()["properties"]
