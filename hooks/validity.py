"""The attributes of agents, models and hooks: a wrong one is found when the worker starts, not in the first turn."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, field_validator

from everturn.checks import shown
from everturn.errors import InvalidAgent

MAX_STEPS: Final = 1000
Several = Sequence[Any] | set[Any] | frozenset[Any]
Names = Sequence[str] | set[str] | frozenset[str]
Seconds = Annotated[float, Field(gt=0)]


_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")

_SECRET: Final = frozenset({"headers"})


class _Attributes(BaseModel):
    model_config = ConfigDict(strict=True)


class AgentAttributes(_Attributes):
    """What an Agent has beside its name, its model and its hook methods."""

    system: str
    tools: Several
    hooks: Sequence[Any]
    transforms: Mapping[str, Any]
    models: Names | None
    max_steps: int = Field(ge=1, le=MAX_STEPS)
    temperature: FiniteFloat | None
    top_p: FiniteFloat | None
    max_output_tokens: int | None = Field(ge=1)
    stop_sequences: Sequence[str] | None
    seed: int | None
    tool_choice: str | dict[str, Any] | None
    send_reasoning: bool
    provider_options: dict[str, Any] | None
    first_token_timeout: Seconds
    chat_stream_stall_timeout: float = Field(ge=0)
    step_timeout: Seconds


class ModelAttributes(_Attributes):
    """What a Model has."""

    name: str
    api_base: str | None
    api_key_env: str | None
    headers: dict[str, str]
    fallbacks: list[Any] | tuple[Any, ...]
    lane: Literal["auto", "litellm"] | None

    @field_validator("headers")
    @classmethod
    def _sendable(cls, headers: dict[str, str]) -> dict[str, str]:
        return check_headers(headers)


class HookAttributes(_Attributes):
    """What a Hooks object has beside its methods."""

    name: str | None
    tools: Names | None
    timeout: Seconds
    transforms: Mapping[str, Any]


def check_headers(headers: dict[str, str]) -> dict[str, str]:
    """Raises ValueError for a name or value that HTTP cannot carry."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{shown(name)} is no name of an HTTP header")
        if _CONTROL.search(value):
            raise ValueError(f"the header {name} has a line break, a control character or half of a character in it")
    return headers


def check_attributes(kind: type[_Attributes], owner: object, where: str) -> None:
    """Raises InvalidAgent, naming the first wrong attribute and its value."""
    try:
        # not by `from_attributes`: pydantic takes classes made by exec in a bare namespace for built-in ones
        kind.model_validate({name: getattr(owner, name) for name in kind.model_fields})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name, problem = str(first["loc"][0]), f"{first['msg'][0].lower()}{first['msg'][1:]}"
        value = "not usable" if name in _SECRET else shown(getattr(owner, name, None))
        raise InvalidAgent(f"{where}: {name} is {value}; {problem}") from None
