"""The agents of a worker, checked when it starts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, cast, get_args

from everturn.checks import shown
from everturn.errors import BadInput, InvalidAgent, UnknownAgent
from everturn.hooks.agent import Agent, Model
from everturn.hooks.configuring import session_of
from everturn.hooks.hook import Hooks, OnError
from everturn.hooks.order import ordered
from everturn.hooks.points import HOOK_POINTS, implements
from everturn.hooks.session import SessionConfig
from everturn.hooks.tools import Tool, matches, tool
from everturn.hooks.transforms import ChunkTransform, StreamTransform
from everturn.hooks.validity import AgentAttributes, HookAttributes, ModelAttributes, check_attributes
from everturn.ids import check_id

AGENT_HOOK = "agent"
"""The name under which the agent's own methods stand in manifests and traces."""
AGENT_HOOK_TIMEOUT = 60.0
"""Seconds that a method of the agent may take; added hooks have their own limit."""


@dataclass(frozen=True, slots=True)
class BoundHook:
    """One implementation of one point. added: comes from a `Hooks` object, with its limits and failure policy."""

    name: str
    point: str
    function: Callable[..., Any]
    owner: Hooks | None = None

    @property
    def added(self) -> bool:
        return self.owner is not None

    @property
    def timeout(self) -> float:
        return self.owner.timeout if self.owner else AGENT_HOOK_TIMEOUT

    def wants(self, tool_name: str) -> bool:
        return self.owner is None or matches(self.owner.tools, tool_name)


@dataclass(frozen=True, slots=True)
class RegisteredAgent:
    """An agent that was found valid: its tools by name and its hooks by point, in order."""

    agent: Agent
    model: Model
    tools: dict[str, Tool]
    chains: dict[str, tuple[BoundHook, ...]]
    session: SessionConfig = field(default_factory=SessionConfig)
    transforms: dict[str, ChunkTransform] = field(default_factory=dict[str, ChunkTransform])

    @property
    def name(self) -> str:
        return self.agent.name

    @property
    def manifest(self) -> dict[str, list[str]]:
        return {point: [hook.name for hook in chain] for point, chain in self.chains.items()}

    def chain(self, point: str, names: Sequence[str] | None, tool_name: str | None = None) -> list[BoundHook]:
        """The hooks of a point that a turn's manifest names, in today's order; those that are gone are left out. None,
        for a turn without a manifest: all of today."""
        return [
            hook
            for hook in self.chains.get(point, ())
            if (names is None or hook.name in names) and (tool_name is None or hook.wants(tool_name))
        ]


class AgentRegistry:
    """Agents by name. Raises InvalidAgent, naming agent and tool, if one cannot run."""

    def __init__(self, agents: Iterable[Agent]) -> None:
        self._agents: dict[str, RegisteredAgent] = {}
        for agent in agents:
            registered = _register(agent)
            if registered.name in self._agents:
                raise InvalidAgent(
                    f"two agents are named {registered.name!r}; names are stored with turns and must differ"
                )
            self._agents[registered.name] = registered
        if not self._agents:
            raise InvalidAgent("no agents given; pass at least one object of an Agent subclass")

    def get(self, name: str) -> RegisteredAgent:
        """Raises UnknownAgent."""
        found = self._agents.get(name)
        if found is None:
            raise UnknownAgent(name, tuple(self._agents))
        return found

    async def configure(self, executor: Executor) -> None:
        """Asks every agent for its session, once per worker start. Raises InvalidAgent naming the agent."""
        for name, registered in self._agents.items():
            self._agents[name] = replace(registered, session=await session_of(registered.agent, name, executor))

    def __iter__(self) -> Iterator[RegisteredAgent]:
        return iter(self._agents.values())


def _register(agent: object) -> RegisteredAgent:
    if isinstance(agent, type) and issubclass(agent, Agent):
        raise InvalidAgent(f"{agent.__name__} is a class; pass an object: {agent.__name__}()")
    if not isinstance(agent, Agent):
        raise InvalidAgent(f"{shown(agent)} is no agent; pass objects of subclasses of everturn.Agent")
    try:
        name = check_id(agent.name, f"the name of agent {type(agent).__name__}")
    except BadInput as error:
        raise InvalidAgent(str(error)) from error
    model = agent.model if isinstance(agent.model, Model) else Model(cast(Any, agent.model))
    if not isinstance(cast(object, model.name), str) or not model.name.strip():
        raise InvalidAgent(f'agent {name!r} has no model; set `model`, for example "openai/gpt-4o-mini" or "demo"')
    check_attributes(ModelAttributes, model, f"the model of agent {name!r}")
    for fallback in model.fallbacks:
        if not isinstance(cast(object, fallback), str | Model) or (isinstance(fallback, Model) and fallback.fallbacks):
            raise InvalidAgent(
                f"agent {name!r}: {shown(fallback)} in `fallbacks` is no model, or has fallbacks of its own"
            )
    check_attributes(AgentAttributes, agent, f"agent {name!r}")
    chains = _chains(name, agent)
    return RegisteredAgent(agent, model, _tools(name, agent.tools), chains, transforms=_transforms(name, agent))


