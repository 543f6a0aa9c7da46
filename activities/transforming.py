"""Applies a turn's chunk transforms to one model call: to what is streamed, and to what is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from everturn.activities.models.blocks import THINKING_KEY
from everturn.activities.tool_values import POINT, ToolValues
from everturn.checks import said, shown
from everturn.chunks import REASONING_DELTA, REASONING_END, REASONING_START, TEXT_DELTA, Chunk, Event
from everturn.hooks.log import cut
from everturn.hooks.registry import RegisteredAgent
from everturn.hooks.transforms import TRANSFORMED, ChunkFunction, ChunkTransform, opened
from everturn.messages import Part
from everturn.store.encoding import dump
from everturn.store.records import HookTrace
from everturn.turns import JsonDict

MAX_MESSAGE_BYTES = 2000


@dataclass
class _Link:
    """One transform at work. dropped: chunks lost to its failures."""

    name: str
    source: ChunkTransform
    function: ChunkFunction
    dropped: int = 0
    failure: str = ""

    def apply(self, chunk: Chunk) -> list[Chunk]:
        try:
            return _as_chunks(self.function(chunk))
        except Exception as error:  # an unchecked chunk must not get through, whatever the author's code does
            self.dropped += 1
            self.failure = self.failure or cut(f"{type(error).__name__}: {said(error)}", MAX_MESSAGE_BYTES)
            return []


@dataclass
class TransformChain:
    """The transforms of one attempt, in order. Knows afterwards what each text block came to."""

    request_id: str
    step: int
    attempt: int
    links: list[_Link] = field(default_factory=list[_Link])
    values: ToolValues = field(default_factory=ToolValues)
    _texts: dict[str, str] = field(default_factory=dict[str, str])
    _seq: int = 0

    @classmethod
    def of(
        cls, agent: RegisteredAgent, names: Sequence[str], request_id: str, step: int, attempt: int
    ) -> TransformChain:
        """Raises UnresolvedReference for a name that the agent does not have on this worker."""
        values = ToolValues.of(agent, names)
        links = [_Link(name, agent.transforms[name], opened(agent.transforms[name])) for name in names]
        return cls(request_id, step, attempt, links, values)

    def apply(self, event: Event) -> list[Event]:
        """What is shown in place of an event."""
        if not self.links or event.type not in TRANSFORMED:
            return [event]
        self._seq += 1
        chunks = [Chunk(self._seq, event.type, dict(event.data), self.step, self.attempt)]
        for link in self.links:
            chunks = [after for before in chunks for after in link.apply(before)]
        for chunk in chunks:
            if chunk.type in (TEXT_DELTA, REASONING_DELTA):
                block = str(chunk.data.get("id"))
                self._texts[block] = self._texts.get(block, "") + str(chunk.data.get("delta", ""))
        return [Event(chunk.type, chunk.data) for chunk in chunks]

    def parts(self, parts: list[Part], *, reasoning_shown: bool) -> list[Part]:
        """The parts to store: text and reasoning as they were let through. To be called when all events were applied.

        Signed reasoning goes only if its text was changed: the signature would no longer fit.
        """
        if not self.links:
            return parts
        counts = {"text": 0, "reasoning": 0}
        kept: list[Part] = []
        for part in parts:
            kind = str(part.get("type"))
            if kind not in counts or not part.get("text"):
                kept.append(part)
                continue
            block = f"{kind[0]}{counts[kind]}"
            counts[kind] += 1
            if kind == "reasoning" and not reasoning_shown:
                self._let_through(block, str(part["text"]))
            kept += _rewritten(part, self._texts.get(block, ""))
        return kept

    @property
    def traces(self) -> list[HookTrace]:
        """One trace for each transform that failed."""
        return [
            HookTrace(
                self.request_id,
                POINT,
                link.name,
                "error",
                0,
                step=self.step,
                message=f"{link.dropped} chunks were dropped: {link.failure}",
            )
            for link in self.links
            if link.dropped
        ]

    def _let_through(self, block: str, text: str) -> None:
        """Reasoning that is stored and not shown passes the transforms as one block."""
        data: JsonDict = {"id": block}
        for event in (Event(REASONING_START, data), Event(REASONING_DELTA, {**data, "delta": text})):
            self.apply(event)
        self.apply(Event(REASONING_END, data))


def _as_chunks(answer: Chunk | Sequence[Chunk] | None) -> list[Chunk]:
    if answer is None:
        return []
    chunks = [answer] if isinstance(answer, Chunk) else list(answer)
    for chunk in cast(list[object], chunks):
        if not isinstance(chunk, Chunk):
            raise TypeError(f"returned {type(chunk).__name__}; a transform returns a Chunk, a list of them, or None")
        if not _may_be_shown(chunk.type) or not isinstance(cast(object, chunk.data), Mapping):
            raise TypeError(
                f"returned a chunk of type {shown(chunk.type)}; give one like those that came in, or data-…"
            )
        dump(dict(chunk.data))  # raises what nobody could store
    return chunks


def _may_be_shown(kind: object) -> bool:
    """A transform changes content and may add data; where steps and turns begin and end is not its business."""
    return isinstance(kind, str) and (kind in TRANSFORMED or kind.startswith("data-"))


def _rewritten(part: Part, text: str) -> list[Part]:
    if text == part["text"]:
        return [part]
    metadata = {key: value for key, value in part.get("providerMetadata", {}).items() if key != THINKING_KEY}
    plain = {key: value for key, value in part.items() if key != "providerMetadata"}
    return [{**plain, "text": text, **({"providerMetadata": metadata} if metadata else {})}] if text else []
