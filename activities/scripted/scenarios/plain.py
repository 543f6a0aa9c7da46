"""Well-behaved answers."""

from __future__ import annotations

import json
from collections.abc import Iterator

from everturn.activities.scripted.ask import Ask, Script, answer_schema
from everturn.activities.scripted.moves import Finish, Move, Open, Pause, Say
from everturn.activities.scripted.schemas import sample_value


def words(count: int, start: int = 1) -> Iterator[str]:
    """Numbered words, so that doubles and gaps show: `w0001 w0002 …`."""
    return (f"w{number:04d} " for number in range(start, start + count))


def text(_ask: Ask, script: Script) -> Iterator[Move]:
    """tokens=20, delay_ms=0 between chunks, first_ms=0 before the first, finish=stop."""
    first = script.number("first_ms", 0) / 1000
    if first:
        yield from (Open(), Pause(first))
    yield from spoken(words(script.count("tokens", 20)), script)
    yield Finish(script.text("finish", "stop"))


def ok(_ask: Ask, _script: Script) -> Iterator[Move]:
    """The word `ok`."""
    yield from (Say("ok"), Finish("stop"))


def say(_ask: Ask, script: Script) -> Iterator[Move]:
    """text=…, word by word, delay_ms=0, finish=stop."""
    yield from spoken(split_words(script.text("text", "hello")), script)
    yield Finish(script.text("finish", "stop"))


def echo(ask: Ask, script: Script) -> Iterator[Move]:
    """The user's text, word by word, delay_ms=0."""
    yield from spoken(split_words(ask.user_text or "(nothing was said)"), script)
    yield Finish("stop")


def structured(ask: Ask, _script: Script) -> Iterator[Move]:
    """JSON that fits the schema of the request's response_format; `{}` without one."""
    schema = answer_schema(ask) or {}
    yield from (Say(json.dumps(sample_value(schema, ask.user_text, schema))), Finish("stop"))


def spoken(pieces: Iterator[str], script: Script) -> Iterator[Move]:
    """Pieces of text with the script's delay_ms between them."""
    delay = script.number("delay_ms", 0) / 1000
    for number, piece in enumerate(pieces):
        if number and delay:
            yield Pause(delay)
        yield Say(piece)


def split_words(sentence: str) -> Iterator[str]:
    """The words of a text, each with the blanks that follow it."""
    start = 0
    for position in range(1, len(sentence)):
        if sentence[position - 1].isspace() and not sentence[position].isspace():
            yield sentence[start:position]
            start = position
    if sentence:
        yield sentence[start:]


SCENARIOS = {"text": text, "ok": ok, "say": say, "echo": echo, "structured": structured}
