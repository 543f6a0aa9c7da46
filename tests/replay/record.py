"""Records the histories that test_replay.py replays. Run by hand, from the repository's root:

    .venv/bin/python -m tests.replay.record            # what is not recorded yet
    .venv/bin/python -m tests.replay.record NAME…      # these, again

A recorded history stands for turns that run somewhere in the world: add new ones, and record one again only as long as
no release has turns of that kind.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

from everturn import Agent, Block, Hooks, StepConfig, Tool, Turn, TurnConfig, tool
from everturn.activities.models.lanes import ModelLanes
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.ids import workflow_id
from everturn.worker.exit import guarded_exit
from tests.integration.turns.lab import Lab, make_agent, running_lab, scripted
from tests.services.temporal import temporal_service

HISTORIES = Path(__file__).parent / "histories"
_PRIVATE = {"identity": "worker", "stackTrace": ""}
"""Fields that tell of the machine on which a history was recorded, and replay does not read."""


@tool
async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool
async def fail(reason: str) -> str:
    """Always fails."""
    raise RuntimeError(reason)


@tool
async def wait_long() -> str:
    """Waits until it is stopped."""
    await asyncio.Event().wait()
    return "never"


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


class Everywhere(Agent):
    """Implements every hook point."""

    async def before_turn(self, ctx: Any) -> TurnConfig:
        return TurnConfig(temperature=0.5)

    async def before_step(self, ctx: Any) -> StepConfig:
        return StepConfig()

    async def before_tool_call(self, ctx: Any) -> None:
        ctx.log("before a tool")

    async def after_tool_call(self, ctx: Any) -> None:
        ctx.log("after a tool")

    async def on_step_finish(self, ctx: Any) -> None:
        ctx.log("step")

    async def on_chat_error(self, error: Any, ctx: Any) -> Any:
        return error

    async def on_chat_response(self, result: Any) -> None:
        result.log("response")

    async def on_turn_end(self, result: Any) -> None:
        result.log("end")


class Doorkeeper(Hooks):
    """Blocks every turn."""

    async def before_turn(self, ctx: Any) -> Block:
        return Block("not today")


# Each of the following plays one kind of ending; the history that is recorded is that of the turn that it returns.


async def ended(turn: Turn) -> Turn:
    await turn.result(60)
    return turn


async def plain(lab: Lab) -> Turn:
    return await ended(await lab.play("say text='hello there'"))


async def tools(lab: Lab) -> Turn:
    script = 'tools calls=3 tool=add args=\'{"a": 1, "b": 2}\' | tools tool=fail args=\'{"reason": "no"}\' | ok'
    return await ended(await lab.play(script))


async def tool_loop(lab: Lab) -> Turn:
    return await ended(await lab.play('loop tool=fail args=\'{"reason": "no"}\''))


async def hooks(lab: Lab) -> Turn:
    return await ended(await lab.play('tools calls=2 tool=add args=\'{"a": 1, "b": 2}\'', agent="everywhere"))


async def hooks_and_error(lab: Lab) -> Turn:
    return await ended(await lab.play("status code=400", agent="everywhere"))


async def blocked(lab: Lab) -> Turn:
    return await ended(await lab.play("ok", agent="doorkeeper"))


async def error_after_retries(lab: Lab) -> Turn:
    return await ended(await lab.play("status code=500 retry_after_ms=50"))


async def success_after_retry(lab: Lab) -> Turn:
    return await ended(await lab.play("cut how=reset times=1 then=ok"))


async def empty_response(lab: Lab) -> Turn:
    return await ended(await lab.play("empty"))


async def unknown_agent(lab: Lab) -> Turn:
    return await ended(await lab.play("ok", agent="nobody"))


async def cancelled_in_stream(lab: Lab) -> Turn:
    turn = await lab.play("text tokens=1000 delay_ms=20")
    await lab.until(turn, "text-delta")
    await turn.cancel("user pressed stop")
    return await ended(turn)


async def cancelled_in_tool(lab: Lab) -> Turn:
    turn = await lab.play("tools tool=wait_long args='{}'")
    await lab.until(turn, "tool-input-available")
    await turn.cancel()
    return await ended(turn)


async def cancelled_in_temporal(lab: Lab) -> Turn:
    turn = await lab.play("text tokens=1000 delay_ms=20")
    await lab.until(turn, "text-delta")
    await lab.client.get_workflow_handle(workflow_id(turn.request_id)).cancel()
    return await ended(turn)


async def queued(lab: Lab) -> Turn:
    first = await lab.play("text tokens=20 delay_ms=30")
    second = await lab.play("ok", first.thread_id)
    await lab.until(second, "data-queued")
    return await ended(second)


async def queued_behind_a_terminated_turn(lab: Lab) -> Turn:
    first = await lab.play("stall tokens=2")
    await lab.until(first, "text-delta")
    second = await lab.play("ok", first.thread_id)
    await lab.until(second, "data-queued")
    await lab.client.get_workflow_handle(workflow_id(first.request_id)).terminate()
    return await ended(second)


async def cancelled_in_queue(lab: Lab) -> Turn:
    first = await lab.play("text tokens=60 delay_ms=30")
    second = await lab.play("ok", first.thread_id)
    await lab.until(second, "data-queued")
    await second.cancel()
    await ended(first)
    return await ended(second)


async def approved(lab: Lab) -> Turn:
    turn = await lab.play("tools tool=pay args='{\"amount\": 7}'")
    asked = await lab.until(turn, "tool-approval-request")
    await lab.chat.approve(turn.request_id, asked.data["toolCallId"])
    return await ended(turn)


ENDINGS: dict[str, Callable[[Lab], Awaitable[Turn]]] = {
    kind.__name__: kind
    for kind in (
        plain,
        tools,
        tool_loop,
        hooks,
        hooks_and_error,
        blocked,
        error_after_retries,
        success_after_retry,
        empty_response,
        unknown_agent,
        cancelled_in_stream,
        cancelled_in_tool,
        cancelled_in_temporal,
        queued,
        queued_behind_a_terminated_turn,
        cancelled_in_queue,
        approved,
    )
}


def agents(server: ScriptedModelServer) -> list[Agent]:
    every: list[Tool] = [add, fail, wait_long, pay]
    return [
        make_agent(server, tools=every),
        make_agent(server, name="everywhere", base=Everywhere, tools=every),
        make_agent(server, name="doorkeeper", hooks=[Doorkeeper()]),
    ]


def without_private(value: object) -> object:
    """The history's JSON without what it tells of this machine."""
    if isinstance(value, list):
        return [without_private(item) for item in cast(list[object], value)]
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, object], value)
    return {name: _PRIVATE[name] if name in _PRIVATE else without_private(item) for name, item in fields.items()}


async def record(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with temporal_service() as temporal, ScriptedModelServer() as server:
            await ModelLanes().warm_up([scripted(server)])
            client, queue = await temporal.connect(), f"record-{uuid.uuid4().hex[:8]}"
            async with running_lab(client, server, queue, f"sqlite:///{folder}/store.db", agents(server)) as lab:
                for name in names:
                    turn = await ENDINGS[name](lab)
                    history = await client.get_workflow_handle(workflow_id(turn.request_id)).fetch_history()
                    content = without_private(json.loads(history.to_json()))
                    (HISTORIES / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
                    print(f"{name}: {len(history.events)} events")


def main() -> None:
    logging.basicConfig(level=logging.ERROR)
    HISTORIES.mkdir(exist_ok=True)
    missing = [name for name in ENDINGS if not (HISTORIES / f"{name}.json").exists()]
    asyncio.run(record(sys.argv[1:] or missing))
    guarded_exit(0)


if __name__ == "__main__":
    main()
