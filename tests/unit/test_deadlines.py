"""Time limits of a stream: each with the smallest real wait that shows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from everturn.activities.models.deadlines import Deadlines, with_deadlines
from everturn.activities.models.failures import ModelFailure
from everturn.activities.models.types import CallDelta, Delta

SHORT = 0.05


class Source:
    """A stream that plays (pause, delta) pairs and notes that it was closed."""

    def __init__(self, *plan: tuple[float, Delta], forever: tuple[float, Delta] | None = None) -> None:
        self.plan, self.forever, self.closed = plan, forever, False

    async def deltas(self) -> AsyncGenerator[Delta, None]:
        try:
            for pause, delta in self.plan:
                await asyncio.sleep(pause)
                yield delta
            while self.forever:
                await asyncio.sleep(self.forever[0])
                yield self.forever[1]
        finally:
            self.closed = True


async def read(source: Source, deadlines: Deadlines) -> list[Delta]:
    return [delta async for delta in with_deadlines(source.deltas(), deadlines)]


async def failure(source: Source, deadlines: Deadlines) -> ModelFailure:
    with pytest.raises(ModelFailure) as caught:
        await read(source, deadlines)
    assert source.closed
    assert caught.value.kind == "transient"
    return caught.value


async def test_a_stream_in_time_passes_unchanged_and_is_closed() -> None:
    source = Source((0, Delta(text="a")), (0, Delta(finish="stop")))
    assert await read(source, Deadlines()) == [Delta(text="a"), Delta(finish="stop")]
    assert source.closed


async def test_silence_from_the_start_misses_the_first_token() -> None:
    found = await failure(Source((10, Delta(text="late"))), Deadlines(SHORT, 5, 5))
    assert found.code == "first_token_timeout"
    assert "0.05 s" in found.message


async def test_empty_deltas_for_ever_miss_the_first_token() -> None:
    found = await failure(Source(forever=(0.005, Delta(response_id="x"))), Deadlines(SHORT, 5, 5))
    assert found.code == "first_token_timeout"


async def test_a_pause_between_tokens_is_a_stall() -> None:
    found = await failure(Source((0, Delta(text="a")), (10, Delta(text="b"))), Deadlines(5, SHORT, 5))
    assert found.code == "stalled"


async def test_empty_call_fragments_do_not_hide_a_stall() -> None:
    source = Source((0, Delta(text="a")), forever=(0.005, Delta(calls=(CallDelta(0),))))
    assert (await failure(source, Deadlines(5, SHORT, 5))).code == "stalled"


async def test_a_drip_that_never_stalls_ends_at_the_total_limit() -> None:
    found = await failure(Source(forever=(0.005, Delta(text="drip"))), Deadlines(5, 5, SHORT))
    assert found.code == "total_timeout"


async def test_a_limit_of_zero_is_off() -> None:
    source = Source((SHORT, Delta(text="a")), (SHORT, Delta(finish="stop")))
    assert len(await read(source, Deadlines(0, 0, 0))) == 2


async def test_time_that_the_reader_takes_is_not_the_models() -> None:
    source = Source((0, Delta(text="a")), (0, Delta(text="b")))
    seen = []
    async for delta in with_deadlines(source.deltas(), Deadlines(5, 0.2, 5)):
        seen.append(delta.text)
        await asyncio.sleep(0.01)
    assert seen == ["a", "b"]


async def test_a_timeout_error_of_the_source_is_not_taken_for_a_deadline() -> None:
    async def broken() -> AsyncGenerator[Delta, None]:
        raise TimeoutError("inside")
        yield Delta()

    with pytest.raises(TimeoutError, match="inside"):
        async for _ in with_deadlines(broken(), Deadlines()):
            pass


async def test_cancelling_the_reader_closes_the_source() -> None:
    source = Source((0, Delta(text="a")), (30, Delta(text="b")))
    task = asyncio.create_task(read(source, Deadlines()))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert source.closed


async def test_leaving_the_loop_early_closes_the_source() -> None:
    source = Source((0, Delta(text="a")), (30, Delta(text="b")))
    stream = with_deadlines(source.deltas(), Deadlines())
    await anext(stream)
    await stream.aclose()
    assert source.closed
