"""The comparison as a markdown table: a row a measure, a column a contender, each with its ratio to one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.contenders import CONTENDERS, FLOOR, OURS
from benchmarks.report.cells import NOTHING, Cell, cpu, grown, grown_bytes, lag, middle, spread
from benchmarks.samples import Sample

ROWS: Final[Mapping[str, Cell]] = {
    "plain turn, ms": spread("ms", section="latency", tools=0),
    "2-tool turn, ms": spread("ms", section="latency", tools=2),
    "5-tool turn, ms": spread("ms", section="latency", tools=5),
    "accepted (`submit` returns), ms": spread("submit_ms", section="latency"),
    "time to first token, ms": spread("first_ms", section="streaming"),
    "token lag, model → client, ms": lag,
    "end after the model's last token, ms": spread("after_ms", section="streaming"),
    "2-tool turn at turn 200, ms (÷ turn 1)": grown,
    "history of that turn, kB": grown_bytes,
    "2-tool turns/s, 1 at once": middle("turns_per_s", digits=1, section="throughput", at_once=1),
    "CPU ms a turn then: worker / Temporal / client": cpu(1),
    "2-tool turns/s, 8 at once": middle("turns_per_s", digits=1, section="throughput", at_once=8),
    "CPU ms a turn then, 8 at once": cpu(8),
    "2-tool turns/s, 32 at once": middle("turns_per_s", digits=1, section="throughput", at_once=32),
    "CPU ms a turn then, 32 at once": cpu(32),
    "history of a 2-tool turn with 200 tokens, events": middle("events", paired=False, section="history"),
    "the same, kB": middle("bytes", scale=1 / 1000, digits=1, paired=False, section="history"),
    "kill -9 → turn completed, s": middle("completed_s", digits=1, section="killed"),
    "kill -9 → model asked again, s": middle("asked_again_s", digits=1, paired=False, section="killed"),
    "tokens shown twice, of 100": middle("repeated", paired=False, section="killed"),
}


def comparison(samples: Sequence[Sample], against: str = FLOOR) -> list[str]:
    """The table's lines; ratios are to `against`."""
    present = [name for name in CONTENDERS if any(s["contender"] == name for s in samples)]
    head = ["", *(_label(name, against) for name in present)]
    rows = [[title, *(cell(samples, name, against) for name in present)] for title, cell in ROWS.items()]
    return markdown(head, [row for row in rows if any(shown != NOTHING for shown in row[1:])])


def failures(samples: Sequence[Sample], missing: Mapping[str, str]) -> list[str]:
    """Who could not take part, and which samples failed: they count nowhere."""
    failed: dict[str, list[str]] = {}
    for sample in samples:
        if sample.get("error"):
            failed.setdefault(f"{sample['contender']}, {sample['section']}", []).append(sample["error"])
    lines = [f"- missing: {CONTENDERS[name].label}: {_line(reason)}" for name, reason in missing.items()]
    return lines + [f"- {where}: {len(errors)} failed, first: {_line(errors[0])}" for where, errors in failed.items()]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows)]


def _label(name: str, against: str) -> str:
    return "SQLite, 1 worker process" if name == OURS == against else CONTENDERS[name].label


def _line(text: str) -> str:
    return " ".join(text.split())[:300]
