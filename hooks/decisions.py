"""What a hook may answer. All answers are frozen; None always means "leave it as it is"."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, cast

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, field_validator

from everturn.checks import check_seconds, shown
from everturn.errors import BadInput
from everturn.hooks.outputs import OutputSpec, output_spec
from everturn.hooks.references import reference_to
from everturn.hooks.stopping import StopCondition, StopRule, as_stored
from everturn.hooks.telemetry import Telemetry
from everturn.hooks.tools import Tool
from everturn.hooks.validity import check_headers
from everturn.turns import JsonDict


def _check_word(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise BadInput(f"{what} must be a text, not {shown(value)}")


def _as_list(given: Any) -> list[Any]:
    return list(cast(Sequence[Any], given)) if isinstance(given, list | tuple) else [given]


def _tool_references(given: Any) -> list[str] | None:
    if given is None:
        return None
    return [item if isinstance(item, str) else _tool_reference(item) for item in _as_list(given)]


def _tool_reference(item: Any) -> str:
    if not callable(item) or isinstance(item, type):
        raise ValueError(f"{item!r} is neither a function nor a Tool")  # noqa: TRY004 - pydantic collects ValueErrors
    return reference_to(item, "tool")


def _stop_conditions(given: Any) -> list[StopRule | str] | None:
    if given is None:
        return None
    return [_stop_condition(item) for item in _as_list(given)]


def _stop_condition(item: Any) -> StopRule | str:
    stored = as_stored(item)
    if isinstance(stored, dict):
        stored = StopRule(**cast(JsonDict, stored))
    if not isinstance(stored, StopRule | str):
        message = f"{item!r} is no stop condition: use a function, has_tool_call, step_count_is or spent"
        raise ValueError(message)  # noqa: TRY004 - pydantic collects ValueErrors
    return stored


def _output(given: Any) -> OutputSpec | None:
    """A class or schema of the author's, or a spec as it was stored."""
    if given is None:
        return None
    spec = output_spec(given)
    return spec if isinstance(spec, OutputSpec) else OutputSpec.model_validate(spec)


def _as_it_is(value: Any) -> Any:
    return value


_AS_IT_IS = PlainSerializer(_as_it_is)


class Config(BaseModel):
    """What `TurnConfig` and `StepConfig` share: only the fields that are set count."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=False,
        hide_input_in_errors=True,  # headers may hold keys, and errors are stored
    )
    adds_up: ClassVar[frozenset[str]] = frozenset()

    def merged(self, later: Self) -> Self:
        """Field by field, later wins; the fields of `adds_up` grow, `active_tools` only narrows."""
        changes = {name: getattr(later, name) for name in later.changed}
        for name in self.adds_up & changes.keys():
            before: list[Any] = getattr(self, name) or []
            changes[name] = [*before, *(item for item in changes[name] if item not in before)]
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
    metadata: stored with the turn. telemetry: what an operator is told of this turn's model calls and tools.

    tools adds tools that stand at the top level of a module. stop_when ends the turn after a step that called tools:
    rules (`has_tool_call`, `step_count_is`, `spent`) or functions at the top level of a module. output: the final
    answer must be JSON of this pydantic model or JSON schema; the value is `TurnResult.output`. transforms: names of
    the agent's chunk transforms, applied in order. These add up over several hooks, except output.
    """

    adds_up = frozenset({"tools", "stop_when", "transforms"})

    model: str | None = None
    system: str | None = None
    messages: list[dict[str, Any]] | None = None
    tools: Annotated[Sequence[Tool | Callable[..., Any] | str] | None, PlainValidator(_tool_references), _AS_IT_IS] = (
        None
    )
    active_tools: list[str] | None = None
    tool_choice: str | dict[str, Any] | None = None
    stop_when: Annotated[
        StopCondition | Sequence[StopCondition | str] | None, PlainValidator(_stop_conditions), _AS_IT_IS
    ] = None
    output: Annotated[type[BaseModel] | dict[str, Any] | OutputSpec | None, PlainValidator(_output), _AS_IT_IS] = None
    transforms: list[str] | None = None
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
    telemetry: Telemetry | None = None

    @property
    def added_tools(self) -> list[str]:
        """References to the tools that this turn has besides the agent's."""
        return cast(list[str], self.tools or [])

    @property
    def stop_rules(self) -> list[StopRule]:
        return [item for item in cast(list[Any], self.stop_when or []) if isinstance(item, StopRule)]

    @property
    def stop_checks(self) -> list[str]:
        """References to the author's own stop conditions."""
        return [item for item in cast(list[Any], self.stop_when or []) if isinstance(item, str)]

    @property
    def output_spec(self) -> OutputSpec | None:
        return cast(OutputSpec | None, self.output)

    @property
    def active_telemetry(self) -> Telemetry | None:
        """None if the turn is not to be told of."""
        return self.telemetry if self.telemetry is not None and self.telemetry.enabled else None

    @field_validator("headers")
    @classmethod
    def _sendable(cls, headers: dict[str, str] | None) -> dict[str, str] | None:
        return check_headers(headers) if headers is not None else None

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

    def __post_init__(self) -> None:
        _check_word(self.reason, "Block.reason")


@dataclass(frozen=True, slots=True)
class Allow:
    """Lets a tool call run; with `input`, runs it with these arguments instead (validated again)."""

    input: JsonDict | None = None


@dataclass(frozen=True, slots=True)
class NextModel:
    """Answer of `classify_chat_error`: the step goes on with this model, at once. It must be among `Agent.models`."""

    model: str

    def __post_init__(self) -> None:
        _check_word(self.model, "NextModel.model")


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
MAX_APPROVAL_TIMEOUT = 366 * 86400.0


@dataclass(frozen=True, slots=True)
class Ask:
    """A person has to approve the call before it runs, by `ChatClient.approve`. timeout: seconds; then it is denied."""

    reason: str = ""
    timeout: float = APPROVAL_TIMEOUT

    def __post_init__(self) -> None:
        _check_word(self.reason, "Ask.reason")
        if not 0 < check_seconds(self.timeout, "Ask.timeout") <= MAX_APPROVAL_TIMEOUT:
            raise BadInput(f"Ask.timeout must be more than 0 and at most 366 days in seconds, not {self.timeout!r}")


ToolDecision = Allow | Ask | Block | Substitute
