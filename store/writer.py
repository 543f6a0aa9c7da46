"""The writing end of a stream: `put` never blocks, the group commit writes."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from everturn.chunks import REASONING_DELTA, TEXT_DELTA, TOOL_INPUT_DELTA, Event
from everturn.errors import EverturnError, StoreUnavailable
from everturn.store.encoding import encode
from everturn.store.events import PreparedBatch, PreparedEvent, prepare

if TYPE_CHECKING:
    from everturn.store.group import GroupCommit, Haste

MAX_PENDING: Final = 16 * 1024 * 1024
"""Characters that may wait for a slow store; more than any reply, so only a store that is down gets there."""
_EVENT_COST: Final = 200  # what an event weighs beside its data
_DELTAS: Final = {
    TEXT_DELTA: ("id", "delta"),
    REASONING_DELTA: ("id", "delta"),
    TOOL_INPUT_DELTA: ("toolCallId", "inputTextDelta"),
}


@dataclass(slots=True)
class _Delta:
    """Consecutive deltas of one block, waiting to become one event."""

    type: str
    block: str
    pieces: list[str] = field(default_factory=list[str])

    def prepared(self) -> PreparedEvent:
        id_key, text_key = _DELTAS[self.type]
        return PreparedEvent(self.type, encode({id_key: self.block, text_key: "".join(self.pieces)}))


class StreamWriter:
    """Writes the chunks of one attempt of a model step, or of one tool. `put` may be called from any thread.

    After the writer was fenced (a later attempt was opened, or the turn is over) everything put is dropped.
    """

    def __init__(self, group: GroupCommit, request_id: str, step: int | None, attempt: int | None) -> None:
        self.request_id = request_id
        self._group = group
        self._step, self._attempt = step, attempt
        self._lock = threading.Lock()
        self._pending: list[PreparedEvent | _Delta] = []
        self._size = 0
        self._in_flight = False
        self._seen_content = False
        self._fenced = False
        self._error: EverturnError | None = None

    @property
    def fenced(self) -> bool:
        """True once a write was refused."""
        return self._fenced

    def put(self, event: Event) -> None:
        """Adds an event behind those before it; raises BadInput if its data have no JSON form."""
        delta = _delta_of(event)
        piece = prepare(event) if delta is None else delta
        with self._lock:
            if self._fenced or self._error is not None:
                return
            self._add(piece)
            if self._size > MAX_PENDING:
                self._fail(StoreUnavailable(self._group.store, f"it is too slow: {self._size:,} characters wait"))
                return
            haste = self._haste(event.type)
        self._group.wake(self, haste)

    async def drain(self) -> bool:
        """Waits until everything put so far is stored; False if the writer is fenced. Raises StoreUnavailable."""
        while self._is_busy():
            done = self._group.round_done()
            self._group.wake(self, "now")
            if self._error is not None:
                break
            await done
        if self._error is not None:
            raise self._error
        return not self._fenced

    async def rest(self) -> list[PreparedEvent] | None:
        """Takes over what no batch has, for the caller to write; None if the writer is fenced. Raises StoreUnavailable.

        Nothing may be put from then on.
        """
        while self._in_flight:
            await self._group.round_done()
        with self._lock:
            if self._error is not None:
                raise self._error
            return None if self._fenced else self._emptied()

    def take(self) -> PreparedBatch | None:
        """For the group commit: all that waits, as one batch that is now under way; None if nothing does."""
        with self._lock:
            events = self._emptied()
            if not events:
                return None
            self._in_flight = True
        return PreparedBatch(self.request_id, events, self._step, self._attempt)

    def written(self, accepted: bool) -> None:
        """For the group commit: the batch under way was stored, or refused."""
        with self._lock:
            self._in_flight = False
            if not accepted:
                self._fenced = True
                self._pending.clear()

    def lost(self, error: EverturnError) -> None:
        """For the group commit: the batch under way could not be stored; the stream has a hole and must not go on."""
        with self._lock:
            self._in_flight = False
            self._fail(error)

    def _emptied(self) -> list[PreparedEvent]:
        pieces, self._pending, self._size = self._pending, [], 0
        return [piece.prepared() if isinstance(piece, _Delta) else piece for piece in pieces]

    def _fail(self, error: EverturnError) -> None:
        self._error = error
        self._pending.clear()

    def _is_busy(self) -> bool:
        with self._lock:
            return bool(self._pending) or self._in_flight

    def _add(self, piece: PreparedEvent | _Delta) -> None:
        if isinstance(piece, PreparedEvent):
            self._size += _EVENT_COST + len(piece.data)
            self._pending.append(piece)
            return
        self._size += len(piece.pieces[0])
        last = self._pending[-1] if self._pending else None
        if isinstance(last, _Delta) and last.type == piece.type and last.block == piece.block:
            last.pieces += piece.pieces
            return
        self._size += _EVENT_COST
        self._pending.append(piece)

    def _haste(self, kind: str) -> Haste:
        """A reader should see the first content, and every tool event, at once; where a block begins or ends shows
        nothing."""
        if kind not in _DELTAS:
            return "now" if kind.startswith(("tool-", "data-")) else "later"
        first = not self._seen_content
        self._seen_content = True
        return "now" if first else "soon"


def _delta_of(event: Event) -> _Delta | None:
    """The event as a mergeable delta; None if it is another one, or carries more than its text."""
    keys = _DELTAS.get(event.type)
    if keys is None or len(event.data) != len(keys):
        return None
    block, text = (event.data.get(key) for key in keys)
    if not isinstance(block, str) or not isinstance(text, str):
        return None
    return _Delta(event.type, block, [text])
