"""A streamed model call with the openai package, as its documentation shows it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from benchmarks.peers.protocol import LOOKUP, MODEL_URL


@cache
def model_client() -> Any:
    """One client a process; retries are the engine's."""
    import openai

    return openai.AsyncOpenAI(base_url=MODEL_URL, api_key="none", max_retries=0)


async def streamed_step(messages: list[dict[str, Any]], show: Callable[[str], None]) -> dict[str, Any]:
    """The assistant's message; `show` gets its text as it comes."""
    stream = await model_client().chat.completions.create(model="fake", messages=messages, tools=[LOOKUP], stream=True)
    text = ""
    calls: dict[int, dict[str, Any]] = {}
    async for chunk in stream:
        if not chunk.choices:
            continue
        delta = chunk.choices[0].delta
        if delta.content:
            text += delta.content
            show(delta.content)
        for piece in delta.tool_calls or []:
            empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            call = calls.setdefault(piece.index, empty)
            call["id"] += piece.id or ""
            call["function"]["name"] += piece.function.name or ""
            call["function"]["arguments"] += piece.function.arguments or ""
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    return message | ({"tool_calls": list(calls.values())} if calls else {})
