"""Tools that before_turn adds to a turn."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.client import Client

from everturn import Allow, Tool, ToolContext, TurnConfig, tool
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.hooks.contexts import StepContext, TurnContext
from tests.integration.hooks.authors import ADD, add, hooks, the_trace
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import eventually, make_agent, running_lab

ran: list[tuple[str, int]] = []


@tool
def multiply(ctx: ToolContext, a: int, b: int) -> int:
    """Multiplies two numbers."""
    ran.append((ctx.request_id, a * b))
    return a * b


def halve(a: int) -> float:
    """Halves a number; a plain function."""
    return a / 2


@tool(name="add")
def another_add(a: int, b: int) -> str:
    """Another tool of that name."""
    return f"{a}{b}"


def adding(*tools: Any, name: str = "Adding", **options: Any) -> Any:
    async def before_turn(self: Any, ctx: TurnContext) -> TurnConfig:
        return TurnConfig(tools=tools)

    return hooks(name, before_turn=before_turn, **options)


async def test_an_added_tool_is_offered_called_and_run_through_its_hooks(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[str] = []

    async def before(self: Any, ctx: Any) -> Allow:
        seen.append(ctx.tool_name)
        return Allow(input={"a": 5, "b": 6})

    agent = make_agent(scripted_server, tools=[add], hooks=[adding(multiply, halve), hooks(before_tool_call=before)])
    async with start_lab(agent) as lab:
        turn = await lab.play(f"tools tool=multiply {ADD}")
        assert (await turn.result(20)).status == "completed"
        offered = [t["function"]["name"] for t in lab.asked(turn)[0].body["tools"]]
        assert offered == ["add", "multiply", "halve"]
        (call,) = (await turn.info()).tool_calls
        assert (call.state, call.output, seen) == ("done", 30, ["multiply"])
        assert ran == [(turn.request_id, 30)]
        facts = await lab.store.load_turn(turn.request_id)
        assert facts.config["turn"]["tools"] == [f"{__name__}:multiply", f"{__name__}:halve"]


async def test_a_plain_function_is_a_tool_too_and_wrong_arguments_are_told(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[adding(halve)])) as lab:
        good = await lab.play("tools args='{\"a\": 3}'")
        await good.result(20)
        assert [call.output for call in (await good.info()).tool_calls] == [1.5]
        bad = await lab.play("tools tool=halve args='{\"b\": 3}'")
        await bad.result(20)
        assert "a: Field required" in str((await bad.info()).tool_calls[0].error)


async def test_added_tools_are_the_turns_and_not_the_agents(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async def before_turn(self: Any, ctx: TurnContext) -> TurnConfig | None:
        return TurnConfig(tools=[multiply]) if ctx.body else None

    async with start_lab(make_agent(scripted_server, tools=[add], hooks=[hooks(before_turn=before_turn)])) as lab:
        first = await lab.play("ok", body={"more": True})
        await first.result(20)
        second = await lab.play(f"tools tool=multiply {ADD}", first.thread_id)
        await second.result(20)
        assert "there is no tool named 'multiply'" in str((await second.info()).tool_calls[0].error)


async def test_active_tools_and_contexts_know_added_tools(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[list[str]] = []

    async def narrow(self: Any, ctx: TurnContext) -> TurnConfig:
        seen.append(list(ctx.tools))
        return TurnConfig(active_tools=["multiply"])

    async def step(self: Any, ctx: StepContext) -> None: ...

    chain = [adding(multiply), hooks("Narrow", before_turn=narrow, before_step=step)]
    async with start_lab(make_agent(scripted_server, tools=[add], hooks=chain)) as lab:
        turn = await lab.play("ok")
        await turn.result(20)
        assert seen == [["add", "multiply"]]
        assert [t["function"]["name"] for t in lab.asked(turn)[0].body["tools"]] == ["multiply"]
        assert the_trace(await turn.info(), "before_turn", "Narrow").message is None


def local_tool() -> Tool:
    @tool
    def hidden(a: int) -> int:
        """Stands inside a function."""
        return a

    return hidden


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (local_tool(), "define it at the top level of a module"),
        (another_add, "two tools named 'add'"),
        ("no_such_module:thing", "cannot be imported"),
        (f"{__name__}:ran", "cannot be used as a tool"),
        (7, "neither a function nor a Tool"),
    ],
    ids=["local", "double", "missing", "not-callable", "number"],
)
@pytest.mark.parametrize(("on_error", "status"), [("continue", "completed"), ("raise", "error"), ("deny", "blocked")])
async def test_a_tool_that_cannot_be_found_again_is_a_failure_by_policy(
    start_lab: StartLab, scripted_server: ScriptedModelServer, given: Any, said: str, on_error: str, status: str
) -> None:
    agent = make_agent(scripted_server, tools=[add], hooks=[adding(given, on_error=on_error)])
    async with start_lab(agent) as lab:
        turn = await lab.play("ok")
        assert (await turn.result(20)).status == status
        trace = the_trace(await turn.info(), "before_turn")
        assert trace.outcome in ("error", "invalid")
        assert said in str(trace.message)
        if status == "completed":
            assert [t["function"]["name"] for t in lab.asked(turn)[0].body["tools"]] == ["add"]


async def test_another_worker_finds_the_added_tools_of_a_turn_that_it_takes_over(
    client: Client, scripted_server: ScriptedModelServer, task_queue: str, store_url: str
) -> None:
    def agent() -> Any:
        return make_agent(scripted_server, hooks=[adding(multiply)])

    arguments = (client, scripted_server, task_queue, store_url)
    async with running_lab(*arguments, [agent()], graceful_shutdown=0.1) as lab:
        turn = await lab.play(f"tools tool=multiply {ADD} times=9 then=ok delay_ms=700")
        await lab.until(turn, "tool-input-start")
    async with running_lab(*arguments, [agent()]) as lab:

        async def over() -> bool:
            head = await lab.store.head(turn.request_id)
            return head is not None and head.status == "completed"

        await eventually(over, "the turn went on")
        (call,) = (await lab.chat.inspect(turn.request_id)).tool_calls
        assert (call.state, call.output) == ("done", 2)
