"""How many streams of 50 tokens a second one worker process holds before tokens come late."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.contenders import OURS
from benchmarks.field import Field
from benchmarks.samples import percentile
from benchmarks.sections.streaming import token_times

STEPS: Final = (25, 50, 75, 100, 150, 200, 300)
LIMIT_MS: Final = 250.0
"""95 of 100 tokens must reach the client within this time after the model has written them."""
_TOKENS: Final = 300
_GAP_MS: Final = 20
_WARM: Final = 75
"""Tokens at the beginning of each answer that do not count: all turns start at once then."""


async def measure(field: Field, name: str = OURS) -> dict[str, Any]:
    """Raises the number of streams until they are late: {"held": …, "steps": [{"streams", "p50_ms", "p95_ms", …}]}."""
    steps: list[dict[str, Any]] = []
    held = 0
    for streams in STEPS:
        step = await _streams(field, name, streams)
        steps.append(step)
        if step["error"] or step["p95_ms"] is None or step["p95_ms"] >= LIMIT_MS:
            break
        held = streams
    return {"held": held, "steps": steps}


async def _streams(field: Field, name: str, streams: int) -> dict[str, Any]:
    before = field.cpu(name)
    entrant = field.entrants[name]
    done = await entrant.turns(count=streams, at_once=streams, tools=0, tokens=_TOKENS, gap_ms=_GAP_MS)
    used = {role: (after - before[role]) / done["seconds"] for role, after in field.cpu(name).items()}
    problems = [turn["error"] for turn in done["turns"] if turn.get("error")]
    lags: list[float] = []
    for turn in done["turns"]:
        if not turn.get("error"):
            lags += token_times(turn, (await field.seen(turn["turn"]))[-1]["written"])["lags_ms"][_WARM:]
    return {
        "streams": streams,
        "p50_ms": percentile(lags, 0.5),
        "p95_ms": percentile(lags, 0.95),
        "cores": {role: round(share, 2) for role, share in used.items()},
        "error": problems[0] if problems else None,
    }
