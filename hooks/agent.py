"""The author's class: what an agent is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from everturn.hooks.hook import Hooks
from everturn.hooks.points import HookMethods
from everturn.hooks.session import Session
from everturn.hooks.tools import Tool
from everturn.hooks.transforms import Transforms
from everturn.turns import JsonDict

DEFAULT_MAX_STEPS = 10
Lane = Literal["auto", "litellm"]


@dataclass(frozen=True, slots=True)
class Model:
    """A model and how to reach it.

    name: a litellm model string ("openai/gpt-4o-mini"), or "demo". api_base: another address, for gateways and local
    servers. api_key_env: the environment variable on the worker that holds the key; default: the provider's own.
    fallbacks: models to go on with, in this order, when this one has failed for good (key, quota, outage).
    lane: "litellm" sends every call through litellm, "auto" only those that need it; default: EVERTURN_MODEL_LANE.
    """

    name: str
    api_base: str | None = None
    api_key_env: str | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    fallbacks: Sequence[str | Model] = ()
    lane: Lane | None = None


class Agent(HookMethods):
    """Subclass it, fill in the attributes, override the hooks you need, and register an object of it on a worker.

    name: stored with every turn, so keep it stable. transforms: chunk transforms by name, for `TurnConfig.transforms`.
    models: the models that hooks may switch to (None = any).
    provider_options: passed to the provider as they are. first_token_timeout, chat_stream_stall_timeout, step_timeout:
    seconds to the first token, between two tokens (0 = off), and for a whole model call.
    """

    name: ClassVar[str] = ""
    model: str | Model = ""
    system: str = ""
    tools: Sequence[Tool | Callable[..., Any]] = ()
    hooks: Sequence[Hooks] = ()
    transforms: Transforms = {}  # noqa: RUF012 - a class attribute that subclasses replace
    models: Sequence[str] | None = None
    max_steps: int = DEFAULT_MAX_STEPS
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    stop_sequences: Sequence[str] | None = None
    seed: int | None = None
    tool_choice: str | JsonDict | None = None
    send_reasoning: bool = True
    provider_options: JsonDict | None = None
    first_token_timeout: float = 60.0
    chat_stream_stall_timeout: float = 60.0
    step_timeout: float = 600.0

    def configure_session(self, session: Session) -> Session | Awaitable[Session] | None:
        """Called once when a worker starts: context blocks, compaction, truncation. A raise fails the start."""
        return session
