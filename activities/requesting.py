"""Builds the request of a model step, and the messages that hooks see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from temporalio.exceptions import ApplicationError

from everturn.activities.models.lanes import ResolvedModel
from everturn.activities.models.prompt import Prompt, build_prompt
from everturn.activities.models.quirks import quirks_of
from everturn.activities.models.tokens import count_tokens
from everturn.activities.models.truncation import truncated
from everturn.activities.models.types import ModelRequest
from everturn.activities.settings import StepSettings
from everturn.hooks.registry import RegisteredAgent
from everturn.store.damage import readable
from everturn.store.records import PromptMaterial
from everturn.turns import JsonDict


def transcript(
    agent: RegisteredAgent, material: PromptMaterial, override: Sequence[JsonDict] | None = None
) -> list[JsonDict]:
    """What the model would see, shortened as for it, in OpenAI's chat format, without the system prompt.

    override: of the turn's config. Raises TranscriptDamaged.
    """
    with readable(material.turn.thread_id):
        return build_prompt(_shortened(agent, material), "", override=override).messages


def step_prompt(
    settings: StepSettings, system: str, material: PromptMaterial, agent: RegisteredAgent, model: str
) -> Prompt:
    """The prompt of a step: older messages shortened, the turn's own steps whole. Raises TranscriptDamaged."""
    with readable(material.turn.thread_id):
        given = replace(_shortened(agent, material), steps=[] if settings.whole else material.steps)
        return build_prompt(given, system, override=settings.messages, quirks=quirks_of(model))


def _shortened(agent: RegisteredAgent, material: PromptMaterial) -> PromptMaterial:
    return replace(material, messages=truncated(material.messages, agent.session.truncation))


def exceeds(agent: RegisteredAgent, prompt: Prompt) -> bool:
    """Whether the prompt is over the limit from which the session wants the thread compacted first."""
    limit = agent.session.token_limit
    return limit is not None and count_tokens(agent.session.count_tokens, prompt.messages) > limit


def too_long() -> ApplicationError:
    """Tells the workflow to compact the thread and to ask again."""
    facts = {"classification": "context_overflow", "ahead": True}
    return ApplicationError(
        "the prompt is over the session's limit", facts, type="context_overflow", non_retryable=True
    )


def model_request(settings: StepSettings, prompt: Prompt, resolved: ResolvedModel) -> ModelRequest:
    tools = [tool.as_openai() for tool in settings.tools.values()]
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
        response_format=settings.output.response_format() if settings.output else None,
        headers=settings.headers,
        provider_options=settings.provider_options,
    )
