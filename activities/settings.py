"""The settings of one model call: the agent's, overridden by what before_turn and before_step decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from everturn.activities.turn_tools import requested_tools, turn_tools
from everturn.hooks.agent import Model
from everturn.hooks.decisions import StepConfig, TurnConfig
from everturn.hooks.outputs import OutputSpec
from everturn.hooks.registry import RegisteredAgent
from everturn.hooks.telemetry import Telemetry
from everturn.hooks.tools import Tool
from everturn.turns import JsonDict

TURN_KEY: Final = "turn"
STEP_KEY: Final = "step"
STEP_INDEX_KEY: Final = "step_index"


@dataclass(frozen=True, slots=True)
class StepSettings:
    """has_fallback: another model follows if this one is given up. tried: the models asked in this step, this one last.
    messages: what the model sees instead of the transcript, None for the transcript. whole: they stand for the steps of
    the turn too. telemetry: None if the turn is not to be told of. Timeouts are seconds."""

    model: Model
    has_fallback: bool
    tried: tuple[str, ...]
    system: str
    messages: list[JsonDict] | None
    whole: bool
    tools: dict[str, Tool]
    tool_choice: str | JsonDict | None
    temperature: float | None
    top_p: float | None
    max_output_tokens: int | None
    stop: list[str] | None
    seed: int | None
    headers: dict[str, str]
    provider_options: JsonDict
    send_reasoning: bool
    first_token_timeout: float
    idle_timeout: float
    total_timeout: float
    output: OutputSpec | None = None
    transforms: list[str] = field(default_factory=list[str])
    telemetry: Telemetry | None = None


def turn_config(config: JsonDict) -> TurnConfig:
    return TurnConfig.model_validate(config.get(TURN_KEY, {}))


def step_config(config: JsonDict, step: int) -> StepConfig:
    """What before_step decided for this step; nothing if the stored decision is another step's."""
    if config.get(STEP_INDEX_KEY) != step:
        return StepConfig()
    return StepConfig.model_validate(config.get(STEP_KEY, {}))


def step_settings(
    agent: RegisteredAgent, config: JsonDict, step: int, fallback: int = 0, chosen: Sequence[str] = ()
) -> StepSettings:
    """fallback, chosen: as of the step's Opening. Raises UnresolvedReference on a worker that lacks one of the turn's
    tools."""
    author, turn, now = agent.agent, turn_config(config), step_config(config, step)

    def first(*values: Any) -> Any:
        return next((value for value in values if value is not None), None)

    models = _models(agent, first(now.model, turn.model))
    asked = [*models[: fallback + 1], *(_model_named(agent, name) for name in chosen)]
    model = asked[-1]
    return StepSettings(
        model=model,
        has_fallback=fallback + 1 < len(models),
        tried=tuple(model.name for model in asked),
        system=first(now.system, turn.system, author.system) or "",
        messages=first(now.messages, turn.messages),
        whole=now.messages is not None,
        tools=_active(turn_tools(agent, turn, requested_tools(config)), turn.active_tools, now.active_tools),
        tool_choice=first(now.tool_choice, turn.tool_choice, author.tool_choice),
        temperature=first(turn.temperature, author.temperature),
        top_p=first(turn.top_p, author.top_p),
        max_output_tokens=first(turn.max_output_tokens, author.max_output_tokens),
        stop=_list(first(turn.stop_sequences, author.stop_sequences)),
        seed=first(turn.seed, author.seed),
        headers={**model.headers, **(turn.headers or {})},
        provider_options=_options(author.provider_options, turn.provider_options, now.provider_options),
        send_reasoning=first(turn.send_reasoning, author.send_reasoning),
        first_token_timeout=author.first_token_timeout,
        idle_timeout=first(turn.chat_stream_stall_timeout, author.chat_stream_stall_timeout),
        total_timeout=first(turn.timeout, author.step_timeout),
        output=turn.output_spec,
        transforms=turn.transforms or [],
        telemetry=turn.active_telemetry,
    )


def model_allowed(agent: RegisteredAgent, name: str) -> bool:
    """Whether hooks may switch to this model."""
    allowed = agent.agent.models
    return allowed is None or name in allowed or name == agent.model.name


def _models(agent: RegisteredAgent, name: str | None) -> list[Model]:
    """The model and those to follow it: the agent's fallbacks belong to its own model."""
    if name is not None and name != agent.model.name:
        return [_model_named(agent, name)]
    return _own_models(agent)


def _model_named(agent: RegisteredAgent, name: str) -> Model:
    """A model that a hook named: with the address, key and headers that the agent has for it, or its provider's."""
    return next((model for model in _own_models(agent) if model.name == name), Model(name))


def _own_models(agent: RegisteredAgent) -> list[Model]:
    return [agent.model, *(m if isinstance(m, Model) else Model(m) for m in agent.model.fallbacks)]


def _active(tools: dict[str, Tool], *narrowings: list[str] | None) -> dict[str, Tool]:
    for narrowing in narrowings:
        if narrowing is not None:
            tools = {name: tool for name, tool in tools.items() if name in narrowing}
    return tools


def _options(*layers: JsonDict | None) -> JsonDict:
    merged: JsonDict = {}
    for layer in layers:
        merged.update(layer or {})
    return merged


def _list(value: Any) -> list[str] | None:
    return list(value) if value is not None else None
