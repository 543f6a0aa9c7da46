"""What a provider wants back from earlier answers, beyond OpenAI's plain chat format."""

from __future__ import annotations

import re
from dataclasses import dataclass

from everturn.activities.models.providers import provider_of

_CLAUDE_HOSTS = frozenset({"anthropic", "bedrock", "vertex_ai", "azure_ai", "databricks"})
_ECHO_REASONING = re.compile(r"deepseek|kimi|moonshot|mimo", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Quirks:
    """thinking_blocks: signed reasoning goes back as it came (Anthropic refuses or stops thinking without it).
    reasoning_content: within a tool loop the reasoning goes back as text (DeepSeek and others refuse without it)."""

    thinking_blocks: bool = False
    reasoning_content: bool = False


def quirks_of(model: str) -> Quirks:
    """The quirks of the provider behind a model string; servers of OpenAI's format that are unknown have none."""
    host = provider_of(model)
    claude = host == "anthropic" or (host in _CLAUDE_HOSTS and "claude" in model.lower())
    return Quirks(thinking_blocks=claude, reasoning_content=_ECHO_REASONING.search(model) is not None)
