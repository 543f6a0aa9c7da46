"""A cancelled call leaves no open connection, wherever it was."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from everturn.activities.models.types import ModelRequest
from everturn.activities.scripted import LogRecord

ALL = pytest.mark.parametrize("provider", ["openai", "hosted_vllm", "anthropic"])
CLOSE_LIMIT = 0.1
"""Seconds from the cancel to the close that the server sees."""


async def read(ask: Any, request: ModelRequest) -> None:
    async for _ in ask.lane.stream(request):
        pass


@ALL
@pytest.mark.parametrize(
    ("scenario", "begun"),
    [("text:tokens=500,delay_ms=20", True), ("stall:kind=silence", True), ("stall:kind=nothing", False)],
)
async def test_cancelling_the_task_closes_the_socket_within_100_ms(
    ask: Any, until: Any, provider: str, scenario: str, begun: bool
) -> None:
    request, marker = ask.request(scenario, provider)
    task = asyncio.create_task(read(ask, request))

    def under_way() -> bool:
        records: list[LogRecord] = ask.server.find(contains=marker)
        return bool(records) and (records[0].t_first_byte is not None or not begun)

    await until(under_way, 5)
    cancelled = time.time()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    record = ask.server.find(contains=marker)[0]
    await until(lambda: record.client_closed and record.t_closed is not None, 1)
    assert record.t_closed - cancelled < CLOSE_LIMIT
    assert not record.complete


@ALL
async def test_closing_the_generator_closes_the_socket(ask: Any, until: Any, provider: str) -> None:
    request, marker = ask.request("text:tokens=500,delay_ms=20", provider)
    stream = ask.lane.stream(request)
    await anext(stream)
    closed = time.time()
    await stream.aclose()
    record = ask.server.find(contains=marker)[0]
    await until(lambda: record.client_closed and record.t_closed is not None, 1)
    assert record.t_closed - closed < CLOSE_LIMIT


async def test_fifty_cancelled_calls_leave_the_lane_usable(ask: Any) -> None:
    requests = [ask.request("text:tokens=500,delay_ms=20")[0] for _ in range(50)]
    tasks = [asyncio.create_task(read(ask, request)) for request in requests]
    await asyncio.sleep(0.2)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (await ask("text:tokens=2")).done.text == "w0001 w0002 "
