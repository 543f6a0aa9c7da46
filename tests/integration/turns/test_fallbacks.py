"""Models that follow one that has failed for good."""

from __future__ import annotations

import pytest

from everturn import Agent, InvalidAgent, Model
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.hooks.registry import AgentRegistry
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent


def chain(server: ScriptedModelServer, *names: str) -> Model:
    """A model of the scripted server, and those that follow it."""
    first, *others = (f"openai/{name}" for name in names)
    return Model(first, api_base=server.base_url, fallbacks=[Model(name, api_base=server.base_url) for name in others])


async def test_a_model_that_refuses_for_good_is_followed_by_the_next_at_once(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    model = chain(scripted_server, "status:code=401", "status:code=404", "say:text=third")
    async with start_lab(make_agent(scripted_server, model=model)) as lab:
        text = f"hello {lab.thread()}"
        turn = await lab.submit(lab.thread(), text)
        result = await turn.result(30)
        assert (result.status, result.text) == ("completed", "third")
        assert [request.model for request in lab.requests(text)] == [
            "status:code=401",
            "status:code=404",
            "say:text=third",
        ]
        info = await turn.info()
        assert (info.attempts_failed, info.steps[0].model) == (2, "openai/say:text=third")
        retrying = [chunk.data["retryIn"] for chunk in await lab.chunks(turn) if chunk.type == "data-retrying"]
        assert retrying == [0.0, 0.0]


async def test_the_last_models_failure_is_the_turns(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    model = chain(scripted_server, "status:code=403", "status:code=401")
    async with start_lab(make_agent(scripted_server, model=model)) as lab:
        text = f"hello {lab.thread()}"
        result = await lab.run(lab.thread(), text)
        assert result.status == "error"
        assert result.error.type == "authentication"
        assert "status:code=401" in result.error.message
        assert len(lab.requests(text)) == 2


def test_fallbacks_that_are_no_models_are_named_at_registration() -> None:
    class Wrong(Agent):
        name = "wrong"
        model = Model("demo", fallbacks=[Model("demo", fallbacks=["demo"])])

    with pytest.raises(InvalidAgent, match=r"agent 'wrong'.*fallbacks"):
        AgentRegistry([Wrong()])
