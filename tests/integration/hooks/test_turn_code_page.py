"""docs/turn-code.md is true: its examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from everturn import Block, Principal, TurnConfig
from tests.integration.hooks.code_lab import play, site

PAGE = (Path(__file__).parents[3] / "docs" / "turn-code.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SERVICE = "https://search.example.com"
POLICY, AGENT, GROUNDING, ROUTING, NOTE = BLOCKS


async def test_the_policy_lets_signed_in_users_pass() -> None:
    ran = await play(POLICY)
    assert (ran.outcome, ran.run.value) == ("ok", None)
    anonymous = await play(POLICY, user=Principal(is_anonymous=True))
    assert anonymous.run.value == Block("Please sign in first.")


async def test_the_grounding_adds_the_facts_that_it_fetched() -> None:
    async with site() as service:
        ran = await play(GROUNDING.replace(SERVICE, service.url), outbound=[service.url])
        assert ran.run.value == TurnConfig(system="Be kind.\n\nFacts:\nParis is in France.")
        assert service.seen[0][1] == "/facts?q=hi"


@pytest.mark.parametrize(("length", "changed"), [(1, ["model"]), (21, ["model", "temperature"])])
async def test_the_routing_chooses_the_model_by_plan_and_the_temperature_by_length(
    length: int, changed: list[str]
) -> None:
    ran = await play(ROUTING, messages=[{"role": "user", "content": "hi"}] * length)
    assert isinstance(ran.run.value, TurnConfig)
    assert (ran.run.value.changed, ran.run.value.model) == (changed, "openai/large")


async def test_the_note_stands_on_the_newest_message() -> None:
    ran = await play(NOTE)
    assert re.fullmatch(r"hi\n\n\(asked on \w+day\)", ran.ctx.messages[-1]["content"])


def test_the_agent_is_valid() -> None:
    from everturn.hooks.registry import AgentRegistry

    names: dict[str, object] = {}
    exec(compile(AGENT, "turn-code.md", "exec"), names)
    shop: object = names["Shop"]
    assert callable(shop)
    assert AgentRegistry([shop()]).get("shop").manifest == {"before_turn": ["turn-code"]}
