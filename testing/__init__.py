"""Tests of agents without keys: a real worker, a real Temporal server, and a model that follows a script.

async def test_the_weather_is_looked_up() -> None:
    run = await run_turn(Support(), "Weather in Paris?", model=[call("get_weather", city="Paris"), "It is sunny."])
    assert run.text == "It is sunny."
"""

from __future__ import annotations

from everturn.testing.crash import CRASH_POINTS, Crash
from everturn.testing.model import ModelError, Reply, ScriptedModel, ToolCall, call
from everturn.testing.replay import assert_replays
from everturn.testing.run import TurnRun
from everturn.testing.system import System, run_turn, running

__all__ = [
    "CRASH_POINTS",
    "Crash",
    "ModelError",
    "Reply",
    "ScriptedModel",
    "System",
    "ToolCall",
    "TurnRun",
    "assert_replays",
    "call",
    "run_turn",
    "running",
]
