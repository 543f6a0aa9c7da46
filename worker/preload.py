"""Imports of a worker, done before its processes are forked, so that they share the memory."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from everturn.activities.models.lanes import ModelLanes
from everturn.activities.models.litellm_module import load_litellm
from everturn.hooks.agent import Agent
from everturn.hooks.points import CLASSIFY_CHAT_ERROR
from everturn.hooks.registry import AgentRegistry
from everturn.settings import Settings


def preload(agents: Iterable[Agent], settings: Settings) -> None:
    """Imports what a worker of these agents would import later, and starts no thread. Raises InvalidAgent."""
    import_module("everturn.worker.run")
    registered = list(AgentRegistry(agents))
    ModelLanes(settings.model_lane).preload([agent.model for agent in registered])
    if any(CLASSIFY_CHAT_ERROR in agent.chains for agent in registered):
        load_litellm()
