"""The system prompt in layers: the author's instructions, the thread's context blocks, a summary of folded history."""

from __future__ import annotations

import asyncio
import inspect
from typing import Final

from everturn.activities.models.tokens import CHARACTERS_PER_TOKEN
from everturn.activities.services import Services
from everturn.hooks.registry import RegisteredAgent
from everturn.hooks.session import ContextBlock, ContextRequest
from everturn.store.records import PromptMaterial

PROVIDER_TIMEOUT: Final = 30.0
"""Seconds that a provider of a context block may take."""
SUMMARY_TITLE: Final = "Summary of the earlier conversation"


async def system_prompt(services: Services, agent: RegisteredAgent, material: PromptMaterial, instructions: str) -> str:
    """All layers. `instructions` are the agent's, or what a hook put in their place."""
    blocks = await _thread_blocks(services, agent, material)
    layers = [instructions, *(f"## {label}\n{text}" for label, text in blocks.items() if text)]
    if material.summary:
        layers.append(f"## {SUMMARY_TITLE}\n{material.summary}")
    return "\n\n".join(layer for layer in layers if layer.strip())


async def _thread_blocks(services: Services, agent: RegisteredAgent, material: PromptMaterial) -> dict[str, str]:
    """Assembled with the thread's first model call and kept, so that the prompt's beginning stays the same."""
    wanted = agent.session.blocks
    if not wanted:
        return {}
    labels = [block.label for block in wanted]
    if material.context is not None and list(material.context) == labels:
        return material.context
    turn = material.turn
    request = ContextRequest(turn.thread_id, turn.agent, turn.principal, turn.tenant_id)
    texts = await asyncio.gather(*(_block_text(services, block, request) for block in wanted))
    context = dict(zip(labels, texts, strict=True))
    await services.store.save_context(turn.thread_id, context)
    return context


async def _block_text(services: Services, block: ContextBlock, request: ContextRequest) -> str:
    """Raises what the provider raises: a prompt without its context could answer wrongly."""
    text = block.text
    if callable(text):
        provider = text
        async with asyncio.timeout(PROVIDER_TIMEOUT):
            if inspect.iscoroutinefunction(provider):
                text = await provider(request)
            else:
                given = await asyncio.get_running_loop().run_in_executor(services.threads, provider, request)
                text = await given if inspect.isawaitable(given) else given
    if block.max_tokens is None:
        return str(text)
    return str(text)[: block.max_tokens * CHARACTERS_PER_TOKEN]
