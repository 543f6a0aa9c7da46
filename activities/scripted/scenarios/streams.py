"""Streams that end early, stall, drip or repeat themselves."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from everturn.activities.scripted.ask import Ask, BadScript, Script
from everturn.activities.scripted.moves import CallPart, Cut, Finish, Move, Open, Pause, Raw, Say
from everturn.activities.scripted.scenarios.plain import spoken, words

_FLUSH_SECONDS = 0.03  # a reset may overtake bytes that wait in a buffer: give them time to be read
_ENDS = {"eof": Cut("eof"), "done": Cut("done"), "fin": Cut("fin"), "reset": Cut("reset")}
ENDLESS = frozenset({"stall"})
"""Scenarios whose moves never end, to be played lazily."""


_DROPS: dict[str, Move] = {"comments": Raw(b": keep-alive\n\n"), "empty": Say("")}
_STALLS = ("nothing", "silence", "drip", *_DROPS)


def cut(_ask: Ask, script: Script) -> Iterator[Move]:
    """tokens=3 words, inside=text|call, then the end without a finish reason: how=eof|done|fin|reset."""
    how = script.text("how", "eof")
    end = _ENDS.get(how)
    if end is None:
        raise BadScript(f"no way to cut a stream is named {how!r}; use one of {', '.join(_ENDS)}")
    yield from spoken(words(script.count("tokens", 3)), script)
    if script.text("inside", "text") == "call":
        yield CallPart(0, "call_cut", script.text("tool", "get_weather"), '{"city": "Par')
    yield Pause(_FLUSH_SECONDS)
    yield end


def stall(_ask: Ask, script: Script) -> Iterator[Move]:
    """tokens=0 words, then for ever: kind=nothing (no byte, no head either), silence (the head is sent), or
    every every_ms=50: comments (a keep-alive comment), empty (a chunk with an empty delta), drip (a word)."""
    kind, tokens, every = script.text("kind", "silence"), script.count("tokens", 0), script.number("every_ms", 50)
    if kind not in _STALLS:
        raise BadScript(f"no kind of stall is named {kind!r}; use one of {', '.join(_STALLS)}")
    return _stalled(kind, spoken(words(tokens), script), every / 1000)


def _stalled(kind: str, before: Iterator[Move], every: float) -> Iterator[Move]:
    yield from before
    if kind == "nothing":
        yield Pause(None)
    yield Open()
    if kind == "silence":
        yield Pause(None)
    for number in count(1):
        yield Say(f"d{number:04d} ") if kind == "drip" else _DROPS[kind]
        yield Pause(every)


def repeat(_ask: Ask, script: Script) -> Iterator[Move]:
    """The same chunk count=200 times: text=`again `, delay_ms=0; then a correct end."""
    yield from spoken((script.text("text", "again ") for _ in range(script.count("count", 200))), script)
    yield Finish("stop")


SCENARIOS = {"cut": cut, "stall": stall, "repeat": repeat}
