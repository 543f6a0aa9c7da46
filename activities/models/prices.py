"""What a call cost, by the price list that litellm brings along."""

from __future__ import annotations

import importlib.util
import json
import logging
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

from everturn.activities.models.litellm_module import is_loaded
from everturn.activities.models.providers import provider_of
from everturn.turns import JsonDict, Usage

PRICE_FILE: Final = "model_prices_and_context_window_backup.json"
_log = logging.getLogger(__name__)


@cache
def load_prices() -> dict[str, JsonDict]:
    """The prices by model, read from litellm's files without importing it: 50 ms, best in a thread.

    Empty if the file is not there; then only calls through litellm itself have a price.
    """
    spec = importlib.util.find_spec("litellm")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / PRICE_FILE
        if path.is_file():
            return cast(dict[str, JsonDict], json.loads(path.read_bytes()))
    _log.warning("litellm's price list %s is not there; calls that do not go through litellm have no price", PRICE_FILE)
    return {}


def cost_of(usage: Usage, model: str, served: str | None = None) -> float | None:
    """US dollars, None when no price is known. Never raises, never imports litellm, never reads a file.

    model: the model that was asked for. served: the name that the server gave, which is looked up first. Before litellm
    is imported, or `load_prices` has run, no price is known.
    """
    if is_loaded():
        return _cost_by_litellm(usage, model, served)
    if load_prices.cache_info().currsize == 0:
        return None
    prices = load_prices()
    name = next((n for n in _names(model, served) if n in prices), None)
    return cost_by_entry(usage, prices[name]) if name else None


def priced_by_litellm_only(model: str) -> bool:
    """Whether the model's price depends on more than the list says: litellm must be imported for it."""
    prices = load_prices()
    name = next((n for n in _names(model, None) if n in prices), None)
    return name is not None and not _is_plain(prices[name])


def cost_by_entry(usage: Usage, entry: JsonDict) -> float | None:
    """The cost by one entry of the list; None for entries without a price by token, or with more than one."""
    prompt: float | None = entry.get("input_cost_per_token")
    output: float | None = entry.get("output_cost_per_token")
    if prompt is None or output is None or not _is_plain(entry):
        return None
    cached: float = entry.get("cache_read_input_token_cost", prompt)
    fresh = usage.input_tokens - usage.cached_tokens
    return float(fresh * prompt + usage.cached_tokens * cached + usage.output_tokens * output)


def _is_plain(entry: JsonDict) -> bool:
    """The price changes neither with the size of the prompt nor with the time of day."""
    return "off_peak_pricing" not in entry and not any("_above_" in name for name in entry)


def _cost_by_litellm(usage: Usage, model: str, served: str | None) -> float | None:
    litellm: Any = sys.modules["litellm"]
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
