"""Reads the chunks of litellm's streams: tolerant of everything that may be missing, without a single litellm type."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Self, cast

from everturn.activities.models.clean import storable, thinking_fragments, token_count
from everturn.activities.models.types import CallDelta, Delta
from everturn.turns import JsonDict, Usage

_KNOWN_CALL_FIELDS = frozenset({"id", "index", "type", "function"})


def delta_of(chunk: Any, *, refusal: str = "", finish: str | None = None) -> Delta:
    """A chunk as a delta. finish: the reason as the server gave it, where the tap saw one."""
    choice = _first(getattr(chunk, "choices", None))
    part = getattr(choice, "delta", None)
    reported = getattr(choice, "finish_reason", None)
    return Delta(
        text=_text(part, "content"),
        reasoning=_text(part, "reasoning_content"),
        refusal=refusal or None,
        thinking=_dicts(getattr(part, "thinking_blocks", None)) or None,
        calls=tuple(_call(call) for call in getattr(part, "tool_calls", None) or ()),
        finish=(finish or str(reported)) if reported else None,
        usage=usage_of(getattr(chunk, "usage", None)),
        response_id=_text(chunk, "id"),
        model=_text(chunk, "model"),
        provider=_provider_fields(part),
    )


def usage_of(raw: Any) -> Usage | None:
    """Token counts in OpenAI's form; None if there are none."""
    if raw is None:
        return None
    prompt_details = getattr(raw, "prompt_tokens_details", None)
    output_details = getattr(raw, "completion_tokens_details", None)
    return Usage(
        input_tokens=_count(raw, "prompt_tokens"),
        output_tokens=_count(raw, "completion_tokens"),
        cached_tokens=_count(prompt_details, "cached_tokens"),
        reasoning_tokens=_count(output_details, "reasoning_tokens"),
    )


class Tap:
    """Stands between litellm's wrapper and the provider's stream, and notes what the wrapper drops or invents.

    The wrapper drops refusals, rewrites unknown finish reasons, and for some providers reports `stop` for a stream that
    ended without any reason. Chunks in the form of chat completions say what really came.
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self._iterator: AsyncIterator[Any] = source.__aiter__()
        self._refusals: list[str] = []
        self._speaks = False
        self.finish: str | None = None
        """The finish reason that the server sent."""

    @property
    def disproves_finish(self) -> bool:
        """The stream is of a form that carries its finish reason, and none has come."""
        return self._speaks and self.finish is None

    def take_refusal(self) -> str:
        """The refusal text since the last call."""
        text = "".join(self._refusals)
        self._refusals.clear()
        return text

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        chunk = await self._iterator.__anext__()
        self._note(chunk)
        return chunk

    async def aclose(self) -> None:
        for name in ("aclose", "close"):
            close = getattr(self._source, name, None)
            if close is not None:
                closing = close()
                if closing is not None:
                    await closing
                return

    def _note(self, chunk: Any) -> None:
        choices = getattr(chunk, "choices", None)
        if choices is None:
            return
        self._speaks = True
        choice = _first(choices)
        self.finish = getattr(choice, "finish_reason", None) or self.finish
        refusal = _text(getattr(choice, "delta", None), "refusal")
        if refusal:
            self._refusals.append(refusal)


def _call(raw: Any) -> CallDelta:
    function = getattr(raw, "function", None)
    index = getattr(raw, "index", None)
    return CallDelta(
        index=index if isinstance(index, int) else 0,
        id=_text(raw, "id"),
        name=_text(function, "name"),
        arguments=_text(function, "arguments") or "",
        provider=_call_fields(raw),
    )


def _call_fields(raw: Any) -> JsonDict | None:
    """Whatever a provider put beside the standard fields of a call, to be sent back with it."""
    dump = getattr(raw, "model_dump", None)
    if dump is None:
        return None
    fields = cast(Mapping[str, Any], dump(exclude_none=True))
    return storable({name: value for name, value in fields.items() if name not in _KNOWN_CALL_FIELDS})


def _provider_fields(part: Any) -> JsonDict | None:
    """The provider's own fields of a delta; the signed reasoning blocks among them are read as such already."""
    fields = getattr(part, "provider_specific_fields", None)
    if not isinstance(fields, Mapping):
        return None
    known = cast(Mapping[str, Any], fields)
    return storable({n: value for n, value in known.items() if n != "thinking_blocks" and value is not None})


def _first(items: Any) -> Any:
    return items[0] if items else None


def _text(owner: Any, name: str) -> str | None:
    value = getattr(owner, name, None)
    return value if isinstance(value, str) and value else None


def _count(owner: Any, name: str) -> int:
    return token_count(getattr(owner, name, None))


def _dicts(blocks: Any) -> list[JsonDict]:
    return thinking_fragments(b if isinstance(b, dict) else b.model_dump() for b in blocks or ())
