"""A request as scripts see it, whichever API it came through."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast
from urllib.parse import unquote

from everturn.turns import JsonDict

Api = Literal["openai", "anthropic"]
_DIRECTIVE = re.compile(r"\[\[(.+?)\]\]", re.DOTALL)


class BadScript(Exception):
    """No scenario has this name, or a parameter cannot be used."""


@dataclass(frozen=True, slots=True)
class Script:
    """The name of a scenario and its parameters."""

    name: str
    params: dict[str, str] = field(default_factory=dict[str, str])

    def text(self, name: str, default: str = "") -> str:
        return self.params.get(name, default)

    def number(self, name: str, default: float) -> float:
        value = self.params.get(name)
        try:
            return default if value is None else float(value)
        except ValueError as error:
            raise BadScript(f"parameter {name}={value} of scenario {self.name!r} must be a number") from error

    def count(self, name: str, default: int) -> int:
        return int(self.number(name, default))

    def flag(self, name: str) -> bool:
        return self.params.get(name, "0") not in ("", "0", "false", "no")


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as offered to the model."""

    name: str
    description: str
    schema: JsonDict


@dataclass(frozen=True, slots=True)
class Said:
    """A message in plain words. role: system, user, assistant or tool."""

    role: str
    text: str
    tool: str = ""
    """For a tool result: the tool's name."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request.

    said: the conversation. tools: what may be called. step: how many assistant messages follow the user message that
    is answered. results: the tool results after it. attempt: how often exactly this conversation was sent, from 1.
    size: characters of the whole prompt. key: the caller's API key. caller: for whom it asks, "" if it does not say.
    """

    api: Api
    model: str
    body: JsonDict
    said: list[Said]
    tools: list[ToolSpec]
    attempt: int = 1
    key: str = field(default="", repr=False)
    caller: str = ""

    @property
    def user_text(self) -> str:
        """The user message that is answered."""
        position = self._position()
        return self.said[position].text if position >= 0 else ""

    @property
    def step(self) -> int:
        return sum(m.role == "assistant" for m in self.said[self._position() + 1 :])

    @property
    def results(self) -> list[Said]:
        return [m for m in self.said[self._position() + 1 :] if m.role == "tool"]

    @property
    def size(self) -> int:
        return sum(len(m.text) for m in self.said)

    @property
    def max_tokens(self) -> int | None:
        value = self.body.get("max_completion_tokens", self.body.get("max_tokens"))
        return value if isinstance(value, int) else None

    def directive(self) -> str | None:
        """What the newest user message with `[[…]]` has between the brackets."""
        found = _DIRECTIVE.search(self.user_text)
        return found.group(1) if found else None

    def _position(self) -> int:
        """Index of the user message that is answered: the newest with a directive, if the model is `scripted`."""
        users = [i for i, m in enumerate(self.said) if m.role == "user"]
        if self.model == "scripted":
            users = [i for i in users if _DIRECTIVE.search(self.said[i].text)] or users
        return users[-1] if users else -1


def parse_scripts(name: str) -> list[Script]:
    """`text:tokens=20,delay_ms=5`, several joined by `|`, one per step; values percent-encoded. Raises BadScript."""
    scripts: list[Script] = []
    for part in name.split("|"):
        scenario, _, rest = part.strip().partition(":")
        scripts.append(Script(scenario, _params(rest.split(",") if rest else [])))
    return scripts


def parse_directive(text: str) -> list[Script]:
    """`text tokens=20 delay_ms=5`, values quoted as in a shell; several joined by `|`. Raises BadScript."""
    scripts: list[Script] = []
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BadScript(f"the directive [[{text}]] cannot be read: {error}") from error
    for part in _split(words, "|"):
        if not part:
            raise BadScript(f"the directive [[{text}]] has an empty scenario")
        scripts.append(Script(part[0], _params(part[1:])))
    return scripts


def _split(words: Sequence[str], mark: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == mark:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _params(items: Sequence[str]) -> dict[str, str]:
    params: dict[str, str] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals:
            raise BadScript(f"parameter {item!r} must have the form key=value")
        params[key.strip()] = unquote(value)
    return params


def openai_ask(body: JsonDict, key: str = "") -> Ask:
    """An Ask from the body of a chat completion request."""
    said: list[Said] = []
    names: dict[str, str] = {}
    for message in _objects(body.get("messages")):
        for call in _objects(message.get("tool_calls")):
            names[str(call.get("id"))] = str(_object(call.get("function")).get("name"))
        role = str(message.get("role"))
        role = "system" if role == "developer" else role
        said.append(Said(role, _text(message.get("content")), names.get(str(message.get("tool_call_id")), "")))
    specs = [_object(tool.get("function")) for tool in _objects(body.get("tools"))]
    tools = [ToolSpec(str(s.get("name")), str(s.get("description", "")), _object(s.get("parameters"))) for s in specs]
    return Ask("openai", str(body.get("model")), body, said, tools, key=key)


def anthropic_ask(body: JsonDict, key: str = "") -> Ask:
    """An Ask from the body of a messages request: tool results travel inside user messages there."""
    said: list[Said] = [Said("system", _text(body.get("system")))] if body.get("system") else []
    names: dict[str, str] = {}
    for message in _objects(body.get("messages")):
        blocks = message.get("content")
        results = [b for b in _objects(blocks) if b.get("type") == "tool_result"]
        for block in _objects(blocks):
            if block.get("type") == "tool_use":
                names[str(block.get("id"))] = str(block.get("name"))
        said += [Said("tool", _text(r.get("content")), names.get(str(r.get("tool_use_id")), "")) for r in results]
        if not results:
            said.append(Said(str(message.get("role")), _text(blocks)))
    tools = [
        ToolSpec(str(t.get("name")), str(t.get("description", "")), _object(t.get("input_schema")))
        for t in _objects(body.get("tools"))
    ]
    return Ask("anthropic", str(body.get("model")), body, said, tools, key=key)


def answer_schema(ask: Ask) -> JsonDict | None:
    """The JSON schema that the answer's text must fit, None if it is free."""
    form = _object(ask.body.get("response_format"))
    return _object(_object(form.get("json_schema")).get("schema")) or None


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(block.get("text", "")) for block in _objects(content))


def _object(value: object) -> JsonDict:
    return cast(JsonDict, value) if isinstance(value, dict) else {}


def _objects(value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        return []
    return [cast(Mapping[str, Any], item) for item in cast(list[object], value) if isinstance(item, dict)]


def read_body(data: bytes) -> JsonDict:
    """A request's body as a JSON object; raises BadScript."""
    try:
        body: object = json.loads(data)
    except ValueError as error:
        raise BadScript(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadScript("the body must be a JSON object")
    return cast(JsonDict, body)
