"""Finds the agents that MODULE[:AGENT] on the command line names."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import cast

from everturn.errors import BadInput
from everturn.hooks.agent import Agent
from everturn.modules import load_module, split_spec


def load_agents(specs: Sequence[str]) -> list[Agent]:
    """One object of each agent that the specs name, in order, without repetition.

    A spec is a Python file or a module's dotted name, and after a colon, if not all agents of it are meant, the name of
    a class, of a variable or of an agent. Raises BadInput if nothing is found or the module cannot be imported.
    """
    agents: dict[int | type[Agent], Agent] = {}
    modules: dict[str, ModuleType] = {}
    for spec in specs:
        module_name, wanted = split_spec(spec)
        module = modules.get(module_name) or modules.setdefault(module_name, load_module(module_name))
        for found in _agents_of(module, module_name, wanted):
            if isinstance(found, Agent):
                agents.setdefault(id(found), found)
            elif found not in agents:
                agents[found] = _make(found, spec)
    return list(agents.values())


def _agents_of(module: ModuleType, name: str, wanted: str | None) -> list[Agent | type[Agent]]:
    """All agents that the module defines, or the one with the wanted name. Objects stand for their classes."""
    found = {
        variable: cast(Agent | type[Agent], value)
        for variable, value in vars(module).items()
        if isinstance(value, Agent) or _is_agent_class(value)
    }
    if wanted is not None:
        chosen = [a for variable, a in found.items() if wanted in (variable, a.name)]
        if not chosen:
            known = ", ".join(sorted(found)) or "none"
            raise BadInput(f"{name} has no agent {wanted!r} (agents there: {known}); check the name after the colon")
        return sorted(chosen, key=lambda agent: isinstance(agent, type))[:1]  # an object before its class
    objects = [a for a in found.values() if isinstance(a, Agent)]
    instantiated = {type(a) for a in objects}
    classes = [
        a
        for a in found.values()
        if isinstance(a, type) and a.__module__ == module.__name__ and a.name and a not in instantiated
    ]
    if not objects and not classes:
        raise BadInput(f"{name} defines no agent; write a subclass of everturn.Agent with a `name` in it")
    return [*objects, *classes]


def _is_agent_class(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Agent) and value is not Agent


def _make(agent: type[Agent], spec: str) -> Agent:
    try:
        return agent()
    except TypeError as error:
        raise BadInput(
            f"{spec}: {agent.__name__} cannot be made without arguments ({error}); put an object of it into the module"
        ) from error
