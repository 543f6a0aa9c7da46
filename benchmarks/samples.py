"""Samples and what is made of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

Sample = dict[str, Any]
"""One measured value, or a few of one moment: section, contender, round, the conditions, the values."""


def percentile(values: Iterable[float], share: float) -> float | None:
    """Nearest rank; None without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))] if ordered else None


def median(values: Iterable[float]) -> float | None:
    found = list(values)
    return statistics.median(found) if found else None


def chosen(samples: Sequence[Sample], **conditions: Any) -> list[Sample]:
    """The samples without an error that meet all conditions."""
    return [
        s for s in samples if not s.get("error") and all(s.get(name) == value for name, value in conditions.items())
    ]


def values(samples: Sequence[Sample], name: str, **conditions: Any) -> list[float]:
    return [s[name] for s in chosen(samples, **conditions) if s.get(name) is not None]


def paired_ratio(samples: Sequence[Sample], name: str, contender: str, against: str, **conditions: Any) -> float | None:
    """Median over the rounds of the contender's value ÷ the other's of the same round: both met the same machine."""
    ours = _by_round(samples, name, contender=contender, **conditions)
    theirs = _by_round(samples, name, contender=against, **conditions)
    return median(ours[number] / theirs[number] for number in ours.keys() & theirs.keys() if theirs[number])


def _by_round(samples: Sequence[Sample], name: str, **conditions: Any) -> dict[int, float]:
    rounds: dict[int, list[float]] = {}
    for sample in chosen(samples, **conditions):
        if sample.get(name) is not None:
            rounds.setdefault(sample["round"], []).append(sample[name])
    return {number: statistics.median(found) for number, found in rounds.items()}
