"""Text and reasoning blocks of one step: their parts as stored and their events as streamed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from everturn.activities.models.clean import Cleaner
from everturn.chunks import (
    REASONING_DELTA,
    REASONING_END,
    REASONING_START,
    TEXT_DELTA,
    TEXT_END,
    TEXT_START,
    Event,
)
from everturn.messages import Part
from everturn.turns import JsonDict

THINKING_KEY = "thinkingBlocks"
"""Where a reasoning part keeps the provider's signed blocks: `providerMetadata[THINKING_KEY]`."""

_EVENTS = {
    "text": (TEXT_START, TEXT_DELTA, TEXT_END),
    "reasoning": (REASONING_START, REASONING_DELTA, REASONING_END),
}


class BlockWriter:
    """At most one block is open; another kind of content closes it. Ids are t0, t1, … and r0, r1, …"""

    def __init__(self, *, send_reasoning: bool) -> None:
        self.parts: list[Part] = []
        self.has_text = False
        self._send_reasoning = send_reasoning
        self._open: Part | None = None
        self._started = False
        self._cleaner = Cleaner()
        self._counts = {"text": 0, "reasoning": 0}
        self._referenced: set[str] = set()

    def text(self, piece: str) -> list[Event]:
        return self._grow("text", piece)

    def reasoning(self, piece: str, thinking: Sequence[JsonDict]) -> list[Event]:
        """Adds reasoning, and fragments of the provider's signed blocks to the same part."""
        events = self._grow("reasoning", piece)
        if thinking and self._open is not None:
            metadata = self._open.setdefault("providerMetadata", {THINKING_KEY: []})
            for fragment in thinking:
                _merge_fragment(metadata[THINKING_KEY], fragment)
        return events

    def call(self, call_id: str) -> list[Event]:
        """Notes where a tool call stands among the parts, once."""
        if call_id in self._referenced:
            return []
        self._referenced.add(call_id)
        events = self._end()
        self.parts.append({"type": "tool-call", "toolCallId": call_id})
        return events

    def close(self) -> list[Event]:
        events = self._end()
        for part in self.parts:
            for block in part.get("providerMetadata", {}).get(THINKING_KEY, []):
                block.pop("index", None)
        return events

    def _grow(self, kind: Literal["text", "reasoning"], piece: str) -> list[Event]:
        events: list[Event] = []
        if self._open is None or self._open["type"] != kind:
            events += self._end()
            self._open = {"type": kind, "text": ""}
            self.parts.append(self._open)
        return [*events, *self._write(kind, self._cleaner.feed(piece))]

    def _write(self, kind: str, text: str) -> list[Event]:
        if not text or self._open is None:
            return []
        self._open["text"] += text
        self.has_text = self.has_text or kind == "text"
        if kind == "reasoning" and not self._send_reasoning:
            return []
        start, delta, _ = _EVENTS[kind]
        block = {"id": self._id(kind)}
        opening = [] if self._started else [Event(start, block)]
        self._started = True
        return [*opening, Event(delta, {**block, "delta": text})]

    def _end(self) -> list[Event]:
        if self._open is None:
            return []
        kind = str(self._open["type"])
        events = self._write(kind, self._cleaner.rest())
        if self._started:
            events.append(Event(_EVENTS[kind][2], {"id": self._id(kind)}))
            self._counts[kind] += 1
        self._open, self._started = None, False
        return events

    def _id(self, kind: str) -> str:
        return f"{kind[0]}{self._counts[kind]}"


def _merge_fragment(blocks: list[JsonDict], fragment: JsonDict) -> None:
    """Adds a fragment to the block of the same index; text and signature grow, all else is kept as it came."""
    index = fragment.get("index", len(blocks) - 1 if blocks else 0)
    block = next((b for b in blocks if b.get("index") == index and b.get("type") == fragment.get("type")), None)
    if block is None:
        blocks.append({**fragment, "index": index})
        return
    for key in ("thinking", "signature"):
        if fragment.get(key):
            block[key] = block.get(key, "") + fragment[key]
