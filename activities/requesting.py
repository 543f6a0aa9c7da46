"""Builds the request of a model step, and the messages that hooks see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everturn.activities.models.lanes import ResolvedModel
from everturn.activities.models.prompt import Prompt, build_prompt
from everturn.activities.models.quirks import quirks_of
from everturn.activities.models.types import ModelRequest
from everturn.activities.settings import StepSettings
from everturn.hooks.registry import RegisteredAgent
from everturn.store.records import PromptMaterial
from everturn.turns import JsonDict


def transcript(material: PromptMaterial, override: Sequence[JsonDict] | None = None) -> list[JsonDict]:
    """What the model would see, in OpenAI's chat format, without the system prompt. override: of the turn's config."""
    return build_prompt(material, "", override=override).messages


def step_prompt(settings: StepSettings, material: PromptMaterial, model: str) -> Prompt:
    given = replace(material, steps=[]) if settings.whole else material
    return build_prompt(given, settings.system, override=settings.messages, quirks=quirks_of(model))


def model_request(
    agent: RegisteredAgent, settings: StepSettings, prompt: Prompt, resolved: ResolvedModel
) -> ModelRequest:
    tools = [agent.tools[name].as_openai() for name in settings.tools]
    return ModelRequest(
        model=resolved.model,
        messages=prompt.messages,
        tools=tools,
        tool_choice=settings.tool_choice if tools else None,
        api_base=resolved.api_base,
        api_key=resolved.api_key,
        key_env=resolved.key_env,
        temperature=settings.temperature,
        top_p=settings.top_p,
        max_output_tokens=settings.max_output_tokens,
        stop=settings.stop,
        seed=settings.seed,
        headers=settings.headers,
        provider_options=settings.provider_options,
    )
