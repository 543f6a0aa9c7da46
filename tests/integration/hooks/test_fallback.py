"""Another model after a failed call, as a hook decides."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.client import Client

from everturn import Agent, Fallback, Hooks, Model, NextModel
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.testing import ModelError, running
from everturn.testing.model import Answer
from everturn.testing.run import TurnRun
from tests.integration.hooks.authors import hooks, the_trace, traces
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent

FIRST, SECOND, THIRD = "openai/gpt-4o", "openai/gpt-4o-mini", "openai/gpt-4.1"
LIMITED, DOWN, REFUSED = ModelError(429, retry_after=30), ModelError(503), ModelError(401)


async def played(client: Client, script: list[Answer], *added: Hooks, **attributes: Any) -> TurnRun:
    """A turn of an agent on the first model."""
    agent: Agent = type("Caller", (Agent,), {"name": "caller", "model": FIRST, "hooks": added, **attributes})()
    async with running(agent, model=script, client=client) as system:
        return await system.run_turn("hello")


def models_of(run: TurnRun) -> list[str]:
    return [prompt["model"] for prompt in run.prompts]


async def test_a_limited_model_is_followed_at_once_by_the_one_named_for_that(client: Client) -> None:
    run = await played(client, [LIMITED, "Hello."], Fallback({"rate_limit": SECOND, "transient": THIRD}))
    assert (run.status, run.text) == ("completed", "Hello.")
    assert models_of(run) == ["gpt-4o", "gpt-4o-mini"]
    assert run.info.steps[0].model == SECOND
    (retrying,) = [chunk.data for chunk in run.chunks if chunk.type == "data-retrying"]
    assert (retrying["retryIn"], retrying["model"]) == (0.0, SECOND)
    trace = the_trace(run.info, "classify_chat_error", "Fallback")
    assert trace.changed == ["model"]
    assert trace.logs[0]["message"] == f"rate_limit: {SECOND} follows"


async def test_several_models_are_tried_in_order_and_none_twice(client: Client) -> None:
    script: list[Answer] = [DOWN, LIMITED, REFUSED]
    run = await played(client, script, Fallback([SECOND, THIRD]))
    assert models_of(run) == ["gpt-4o", "gpt-4o-mini", "gpt-4.1"]
    assert (run.status, run.result.error and run.result.error.type) == ("error", "authentication")
    assert len(traces(run.info, "classify_chat_error")) == 3


async def test_each_step_begins_with_the_agents_own_model(client: Client) -> None:
    from everturn.testing import call
    from tests.integration.hooks.authors import add

    run = await played(client, [LIMITED, call("add", a=1, b=2), "3."], Fallback(SECOND), tools=[add])
    assert models_of(run) == ["gpt-4o", "gpt-4o-mini", "gpt-4o"]
    assert [step.model for step in run.info.steps] == [SECOND, FIRST]


async def test_a_prompt_that_is_too_long_may_go_to_a_model_that_takes_more(client: Client) -> None:
    too_long = ModelError(400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded")
    run = await played(client, [too_long, "Hello."], Fallback({"context_overflow": THIRD}))
    assert (run.text, models_of(run)) == ("Hello.", ["gpt-4o", "gpt-4.1"])


async def test_the_fallback_goes_by_what_another_hook_called_the_failure(client: Client) -> None:
    def classify(self: Any, error: Any, ctx: Any) -> str:
        return "rate_limit"

    run = await played(client, [REFUSED, "Hello."], hooks("Classifier", classify_chat_error=classify), Fallback(SECOND))
    assert (run.text, run.info.steps[0].model) == ("Hello.", SECOND)


async def test_a_model_that_the_agent_does_not_allow_is_not_asked(client: Client) -> None:
    run = await played(client, [REFUSED], Fallback({"fatal": SECOND}), models=[THIRD])
    assert (run.status, models_of(run)) == ("error", ["gpt-4o"])
    trace = the_trace(run.info, "classify_chat_error", "Fallback")
    assert (trace.changed, trace.message) == ([], f"ignored: model {SECOND!r} is not among Agent.models")


async def test_models_that_take_turns_without_end_share_the_five_attempts(client: Client) -> None:
    def ping_pong(self: Any, error: Any, ctx: Any) -> NextModel:
        return NextModel(SECOND if ctx.tried[-1] == FIRST else FIRST)

    run = await played(client, [DOWN] * 9, hooks("PingPong", classify_chat_error=ping_pong))
    assert run.status == "error"
    assert models_of(run) == ["gpt-4o", "gpt-4o-mini", "gpt-4o", "gpt-4o-mini", "gpt-4o"]
    assert "too many calls" in str(traces(run.info, "classify_chat_error")[-1].message)


async def test_a_model_with_an_address_of_its_own_is_reached_there_and_the_others_follow_it(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    def at(name: str, **more: Any) -> Model:
        return Model(f"openai/{name}", api_base=scripted_server.base_url, **more)

    limited, refused, well = "status:code=429", "status:code=401", "say:text=well"
    model = at(limited, fallbacks=[at(well), at(refused)])
    agent = make_agent(scripted_server, model=model, hooks=[Fallback(f"openai/{refused}")])
    async with start_lab(agent) as lab:
        text = f"hello {lab.thread()}"
        assert (await lab.run(lab.thread(), text)).text == "well"
        assert [request.model for request in lab.requests(text)] == [limited, refused, well]


@pytest.mark.parametrize(
    ("models", "on", "message"),
    [
        ([], ["transient"], "needs a model"),
        ("", ["transient"], "needs a model"),
        (SECOND, [], "needs a model"),
        ({}, ["transient"], "needs a model"),
        ({"slow": SECOND}, ["transient"], "'slow' is no classification"),
        (SECOND, ["429"], "'429' is no classification"),
    ],
)
def test_a_fallback_that_can_never_act_is_refused(models: Any, on: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Fallback(models, on=on)
