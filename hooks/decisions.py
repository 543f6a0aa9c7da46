"""What a hook may answer. All answers are frozen; None always means "leave it as it is"."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator

from everturn.turns import JsonDict


class Config(BaseModel):
    """What `TurnConfig` and `StepConfig` share: only the fields that are set count."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=False)

    def merged(self, later: Self) -> Self:
        """Field by field, later wins; `active_tools` only narrows."""
        changes = {name: getattr(later, name) for name in later.changed}
        mine: list[str] | None = getattr(self, "active_tools", None)
        theirs: list[str] | None = changes.get("active_tools")
        if mine is not None and theirs is not None:
            changes["active_tools"] = [name for name in mine if name in theirs]
        return self.model_copy(update=changes)

    @property
    def changed(self) -> list[str]:
        """Names of the fields that this answer sets."""
        return sorted(name for name in self.model_fields_set if getattr(self, name) is not None)

    def as_json(self) -> JsonDict:
        return self.model_dump(mode="json", include=set(self.changed))


class TurnConfig(Config):
    """Answer of `before_turn`: settings for this turn only. Fields left out stay as the agent has them.

    system replaces the agent's instructions. messages replaces what the model sees (OpenAI chat format); the stored
    transcript stays. active_tools: names the model may use. timeout and chat_stream_stall_timeout: seconds, for one
    model call and for the silence between two chunks (0 = off). provider_options: passed to the provider as they are.
    metadata: stored with the turn.
    """

    model: str | None = None
    system: str | None = None
    messages: list[dict[str, Any]] | None = None
    active_tools: list[str] | None = None
    tool_choice: str | dict[str, Any] | None = None
    max_steps: int | None = Field(default=None, ge=1, le=1000)
    send_reasoning: bool | None = None
    chat_stream_stall_timeout: float | None = Field(default=None, ge=0)
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    stop_sequences: list[str] | None = None
    seed: int | None = None
    headers: dict[str, str] | None = None
    timeout: float | None = Field(default=None, gt=0)
    provider_options: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None

    @field_validator("temperature", "top_p")
    @classmethod
    def _finite(cls, value: float | None) -> float | None:
        if value is not None and not math.isfinite(value):
            raise ValueError("must be a finite number")
        return value


class StepConfig(Config):
    """Answer of `before_step`: settings for this one model call."""

    model: str | None = None
    system: str | None = None
    messages: list[dict[str, Any]] | None = None
    active_tools: list[str] | None = None
    tool_choice: str | dict[str, Any] | None = None
    provider_options: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Refuses. In `before_turn`: no model call, `reason` is the reply. In `before_tool_call`: the tool does not run,
    `reason` is its result."""

    reason: str = "This request was declined."


@dataclass(frozen=True, slots=True)
class Allow:
    """Lets a tool call run; with `input`, runs it with these arguments instead (validated again)."""

    input: JsonDict | None = None


@dataclass(frozen=True, slots=True)
class Substitute:
    """Does not run the tool; `output` is its result."""

    output: Any


@dataclass(frozen=True, slots=True)
class Replace:
    """Answer of `after_tool_call`: the model and clients see `output`; the tool's own output stays stored."""

    output: Any


APPROVAL_TIMEOUT = 7 * 86400.0
"""Seconds that a turn waits for a person before silence counts as a denial."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A person has to approve the call before it runs, by `ChatClient.approve`. timeout: seconds; then it is denied."""

    reason: str = ""
    timeout: float = APPROVAL_TIMEOUT


ToolDecision = Allow | Ask | Block | Substitute
