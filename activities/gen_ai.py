"""Model calls and tools in the words of OpenTelemetry's conventions for generative AI."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias, cast

from everturn.activities.models.providers import provider_of
from everturn.activities.models.types import ModelRequest
from everturn.messages import text_of
from everturn.store.records import StepRecord, ToolCall
from everturn.turns import JsonDict

Attribute: TypeAlias = str | bool | int | float | Sequence[str]
Attributes: TypeAlias = dict[str, Attribute]

_PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "cohere_chat": "cohere",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""Where the conventions have another name for a provider than the model strings."""


def model_name(model: str) -> str:
    """A model string without its provider."""
    return model.partition("/")[2] or model


def request_attributes(model: str, request: ModelRequest | None) -> Attributes:
    """Of what a model was asked; only what was set."""
    found: dict[str, Attribute | None] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(provider_of(model), provider_of(model)),
        "gen_ai.request.model": model_name(model),
    }
    if request is not None:
        found |= {
            "gen_ai.request.temperature": request.temperature,
            "gen_ai.request.top_p": request.top_p,
            "gen_ai.request.max_tokens": request.max_output_tokens,
            "gen_ai.request.stop_sequences": request.stop,
            "gen_ai.request.seed": request.seed,
        }
    return {name: value for name, value in found.items() if value is not None}


def response_attributes(record: StepRecord) -> Attributes:
    """Of what came of it."""
    usage = record.usage
    found: dict[str, Attribute | None] = {
        "gen_ai.response.finish_reasons": [record.finish_reason],
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens or None,
        "everturn.cost": usage.cost,
    }
    for name in ("id", "model"):
        value = record.response.get(name)
        found[f"gen_ai.response.{name}"] = value if isinstance(value, str) else None
    return {name: value for name, value in found.items() if value is not None}


def input_attributes(request: ModelRequest) -> Attributes:
    """What was said to the model."""
    system = [part for m in request.messages if m.get("role") == "system" for part in _parts(m)]
    others = [{"role": m.get("role"), "parts": list(_parts(m))} for m in request.messages if m.get("role") != "system"]
    said: Attributes = {"gen_ai.input.messages": _json(others)}
    return said | ({"gen_ai.system_instructions": _json(system)} if system else {})


def output_attributes(record: StepRecord) -> Attributes:
    """What the model answered, as it is stored."""
    text = text_of(record.parts)
    parts: list[JsonDict] = [{"type": "text", "content": text}] if text else []
    for call in record.calls:
        given = call.input if call.input is not None else call.raw_input
        parts.append({"type": "tool_call", "id": call.tool_call_id, "name": call.tool_name, "arguments": given})
    answer = {"role": "assistant", "parts": parts, "finish_reason": record.finish_reason}
    return {"gen_ai.output.messages": _json([answer])}


def tool_attributes(call: ToolCall, *, inputs: bool, outputs: bool) -> Attributes:
    """Of a tool that ran."""
    found: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool_name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.tool_call_id,
    }
    if inputs:
        found["gen_ai.tool.call.arguments"] = _json(call.input)
    if outputs:
        found["gen_ai.tool.call.result"] = _json(call.error if call.error is not None else call.output)
    return found


def _parts(message: JsonDict) -> Iterator[JsonDict]:
    """A message of OpenAI's chat format; files stand there without their content."""
    content: object = message.get("content")
    if message.get("role") == "tool":
        yield {"type": "tool_call_response", "id": message.get("tool_call_id"), "response": content}
        return
    if isinstance(content, str) and content:
        yield {"type": "text", "content": content}
    for part in cast(list[JsonDict], content if isinstance(content, list) else []):
        is_text = part.get("type") == "text"
        yield {"type": "text", "content": part.get("text")} if is_text else {"type": part.get("type")}
    for call in cast(list[JsonDict], message.get("tool_calls") or []):
        function: JsonDict = call.get("function", {})
        given = function.get("arguments")
        yield {"type": "tool_call", "id": call.get("id"), "name": function.get("name"), "arguments": given}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
