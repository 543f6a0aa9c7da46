"""Pieces of a turn's time as lines of text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from benchmarks.trace.segments import Segment
from everturn.turns import TurnInfo

_WIDTH: Final = 40


def drawn(pieces: Sequence[Segment], info: TurnInfo) -> Iterator[str]:
    """The waterfall, the sums by kind, and what the store knows of the inside of steps, tools and hooks."""
    begin, end = min(p.begin for p in pieces), max(p.end for p in pieces)
    yield f"{'at ms':>8} {'ms':>8}"
    for piece in pieces:
        at = (piece.begin - begin) * 1000
        yield f"{at:8.1f} {piece.ms:8.1f} {_bar(piece, begin, end)} {piece.kind}: {piece.what}"
    yield ""
    yield from _sums(pieces, (end - begin) * 1000)
    yield ""
    yield from _inside(info)


def _bar(piece: Segment, begin: float, end: float) -> str:
    scale = _WIDTH / (end - begin)
    left = round((piece.begin - begin) * scale)
    return ("·" * left + "█" * max(1, round((piece.end - piece.begin) * scale)))[:_WIDTH].ljust(_WIDTH, "·")


def _sums(pieces: Sequence[Segment], total: float) -> Iterator[str]:
    sums: dict[str, float] = defaultdict(float)
    for piece in pieces:
        sums[piece.kind] += piece.ms
    yield f"{total:8.1f} ms in all"
    for kind, ms in sorted(sums.items(), key=lambda item: -item[1]):
        yield f"{ms:8.1f} {kind} ({ms / total:.0%})"
    if (rest := total - sum(sums.values())) > 0:
        yield f"{rest:8.1f} between events ({rest / total:.0%})"


def _inside(info: TurnInfo) -> Iterator[str]:
    for step in info.steps:
        yield f"{step.duration_ms:8} of step {step.step} was the model's call ({step.model})"
    for call in info.tool_calls:
        yield f"{call.duration_ms or 0:8} of step {call.step} was the tool {call.tool_name}"
    for trace in info.hook_traces:
        yield f"{trace.duration_ms:8} was the hook {trace.hook} at {trace.point}"
