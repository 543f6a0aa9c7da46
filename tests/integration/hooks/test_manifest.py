"""A turn keeps the hooks that its agent had when the turn was recorded."""

from __future__ import annotations

from typing import Any

from temporalio.client import Client

from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.hooks.authors import hooks, traces
from tests.integration.turns.lab import eventually, make_agent, running_lab


async def test_a_hook_that_is_added_while_a_turn_waits_is_not_run_by_it_but_by_the_next(
    client: Client, scripted_server: ScriptedModelServer, task_queue: str, store_url: str
) -> None:
    seen: list[tuple[str, str]] = []

    def noting(name: str) -> Any:
        async def note(self: Any, ctx: Any) -> None:
            seen.append((name, ctx.request_id))

        return hooks(name, before_turn=note, on_turn_end=note)

    old = make_agent(scripted_server, hooks=[noting("Old")])
    new = make_agent(scripted_server, hooks=[noting("New"), noting("Old")])
    arguments = (client, scripted_server, task_queue, store_url)
    async with running_lab(*arguments, [old], graceful_shutdown=0.1) as lab:
        running = await lab.play("stall tokens=1")
        await lab.until(running, "text-delta")
        waiting = await lab.play("ok", running.thread_id)

        async def queued() -> bool:
            head = await lab.store.head(waiting.request_id)
            return head is not None and head.status == "queued"

        await eventually(queued, "the second turn waits")
    async with running_lab(*arguments, [new]) as lab:
        assert await lab.chat.cancel_chat(running.request_id) == "cancelled"
        assert (await lab.chat.result(waiting.request_id, timeout=30)).text == "ok"
        later = await lab.play("ok", running.thread_id)
        await later.result(15)
        assert [trace.hook for trace in traces(await lab.chat.inspect(waiting.request_id), "before_turn")] == ["Old"]
        assert [trace.hook for trace in traces(await later.info(), "before_turn")] == ["New", "Old"]
        of_waiting = {name for name, request_id in seen if request_id == waiting.request_id}
        assert of_waiting == {"Old"}


async def test_a_hook_that_is_gone_is_left_out_and_the_turn_goes_on(
    client: Client, scripted_server: ScriptedModelServer, task_queue: str, store_url: str
) -> None:
    async def note(self: Any, ctx: Any) -> None:
        ctx.log("here")

    old = make_agent(scripted_server, hooks=[hooks("Gone", before_turn=note, before_step=note)])
    arguments = (client, scripted_server, task_queue, store_url)
    async with running_lab(*arguments, [old], graceful_shutdown=0.1) as lab:
        running = await lab.play("stall tokens=1")
        await lab.until(running, "text-delta")
        waiting = await lab.play("ok", running.thread_id)
    async with running_lab(*arguments, [make_agent(scripted_server)]) as lab:
        await lab.chat.cancel_chat(running.request_id)
        assert (await lab.chat.result(waiting.request_id, timeout=30)).text == "ok"
        assert traces(await lab.chat.inspect(waiting.request_id), "before_turn") == []
