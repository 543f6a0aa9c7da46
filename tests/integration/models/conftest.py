"""Both HTTP lanes against the scripted server: all real, one of each for the session."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from everturn.activities.models.accumulator import Accumulator, Completion
from everturn.activities.models.deadlines import Deadlines, with_deadlines
from everturn.activities.models.direct.lane import OpenAILane
from everturn.activities.models.failures import ModelFailure
from everturn.activities.models.litellm_lane import LiteLLMLane
from everturn.activities.models.types import ModelLane, ModelRequest
from everturn.activities.scripted import LogRecord, ScriptedModelServer
from everturn.chunks import Event
from everturn.turns import JsonDict

KEY = "sk-test-0123456789abcdef"
WEATHER: JsonDict = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather for a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server() -> AsyncIterator[ScriptedModelServer]:
    async with ScriptedModelServer() as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def litellm_lane(server: ScriptedModelServer) -> AsyncIterator[LiteLLMLane]:
    lane = LiteLLMLane()
    await lane.warm_up()
    yield lane
    await lane.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def direct_lane(litellm_lane: LiteLLMLane) -> AsyncIterator[OpenAILane]:
    lane = OpenAILane(litellm_lane)
    yield lane
    await lane.close()


@pytest.fixture(params=["litellm", "direct"])
def lane(request: pytest.FixtureRequest, litellm_lane: LiteLLMLane, direct_lane: OpenAILane) -> ModelLane:
    """Each test of a lane's behaviour runs on both, with the same expectations."""
    lanes: dict[str, ModelLane] = {"litellm": litellm_lane, "direct": direct_lane}
    return lanes[request.param]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Anthropic's own format is litellm's alone: the direct lane would only pass the same calls on."""
    items[:] = [item for item in items if not _is_repetition(item)]


def _is_repetition(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    parameters = callspec.params if callspec else {}
    return parameters.get("lane") == "direct" and parameters.get("provider") == "anthropic"


@dataclass
class Attempt:
    """One attempt at a scenario. records: what the server logged of it."""

    server: ScriptedModelServer
    request: ModelRequest
    marker: str
    events: list[Event]
    completion: Completion | None = None
    failure: ModelFailure | None = None

    @property
    def done(self) -> Completion:
        assert self.completion is not None, self.failure and (self.failure.message, self.failure.detail)
        return self.completion

    @property
    def failed(self) -> ModelFailure:
        assert self.failure is not None, self.completion
        return self.failure

    @property
    def records(self) -> list[LogRecord]:
        return self.server.find(contains=self.marker)


@dataclass
class Ask:
    """Makes requests for a scenario, and attempts them."""

    server: ScriptedModelServer
    lane: ModelLane

    def request(self, scenario: str, provider: str = "openai", **changes: Any) -> tuple[ModelRequest, str]:
        marker = uuid.uuid4().hex
        base = self.server.origin if provider == "anthropic" else self.server.base_url
        standard: JsonDict = {
            "messages": [{"role": "user", "content": f"weather in Paris {marker}"}],
            "tools": [WEATHER],
            "api_base": base,
            "api_key": KEY,
            "max_output_tokens": 500,
        }
        return ModelRequest(f"{provider}/{scenario}", **{**standard, **changes}), marker

    async def __call__(self, scenario: str, provider: str = "openai", **changes: Any) -> Attempt:
        request, marker = self.request(scenario, provider, **changes)
        return await self.attempt(request, marker)

    async def attempt(self, request: ModelRequest, marker: str, deadlines: Deadlines | None = None) -> Attempt:
        attempt = Attempt(self.server, request, marker, [])
        accumulator = Accumulator(max_output_tokens=request.max_output_tokens)
        try:
            async for delta in with_deadlines(self.lane.stream(request), deadlines or Deadlines(10, 10, 20)):
                attempt.events += accumulator.feed(delta)
            attempt.completion = accumulator.close()
            attempt.events += attempt.completion.events
        except ModelFailure as failure:
            attempt.failure = failure
        return attempt


@pytest.fixture
def ask(server: ScriptedModelServer, lane: ModelLane) -> Ask:
    return Ask(server, lane)


@pytest.fixture
def litellm_ask(server: ScriptedModelServer, litellm_lane: LiteLLMLane) -> Ask:
    """For what only litellm can do."""
    return Ask(server, litellm_lane)


@pytest.fixture
def direct_ask(server: ScriptedModelServer, direct_lane: OpenAILane) -> Ask:
    """For what is about the direct lane alone."""
    return Ask(server, direct_lane)


@pytest.fixture
def until() -> Callable[[Callable[[], bool], float], Any]:
    """Waits until a condition holds; fails at the deadline (seconds)."""

    async def wait(holds: Callable[[], bool], seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while not holds():
                await asyncio.sleep(0.002)

    return wait
