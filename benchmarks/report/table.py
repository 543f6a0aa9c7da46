"""The comparison as a markdown table: a row a measure, a column a contender, each with its ratio to the floor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.contenders import CONTENDERS, FLOOR
from benchmarks.samples import Sample, chosen, median, paired_ratio, percentile, values

Cell = Callable[[Sequence[Sample], str], str]


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    cell: Cell


def comparison(samples: Sequence[Sample], missing: Mapping[str, str]) -> str:
    """The table, then who is missing and what failed."""
    present = [name for name in CONTENDERS if any(s["contender"] == name for s in samples)]
    rows = [[row.title, *(row.cell(samples, name) for name in present)] for row in ROWS]
    head = ["", *(CONTENDERS[name].label for name in present)]
    lines = markdown(head, [row for row in rows if any(cell != NOTHING for cell in row[1:])])
    lines += [f"\nMissing: {CONTENDERS[name].label} ({reason})." for name, reason in missing.items()]
    return "\n".join([*lines, *_failures(samples)])


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows)]


NOTHING: Final = "–"


def number(value: float | None, digits: int = 0) -> str:
    return NOTHING if value is None else f"{value:,.{digits}f}"


def _spread(name: str, *, digits: int = 0, **conditions: Any) -> Cell:
    """p50 / p95, and the paired ratio of the first to the floor's."""

    def cell(samples: Sequence[Sample], contender: str) -> str:
        found = values(samples, name, contender=contender, **conditions)
        if not found:
            return NOTHING
        text = f"{number(percentile(found, 0.5), digits)} / {number(percentile(found, 0.95), digits)}"
        return text + _ratio(paired_ratio(samples, name, contender, FLOOR, **conditions), contender)

    return cell


def _middle(name: str, *, scale: float = 1, digits: int = 0, ratio: bool = True, **conditions: Any) -> Cell:
    """The median, and its paired ratio to the floor's."""

    def cell(samples: Sequence[Sample], contender: str) -> str:
        found = median(values(samples, name, contender=contender, **conditions))
        if found is None:
            return NOTHING
        paired = paired_ratio(samples, name, contender, FLOOR, **conditions) if ratio else None
        return number(found * scale, digits) + _ratio(paired, contender)

    return cell


def _lag(samples: Sequence[Sample], contender: str) -> str:
    lags = [lag for s in chosen(samples, section="streaming", contender=contender) for lag in s["lags_ms"]]
    return f"{number(percentile(lags, 0.5), 1)} / {number(percentile(lags, 0.95), 1)}" if lags else NOTHING


def _cpu(samples: Sequence[Sample], contender: str) -> str:
    found = chosen(samples, section="throughput", contender=contender, at_once=8)
    roles = ("worker", "temporal", "client")
    shares = [median([s["cpu_ms"][role] for s in found if role in s["cpu_ms"]]) for role in roles]
    if not CONTENDERS[contender].temporal:
        shares[1] = None
    return " / ".join(number(share) for share in shares) if found else NOTHING


def _ratio(value: float | None, contender: str) -> str:
    return "" if value is None or contender == FLOOR else f" ({value:.2f}×)"


def _failures(samples: Sequence[Sample]) -> list[str]:
    failed: dict[str, list[str]] = {}
    for sample in samples:
        if sample.get("error"):
            failed.setdefault(f"{sample['contender']}, {sample['section']}", []).append(sample["error"])
    return [f"\nFailed: {where}: {len(errors)} times, first {errors[0]}" for where, errors in failed.items()]


ROWS: Final = (
    Row("plain turn, ms", _spread("ms", section="latency", tools=0)),
    Row("2-tool turn, ms", _spread("ms", section="latency", tools=2)),
    Row("5-tool turn, ms", _spread("ms", section="latency", tools=5)),
    Row("time to first token, ms", _spread("first_ms", section="streaming")),
    Row("token lag, model → client, ms", _lag),
    Row("end after the model's last token, ms", _spread("after_ms", section="streaming")),
    Row("2-tool turns/s, 1 at once", _middle("turns_per_s", digits=1, section="throughput", at_once=1)),
    Row("2-tool turns/s, 8 at once", _middle("turns_per_s", digits=1, section="throughput", at_once=8)),
    Row("2-tool turns/s, 32 at once", _middle("turns_per_s", digits=1, section="throughput", at_once=32)),
    Row("CPU ms a turn at 8: worker / Temporal / client", _cpu),
    Row("history of a 200-token 2-tool turn, events", _middle("events", section="history")),
    Row("the same, kB", _middle("bytes", scale=1 / 1000, digits=1, section="history")),
)
