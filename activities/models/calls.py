"""Tool calls put together from fragments: by id where one is given, by index where none is."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, NoReturn, cast

from everturn.activities.models.clean import Cleaner, clean
from everturn.activities.models.types import CallDelta
from everturn.chunks import TOOL_INPUT_DELTA, TOOL_INPUT_START, Event
from everturn.errors import BadInput
from everturn.ids import is_id
from everturn.messages import dump_json
from everturn.turns import JsonDict

MAX_NAME: Final = 200
"""Characters of a tool's name: a longer one is no tool's, and not worth keeping."""


@dataclass(slots=True)
class OpenCall:
    """A call while it grows. generated: the provider gave no id, or one that cannot be used or that another call of the
    turn has. (Gemini's, by litellm, carry kilobytes of a signature, which stands in `provider`, too.)"""

    id: str
    index: int
    generated: bool
    name: str = ""
    arguments: str = ""
    provider: JsonDict | None = None
    started: bool = False
    cleaner: Cleaner = field(default_factory=Cleaner)


class CallAssembler:
    """The calls of one step in the order in which they began."""

    def __init__(self, taken: Collection[str] = ()) -> None:
        self.calls: list[OpenCall] = []
        self._taken = set(taken)
        self._by_id: dict[str, OpenCall] = {}
        self._by_place: dict[tuple[str, int], OpenCall] = {}
        self._by_index: dict[int, OpenCall] = {}

    def feed(self, delta: CallDelta) -> tuple[OpenCall, list[Event]]:
        """The call that a fragment belongs to, and the events that it causes."""
        call = self._find(delta) or self._open(delta)
        if delta.id:
            self._by_id[delta.id] = self._by_place[delta.id, delta.index] = call
        self._by_index[delta.index] = call
        call.name = call.name or clean(delta.name or "")[:MAX_NAME]
        if delta.provider:
            call.provider = {**(call.provider or {}), **delta.provider}
        piece = call.cleaner.feed(delta.arguments)
        call.arguments += piece
        return call, self._events(call, piece)

    def flush(self) -> list[Event]:
        """The events of calls whose name never came: they start at the end, without one."""
        events: list[Event] = []
        for call in self.calls:
            call.arguments += call.cleaner.rest()
            if not call.started:
                call.started = True
                events += _start(call, call.arguments)
        return events

    def _find(self, delta: CallDelta) -> OpenCall | None:
        current = self._by_index.get(delta.index)
        if delta.id:
            return self._by_place.get((delta.id, delta.index)) or self._by_late_clue(delta, current)
        if current is not None and delta.name and current.arguments and parse_arguments(current.arguments) is not None:
            return None  # a name after complete arguments begins the next call of a provider that sends no ids
        return current

    def _by_late_clue(self, delta: CallDelta, current: OpenCall | None) -> OpenCall | None:
        """A nameless fragment continues a call: the one of its id, or the one at its index that waits for an id."""
        if delta.name:
            return None
        waits = current is not None and current.generated and not any(c is current for c in self._by_id.values())
        return self._by_id.get(delta.id or "") or (current if waits else None)

    def _open(self, delta: CallDelta) -> OpenCall:
        given = delta.id or ""
        generated = not is_id(given) or given in self._taken
        call = OpenCall(f"call_{uuid.uuid4().hex[:24]}" if generated else given, delta.index, generated)
        self._taken.add(call.id)
        self.calls.append(call)
        return call

    def _events(self, call: OpenCall, piece: str) -> list[Event]:
        if call.started:
            return [_input_delta(call, piece)] if piece else []
        if not call.name:
            return []
        call.started = True
        return _start(call, call.arguments)


def parse_arguments(text: str) -> JsonDict | None:
    """The arguments of a call; an empty text means none. None if the text is not one JSON object that can be stored."""
    if not text.strip():
        return {}
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant)
        if not isinstance(value, dict):
            return None
        dump_json(cast(object, value), "the arguments")
    except (ValueError, RecursionError, BadInput):
        return None
    return cast(JsonDict, value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _start(call: OpenCall, arguments: str) -> list[Event]:
    start = Event(TOOL_INPUT_START, {"toolCallId": call.id, "toolName": call.name})
    return [start, _input_delta(call, arguments)] if arguments else [start]


def _input_delta(call: OpenCall, text: str) -> Event:
    return Event(TOOL_INPUT_DELTA, {"toolCallId": call.id, "inputTextDelta": text})
