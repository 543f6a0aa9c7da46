"""Correct answers in unusual dress: nothing may be lost and nothing may break."""

from __future__ import annotations

from collections.abc import Iterator

from everturn.activities.scripted.ask import Ask, BadScript, Script
from everturn.activities.scripted.moves import Data, Finish, Move, Raw, Refuse, Say, Style
from everturn.turns import JsonDict

_WORDS = ("Grüße ", "aus ", "Köln ", "🚲 ", "東京")
ODD_TEXT = "".join(_WORDS)
"""What every `odd` answer says, whatever its dress."""


def odd(_ask: Ask, script: Script) -> Iterator[Move]:
    """kind=empty_choices|null_delta|after_finish|comments|split_utf8|crlf|bad_line: always says the same text."""
    kind = script.text("kind", "empty_choices")
    maker = _KINDS.get(kind)
    if maker is None:
        raise BadScript(f"no oddity is named {kind!r}; use one of {', '.join(_KINDS)}")
    yield from maker()


def _with(between: Move) -> Iterator[Move]:
    for word in _WORDS:
        yield between
        yield Say(word)
    yield between
    yield Finish("stop")


def _empty_choices() -> Iterator[Move]:
    return _with(_chunk([]))


def _null_delta() -> Iterator[Move]:
    delta = {"role": None, "content": None, "tool_calls": None}
    return _with(_chunk([{"index": 0, "delta": delta, "finish_reason": None}]))


def _chunk(choices: list[JsonDict]) -> Data:
    head: JsonDict = {"id": "chatcmpl-odd", "object": "chat.completion.chunk", "created": 1, "model": "odd"}
    return Data({**head, "choices": choices})


def _after_finish() -> Iterator[Move]:
    yield from (Say(word) for word in _WORDS[:-1])
    yield Finish("stop")
    yield Say(_WORDS[-1])


def _comments() -> Iterator[Move]:
    return _with(Raw(b": still here\n\n:\n\n"))


def _split_utf8() -> Iterator[Move]:
    yield Style(split=True)
    yield from (Say(word) for word in _WORDS)
    yield Finish("stop")


def _crlf() -> Iterator[Move]:
    yield Style(newline="\r\n")
    yield from (Say(word) for word in _WORDS)
    yield Finish("stop")


def _bad_line() -> Iterator[Move]:
    yield Say(_WORDS[0])
    yield Raw(b"data: {not json\n\n")


_KINDS = {
    "empty_choices": _empty_choices,
    "null_delta": _null_delta,
    "after_finish": _after_finish,
    "comments": _comments,
    "split_utf8": _split_utf8,
    "crlf": _crlf,
    "bad_line": _bad_line,
}


def empty(_ask: Ask, script: Script) -> Iterator[Move]:
    """Neither text nor call, and finish=stop."""
    yield Finish(script.text("finish", "stop"))


def refusal(_ask: Ask, script: Script) -> Iterator[Move]:
    """A refusal as OpenAI streams it: text=…, in two deltas."""
    said = script.text("text", "I can't help with that.")
    half = len(said) // 2
    yield from (Refuse(said[:half]), Refuse(said[half:]), Finish("stop"))


def content_filter(_ask: Ask, script: Script) -> Iterator[Move]:
    """text=… (may be empty) and then finish reason `content_filter`."""
    if script.text("text"):
        yield Say(script.text("text"))
    yield Finish("content_filter")


SCENARIOS = {"odd": odd, "empty": empty, "refusal": refusal, "content_filter": content_filter}
