"""Every chat turn of an LLM agent as a Temporal workflow.

The names below are the public interface. They are imported when first used, so that the command line and workflow code
stay light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everturn.chunks import Chunk
    from everturn.client.chat import ChatClient
    from everturn.client.turn import Turn
    from everturn.errors import (
        BadInput,
        CodeNotFound,
        Conflict,
        EverturnError,
        InvalidAgent,
        MessageTooLarge,
        NotFound,
        NothingToContinue,
        RequestConflict,
        ResultTimeout,
        ScheduleExists,
        ScheduleNotFound,
        ServerFailed,
        StoreRefused,
        StoreRequired,
        StoreUnavailable,
        TemporalUnavailable,
        ThreadBusy,
        TooBusy,
        TranscriptDamaged,
        TurnNotFound,
        Unavailable,
        UnknownAgent,
    )
    from everturn.hooks.agent import Agent, Model
    from everturn.hooks.code.turn_code import StoredTurnCode, TurnCode
    from everturn.hooks.contexts import (
        ChatErrorContext,
        ChatResponseResult,
        ChunkContext,
        StepContext,
        StepResult,
        ToolCallContext,
        ToolCallResultContext,
        ToolContext,
        TurnContext,
        TurnEndResult,
    )
    from everturn.hooks.decisions import Allow, Ask, Block, NextModel, Replace, StepConfig, Substitute, TurnConfig
    from everturn.hooks.hook import Hooks, Order
    from everturn.hooks.overflow import default_context_overflow_classifier
    from everturn.hooks.ready.approve import Approve
    from everturn.hooks.ready.budget import Budget
    from everturn.hooks.ready.fallback import Fallback
    from everturn.hooks.ready.grounding import Grounding
    from everturn.hooks.ready.read_only import ReadOnly
    from everturn.hooks.ready.redact import Redact
    from everturn.hooks.stopping import has_tool_call, spent, step_count_is
    from everturn.hooks.telemetry import Telemetry
    from everturn.hooks.tools import Tool, tool
    from everturn.messages import Message
    from everturn.policies import Debounce
    from everturn.settings import Settings
    from everturn.store.store import Store
    from everturn.turns import PendingCall, Principal, ScheduleInfo, TurnError, TurnInfo, TurnResult, TurnSummary, Usage
    from everturn.worker.plugin import EverturnPlugin
    from everturn.worker.run import run_worker

__version__ = "0.1.0"

_HOMES = {
    "chunks": ("Chunk",),
    "client.chat": ("ChatClient",),
    "client.turn": ("Turn",),
    "errors": (
        "BadInput",
        "CodeNotFound",
        "Conflict",
        "EverturnError",
        "InvalidAgent",
        "MessageTooLarge",
        "NotFound",
        "NothingToContinue",
        "RequestConflict",
        "ResultTimeout",
        "ScheduleExists",
        "ScheduleNotFound",
        "ServerFailed",
        "StoreRefused",
        "StoreRequired",
        "StoreUnavailable",
        "TemporalUnavailable",
        "ThreadBusy",
        "TooBusy",
        "TranscriptDamaged",
        "TurnNotFound",
        "Unavailable",
        "UnknownAgent",
    ),
    "hooks.agent": ("Agent", "Model"),
    "hooks.code.turn_code": ("StoredTurnCode", "TurnCode"),
    "hooks.contexts": (
        "ChatErrorContext",
        "ChatResponseResult",
        "ChunkContext",
        "StepContext",
        "StepResult",
        "ToolCallContext",
        "ToolCallResultContext",
        "ToolContext",
        "TurnContext",
        "TurnEndResult",
    ),
    "hooks.decisions": ("Allow", "Ask", "Block", "NextModel", "Replace", "StepConfig", "Substitute", "TurnConfig"),
    "hooks.hook": ("Hooks", "Order"),
    "hooks.ready.budget": ("Budget",),
    "hooks.ready.fallback": ("Fallback",),
    "hooks.ready.grounding": ("Grounding",),
    "hooks.overflow": ("default_context_overflow_classifier",),
    "hooks.ready.approve": ("Approve",),
    "hooks.ready.read_only": ("ReadOnly",),
    "hooks.ready.redact": ("Redact",),
    "hooks.stopping": ("has_tool_call", "spent", "step_count_is"),
    "hooks.telemetry": ("Telemetry",),
    "hooks.tools": ("Tool", "tool"),
    "messages": ("Message",),
    "policies": ("Debounce",),
    "settings": ("Settings",),
    "store.store": ("Store",),
    "turns": (
        "PendingCall",
        "Principal",
        "ScheduleInfo",
        "TurnError",
        "TurnInfo",
        "TurnResult",
        "TurnSummary",
        "Usage",
    ),
    "worker.plugin": ("EverturnPlugin",),
    "worker.run": ("run_worker",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Agent",
    "Allow",
    "Approve",
    "Ask",
    "BadInput",
    "Block",
    "Budget",
    "ChatClient",
    "ChatErrorContext",
    "ChatResponseResult",
    "Chunk",
    "ChunkContext",
    "CodeNotFound",
    "Conflict",
    "Debounce",
    "EverturnError",
    "EverturnPlugin",
    "Fallback",
    "Grounding",
    "Hooks",
    "InvalidAgent",
    "Message",
    "MessageTooLarge",
    "Model",
    "NextModel",
    "NotFound",
    "NothingToContinue",
    "Order",
    "PendingCall",
    "Principal",
    "ReadOnly",
    "Redact",
    "Replace",
    "RequestConflict",
    "ResultTimeout",
    "ScheduleExists",
    "ScheduleInfo",
    "ScheduleNotFound",
    "ServerFailed",
    "Settings",
    "StepConfig",
    "StepContext",
    "StepResult",
    "Store",
    "StoreRefused",
    "StoreRequired",
    "StoreUnavailable",
    "StoredTurnCode",
    "Substitute",
    "Telemetry",
    "TemporalUnavailable",
    "ThreadBusy",
    "TooBusy",
    "Tool",
    "ToolCallContext",
    "ToolCallResultContext",
    "ToolContext",
    "TranscriptDamaged",
    "Turn",
    "TurnCode",
    "TurnConfig",
    "TurnContext",
    "TurnEndResult",
    "TurnError",
    "TurnInfo",
    "TurnNotFound",
    "TurnResult",
    "TurnSummary",
    "Unavailable",
    "UnknownAgent",
    "Usage",
    "default_context_overflow_classifier",
    "has_tool_call",
    "run_worker",
    "spent",
    "step_count_is",
    "tool",
]


def __getattr__(name: str) -> Any:
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'everturn' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"everturn.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
