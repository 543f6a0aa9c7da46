"""How long a streamed turn takes, one at a time: without tools, with 2 and with 5 sequential tool calls."""

from __future__ import annotations

import asyncio
from typing import Final

from benchmarks.field import Field
from benchmarks.samples import Sample
from benchmarks.schedule import Budget, rotated

TOOLS: Final = (0, 2, 5)
_PAUSE: Final = 0.1
"""Seconds for what a turn leaves to be done after its end, so that the next contender does not pay for it."""


async def measure(field: Field, budget: Budget) -> list[Sample]:
    samples: list[Sample] = []
    for number in budget.rounds():
        for tools in TOOLS:
            for name in rotated(list(field.entrants), number):
                done = (await field.entrants[name].turns(tools=tools, tokens=20))["turns"][0]
                sample: Sample = {"section": "latency", "contender": name, "round": number, "tools": tools}
                sample |= {"ms": (done["ended"] - done["began"]) * 1000, "error": done.get("error")}
                if done.get("accepted"):
                    sample["submit_ms"] = (done["accepted"] - done["began"]) * 1000
                samples.append(sample)
                await asyncio.sleep(_PAUSE)
    return samples
