"""What contexts carry, keep and forget."""

from __future__ import annotations

import time
from typing import Any

from everturn import Agent, ChunkContext, Principal, ToolContext, TurnContext, tool
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.hooks.points import HOOK_POINTS
from tests.integration.hooks.authors import ADD, add, hooks, the_trace
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import eventually, make_agent


async def test_every_context_carries_the_facts_of_the_turn(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: dict[str, Any] = {}

    def noting(point: str) -> Any:
        async def note(self: Any, *arguments: Any) -> None:
            seen.setdefault(point, arguments[-1])

        return note

    watching = hooks(**{point: noting(point) for point in HOOK_POINTS})
    principal = Principal("u1", "u1@example.com", roles=("admin",), metadata={"plan": "pro"})
    async with start_lab(make_agent(scripted_server, tools=[add], hooks=[watching])) as lab:
        done = await lab.play(
            f"tools {ADD}", body={"ticket": 7}, principal=principal, tenant_id="acme", request_id=lab.thread()
        )
        await done.result(15)
        failed = await lab.play("status code=400", done.thread_id)
        await failed.result(15)

        async def both_ended() -> bool:
            return len(seen) == len(HOOK_POINTS)

        await eventually(both_ended, f"every point was visited: {sorted(seen)}", 10)
    for point, ctx in seen.items():
        of = failed if point in ("on_chat_error", "classify_chat_error") else done
        assert (ctx.request_id, ctx.thread_id, ctx.agent) == (of.request_id, done.thread_id, "agent"), point
        assert (ctx.trigger, ctx.continuation, ctx.attempt) == ("submit", False, 1), point
        assert time.time() - 60 < ctx.deadline < time.time() + 120, point
        assert ctx.idempotency_key.startswith(f"{of.request_id}:{point}:"), point
        if of is done:
            assert (ctx.body, ctx.principal, ctx.tenant_id) == ({"ticket": 7}, principal, "acme"), point
    keys = [ctx.idempotency_key for ctx in seen.values()]
    assert len(set(keys)) == len(keys)


async def test_two_hooks_of_one_point_have_different_idempotency_keys(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    keys: list[str] = []

    async def before_turn(self: Any, ctx: Any) -> None:
        keys.append(ctx.idempotency_key)

    chain = [hooks("One", before_turn=before_turn), hooks("Two", before_turn=before_turn)]
    async with start_lab(make_agent(scripted_server, hooks=chain)) as lab:
        await (await lab.play("ok")).result(15)
    assert len(set(keys)) == 2


async def test_the_idempotency_key_stays_the_same_over_the_retries_of_a_hook(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[tuple[int, str]] = []

    async def on_chat_response(self: Any, result: Any) -> None:
        seen.append((result.attempt, result.idempotency_key))
        if len(seen) < 3:
            raise ValueError("not yet")

    async with start_lab(make_agent(scripted_server, hooks=[hooks(on_chat_response=on_chat_response)])) as lab:
        await (await lab.play("ok")).result(15)

        async def three_times() -> bool:
            return len(seen) == 3

        await eventually(three_times, "the hook ran three times", 10)
    assert [attempt for attempt, _ in seen] == [1, 2, 3]
    assert len({key for _, key in seen}) == 1


async def test_state_is_kept_across_the_hooks_and_points_of_a_turn_and_not_across_turns(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    found: dict[str, Any] = {}

    class Keeper(Agent):
        async def before_turn(self, ctx: TurnContext) -> None:
            found["at the start"] = dict(ctx.state)
            ctx.state["list"] = ["agent"]

        async def on_chunk(self, chunk: Any, ctx: ChunkContext) -> None:
            ctx.state["chunks"] = ctx.state.get("chunks", 0) + 1

        async def before_tool_call(self, ctx: Any) -> None:
            ctx.state[ctx.tool_call_id] = ctx.input["a"]

        async def on_step_finish(self, ctx: Any) -> None:
            found.setdefault("after the step", dict(ctx.state))

    async def before_turn(self: Any, ctx: Any) -> None:
        ctx.state["list"].append("added")

    async def fails(self: Any, ctx: Any) -> None:
        ctx.state["list"].append("failed")
        ctx.state["of failed"] = True
        raise ValueError("x")

    chain = [hooks("Added", before_turn=before_turn), hooks("Fails", before_turn=fails)]
    async with start_lab(make_agent(scripted_server, tools=[add], hooks=chain, base=Keeper)) as lab:
        first = await lab.play(f"tools calls=2 {ADD}")
        await first.result(15)
        state = found["after the step"]
        assert state["list"] == ["agent", "added"]
        assert "of failed" not in state
        assert state["chunks"] > 0
        assert (state["call_0_0"], state["call_0_1"]) == (1, 1), "two calls at once do not undo each other's keys"
        await (await lab.play("ok", first.thread_id)).result(15)
        assert found["at the start"] == {}


async def test_contexts_are_copies_and_only_added_hooks_change_the_turn_by_editing_them(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    class Editing(Agent):
        async def before_turn(self, ctx: TurnContext) -> None:
            ctx.system = "edited by the agent"
            ctx.messages.clear()

    async def edits(self: Any, ctx: Any) -> None:
        ctx.system += " Edited."
        ctx.messages[-1]["content"] += " appended"
        ctx.temperature = 0.25
        ctx.tools.clear()

    async with start_lab(make_agent(scripted_server, system="Old.", tools=[add], base=Editing)) as lab:
        turn = await lab.play("ok")
        await turn.result(15)
        body = lab.asked(turn)[0].body
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
        assert body["messages"][0]["content"] == "Old."
    agent = make_agent(scripted_server, system="Old.", tools=[add], hooks=[hooks("Edits", before_turn=edits)])
    agent_two = type("Two", (type(agent),), {"name": "two"})()
    async with start_lab(agent_two) as lab:
        turn = await lab.play("ok", agent="two")
        await turn.result(15)
        body = lab.asked(turn)[0].body
        assert body["messages"][0]["content"] == "Old. Edited."
        assert body["messages"][1]["content"].endswith(" appended")
        assert (body["temperature"], len(body["tools"])) == (0.25, 1)
        assert the_trace(await turn.info(), "before_turn").changed == ["messages", "system", "temperature"]
        assert (await lab.chat.messages(turn.thread_id))[0].text.endswith(turn.thread_id)


async def test_the_turns_context_shows_what_the_model_would_get(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[Any] = []

    async def before_turn(self: Any, ctx: Any) -> None:
        seen.append(ctx)

    agent = make_agent(
        scripted_server,
        system="Be kind.",
        temperature=0.75,
        tools=[add],
        hooks=[hooks(before_turn=before_turn)],
    )
    async with start_lab(agent) as lab:
        first = await lab.play("say text=one")
        await first.result(15)
        await (await lab.play("ok", first.thread_id)).result(15)
    ctx = seen[1]
    assert (ctx.system, ctx.model, ctx.temperature) == ("Be kind.", "openai/scripted", 0.75)
    assert [(m["role"], m["content"].split("]] ")[0]) for m in ctx.messages] == [
        ("user", "[[say text=one"),
        ("assistant", "one"),
        ("user", "[[ok"),
    ]
    assert ctx.tools["add"].description == "Adds two numbers."
    assert ctx.tools["add"].schema == add.schema


async def test_a_tool_gets_the_facts_of_its_turn(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    seen: list[ToolContext] = []

    @tool
    def act(ctx: ToolContext, a: int) -> str:
        """Acts."""
        ctx.progress({"half": True})
        seen.append(ctx)
        return "done"

    async with start_lab(make_agent(scripted_server, tools=[act])) as lab:
        turn = await lab.play("tools args='{\"a\": 1}'", body={"k": 1}, principal=Principal("u1"))
        await turn.result(15)
        (ctx,) = seen
        assert (ctx.request_id, ctx.body, ctx.principal.id) == (turn.request_id, {"k": 1}, "u1")
        assert (ctx.tool_call_id, ctx.step, ctx.cancelled.is_set()) == ("call_0_0", 0, False)
        assert ctx.idempotency_key == f"{turn.request_id}:tool:call_0_0"
        progress = [chunk.data for chunk in await lab.chunks(turn) if chunk.type == "data-tool-progress"]
        assert progress == [{"toolCallId": "call_0_0", "value": {"half": True}}]
