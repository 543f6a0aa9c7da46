"""What a call cost, by the price list that litellm brings along."""

from __future__ import annotations

import logging
import sys
from typing import Any

from everturn.activities.models.providers import provider_of
from everturn.turns import Usage

_log = logging.getLogger(__name__)


def cost_of(usage: Usage, model: str, served: str | None = None) -> float | None:
    """US dollars, None when no price is known. Never raises and never imports litellm: without it no price is known.

    model: the model that was asked for. served: the name that the server gave, which is looked up first.
    """
    litellm: Any = sys.modules.get("litellm")
    price_list = getattr(litellm, "model_cost", None)
    if not isinstance(price_list, dict):
        return None
    name = next((n for n in _names(model, served) if n in price_list), None)
    if name is None:
        return None
    try:
        prompt, output = litellm.cost_per_token(
            model=name,
            custom_llm_provider=provider_of(model),
            prompt_tokens=usage.input_tokens,
            completion_tokens=usage.output_tokens,
            cache_read_input_tokens=usage.cached_tokens,
        )
        return float(prompt) + float(output)
    except Exception as error:
        _log.info("no price for model %s: %s", name, error)
        return None


def _names(model: str, served: str | None) -> list[str]:
    """The names under which a price may stand, most exact first."""
    bare = model.partition("/")[2] or model
    names = [f"{provider_of(model)}/{served}", served] if served else []
    return [name for name in (*names, model, bare) if name]
