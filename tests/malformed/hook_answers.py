"""What hooks answer that no hook should answer."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from everturn import Allow, Ask, Block, Replace, StepConfig, Substitute, TurnConfig, TurnError
from everturn.hooks.decisions import NextModel
from tests.malformed.values import NO_JSON, Unprintable, circle, nested, nested_objects

HUGE: Final = "x" * 400_000


class Mute(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words for this")


WRONG: Final[tuple[Any, ...]] = (
    *(0, 1, -1, 1.5, math.nan, True, False, "", "text", "\ud800", "nul\x00", HUGE, b"x", bytearray(b"x"), 10**5000),
    *([], [1], ["block"], {}, {"a": 1}, {"block": True}, {"model": "x"}, (), (None,), set[int](), frozenset((1,))),
    *(object(), Unprintable(), int, len, Block, TurnConfig, Ellipsis, NotImplemented, ValueError("x"), Mute()),
    *(nested(5_000), nested_objects(5_000), circle(), range(3), re.compile("x"), SimpleNamespace(reason="x"), math),
    *(Block("no"), Allow(), Ask("?"), Substitute(1), Replace(1), TurnConfig(), StepConfig(), NextModel("x")),
    TurnError("a", "b"),
)
"""For each point nearly all of these are of a wrong type."""


def raises(error: BaseException) -> Callable[[], Any]:
    def answer() -> Any:
        raise error

    return answer


def _configs() -> Iterator[tuple[str, Callable[[], Any]]]:
    fields: dict[str, tuple[Any, ...]] = {
        "model": (5, "", "\ud800", HUGE),
        "system": (5, ["a"], "\x00", "\ud800", HUGE),
        "messages": (
            *(5, "text", [], [5], [{}], [{"role": 5}], [{"role": ["user"]}], [{"role": "nobody", "content": "x"}]),
            [{"role": "user", "content": 5}],
            [{"role": "user", "content": [5]}],
            [{"role": "user", "content": [{"type": 5}]}],
            [{"role": "user", "content": [{"type": "text", "text": {}}]}],
            [{"role": "assistant", "tool_calls": 5}],
            [{"role": "assistant", "tool_calls": [{"function": []}]}],
            [{"role": "assistant", "tool_calls": [{"id": [], "function": {"name": "x", "arguments": {}}}]}],
            [{"role": "tool", "tool_call_id": {}}],
            [{"role": "user", "content": "\ud800"}],
            [{"role": "user", "content": "a", "more": nested(150)}],
            [{"role": "user", "content": "a", "more": math.nan}],
        ),
        "tools": (5, ["no.such:tool"], ["\x00"], [int], [lambda x: x]),
        "active_tools": (5, "note", [5], ["nobody"], ["\ud800"]),
        "tool_choice": (5, {"type": object()}, "\x00"),
        "stop_when": (5, ["no.such:rule"], [int]),
        "output": (5, {"type": "nonsense"}, {"properties": 5}, {"$ref": "#/nowhere"}, {"pattern": "("}, int),
        "transforms": (5, ["nobody"]),
        "max_steps": (0, -1, 10**6, "x", math.nan),
        "temperature": (math.nan, math.inf, "hot", 1e308),
        "max_output_tokens": (0, -5, 10**5000, 1.5),
        "stop_sequences": ("x", [5], ["\ud800"]),
        "seed": (1.5, 10**5000, "x"),
        "headers": ({"a\nb": "c"}, {"a": "b\r\nc: d"}, {"a": 5}, {"é": "ü"}, {"\ud800": "x"}, "x"),
        "timeout": (0, -1, math.nan, math.inf, 10**400, "soon"),
        "chat_stream_stall_timeout": (-1, math.nan, math.inf),
        "provider_options": (5, {"x": math.nan}, {"x": object()}, circle(), {1: 2}, {"x": nested(300)}),
        "metadata": (5, {"x": {1, 2}}, {"x": "\x00"}),
        "no_such_field": (1,),
    }
    for name, values in fields.items():
        for number, value in enumerate(values):
            yield f"TurnConfig {name} {number}", partial(TurnConfig, **{name: value})


def _decisions() -> Iterator[tuple[str, str, Callable[[], Any]]]:
    words = (5, None, "\ud800", "nul\x00", "", HUGE, b"x")
    yield from (("before_turn", f"Block {n}", partial(Block, word)) for n, word in enumerate(words))
    yield from (("before_tool_call", f"Block {n}", partial(Block, word)) for n, word in enumerate(words))
    inputs: tuple[Any, ...] = ([1], {1: 2}, {"text": 5}, {"text": "\ud800"}, {"text": "\x00"}, circle(), {"text": HUGE})
    yield from (("before_tool_call", f"Allow {n}", partial(Allow, given)) for n, given in enumerate(inputs))
    times: tuple[Any, ...] = (math.nan, 0, -1, math.inf, "x", None, 1e30, 10**400, -math.inf, b"1")
    yield from (("before_tool_call", f"Ask {n}", partial(Ask, "?", seconds)) for n, seconds in enumerate(times))
    yield from (("before_tool_call", f"Ask {word!r}", partial(Ask, word)) for word in (5, None, b"x"))
    for number, value in enumerate((*NO_JSON[::3], HUGE)):
        yield "before_tool_call", f"Substitute {number}", partial(Substitute, value)
        yield "after_tool_call", f"Replace {number}", partial(Replace, value)


def _errors() -> Iterator[tuple[str, str, Callable[[], Any]]]:
    words: tuple[Any, ...] = (5, None, "\ud800", "nul\x00", "", HUGE, Unprintable())
    for number, word in enumerate(words):
        yield "on_chat_error", f"TurnError type {number}", partial(TurnError, word, "message")
        yield "on_chat_error", f"TurnError message {number}", partial(TurnError, "type", word)
        yield "on_chat_error", f"Exception {number}", partial(ValueError, word)
        yield "classify_chat_error", f"word {number}", lambda word=word: word  # type: ignore[misc]
    yield "on_chat_error", "Mute", Mute
    yield "classify_chat_error", "NextModel", partial(NextModel, 5)  # type: ignore[arg-type]
    points = ("before_turn", "before_step", "on_chunk", "before_tool_call", "after_tool_call", "on_step_finish")
    for place, point in enumerate((*points, "on_chat_error", "classify_chat_error")):
        errors = (
            Mute(),
            SystemExit(3),
            ValueError("\ud800"),
            asyncio.CancelledError(),
            ValueError(HUGE),
            GeneratorExit(),
        )
        for error in errors[place % 2 :: 2]:
            yield point, f"raises {type(error).__name__}", raises(error)


def answers() -> list[tuple[str, str, Callable[[], Any]]]:
    """Point, what is wrong, and the answer."""
    return [*(("before_turn", what, config) for what, config in _configs()), *_decisions(), *_errors()]


def can_be_made(answer: Callable[[], Any]) -> bool:
    """False if already the attempt to make the answer is one clear error."""
    try:
        answer()
    except ValueError as error:
        return not 0 < len(str(error)) < 3000
    except BaseException:
        return True
    return True
