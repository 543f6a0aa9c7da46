"""How the local model's tool choices are asked for and read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from everturn.activities.models.local_choice import (
    MAX_REPLY_TOKENS,
    MAX_STRING,
    REPLY,
    Choice,
    choice_request,
    choice_schema,
    offered_tools,
    parse_choice,
    reply_request,
)
from everturn.activities.models.local_server import missing_text, threads_for
from everturn.activities.models.types import ModelRequest
from everturn.turns import JsonDict

ORDER: JsonDict = {
    "name": "order_status",
    "description": "Status of an order\nby its number.",
    "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
}
PLAIN: JsonDict = {"name": "now", "parameters": {"type": "object", "properties": {}}}
QUESTION: list[JsonDict] = [{"role": "system", "content": "A shop."}, {"role": "user", "content": "Order 1001?"}]
RESULT: list[JsonDict] = [
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "order_status", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": '{"status": "shipped"}'},
]


def request(*tools: JsonDict, messages: list[JsonDict] | None = None, **changes: Any) -> ModelRequest:
    offered = [{"type": "function", "function": tool} for tool in tools]
    return ModelRequest("local", messages or QUESTION, offered, **changes)


def branches(schema: JsonDict) -> dict[str, JsonDict]:
    return {branch["properties"]["name"]["const"]: branch for branch in schema["oneOf"]}


def test_each_tool_is_a_branch_with_its_own_arguments_beside_a_reply() -> None:
    found = branches(choice_schema([ORDER, PLAIN], may_reply=True))
    assert list(found) == ["order_status", "now", REPLY]
    assert found["order_status"]["required"] == ["name", "arguments"]
    assert found["order_status"]["properties"]["arguments"]["required"] == ["order_id"]
    assert found[REPLY]["required"] == ["name"]
    assert all(branch["additionalProperties"] is False for branch in found.values())


def test_without_leave_to_reply_there_is_no_such_branch() -> None:
    assert list(branches(choice_schema([ORDER], may_reply=False))) == ["order_status"]


def test_strings_end_and_patterns_are_left_to_the_tool() -> None:
    properties = {
        "free": {"type": "string"},
        "long": {"type": "string", "minLength": 200},
        "short": {"type": "string", "maxLength": 3},
        "one_of": {"type": "string", "enum": ["a", "b"]},
        "matched": {"type": "string", "pattern": "x.*"},
        "pattern": {"type": "integer"},
        "listed": {"type": "array", "items": {"type": "string"}},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }
    tool = {"name": "t", "parameters": {"type": "object", "properties": properties}}
    found = branches(choice_schema([tool], may_reply=False))["t"]["properties"]["arguments"]["properties"]
    assert found["free"] == found["matched"] == {"type": "string", "maxLength": MAX_STRING}
    assert (found["long"]["maxLength"], found["short"]["maxLength"]) == (200, 3)
    assert found["one_of"] == properties["one_of"]
    assert found["pattern"] == {"type": "integer"}
    assert found["listed"]["items"]["maxLength"] == found["maybe"]["anyOf"][0]["maxLength"] == MAX_STRING


def test_definitions_of_two_tools_with_one_name_stay_apart() -> None:
    def tool(name: str, kind: str) -> JsonDict:
        inner = {"$ref": "#/$defs/Place"}
        place = {"type": kind}
        return {"name": name, "parameters": {"type": "object", "properties": {"p": inner}, "$defs": {"Place": place}}}

    schema = choice_schema([tool("a", "integer"), tool("b", "boolean")], may_reply=False)
    assert schema["$defs"] == {"a.Place": {"type": "integer"}, "b.Place": {"type": "boolean"}}
    found = branches(schema)
    assert found["a"]["properties"]["arguments"]["properties"]["p"] == {"$ref": "#/$defs/a.Place"}
    assert "$defs" not in found["b"]["properties"]["arguments"]


def test_making_a_schema_leaves_the_tools_own_alone() -> None:
    before = json.dumps(ORDER)
    choice_schema([ORDER], may_reply=True)
    assert json.dumps(ORDER) == before


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (None, ["order_status", "now"]),
        ("auto", ["order_status", "now"]),
        ("required", ["order_status", "now"]),
        ("none", []),
        ({"type": "function", "function": {"name": "now"}}, ["now"]),
    ],
)
def test_the_callers_tool_choice_narrows_what_is_offered(choice: Any, names: list[str]) -> None:
    given = request(ORDER, PLAIN, tool_choice=choice)
    assert [tool["name"] for tool in offered_tools(given)] == names


def test_after_a_tools_result_no_tool_is_offered() -> None:
    assert offered_tools(request(ORDER, messages=[*QUESTION, *RESULT])) == []
    assert offered_tools(request()) == []


def test_a_tool_that_is_named_like_the_reply_is_not_offered() -> None:
    assert offered_tools(request(replace_name(ORDER, REPLY))) == []


def replace_name(tool: JsonDict, name: str) -> JsonDict:
    return {**tool, "name": name}


def test_the_choice_is_asked_for_with_the_tools_told_and_the_schema_set() -> None:
    asked = choice_request(request(ORDER), [ORDER])
    system = asked.messages[0]["content"].split("\n")
    assert system[0] == "A shop."
    assert '- Status of an order by its number. {"name": "order_status", "arguments": {"order_id": "value"}}' in system
    assert asked.messages[1:] == QUESTION[1:]
    assert asked.tools == []
    assert asked.response_format == {
        "type": "json_schema",
        "json_schema": {"name": "choice", "schema": choice_schema([ORDER], may_reply=True)},
    }


def test_a_required_call_leaves_no_way_to_reply() -> None:
    asked = choice_request(request(ORDER, tool_choice="required"), [ORDER])
    assert asked.response_format is not None
    assert list(branches(asked.response_format["json_schema"]["schema"])) == ["order_status"]
    assert REPLY not in asked.messages[0]["content"]


def test_an_agent_without_a_system_prompt_can_choose_too() -> None:
    asked = choice_request(request(ORDER, messages=QUESTION[1:]), [ORDER])
    assert [message["role"] for message in asked.messages] == ["system", "user"]


def test_a_chosen_tool_is_a_call_and_everything_else_is_a_reply() -> None:
    chosen = '{\n "name": "order_status", "arguments": {"order_id": "1001"}}'
    assert parse_choice(chosen, [ORDER]) == Choice("order_status", '{"order_id": "1001"}')
    for text in ('{"name": "reply"}', chosen[:-4], "", "[1]", '{"name": "now", "arguments": {}}', '{"name": []}'):
        assert parse_choice(text, [ORDER]) is None


def test_results_are_told_beside_the_question_and_answered_without_variation() -> None:
    asked = reply_request(request(ORDER, messages=[*QUESTION, *RESULT, RESULT[1]]))
    assert [message["role"] for message in asked.messages] == ["system", "user", "assistant", "user"]
    facts = '{"status": "shipped"}\n{"status": "shipped"}\n\nFrom these facts, answer: Order 1001?'
    assert asked.messages[-1]["content"] == facts
    assert asked.messages[2]["content"]
    assert (asked.temperature, asked.provider_options) == (0.0, {"repeat_penalty": 1.0})
    assert asked.tools == []


def test_earlier_results_stand_before_what_followed_them() -> None:
    later: list[JsonDict] = [{"role": "assistant", "content": "Shipped."}, {"role": "user", "content": "Thanks"}]
    asked = reply_request(request(messages=[*QUESTION, *RESULT, *later]))
    assert [m["role"] for m in asked.messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert asked.temperature is None


def test_an_answer_has_a_limit_unless_the_agent_sets_its_own() -> None:
    given = request()
    assert reply_request(given).max_output_tokens == MAX_REPLY_TOKENS
    assert reply_request(replace(given, max_output_tokens=9)).max_output_tokens == 9


def test_parts_of_a_message_are_read_as_text() -> None:
    content = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "data:"}}]
    assert reply_request(request(messages=[{"role": "user", "content": content}])).messages[0]["content"] == "Look:"


def test_few_cores_get_one_thread() -> None:
    assert [threads_for(cores) for cores in (1, 2, 4, 64)] == [1, 1, 2, 4]


def test_what_is_missing_is_named_together_with_the_remedy() -> None:
    assert "xllamacpp" in missing_text("xllamacpp")
    assert "make local-model" in missing_text("xllamacpp")