def _tools(agent: str, given: Sequence[Tool | Callable[..., Any]]) -> dict[str, Tool]:
    tools: dict[str, Tool] = {}
    for item in given:
        if not callable(cast(object, item)):
            raise InvalidAgent(f"agent {agent!r}: {shown(item)} in `tools` is neither a function nor a Tool")
        try:
            made = item if isinstance(item, Tool) else tool(item)
        except InvalidAgent as error:
            raise InvalidAgent(f"agent {agent!r}: {error}") from error
        if made.name in tools:
            raise InvalidAgent(f"agent {agent!r} has two tools named {made.name!r}; rename one: @tool(name=…)")
        tools[made.name] = made
    return tools


def _transforms(name: str, agent: Agent) -> dict[str, ChunkTransform]:
    found: dict[str, ChunkTransform] = {}
    for brought in (agent.transforms, *(hook.transforms for hook in agent.hooks)):
        for label, transform in brought.items():
            known = isinstance(transform, StreamTransform) or callable(cast(object, transform))
            if not known or inspect.iscoroutinefunction(transform):
                raise InvalidAgent(f"agent {name!r}: transform {label!r} must be a plain function of one chunk")
            if label in found:
                raise InvalidAgent(f"agent {name!r} has two transforms named {label!r}; rename one")
            found[label] = transform
    return found


def _chains(name: str, agent: Agent) -> dict[str, tuple[BoundHook, ...]]:
    for hook in agent.hooks:
        if not isinstance(cast(object, hook), Hooks):
            raise InvalidAgent(
                f"agent {name!r}: {shown(hook)} in `hooks` is no Hooks object; pass an instance of a Hooks subclass"
            )
        _check_options(name, hook)
    added = ordered(name, agent.hooks)
    if any(hook.label == AGENT_HOOK for hook in added):
        raise InvalidAgent(f"agent {name!r}: a hook may not be named {AGENT_HOOK!r}, the agent's own methods are")
    chains: dict[str, tuple[BoundHook, ...]] = {}
    for point in HOOK_POINTS:
        chain = [BoundHook(AGENT_HOOK, point, getattr(agent, point))] if implements(agent, point) else []
        chain += [BoundHook(hook.label, point, getattr(hook, point), hook) for hook in added if implements(hook, point)]
        for bound in chain:
            _check_signature(name, bound)
        if chain:
            chains[point] = tuple(chain)
    return chains


def _check_options(agent: str, hook: Hooks) -> None:
    where = f"agent {agent!r}: hook {shown(hook.label)}"
    if hook.on_error not in get_args(OnError):
        raise InvalidAgent(f"{where} has on_error={shown(hook.on_error)}; use one of {', '.join(get_args(OnError))}")
    if isinstance(hook.tools, str):
        raise InvalidAgent(f"{where} has tools={hook.tools!r}; give a set of patterns: {{{hook.tools!r}}}")
    check_attributes(HookAttributes, hook, where)


def _check_signature(agent: str, hook: BoundHook) -> None:
    needed = 2 if hook.point in ("on_chunk", "on_chat_error", "classify_chat_error") else 1
    try:
        inspect.signature(hook.function).bind(*[None] * needed)
    except TypeError as error:
        arguments = "1 argument" if needed == 1 else f"{needed} arguments"
        raise InvalidAgent(
            f"agent {agent!r}: {hook.name}.{hook.point} must take {arguments} besides self: {error}"
        ) from error


def tool_patterns(chain: Iterable[BoundHook]) -> list[str] | None:
    """The tool-name patterns that a chain of tool hooks reacts to; None = every tool."""
    patterns: list[str] = []
    for hook in chain:
        if hook.owner is None or hook.owner.tools is None:
            return None
        patterns += hook.owner.tools
    return patterns
