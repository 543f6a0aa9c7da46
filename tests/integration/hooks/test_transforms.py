"""Chunk transforms: what they change is what clients see and what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from everturn import Agent, Chunk, TurnConfig
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.hooks.contexts import TurnContext
from tests.integration.hooks.authors import ADD, add, hooks, the_trace
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent, shown_text


def shout(chunk: Chunk) -> Chunk:
    """All words in capitals."""
    if "delta" not in chunk.data:
        return chunk
    return replace(chunk, data={**chunk.data, "delta": str(chunk.data["delta"]).upper()})


def double(chunk: Chunk) -> Sequence[Chunk]:
    """Each word twice."""
    return [chunk, chunk] if chunk.type == "text-delta" else [chunk]


def without_third(chunk: Chunk) -> Chunk | None:
    """Drops one word."""
    return None if "0003" in str(chunk.data.get("delta")) else chunk


def breaks_on_second(chunk: Chunk) -> Chunk:
    """Raises for one word."""
    if "0002" in str(chunk.data.get("delta")):
        raise ValueError("cannot check this")
    return chunk


def answers_nonsense(chunk: Chunk) -> Any:
    """Gives no chunk."""
    return "text"


class Loud(Agent):
    """Has transforms by name."""

    transforms = {  # noqa: RUF012 - as authors write it
        "shout": shout,
        "double": double,
        "without_third": without_third,
        "breaks": breaks_on_second,
        "nonsense": answers_nonsense,
    }


def using(*names: str, name: str = "Using", **options: Any) -> Any:
    async def before_turn(self: Any, ctx: TurnContext) -> TurnConfig:
        return TurnConfig(transforms=list(names))

    return hooks(name, before_turn=before_turn, **options)


CASES = [
    (("shout",), "W0001 W0002 W0003 "),
    (("without_third",), "w0001 w0002 "),
    (("double",), "w0001 w0001 w0002 w0002 w0003 w0003 "),
    (("without_third", "double", "shout"), "W0001 W0001 W0002 W0002 "),
    (("breaks",), "w0001 w0003 "),
    (("nonsense",), ""),
    ((), "w0001 w0002 w0003 "),
]


@pytest.mark.parametrize(
    ("names", "text"), CASES, ids=lambda value: "+".join(value) if isinstance(value, tuple) else ""
)
async def test_transforms_apply_in_order_to_what_is_streamed_and_what_is_stored(
    start_lab: StartLab, scripted_server: ScriptedModelServer, names: tuple[str, ...], text: str
) -> None:
    async with start_lab(make_agent(scripted_server, base=Loud, hooks=[using(*names)])) as lab:
        turn = await lab.play("text tokens=3 delay_ms=20")
        result = await turn.result(20)
        assert (result.status, result.text) == ("completed", text)
        assert shown_text(await lab.chunks(turn)) == text
        stored = [message.text for message in await lab.chat.messages(turn.thread_id) if message.role == "assistant"]
        assert stored == ([text] if text else [])
        assert (await turn.info()).steps[0].text == text


async def test_a_raising_transform_drops_its_chunk_and_is_traced(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, base=Loud, hooks=[using("breaks")])) as lab:
        turn = await lab.play("text tokens=3 delay_ms=20")
        await turn.result(20)
        trace = the_trace(await turn.info(), "transform")
        assert (trace.hook, trace.outcome) == ("breaks", "error")
        assert trace.message == "1 chunks were dropped: ValueError: cannot check this"
        assert "0002" not in lab.stored_text().split("stream_events")[-1]


async def test_hooks_and_later_prompts_see_the_text_as_transformed(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[str] = []

    async def on_chunk(self: Any, chunk: Chunk, ctx: Any) -> None:
        if chunk.type == "text-delta":
            seen.append(str(chunk.data["delta"]))

    chain = [using("shout"), hooks("Watching", on_chunk=on_chunk)]
    async with start_lab(make_agent(scripted_server, base=Loud, tools=[add], hooks=chain)) as lab:
        turn = await lab.play(f"tools say='quiet words ' {ADD}")
        await turn.result(20)
        assert "".join(seen) == "QUIET WORDS DONE: 1 RESULTS"
        prompt = lab.asked(turn)[1].body["messages"]
        assert prompt[1]["content"] == "QUIET WORDS "
        (call,) = (await turn.info()).tool_calls
        assert (call.input, call.output) == ({"a": 1, "b": 2}, 3)


async def test_what_a_cancelled_step_had_said_is_stored_as_transformed(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, base=Loud, hooks=[using("shout")])) as lab:
        turn = await lab.play("stall tokens=2")
        await lab.until(turn, "text-delta")
        await turn.cancel()
        assert (await turn.result(20)).text == "W0001 W0002 "


@pytest.mark.parametrize("send_reasoning", [True, False])
async def test_reasoning_is_stored_as_transformed_whether_it_is_shown_or_not(
    start_lab: StartLab, scripted_server: ScriptedModelServer, send_reasoning: bool
) -> None:
    agent = make_agent(scripted_server, base=Loud, hooks=[using("shout")], send_reasoning=send_reasoning)
    async with start_lab(agent) as lab:
        turn = await lab.play("think")
        await turn.result(20)
        (message,) = [m for m in await lab.chat.messages(turn.thread_id) if m.role == "assistant"]
        reasoning = [part["text"] for part in message.parts if part["type"] == "reasoning"]
        assert reasoning == [reasoning[0].upper()]
        assert message.text == "I HAVE THOUGHT."


@pytest.mark.parametrize(("on_error", "status"), [("continue", "completed"), ("raise", "error"), ("deny", "blocked")])
async def test_a_transform_that_the_agent_does_not_have_is_a_failure_by_policy(
    start_lab: StartLab, scripted_server: ScriptedModelServer, on_error: str, status: str
) -> None:
    async with start_lab(make_agent(scripted_server, base=Loud, hooks=[using("redact", on_error=on_error)])) as lab:
        turn = await lab.play("ok")
        assert (await turn.result(20)).status == status
        trace = the_trace(await turn.info(), "before_turn")
        assert trace.outcome == "invalid"
        assert "no transform named 'redact'" in str(trace.message)


async def test_transforms_of_several_hooks_add_up_so_that_none_undoes_another(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    chain = [using("shout", name="one"), using("without_third", name="two")]
    async with start_lab(make_agent(scripted_server, base=Loud, hooks=chain)) as lab:
        assert (await (await lab.play("text tokens=3 delay_ms=20")).result(20)).text == "W0001 W0002 "
