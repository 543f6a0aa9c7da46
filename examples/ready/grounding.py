"""Grounding: facts for the model, looked up before each turn."""

from __future__ import annotations

from everturn import Agent, Grounding, TurnContext

PAGES = {"return": "Goods can be returned within 30 days.", "open": "The shop is open from 9 to 17."}


def search(question: str, ctx: TurnContext) -> list[str]:
    return [page for word, page in PAGES.items() if word in question.lower()]


class Informed(Agent):
    name = "informed"
    model = "openai/gpt-4o-mini"
    system = "You answer for a shop."
    hooks = (Grounding(search, header="From the handbook:"),)
