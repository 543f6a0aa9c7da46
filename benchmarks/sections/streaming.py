"""Time to the first token, and how late each token is: from the model's write to the client's hands."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from benchmarks.field import Field
from benchmarks.samples import Sample, percentile
from benchmarks.schedule import Budget, rotated

TOKENS: Final = 30
GAP_MS: Final = 20
_PAUSE: Final = 0.1


async def measure(field: Field, budget: Budget) -> list[Sample]:
    samples: list[Sample] = []
    for number in budget.rounds():
        for name in rotated(list(field.entrants), number):
            done = (await field.entrants[name].turns(tools=0, tokens=TOKENS, gap_ms=GAP_MS))["turns"][0]
            sample: Sample = {"section": "streaming", "contender": name, "round": number, "error": done.get("error")}
            if not sample["error"]:
                sample |= token_times(done, (await field.seen(done["turn"]))[-1]["written"])
            samples.append(sample)
            await asyncio.sleep(_PAUSE)
    return samples


def token_times(done: dict[str, Any], written: list[float]) -> Sample:
    """first_ms: from the submission to the first token. lag_ms: of each token. after_ms: the end after the last one."""
    arrived: dict[int, float] = {}
    for token, at in done["tokens"]:
        arrived.setdefault(token, at)
    if not arrived:
        return {"error": "no token was streamed"}
    lags = [(at - written[token]) * 1000 for token, at in sorted(arrived.items())]
    return {
        "first_ms": (min(arrived.values()) - done["began"]) * 1000,
        "to_model_ms": (written[0] - done["began"]) * 1000,
        "lags_ms": [round(lag, 1) for lag in lags],
        "lag_ms": percentile(lags, 0.5),
        "after_ms": (done["ended"] - written[-1]) * 1000,
        "streamed": len(arrived),
    }
