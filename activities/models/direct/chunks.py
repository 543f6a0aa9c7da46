"""Chunks of a chat completion as deltas: tolerant of everything that may be missing, null or of another type."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final, cast

from everturn.activities.models.clean import price, storable, thinking_fragments, token_count
from everturn.activities.models.types import CallDelta, Delta
from everturn.turns import JsonDict, Usage

_KNOWN_CALL_FIELDS: Final = frozenset(("id", "index", "type", "function"))


class ErrorEvent(Exception):
    """The provider reports an error inside its stream. status: an HTTP status, if the event names one."""

    def __init__(self, text: str, status: int | None) -> None:
        super().__init__(text)
        self.status_code = status


def parse_chunk(name: bytes, data: bytes) -> JsonDict:
    """The JSON object of an event, empty for other JSON. Raises ErrorEvent; ValueError if it is no JSON."""
    text = data.decode()
    found = _dict(json.loads(text))
    if found.get("error") or name == b"error" or found.get("object") == "error":
        raise ErrorEvent(text, _status(found.get("error") or found))
    return found


def delta_of_chunk(chunk: JsonDict) -> Delta:
    """What a chunk adds to the answer."""
    choice = _dict(_first(chunk.get("choices")))
    part = _dict(choice.get("delta"))
    usage, own = chunk.get("usage"), part.get("provider_specific_fields")
    return Delta(
        text=_text(part.get("content")),
        reasoning=_text(part.get("reasoning_content")) or _text(part.get("reasoning")),
        refusal=_text(part.get("refusal")),
        thinking=_thinking(part.get("thinking_blocks")),
        calls=tuple(_call(call) for call in _list(part.get("tool_calls"))),
        finish=_text(choice.get("finish_reason")),
        usage=_usage(cast(JsonDict, usage)) if isinstance(usage, dict) else None,
        response_id=_text(chunk.get("id")),
        model=_text(chunk.get("model")),
        provider=_provider(own) if own else None,
    )


def with_price(delta: Delta, chunk: JsonDict) -> Delta:
    """The delta with the cost that the provider's usage names."""
    cost = price(_dict(chunk.get("usage")).get("cost"))
    if delta.usage is None or cost is None:
        return delta
    return replace(delta, usage=replace(delta.usage, cost=cost))


def _call(raw: object) -> CallDelta:
    call = _dict(raw)
    function, index = _dict(call.get("function")), call.get("index")
    arguments = function.get("arguments")
    return CallDelta(
        index=index if isinstance(index, int) else 0,
        id=_text(call.get("id")),
        name=_text(function.get("name")),
        arguments=json.dumps(arguments) if isinstance(arguments, dict) else _text(arguments) or "",
        provider=storable({k: v for k, v in call.items() if k not in _KNOWN_CALL_FIELDS and v is not None}),
    )


def _usage(raw: JsonDict) -> Usage:
    prompt, output = _dict(raw.get("prompt_tokens_details")), _dict(raw.get("completion_tokens_details"))
    return Usage(
        input_tokens=token_count(raw.get("prompt_tokens")),
        output_tokens=token_count(raw.get("completion_tokens")),
        cached_tokens=token_count(prompt.get("cached_tokens")),
        reasoning_tokens=token_count(output.get("reasoning_tokens")),
    )


def _thinking(blocks: Any) -> list[JsonDict] | None:
    """Signed reasoning as a gateway of litellm passes it on."""
    return thinking_fragments(_list(blocks)) or None


def _provider(fields: Any) -> JsonDict | None:
    """The provider's own fields of a delta; the signed reasoning among them is read as such already."""
    return storable({n: v for n, v in _dict(fields).items() if n != "thinking_blocks" and v is not None})


def _status(error: Any) -> int | None:
    details = _dict(error)
    found = (details.get(name) for name in ("code", "status", "status_code"))
    return next((value for value in found if isinstance(value, int)), None)


def _first(items: object) -> object:
    return next(iter(_list(items)), None)


def _list(value: object) -> list[object]:
    return cast(list[object], value) if isinstance(value, list) else []


def _dict(value: object) -> JsonDict:
    return cast(JsonDict, value) if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
