"""One model call, folded from its deltas: pure, the same for every provider."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from everturn.activities.models.blocks import BlockWriter
from everturn.activities.models.calls import CallAssembler, OpenCall, parse_arguments
from everturn.activities.models.clean import clean
from everturn.activities.models.failures import ModelFailure
from everturn.activities.models.types import Delta
from everturn.chunks import Event
from everturn.messages import Part, text_of
from everturn.store.records import ToolCall
from everturn.turns import JsonDict, Usage

MAX_EQUAL_CHUNKS = 100
"""No answer has the same piece more often in a row; a model that does is caught in a loop and would never stop."""
MAX_WORD = 200
"""Characters of a finish reason, of an answer's id or of a served model's name; no real one is longer."""
INTERRUPTED = "interrupted"
"""Finish reason of a step that was cancelled before the model finished."""
REFUSAL_TEXT = "The model declined to answer this request."
"""Shown when a provider's filter stopped an answer before its first word."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One model call as it ended.

    parts: text, reasoning and tool-call references in the order in which the model produced them. finish_reason: as
    reported. truncated: the output limit cut the tool calls; none of them has an `input`, none may run. refused: the
    model or the provider's filter declined. response: id, served model and the provider's own fields. events: the last
    events of the stream, which close what is open.
    """

    parts: list[Part]
    calls: list[ToolCall]
    finish_reason: str
    usage: Usage
    truncated: bool = False
    refused: bool = False
    response: JsonDict = field(default_factory=dict[str, object])
    events: tuple[Event, ...] = ()

    @property
    def text(self) -> str:
        return text_of(self.parts)

    @property
    def empty(self) -> bool:
        """Neither text nor a call: the model said nothing."""
        return not self.calls and not self.text.strip()


class Accumulator:
    """Takes the deltas of one step; gives stream events on the way and the completion at the end.

    step: number of the step, from 0. max_output_tokens: the limit that was sent, to recognise a cut answer.
    taken: ids of earlier calls of the turn; a provider that uses one again gets a fresh id for the new call.
    """

    def __init__(
        self,
        step: int = 0,
        *,
        send_reasoning: bool = True,
        max_output_tokens: int | None = None,
        taken: Collection[str] = (),
    ) -> None:
        self._step, self._limit = step, max_output_tokens
        self._blocks = BlockWriter(send_reasoning=send_reasoning)
        self._assembler = CallAssembler(taken)
        self._finish: str | None = None
        self._usage = Usage()
        self._refused = False
        self._response: JsonDict = {}
        self._last_chunk = ""
        self._equal_chunks = 0

    def feed(self, delta: Delta) -> list[Event]:
        """The stream events that this delta causes. Raises ModelFailure when the model repeats itself without end."""
        self._note(delta)
        self._watch_repetition(delta)
        events: list[Event] = []
        if delta.reasoning or delta.thinking:
            events += self._blocks.reasoning(delta.reasoning or "", delta.thinking or [])
        if delta.text or delta.refusal:
            self._refused = self._refused or bool(delta.refusal)
            events += self._blocks.text((delta.text or "") + (delta.refusal or ""))
        for piece in delta.calls:
            call, caused = self._assembler.feed(piece)
            events += [*self._blocks.call(call.id), *caused]
        return events

    def close(self) -> Completion:
        """The finished step. Raises ModelFailure (transient, `incomplete_stream`) if no finish reason came."""
        if self._finish is None:
            raise ModelFailure(
                "transient", "incomplete_stream", "the model's stream ended before its answer was complete"
            )
        opening: list[Event] = []
        filtered = self._finish == "content_filter"
        if filtered and not self._blocks.has_text and not self._assembler.calls:
            opening = self._blocks.text(REFUSAL_TEXT)
        return self._completed(self._finish, opening, refused=self._refused or filtered)

    def partial(self) -> Completion:
        """What had arrived of a step that was interrupted: its calls have no `input`, none may run."""
        return self._completed(INTERRUPTED, [], refused=self._refused)

    def _completed(self, finish: str, opening: list[Event], *, refused: bool) -> Completion:
        events = [*opening, *self._assembler.flush(), *self._blocks.close()]
        calls = self._assembler.calls
        inputs = [parse_arguments(call.arguments) for call in calls]
        truncated = bool(calls) and (finish in ("length", INTERRUPTED) or (None in inputs and self._at_limit()))
        return Completion(
            parts=self._blocks.parts,
            calls=[
                self._call(call, position, None if truncated else parsed)
                for position, (call, parsed) in enumerate(zip(calls, inputs, strict=True))
            ],
            finish_reason=finish,
            usage=self._usage,
            truncated=truncated,
            refused=refused,
            response=self._response,
            events=tuple(events),
        )

    def _call(self, call: OpenCall, position: int, parsed: JsonDict | None) -> ToolCall:
        raw = call.arguments if parsed is None else None
        return ToolCall(call.id, call.name, self._step, position, parsed, raw, call.provider)

    def _at_limit(self) -> bool:
        return self._limit is not None and self._usage.output_tokens >= self._limit

    def _note(self, delta: Delta) -> None:
        self._finish = clean(delta.finish)[:MAX_WORD] if delta.finish else self._finish
        self._usage = delta.usage or self._usage
        facts = {"id": delta.response_id, "model": delta.model}
        self._response |= {name: clean(fact)[:MAX_WORD] for name, fact in facts.items() if fact}
        if delta.provider:
            self._response["provider"] = {**self._response.get("provider", {}), **delta.provider}

    def _watch_repetition(self, delta: Delta) -> None:
        chunk = delta.text or delta.reasoning or delta.refusal or ""
        if not chunk:
            return
        self._equal_chunks = self._equal_chunks + 1 if chunk == self._last_chunk else 1
        self._last_chunk = chunk
        if self._equal_chunks > MAX_EQUAL_CHUNKS:
            raise ModelFailure(
                "transient",
                "repeated_chunk",
                f"the model repeated the same piece of text more than {MAX_EQUAL_CHUNKS} times in a row",
                detail=chunk[:200],
            )
