"""before_turn: every field reaches the model or changes the turn; a block keeps the model out."""

from __future__ import annotations

from typing import Any

import pytest

from everturn import Block, Model, TurnConfig, tool
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.hooks.authors import ADD, add, hooks, the_trace
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent, scripted, shown_text


def answering(answer: Any, name: str = "Added", **options: Any) -> Any:
    async def before_turn(self: Any, ctx: Any) -> Any:
        return answer(ctx) if callable(answer) else answer

    return hooks(name, before_turn=before_turn, **options)


@tool
async def subtract(a: int, b: int) -> int:
    """Subtracts."""
    return a - b


FIELDS = [
    ({"system": "Be brief."}, lambda body: body["messages"][0] == {"role": "system", "content": "Be brief."}),
    ({"temperature": 1.25}, lambda body: body["temperature"] == 1.25),
    ({"top_p": 0.5}, lambda body: body["top_p"] == 0.5),
    ({"max_output_tokens": 77}, lambda body: 77 in (body.get("max_tokens"), body.get("max_completion_tokens"))),
    ({"stop_sequences": ["END"]}, lambda body: body["stop"] == ["END"]),
    ({"seed": 11}, lambda body: body["seed"] == 11),
    ({"tool_choice": "none"}, lambda body: body["tool_choice"] == "none"),
    ({"active_tools": ["add"]}, lambda body: [t["function"]["name"] for t in body["tools"]] == ["add"]),
    ({"active_tools": []}, lambda body: not body.get("tools")),
    ({"provider_options": {"frequency_penalty": 0.5}}, lambda body: body["frequency_penalty"] == 0.5),
    ({"model": "hosted_vllm/scripted"}, lambda body: body["model"] == "scripted"),
]


@pytest.mark.parametrize(("fields", "reached"), FIELDS, ids=["-".join(fields) for fields, _ in FIELDS])
async def test_a_field_of_the_turns_config_reaches_the_model(
    start_lab: StartLab,
    scripted_server: ScriptedModelServer,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any],
    reached: Any,
) -> None:
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", scripted_server.base_url)
    agent = make_agent(scripted_server, tools=[add, subtract], hooks=[answering(TurnConfig(**fields))])
    async with start_lab(agent) as lab:
        turn = await lab.play("ok")
        assert (await turn.result(15)).text == "ok"
        (request,) = lab.asked(turn)
        assert reached(request.body), request.body
        assert the_trace(await turn.info(), "before_turn").changed == list(fields)


