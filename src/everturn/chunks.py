"""The stream's vocabulary: the AI SDK's UI message chunks and a few of our own.

A stream is numbered from 1 without gaps and has exactly one end: `finish`, `abort` or `error`, always the last chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

START: Final = "start"
START_STEP: Final = "start-step"
FINISH_STEP: Final = "finish-step"
TEXT_START: Final = "text-start"
TEXT_DELTA: Final = "text-delta"
TEXT_END: Final = "text-end"
REASONING_START: Final = "reasoning-start"
REASONING_DELTA: Final = "reasoning-delta"
REASONING_END: Final = "reasoning-end"
TOOL_INPUT_START: Final = "tool-input-start"
TOOL_INPUT_DELTA: Final = "tool-input-delta"
TOOL_INPUT_AVAILABLE: Final = "tool-input-available"
TOOL_OUTPUT_AVAILABLE: Final = "tool-output-available"
TOOL_OUTPUT_ERROR: Final = "tool-output-error"
TOOL_APPROVAL_REQUEST: Final = "tool-approval-request"
FINISH: Final = "finish"
ABORT: Final = "abort"
ERROR: Final = "error"
RESET: Final = "data-reset"
"""The attempt named in `data` is void: a client drops the text of that step."""
RETRYING: Final = "data-retrying"
QUEUED: Final = "data-queued"
JOINED: Final = "data-joined"
"""The message is answered by the turn that `data` names; what follows is that turn's stream."""
TOOL_PROGRESS: Final = "data-tool-progress"

END_TYPES: Final = frozenset({FINISH, ABORT, ERROR})


@dataclass(frozen=True, slots=True)
class Chunk:
    """One streamed piece of a turn.

    seq: position in the turn's stream, from 1. type: one of the names above. data: the fields of that type. step: the
    step it belongs to, None outside of steps. attempt: which try of that step wrote it, from 1; 0 outside of steps.
    """

    seq: int
    type: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    step: int | None = None
    attempt: int = 0

    @property
    def is_end(self) -> bool:
        return self.type in END_TYPES

    def as_json(self) -> dict[str, Any]:
        return {
            "seq": self.seq,
            "type": self.type,
            "step": self.step,
            "attempt": self.attempt,
            "data": dict(self.data),
        }


@dataclass(frozen=True, slots=True)
class Event:
    """A chunk before the store has given it its number."""

    type: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
