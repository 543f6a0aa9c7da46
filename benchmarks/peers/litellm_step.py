"""A streamed model call with litellm, as its documentation shows it; for the contenders that are written by hand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.peers.protocol import LOOKUP, MODEL_URL, SYSTEM
from benchmarks.peers.script import earlier_exchanges

Message = dict[str, Any]


async def streamed_step(messages: list[Message], show: Callable[[str], Awaitable[None]]) -> Message:
    """The assistant's message; `show` gets its text as it comes."""
    import litellm

    stream = await litellm.acompletion(
        model="openai/fake",
        api_base=MODEL_URL,
        api_key="none",
        messages=messages,
        tools=[LOOKUP],
        stream=True,
        num_retries=0,
        max_retries=0,
    )
    text = ""
    calls: dict[int, dict[str, str]] = {}
    async for chunk in stream:
        if not chunk.choices:
            continue
        delta = chunk.choices[0].delta
        if delta.content:
            text += delta.content
            await show(delta.content)
        for piece in delta.tool_calls or []:
            call = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
            call["id"] += piece.id or ""
            call["name"] += piece.function.name or ""
            call["arguments"] += piece.function.arguments or ""
    message: Message = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
            for c in calls.values()
        ]
    return message


def opening(message: str, earlier: int) -> list[Message]:
    """The messages of a thread up to the user's newest."""
    said: list[Message] = [{"role": "system", "content": SYSTEM}]
    for question, answer in earlier_exchanges(earlier):
        said += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return [*said, {"role": "user", "content": message}]
