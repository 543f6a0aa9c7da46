"""What Everturn is meant to reach, and whether it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.contenders import FLOOR, ON_POSTGRESQL, OURS, OURS_LITELLM
from benchmarks.report.cells import all_lags, growth_ratio, long_turn
from benchmarks.report.results import Results
from benchmarks.samples import Sample, median, paired_ratio, percentile, values

_TURNS: Final = {0: "plain turn", 2: "2-tool turn", 5: "5-tool turn"}


@dataclass(frozen=True, slots=True)
class Target:
    """value: None if it was not measured. at_least: the limit is a lower one."""

    title: str
    value: float | None
    limit: float
    unit: str
    at_least: bool = False
    below: bool = False

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        if self.at_least:
            return "met" if self.value >= self.limit else "**missed**"
        fits = self.value < self.limit if self.below else self.value <= self.limit
        return "met" if fits else "**missed**"

    @property
    def row(self) -> list[str]:
        sign = "≥" if self.at_least else "<" if self.below else "≤"
        found = "–" if self.value is None else f"{self.value:,.2f} {self.unit}".strip()
        return [self.title, f"{sign} {self.limit:g} {self.unit}".strip(), found, self.verdict]


def targets(results: Results) -> list[Target]:
    return [*_latency(results.peers), *_streams(results), *_growth(results.peers), *_load(results), *_alone(results)]


def _latency(samples: Sequence[Sample]) -> Iterator[Target]:
    for lane, name, limit in ((OURS, "direct lane", 0.8), (OURS_LITELLM, "litellm lane", 1.2)):
        for tools, title in _TURNS.items():
            found = paired_ratio(samples, "ms", lane, FLOOR, section="latency", tools=tools)
            yield Target(f"{title}, {name}, ÷ floor", found, limit, "×")


def _streams(results: Results) -> Iterator[Target]:
    first = paired_ratio(results.peers, "first_ms", OURS, FLOOR, section="streaming")
    yield Target("time to first token, ÷ floor", first, 1.0, "×")
    yield Target("token lag p50 on SQLite", percentile(all_lags(results.peers, OURS), 0.5), 30, "ms")
    on_postgresql = percentile(all_lags(results.variants, ON_POSTGRESQL), 0.5)
    yield Target("token lag p50 on PostgreSQL", on_postgresql, 15, "ms")


def _growth(samples: Sequence[Sample]) -> Iterator[Target]:
    yield Target("2-tool turn at turn 200, ÷ turn 1", growth_ratio(samples, OURS), 1.3, "×")
    at_end = {"section": "growth", "contender": OURS, "turn": long_turn(samples, OURS)}
    streamed = {"section": "history", "contender": OURS}
    for what, limit, unit, scale in (("events", 60, "events", 1.0), ("bytes", 12, "kB", 0.001)):
        found = [*values(samples, what, **at_end), *values(samples, what, **streamed)]
        largest = max(found) * scale if found else None
        yield Target(f"history of a 2-tool turn, at turn 200 or with 200 tokens: {unit}", largest, limit, unit)


def _load(results: Results) -> Iterator[Target]:
    for at_once in (8, 32):
        found = paired_ratio(results.peers, "turns_per_s", OURS, FLOOR, section="throughput", at_once=at_once)
        yield Target(f"2-tool turns/s, {at_once} at once, ÷ floor", found, 1.8, "×", at_least=True)
    killed = {"section": "killed", "contender": OURS}
    yield Target("kill -9 → turn completed", median(values(results.peers, "completed_s", **killed)), 7, "s")
    yield Target("tokens shown twice after it", median(values(results.peers, "repeated", **killed)), 0, "")


def _alone(results: Results) -> Iterator[Target]:
    cancels = {found["concurrent"]: found["p95_ms"] for found in results.alone.get("cancels", [])}
    yield Target("cancel → provider's socket closed, 100 streams, p95", cancels.get(100), 100, "ms", below=True)
    starts = results.alone.get("starts", {})
    shown = starts.get("everturn --help", {}).get("wall_s")
    yield Target("everturn --help", shown, 0.3, "s", below=True)
    lanes = results.alone.get("lanes", {})
    quick, slow = lanes.get("direct", {}), lanes.get("litellm", {})
    chunks = quick["chunks_per_core_s"] / slow["chunks_per_core_s"] if quick and slow else None
    yield Target("chunks a core-second, direct ÷ litellm lane", chunks, 3, "×", at_least=True)
    yield Target("CPU of a model call, direct lane", quick.get("call_ms"), 8, "ms")
