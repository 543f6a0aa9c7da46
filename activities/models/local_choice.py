"""How a model that knows nothing of tools chooses one: by JSON that a schema holds it to. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from everturn.activities.models.calls import parse_arguments
from everturn.activities.models.types import ModelRequest
from everturn.turns import JsonDict

REPLY: Final = "reply"
"""The choice that calls no tool. A tool of this name would hide it, so such a tool is not offered."""
MAX_STRING: Final = 80
"""Characters of a string argument: a small model that has nothing to say fills a string for ever."""
MAX_CHOICE_TOKENS: Final = 200
MAX_REPLY_TOKENS: Final = 256
"""Output limits, the second for agents that set none: the longer a small model speaks, the less it makes sense."""

_LEAD: Final = "Choose what to do, as JSON."
_OTHERWISE: Final = f'- Greetings, thanks, small talk and everything else: {{"name": "{REPLY}"}}'
_LOOKED: Final = "Let me look."


@dataclass(frozen=True, slots=True)
class Choice:
    """A tool and the arguments for it, as JSON text."""

    name: str
    arguments: str


def offered_tools(request: ModelRequest) -> list[JsonDict]:
    """The functions to choose from: none after tool results, which are to be answered, and none if forbidden."""
    if request.tool_choice == "none" or not request.messages or request.messages[-1].get("role") != "user":
        return []
    functions = [cast(JsonDict, tool["function"]) for tool in request.tools]
    wanted = _wanted_name(request.tool_choice)
    return [f for f in functions if f["name"] != REPLY and wanted in (None, f["name"])]


def choice_request(request: ModelRequest, tools: Sequence[JsonDict]) -> ModelRequest:
    """The request whose answer is a choice among the tools, or to reply if the caller leaves it open."""
    may_reply = request.tool_choice in (None, "auto")
    lines = [_LEAD, *(_line(tool) for tool in tools), *([_OTHERWISE] if may_reply else [])]
    system, *others = _with_system(_told(request.messages))
    head = {"role": "system", "content": "\n".join(filter(None, (system["content"], *lines)))}
    schema = {"name": "choice", "schema": choice_schema(tools, may_reply=may_reply)}
    return replace(
        request,
        messages=[head, *others],
        tools=[],
        tool_choice=None,
        temperature=0.0,
        max_output_tokens=MAX_CHOICE_TOKENS,
        response_format={"type": "json_schema", "json_schema": schema},
        provider_options={**request.provider_options, "repeat_penalty": 1.0},
    )


def reply_request(request: ModelRequest) -> ModelRequest:
    """The request for an answer in plain text."""
    changed = replace(
        request,
        messages=_told(request.messages),
        tools=[],
        tool_choice=None,
        max_output_tokens=request.max_output_tokens or MAX_REPLY_TOKENS,
    )
    if request.messages and request.messages[-1].get("role") == "tool":
        # facts are to be repeated, not varied
        options = {"repeat_penalty": 1.0, **request.provider_options}
        return replace(changed, temperature=request.temperature or 0.0, provider_options=options)
    return changed


def choice_schema(tools: Sequence[JsonDict], *, may_reply: bool) -> JsonDict:
    """One branch for each tool, its name fixed and its arguments by its own schema, and one for a reply."""
    definitions: JsonDict = {}
    branches: list[JsonDict] = []
    for tool in tools:
        parameters = _bounded(tool.get("parameters") or {"type": "object"}, tool["name"])
        for name, definition in parameters.pop("$defs", {}).items():
            definitions[f"{tool['name']}.{name}"] = definition
        branches.append(_branch(name={"const": tool["name"]}, arguments=parameters))
    if may_reply:
        branches.append(_branch(name={"const": REPLY}))
    return {"oneOf": branches, **({"$defs": definitions} if definitions else {})}


def parse_choice(text: str, tools: Sequence[JsonDict]) -> Choice | None:
    """The tool that an answer chooses; None for a reply, and for an answer that was cut."""
    answer = parse_arguments(text) or {}
    name, arguments = answer.get("name"), answer.get("arguments")
    if name not in [tool["name"] for tool in tools] or not isinstance(arguments, dict):
        return None
    return Choice(str(name), json.dumps(arguments, ensure_ascii=False))


def _wanted_name(choice: str | JsonDict | None) -> str | None:
    if not isinstance(choice, dict):
        return None
    return cast("str | None", choice.get("function", choice).get("name"))


def _branch(**properties: JsonDict) -> JsonDict:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _line(tool: JsonDict) -> str:
    """A tool as the model is told of it: what it does, then the JSON to write."""
    properties = cast(JsonDict, (tool.get("parameters") or {}).get("properties") or {})
    example = {"name": tool["name"], "arguments": dict.fromkeys(properties, "value")}
    about = " ".join(str(tool.get("description") or tool["name"]).split())
    return f"- {about} {json.dumps(example, ensure_ascii=False)}"


def _bounded(schema: JsonDict, tool: str) -> JsonDict:
    """A schema with an end to every string, without patterns (llama.cpp takes few), its references under one root."""
    found: JsonDict = {key: _bounded_value(key, value, tool) for key, value in schema.items() if key != "pattern"}
    if found.get("type") == "string" and not found.keys() & {"enum", "const", "format", "maxLength"}:
        found["maxLength"] = max(MAX_STRING, int(found.get("minLength", 0)))
    return found


def _bounded_value(key: str, value: Any, tool: str) -> Any:
    if key == "$ref":
        return str(value).replace("#/$defs/", f"#/$defs/{tool}.", 1)
    if key in ("properties", "$defs"):
        return {name: _bounded(inner, tool) for name, inner in value.items()}
    if key in ("items", "additionalProperties") and isinstance(value, dict):
        return _bounded(cast(JsonDict, value), tool)
    if key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        return [_bounded(inner, tool) for inner in value]
    return value


def _told(messages: Sequence[JsonDict]) -> list[JsonDict]:
    """The conversation without tool messages: a small model reads facts only beside the question they answer."""
    told: list[JsonDict] = []
    question, facts = "", list[str]()
    for message in messages:
        role, text = message.get("role"), _text(message.get("content"))
        if role == "tool":
            facts.append(text)
            continue
        if facts:
            told.append(_facts_message(facts, question))
            facts = []
        if role == "user":
            question = text
        told.append({"role": role, "content": text or _LOOKED})
    return [*told, _facts_message(facts, question)] if facts else told


def _facts_message(facts: Sequence[str], question: str) -> JsonDict:
    return {"role": "user", "content": "\n".join(facts) + f"\n\nFrom these facts, answer: {question}"}


def _with_system(messages: list[JsonDict]) -> list[JsonDict]:
    if messages and messages[0]["role"] == "system":
        return messages
    return [{"role": "system", "content": ""}, *messages]


def _text(content: object) -> str:
    if isinstance(content, list):
        parts = cast(list[JsonDict], content)
        return "\n".join(str(part["text"]) for part in parts if part.get("type") == "text")
    return str(content or "")
