"""Cells of the tables: what is shown of a contender's samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from benchmarks.contenders import CONTENDERS
from benchmarks.samples import Sample, chosen, median, paired_ratio, percentile, values

NOTHING: Final = "–"
Cell = Callable[[Sequence[Sample], str, str], str]
"""From the samples, the contender, and whom its ratio is to."""


def number(value: float | None, digits: int = 0) -> str:
    return NOTHING if value is None else f"{value:,.{digits}f}"


def spread(name: str, *, digits: int = 0, **conditions: Any) -> Cell:
    """p50 / p95, and the paired ratio."""

    def cell(samples: Sequence[Sample], contender: str, against: str) -> str:
        found = values(samples, name, contender=contender, **conditions)
        if not found:
            return NOTHING
        text = f"{number(percentile(found, 0.5), digits)} / {number(percentile(found, 0.95), digits)}"
        return text + ratio(paired_ratio(samples, name, contender, against, **conditions), contender, against)

    return cell


def middle(name: str, *, scale: float = 1, digits: int = 0, paired: bool = True, **conditions: Any) -> Cell:
    """The median, and the paired ratio."""

    def cell(samples: Sequence[Sample], contender: str, against: str) -> str:
        found = median(values(samples, name, contender=contender, **conditions))
        if found is None:
            return NOTHING
        compared = paired_ratio(samples, name, contender, against, **conditions) if paired else None
        return number(found * scale, digits) + ratio(compared, contender, against)

    return cell


def lag(samples: Sequence[Sample], contender: str, _against: str) -> str:
    """p50 / p95 of all tokens."""
    lags = all_lags(samples, contender)
    return f"{number(percentile(lags, 0.5), 1)} / {number(percentile(lags, 0.95), 1)}" if lags else NOTHING


def all_lags(samples: Sequence[Sample], contender: str) -> list[float]:
    return [found for s in chosen(samples, section="streaming", contender=contender) for found in s["lags_ms"]]


def grown(samples: Sequence[Sample], contender: str, _against: str) -> str:
    """The long thread's turn, and how many times the first one's."""
    long = long_turn(samples, contender)
    if long is None:
        return NOTHING
    took = median(values(samples, "ms", section="growth", contender=contender, turn=long))
    text = f"{number(took)} ({number(growth_ratio(samples, contender), 2)}×)"
    return text if long == _LONG else f"{text}, turn {long}"


_LONG: Final = 200


def long_turn(samples: Sequence[Sample], contender: str) -> int | None:
    turns = [s["turn"] for s in chosen(samples, section="growth", contender=contender)]
    return max(turns) if turns else None


def growth_ratio(samples: Sequence[Sample], contender: str) -> float | None:
    """Median over the rounds of the long thread's turn ÷ the first turn of the same round."""
    found = chosen(samples, section="growth", contender=contender)
    first = {s["round"]: s["ms"] for s in found if s["turn"] == 1}
    late = {s["round"]: s["ms"] for s in found if s["turn"] != 1}
    return median(late[round_] / first[round_] for round_ in late.keys() & first.keys())


def grown_bytes(samples: Sequence[Sample], contender: str, _against: str) -> str:
    """kB of the long thread's turn in Temporal's history."""
    long = long_turn(samples, contender)
    size = median(values(samples, "bytes", section="growth", contender=contender, turn=long))
    return NOTHING if size is None else number(size / 1000, 0 if size > 100_000 else 1)


def cpu(at_once: int) -> Cell:
    """ms of CPU a turn: worker / Temporal / client."""

    def cell(samples: Sequence[Sample], contender: str, _against: str) -> str:
        found = chosen(samples, section="throughput", contender=contender, at_once=at_once)
        roles = ("worker", "temporal", "client")
        shares = {role: median(s["cpu_ms"][role] for s in found if role in s["cpu_ms"]) for role in roles}
        if not CONTENDERS[contender].temporal:
            shares["temporal"] = None
        return " / ".join(number(share) for share in shares.values()) if found else NOTHING

    return cell


def ratio(value: float | None, contender: str, against: str) -> str:
    return "" if value is None or contender == against else f" ({value:.2f}×)"