async def test_headers_are_added_to_those_of_the_agents_model(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    model = Model("openai/scripted", api_base=scripted_server.base_url, headers={"x-agent": "a"})
    agent = make_agent(scripted_server, model=model, hooks=[answering(TurnConfig(headers={"x-turn": "t"}))])
    async with start_lab(agent) as lab:
        turn = await lab.play("ok")
        await turn.result(15)
        (request,) = lab.asked(turn)
        assert (request.headers["x-agent"], request.headers["x-turn"]) == ("a", "t")


async def test_messages_replace_what_the_model_sees_and_the_store_keeps_what_the_user_sent(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    config = TurnConfig(messages=[{"role": "user", "content": "[[say text=replaced]] other words"}])
    async with start_lab(make_agent(scripted_server, hooks=[answering(config)])) as lab:
        turn = await lab.play("say text=original")
        assert (await turn.result(15)).text == "replaced"
        stored = await lab.chat.messages(turn.thread_id)
        assert stored[0].text == f"[[say text=original]] {turn.thread_id}"
        assert lab.asked(turn) == []


async def test_messages_hold_for_every_step_of_the_turn_and_its_own_steps_follow(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    def rewritten(ctx: Any) -> TurnConfig:
        return TurnConfig(messages=[{"role": "user", "content": ctx.messages[-1]["content"] + " marked"}])

    agent = make_agent(scripted_server, tools=[add], hooks=[answering(rewritten)])
    async with start_lab(agent) as lab:
        turn = await lab.play(f"tools {ADD}")
        await turn.result(15)
        first, second = (request.body["messages"] for request in lab.asked(turn))
        assert [message["role"] for message in first] == ["user"]
        assert [message["role"] for message in second] == ["user", "assistant", "tool"]
        assert second[0]["content"].endswith(" marked")


async def test_max_steps_of_the_turn_ends_it_with_that_stop_reason(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    agent = make_agent(scripted_server, tools=[add], hooks=[answering(TurnConfig(max_steps=2))])
    async with start_lab(agent) as lab:
        turn = await lab.play(f"tools calls=5 sequential=1 {ADD}")
        result = await turn.result(15)
        assert (result.status, result.stop_reason, result.steps) == ("completed", "max_steps", 2)


async def test_send_reasoning_false_keeps_reasoning_out_of_the_stream(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    quiet = answering(lambda ctx: TurnConfig(send_reasoning=False) if ctx.body else None)
    async with start_lab(make_agent(scripted_server, hooks=[quiet])) as lab:
        for body, shown in ((None, True), ({"quiet": True}, False)):
            turn = await lab.play("think", body=body)
            kinds = {chunk.type for chunk in await lab.chunks(turn)}
            assert ("reasoning-delta" in kinds) is shown


@pytest.mark.parametrize(
    ("fields", "script", "code"),
    [
        ({"timeout": 0.3}, "stall kind=drip times=1", "total_timeout"),
        ({"chat_stream_stall_timeout": 0.3}, "stall tokens=2 times=1", "stalled"),
    ],
)
async def test_the_time_limits_of_the_turn_cut_a_model_call_and_the_step_is_retried(
    start_lab: StartLab, scripted_server: ScriptedModelServer, fields: dict[str, Any], script: str, code: str
) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[answering(TurnConfig(**fields))])) as lab:
        turn = await lab.play(script)
        result = await turn.result(25)
        info = await turn.info()
        assert (result.status, result.text, info.attempts_failed) == ("completed", "ok", 1)
        assert code in str(the_trace(info, "model_step").logs)


async def test_metadata_is_stored_with_the_turn(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[answering(TurnConfig(metadata={"ticket": "T-1"}))])) as lab:
        turn = await lab.play("ok")
        await turn.result(15)
        facts = await lab.store.load_turn(turn.request_id)
        assert facts.config["turn"]["metadata"] == {"ticket": "T-1"}


async def test_nothing_and_none_leave_the_turn_alone(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    async with start_lab(make_agent(scripted_server, system="Old.", hooks=[answering(None)])) as lab:
        turn = await lab.play("ok")
        await turn.result(15)
        assert lab.asked(turn)[0].body["messages"][0]["content"] == "Old."
        assert the_trace(await turn.info(), "before_turn").changed == []


@pytest.mark.parametrize(
    ("config", "warning"),
    [
        (TurnConfig(model="openai/other"), "model 'openai/other' is not among Agent.models"),
        (TurnConfig(messages=[{"content": "no role"}]), "not in OpenAI's chat format"),
    ],
)
async def test_a_field_that_may_not_be_used_is_ignored_with_a_warning_and_the_others_count(
    start_lab: StartLab, scripted_server: ScriptedModelServer, config: TurnConfig, warning: str
) -> None:
    hook = answering(config.merged(TurnConfig(seed=5)))
    async with start_lab(make_agent(scripted_server, models=["openai/scripted"], hooks=[hook])) as lab:
        turn = await lab.play("ok")
        assert (await turn.result(15)).text == "ok"
        assert lab.asked(turn)[0].body["seed"] == 5
        trace = the_trace(await turn.info(), "before_turn")
        assert (trace.outcome, trace.changed) == ("ok", ["seed"])
        assert warning in str(trace.message)


async def test_a_misspelt_tool_in_active_tools_never_widens_what_the_model_may_use(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    hook = answering(TurnConfig(active_tools=["add", "substract"]))
    async with start_lab(make_agent(scripted_server, tools=[add, subtract], hooks=[hook])) as lab:
        turn = await lab.play("ok")
        await turn.result(15)
        assert [t["function"]["name"] for t in lab.asked(turn)[0].body["tools"]] == ["add"]
        assert "substract" in str(the_trace(await turn.info(), "before_turn").message)


async def test_a_call_of_a_tool_that_is_not_active_is_refused_and_not_run(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    hook = answering(TurnConfig(active_tools=["subtract"]))
    async with start_lab(make_agent(scripted_server, tools=[add, subtract], hooks=[hook])) as lab:
        turn = await lab.play(f"tools tool=add {ADD}")
        assert (await turn.result(15)).status == "completed"
        (call,) = (await turn.info()).tool_calls
        assert (call.state, call.error) == ("error", "there is no tool named 'add'; available: subtract")


async def test_a_later_hook_sees_and_overrides_what_an_earlier_one_set(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[str] = []

    def second(ctx: Any) -> TurnConfig:
        seen.append(ctx.system)
        return TurnConfig(system=ctx.system + " Second.")

    chain = [answering(TurnConfig(system="First.", seed=1), "one"), answering(second, "two")]
    async with start_lab(make_agent(scripted_server, system="Old.", hooks=chain)) as lab:
        turn = await lab.play("ok")
        await turn.result(15)
        body = lab.asked(turn)[0].body
        assert seen == ["First."]
        assert (body["messages"][0]["content"], body["seed"]) == ("First. Second.", 1)


async def test_a_blocked_turn_never_calls_the_model_and_stays_out_of_later_prompts(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    ran_after: list[str] = []

    def second(ctx: Any) -> None:
        ran_after.append(ctx.request_id)

    def first(ctx: Any) -> Block | None:
        return Block("Not about this.") if ctx.body else None

    chain = [answering(first, "one"), answering(second, "two")]
    async with start_lab(make_agent(scripted_server, hooks=chain)) as lab:
        refused = await lab.play("say text=forbidden", body={"block": True})
        result = await refused.result(15)
        assert (result.status, result.stop_reason, result.text) == ("blocked", "blocked", "Not about this.")
        assert (result.steps, result.error) == (0, None)
        assert lab.asked(refused) == []
        assert ran_after == []
        chunks = await lab.chunks(refused)
        assert shown_text(chunks) == "Not about this."
        assert (chunks[-1].type, chunks[-1].data["status"]) == ("finish", "blocked")
        stored = await lab.chat.messages(refused.thread_id)
        assert [(m.role, m.hidden) for m in stored] == [("user", True), ("assistant", True)]
        assert stored[1].text == "Not about this."

        later = await lab.play("say text=fine", refused.thread_id)
        assert (await later.result(15)).text == "fine"
        (request,) = lab.asked(later)
        prompt = str(request.body["messages"])
        assert "forbidden" not in prompt
        assert "Not about this" not in prompt
        assert the_trace(await refused.info(), "before_turn").changed == ["block"]


async def test_a_block_without_words_gets_a_generic_reply(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[answering(Block(""))])) as lab:
        turn = await lab.play("ok")
        assert (await turn.result(15)).text == Block().reason


async def test_another_model_does_not_get_the_address_and_key_of_the_agents_model(
    start_lab: StartLab, scripted_server: ScriptedModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_AGENT", "sk-of-the-agent")
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", scripted_server.base_url)
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "sk-of-the-other")
    model = Model("openai/scripted", api_base=scripted(scripted_server).api_base, api_key_env="SECRET_OF_AGENT")
    hook = answering(TurnConfig(model="hosted_vllm/scripted"))
    async with start_lab(make_agent(scripted_server, model=model, hooks=[hook])) as lab:
        turn = await lab.play("key expected=sk-of-the-other")
        assert (await turn.result(15)).text == "welcome"
