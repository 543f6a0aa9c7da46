"""Makes a transcript one that every provider accepts: each tool call has exactly one result, right after it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from everturn.activities.models.calls import parse_arguments
from everturn.turns import JsonDict

MISSING_RESULT = json.dumps({"error": "the call was interrupted before it had a result"})
SHORT: Final = 500
"""Characters of arguments that are remembered to be in order."""


def repaired(messages: Sequence[JsonDict]) -> tuple[list[JsonDict], list[str]]:
    """The messages (OpenAI's chat format) repaired, and one note for each repair.

    Calls without a result get an error result; results without a call and second results go; an id that an earlier
    message uses is renamed, a second call of the same message with it goes; arguments that are no JSON object become
    {}; assistant messages without content go.
    """
    return _Repair().run(messages)


class _Repair:
    def __init__(self) -> None:
        self.notes: list[str] = []
        self._used: set[str] = set()

    def run(self, messages: Sequence[JsonDict]) -> tuple[list[JsonDict], list[str]]:
        fixed: list[JsonDict] = []
        position = 0
        while position < len(messages):
            message = messages[position]
            end = position + 1
            while end < len(messages) and messages[end].get("role") == "tool":
                end += 1
            fixed += self._group(message, messages[position + 1 : end])
            position = end
        return fixed, self.notes

    def _group(self, message: JsonDict, results: Sequence[JsonDict]) -> list[JsonDict]:
        """A message with the tool results that follow it."""
        if message.get("role") == "tool":
            results = [message, *results]
            message = {}
        calls = self._calls(message) if message.get("role") == "assistant" else {}
        by_id = self._results(results, calls)
        answers = [self._answer(old, call, by_id) for old, call in calls.items()]
        if not message:
            return []
        if message.get("role") != "assistant":
            return [message]
        kept = {**message, "tool_calls": list(calls.values())} if calls else _without(message, "tool_calls")
        if not calls and not kept.get("content"):
            self.notes.append("an assistant message without content was left out")
            return []
        return [kept, *answers]

    def _calls(self, message: JsonDict) -> dict[str, JsonDict]:
        """The calls to keep by their id as given; an id that an earlier message uses is new in the call itself."""
        kept: dict[str, JsonDict] = {}
        for call in _dicts(message.get("tool_calls")):
            given = str(call.get("id"))
            if given in kept:
                self.notes.append(f"a second tool call with the id {given!r} was left out")
                continue
            kept[given] = self._with_object_input({**call, "id": self._fresh(given)})
        return kept

    def _fresh(self, given: str) -> str:
        name, number = given, 1
        while name in self._used:
            number += 1
            name = f"{given}-{number}"
        self._used.add(name)
        return name

    def _with_object_input(self, call: JsonDict) -> JsonDict:
        function = cast(JsonDict, call.get("function") or {})
        arguments = function.get("arguments")
        if isinstance(arguments, str) and _is_object(arguments):
            return call
        if arguments:
            self.notes.append(f"the input of tool call {call['id']!r} is not a JSON object; the prompt has {{}}")
        return {**call, "function": {**function, "arguments": "{}"}}

    def _results(self, results: Iterable[JsonDict], calls: dict[str, JsonDict]) -> dict[str, JsonDict]:
        by_id: dict[str, JsonDict] = {}
        for result in results:
            call_id = str(result.get("tool_call_id"))
            if call_id in calls and call_id not in by_id:
                by_id[call_id] = result
            else:
                self.notes.append(f"a tool result for {call_id!r} without a call of its own was left out")
        return by_id

    def _answer(self, given: str, call: JsonDict, by_id: dict[str, JsonDict]) -> JsonDict:
        result = by_id.get(given)
        if result is None:
            self.notes.append(f"tool call {given!r} had no result; the prompt has an error result")
            result = {"role": "tool", "content": MISSING_RESULT}
        return {**result, "tool_call_id": call["id"]}


def _is_object(arguments: str) -> bool:
    return _is_short_object(arguments) if len(arguments) <= SHORT else _parses(arguments)


@lru_cache(maxsize=4096)
def _is_short_object(arguments: str) -> bool:
    """A thread's calls come again with each of its steps."""
    return _parses(arguments)


def _parses(arguments: str) -> bool:
    return bool(arguments.strip()) and parse_arguments(arguments) is not None


def _without(message: JsonDict, key: str) -> JsonDict:
    if key not in message:
        return message
    return {name: value for name, value in message.items() if name != key}


def _dicts(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [cast(dict[str, Any], item) for item in cast(list[object], value) if isinstance(item, dict)]
