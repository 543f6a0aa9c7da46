"""Plays the moves of a script onto the wire, or folds them into one answer for a caller that does not stream."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import assert_never

from everturn.activities.scripted.ask import Ask
from everturn.activities.scripted.dialects import AnthropicDialect, Dialect, OpenAIDialect, encode
from everturn.activities.scripted.moves import (
    CallPart,
    Content,
    Cut,
    Data,
    Fail,
    FailInStream,
    Finish,
    Move,
    Open,
    Pause,
    Raw,
    Refuse,
    Say,
    Style,
    Think,
)
from everturn.activities.scripted.wire import Exchange, sse
from everturn.turns import JsonDict

_SPLIT_GAP = 0.005  # long enough that the two halves of a character arrive in two reads


def dialect_of(ask: Ask) -> Dialect:
    return OpenAIDialect(ask) if ask.api == "openai" else AnthropicDialect(ask)


class StreamPlayer:
    """Plays one script as an event stream."""

    def __init__(self, exchange: Exchange, dialect: Dialect) -> None:
        self._exchange, self._dialect = exchange, dialect
        self._style = Style()
        self._begun = False

    async def play(self, moves: Iterable[Move]) -> None:
        for move in moves:
            if isinstance(move, Say | Think | CallPart | Refuse | Finish):
                await self._content(move)
            elif isinstance(move, Cut | Fail | FailInStream):
                await self._stop(move)
                return
            else:
                await self._wire(move)
        await self._begin()
        for event in self._dialect.tail():
            await self._write(encode(event, self._style.newline))
        await self._exchange.end()

    async def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            for event in self._dialect.begin():
                await self._write(encode(event, self._style.newline))

    async def _content(self, move: Content) -> None:
        await self._begin()
        for event in self._dialect.events(move):
            await self._write(encode(event, self._style.newline))

    async def _wire(self, move: Data | Raw | Open | Pause | Style) -> None:
        match move:
            case Pause(seconds):
                await pause(seconds)
            case Open():
                await self._exchange.open()
            case Raw(data):
                await self._exchange.write(data)
            case Data(body):
                await self._begin()
                await self._write(encode((None, body), self._style.newline))
            case Style():
                self._style = move
            case _:
                assert_never(move)

    async def _stop(self, move: Cut | Fail | FailInStream) -> None:
        if isinstance(move, Fail):
            await self._exchange.reply(move.status, self._dialect.error_body(move), move.headers)
        elif isinstance(move, FailInStream):
            await self._begin()
            await self._write(encode(self._dialect.error_event(move)))
            await self._exchange.end()
        else:
            await self._cut(move)

    async def _cut(self, cut: Cut) -> None:
        if cut.how == "reset":
            self._exchange.reset()
        elif cut.how == "fin":
            self._exchange.hang_up()
        else:
            if cut.how == "done":
                await self._write(sse("[DONE]"))
            await self._exchange.end()

    async def _write(self, data: bytes) -> None:
        cut = _inside_a_character(data) if self._style.split else None
        if cut is None:
            await self._exchange.write(data)
            return
        await self._exchange.write(data[:cut])
        await asyncio.sleep(_SPLIT_GAP)
        await self._exchange.write(data[cut:])


async def play_whole(exchange: Exchange, ask: Ask, moves: Iterable[Move]) -> None:
    """Answers a chat completion request that does not stream."""
    dialect = OpenAIDialect(ask)
    answer = _Whole()
    for move in moves:
        match move:
            case Pause(seconds):
                await pause(seconds)
            case Cut():
                exchange.reset()
                return
            case Fail():
                await exchange.reply(move.status, dialect.error_body(move), move.headers)
                return
            case Say() | Think() | Refuse() | CallPart() | Finish():
                dialect.events(move)
                answer.add(move)
            case _:
                pass  # bytes and styles of an event stream mean nothing here
    choice = {"index": 0, "message": answer.message(), "finish_reason": answer.finish}
    body: JsonDict = {"id": dialect.id, "object": "chat.completion", "created": dialect.created, "model": ask.model}
    await exchange.reply(200, {**body, "choices": [choice], "usage": dialect.usage()})


class _Whole:
    """The fold of a script's content."""

    def __init__(self) -> None:
        self.finish = "stop"
        self._texts: dict[str, str] = {}
        self._calls: dict[str, JsonDict] = {}
        self._last: dict[int, str] = {}

    def add(self, move: Content) -> None:
        match move:
            case Say(text):
                self._append("content", text)
            case Think(text):
                self._append("reasoning_content", text)
            case Refuse(text):
                self._append("refusal", text)
            case Finish(reason):
                self.finish = reason
            case CallPart():
                self._call(move)

    def message(self) -> JsonDict:
        calls = {"tool_calls": list(self._calls.values())} if self._calls else {}
        return {"role": "assistant", "content": None, **self._texts, **calls}

    def _append(self, name: str, text: str) -> None:
        self._texts[name] = self._texts.get(name, "") + text

    def _call(self, part: CallPart) -> None:
        call_id = part.id or self._last.get(part.index, f"call_{part.index}")
        self._last[part.index] = call_id
        new: JsonDict = {"id": call_id, "type": "function", "function": {"name": part.name, "arguments": ""}}
        call = self._calls.setdefault(call_id, new)
        call["function"]["arguments"] += part.arguments
        call |= part.provider or {}


async def pause(seconds: float | None) -> None:
    """Waits; None waits until the task is cancelled, which a closing client or server does."""
    if seconds is None:
        await asyncio.get_running_loop().create_future()
    else:
        await asyncio.sleep(seconds)


def _inside_a_character(data: bytes) -> int | None:
    """Where the second byte of the first multi-byte character stands, None if there is none."""
    return next((i + 1 for i, byte in enumerate(data) if byte >= 0xC0), None)
