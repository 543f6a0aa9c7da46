"""The demo model: rules that answer, calculate and call tools with arguments that fit their schema."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import jsonschema
import pytest

from everturn.activities.scripted.arithmetic import solve
from everturn.activities.scripted.ask import Ask, openai_ask
from everturn.activities.scripted.demo import answer, chosen_calls, demo_moves, streamed_words
from everturn.activities.scripted.moves import CallPart, Finish, Pause, Say
from everturn.activities.scripted.schemas import sample_input
from everturn.turns import JsonDict


def tool(name: str, description: str = "", **properties: JsonDict) -> JsonDict:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


STRING: JsonDict = {"type": "string"}
NUMBER: JsonDict = {"type": "number"}
WEATHER = tool("get_weather", "Current weather for a city.", city=STRING)
TIME = tool("get_time", "The local time in a place.", city=STRING)
ADD = tool("add_numbers", "Adds two numbers.", a=NUMBER, b=NUMBER)
ORDER = tool("cancel_order", "Cancels an order of the shop.", order_id=STRING, reason=STRING)


def ask(text: str, *tools: JsonDict, results: list[tuple[str, str]] | None = None, **body: Any) -> Ask:
    messages: list[JsonDict] = [{"role": "user", "content": text}]
    if results:
        calls = [{"id": f"c{i}", "function": {"name": name, "arguments": "{}"}} for i, (name, _) in enumerate(results)]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": f"c{i}", "content": out} for i, (_, out) in enumerate(results)]
    return openai_ask({"model": "demo", "messages": messages, "tools": list(tools), **body})


def calls(request: Ask) -> list[tuple[str, JsonDict]]:
    return [(spec.name, arguments) for spec, arguments in chosen_calls(request)]


def test_weather_in_a_city_calls_the_tool_with_that_city() -> None:
    assert calls(ask("Weather in Paris?", WEATHER, ADD)) == [("get_weather", {"city": "Paris"})]
    assert calls(ask("what's the weather like in New York today?", WEATHER)) == [("get_weather", {"city": "New York"})]


def test_the_answer_contains_what_the_tool_returned() -> None:
    returned = '{"city": "Paris", "temp_c": 18, "sunny": true}'
    request = ask("Weather in Paris?", WEATHER, results=[("get_weather", returned)])
    assert answer(request) == "get_weather says: city Paris, temp c 18, sunny yes."


def test_a_tools_error_is_told_as_an_error() -> None:
    request = ask("Weather in Paris?", WEATHER, results=[("get_weather", '{"error": "no such city"}')])
    assert answer(request) == "get_weather failed: no such city."


def test_two_questions_make_two_parallel_calls() -> None:
    found = calls(ask("Weather in Paris and the local time in Tokyo?", WEATHER, TIME))
    assert found == [("get_weather", {"city": "Paris"}), ("get_time", {"city": "Tokyo"})]


def test_each_number_of_a_text_fills_one_field() -> None:
    assert calls(ask("add the numbers 3 and 4.5", ADD)) == [("add_numbers", {"a": 3, "b": 4.5})]


def test_ids_and_quoted_strings_find_their_fields() -> None:
    found = calls(ask('cancel order A-1042 please, "too late"', ORDER))
    assert found[0][1]["order_id"] in ("A-1042", "too late")
    assert calls(ask("cancel order A-1042", ORDER))[0][1]["order_id"] == "A-1042"


def test_tools_are_called_once_and_not_again_after_their_results() -> None:
    request = ask("Weather in Paris?", WEATHER, results=[("get_weather", "sunny")])
    assert [m for m in demo_moves(request, 0) if isinstance(m, CallPart)] == []


def test_no_tool_is_called_when_none_matches_or_none_may_be() -> None:
    assert calls(ask("tell me a joke", WEATHER, ADD)) == []
    assert calls(ask("Weather in Paris?", WEATHER, tool_choice="none")) == []


def test_a_required_tool_is_called_even_if_no_word_matches() -> None:
    assert [name for name, _ in calls(ask("xyzzy", WEATHER, tool_choice="required"))] == ["get_weather"]
    named = {"type": "function", "function": {"name": "add_numbers"}}
    assert [name for name, _ in calls(ask("xyzzy", WEATHER, ADD, tool_choice=named))] == ["add_numbers"]


@pytest.mark.parametrize(
    ("sentence", "result"),
    [
        ("what is 12*7?", ("12*7", "84")),
        ("What is 12 times 7", ("12*7", "84")),
        ("(1 + 2) * 3 = ?", ("(1+2)*3", "9")),
        ("10 / 4", ("10/4", "2.5")),
        ("2 + -3", ("2+-3", "-1")),
        ("0.1 + 0.2", ("0.1+0.2", "0.3")),
        ("1 / 0", None),
        ("call me at 555", None),
        ("it costs 5 or 6", None),
        ("((((1+", None),
    ],
)
def test_arithmetic_is_computed_exactly_and_never_evaluated(sentence: str, result: tuple[str, str] | None) -> None:
    assert solve(sentence) == result


def test_endless_brackets_end() -> None:
    assert solve("(" * 5000 + "1+1" + ")" * 5000) is None


def test_small_talk() -> None:
    assert "demo model" in answer(ask("Hello!", WEATHER))
    assert "get_weather" in answer(ask("what can you do?", WEATHER))
    assert answer(ask("what is 12*7?", WEATHER)) == "12*7 = 84"
    assert answer(ask('say "good night"')) == "good night"
    assert answer(ask("echo: one two")) == "one two"
    assert "'tell me a joke'" in answer(ask("tell me a joke"))
    assert answer(ask("thanks")) == "You are welcome."


@pytest.mark.parametrize("text", ["a " * 300, "no no no yes", "x", "one  two\nthree"])
def test_the_stream_never_repeats_a_chunk_and_loses_nothing(text: str) -> None:
    chunks = list(streamed_words(text))
    assert "".join(chunks) == text
    assert all(a != b for a, b in pairwise(chunks))


def test_demo_pauses_between_words_and_demo_fast_does_not() -> None:
    assert any(isinstance(m, Pause) for m in demo_moves(ask("hello"), 0.02))
    moves = list(demo_moves(ask("hello"), 0))
    assert not any(isinstance(m, Pause) for m in moves)
    assert isinstance(moves[-1], Finish)
    assert all(isinstance(m, Say) for m in moves[:-1])


SCHEMAS: list[JsonDict] = [
    {"properties": {"n": {"type": "integer", "minimum": 5, "maximum": 9}}, "required": ["n"]},
    {"properties": {"s": {"type": "string", "minLength": 3, "maxLength": 5}}, "required": ["s"]},
    {"properties": {"u": {"enum": ["celsius", "kelvin"]}}, "required": ["u"]},
    {"properties": {"o": {"anyOf": [{"type": "null"}, {"type": "boolean"}]}}, "required": ["o"]},
    {"properties": {"l": {"type": "array", "items": {"type": "string"}}}, "required": ["l"]},
    {"properties": {"d": {"type": "string", "format": "date"}}, "required": ["d"]},
    {
        "$defs": {"P": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
        "properties": {"p": {"$ref": "#/$defs/P"}},
        "required": ["p"],
    },
    {"$defs": {"N": {"$ref": "#/$defs/N"}}, "properties": {"n": {"$ref": "#/$defs/N"}}},
    {},
]


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("text", ["", "Paris 12 kelvin", 'a "quoted text" of 2026-05-01'])
def test_sample_inputs_fit_their_schema(schema: JsonDict, text: str) -> None:
    schema = {"type": "object", **schema}
    jsonschema.validate(sample_input(schema, text), schema)


def test_a_default_and_a_named_choice_are_used() -> None:
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"enum": ["celsius", "kelvin"], "default": "celsius"},
            "days": {"type": "integer", "default": 3},
        },
        "required": ["city", "days"],
    }
    assert sample_input(schema, "weather in Oslo in kelvin") == {"city": "Oslo", "unit": "kelvin", "days": 3}


def test_structured_answers_fit_their_schema() -> None:
    properties = {"name": STRING, "age": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": ["name", "age"]}
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": schema}}
    assert json.loads(answer(ask("I am Ada and 36", response_format=form))) == {"name": "Ada", "age": 36}
