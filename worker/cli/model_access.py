"""Whether the models of agents can be reached, as far as that can be told without calling them."""

from __future__ import annotations

import os
from typing import Final

from everturn.activities.models.lanes import BUILT_IN_MODELS
from everturn.activities.models.local_lane import LOCAL_MODEL
from everturn.activities.models.local_server import missing_package
from everturn.activities.models.providers import key_variable, provider_of
from everturn.hooks.agent import Agent, Model

KEYLESS: Final = frozenset({"ollama", "ollama_chat", "hosted_vllm", "lm_studio", "llamafile"})
"""Providers that are servers of one's own and ask for no key."""


def missing_key(agent: Agent) -> str | None:
    """The environment variable that the agent's model needs and that is not set; None if nothing is missing."""
    model = agent.model if isinstance(agent.model, Model) else Model(agent.model)
    if model.name in BUILT_IN_MODELS:
        return None
    if model.api_key_env is None and (model.api_base is not None or provider_of(model.name) in KEYLESS):
        return None
    variable = model.api_key_env or key_variable(model.name)
    return None if os.environ.get(variable) else variable


def missing_model_package(agent: Agent) -> str | None:
    """The package that the agent's model needs and that is not installed: only the local model is a package."""
    return missing_package() if model_name(agent) == LOCAL_MODEL else None


def model_name(agent: Agent) -> str:
    return agent.model.name if isinstance(agent.model, Model) else agent.model
