"""What a streamed turn leaves in Temporal's history: 2 tool calls, then 200 tokens at 50 a second."""

from __future__ import annotations

import asyncio

from benchmarks.field import Field
from benchmarks.samples import Sample
from benchmarks.schedule import Budget


async def measure(field: Field, budget: Budget) -> list[Sample]:
    samples: list[Sample] = []
    for number in budget.rounds():
        # Together: nothing is timed, and each turn streams for 4 seconds.
        names = [name for name, entrant in field.entrants.items() if entrant.contender.temporal]
        samples += await asyncio.gather(*(_one(field, name, number) for name in names))
    return samples


async def _one(field: Field, name: str, number: int) -> Sample:
    done = (await field.entrants[name].turns(tools=2, tokens=200, gap_ms=20))["turns"][0]
    sample: Sample = {"section": "history", "contender": name, "round": number, "error": done.get("error")}
    if done.get("workflow"):
        events, size = await field.history(done["workflow"])
        sample |= {"events": events, "bytes": size}
    return sample
