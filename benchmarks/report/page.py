"""A run's results as a markdown page."""

from __future__ import annotations

from typing import Any

from benchmarks.contenders import OURS
from benchmarks.report.cells import NOTHING, number
from benchmarks.report.results import Results
from benchmarks.report.table import comparison, failures, markdown
from benchmarks.report.targets import targets

HOW = """\
Cells are p50 / p95 or medians; × is the ratio to the {to}: the median over the rounds of the ratio within a round, so
that both sides met the same machine. Only ratios can be carried to another machine."""


def page(results: Results) -> str:
    """The whole page; `everything` of it is the documentation's section, too."""
    lines = [f"# Measured on {results.date}", "", *everything(results), "", f"![chart]({results.date}.png)"]
    return "\n".join(lines) + "\n"


def everything(results: Results) -> list[str]:
    machine, versions = results.machine, results.versions
    packages = ", ".join(f"{name} {number_}" for name, number_ in versions.items())
    lines = [
        f"{results.at} UTC, {machine['system']}, {machine['cores']} cores, load before {machine['load_before']}, "
        f"Python {machine['python']}, {packages}; {results.minutes:.0f} minutes.",
        "",
    ]
    if results.skipped:
        lines += [f"There was no time for: {', '.join(results.skipped)}.", ""]
    lines += ["### Against the others", "", HOW.format(to="floor"), "", *comparison(results.peers), ""]
    if troubles := failures(results.peers + results.variants, results.missing):
        lines += ["Left out:", "", *troubles, ""]
    verdicts = [target.row for target in targets(results)]
    lines += ["### Targets", "", *markdown(["", "target", "measured", ""], verdicts), ""]
    if results.variants:
        lines += ["### Everturn on PostgreSQL and with two worker processes", "", HOW.format(to="first column"), ""]
        lines += [*comparison(results.variants, OURS), ""]
    return [*lines, *_alone(results.alone)]


def _alone(found: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    if live := found.get("live"):
        lines += ["### Live streams of 50 tokens a second in one worker process", ""]
        lines += [f"Held with 95 of 100 tokens within 250 ms: **{live['held']}**.", ""]
        head = ["streams", "lag p50, ms", "p95, ms", "cores: worker / client / Temporal / model"]
        lines += [*markdown(head, [_live_row(step) for step in live["steps"]]), ""]
    if cancels := found.get("cancels"):
        rows = [[str(c["concurrent"]), number(c["p50_ms"]), number(c["p95_ms"])] for c in cancels]
        lines += ["### Cancel → the provider's connection is closed", ""]
        lines += [*markdown(["streams", "p50, ms", "p95, ms"], rows), ""]
    return [*lines, *_footprint(found), *_texts(found)]


def _live_row(step: dict[str, Any]) -> list[str]:
    cores = " / ".join(str(step["cores"].get(role, NOTHING)) for role in ("worker", "client", "temporal", "model"))
    late = step["error"] or number(step["p95_ms"])
    return [str(step["streams"]), number(step["p50_ms"]), late, cores]


def _footprint(found: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    if memory := found.get("memory"):
        head = ["MB", "largest worker process (RSS)", "all worker processes (PSS)", "client (RSS)"]
        rows = [[name, *(number(value) for value in sizes.values())] for name, sizes in memory.items()]
        lines += ["### Memory after the runs above", "", *markdown(head, rows), ""]
    if starts := found.get("starts"):
        rows = [[f"`{name}`", number(t["wall_s"], 2), number(t["cpu_s"], 2)] for name, t in starts.items()]
        lines += ["### Start-up", "", *markdown(["", "s", "CPU s"], rows), ""]
    if growth := found.get("store"):
        size = growth["bytes_per_turn"] / 1000
        lines += [f"A streamed 2-tool turn with 200 tokens adds {size:.1f} kB to a SQLite store.", ""]
    if lanes := found.get("lanes"):
        rows = [[name, number(c["call_ms"], 2), number(c["chunks_per_core_s"])] for name, c in lanes.items()]
        lines += ["### Model lanes, CPU of the worker", ""]
        lines += [*markdown(["lane", "ms a call", "chunks a core-second"], rows), ""]
    return lines


def _texts(found: dict[str, Any]) -> list[str]:
    text = found.get("hooks")
    return ["### What each hook point adds to a turn", "", "```", text.strip(), "```", ""] if text else []
