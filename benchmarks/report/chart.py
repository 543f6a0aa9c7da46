"""`python -m benchmarks.report.chart RESULTS.json CHART.png`, in an environment that has matplotlib."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.contenders import CONTENDERS, OURS, OURS_LITELLM, PEERS
from benchmarks.samples import Sample, median, values

OURS_COLOUR, OTHERS_COLOUR = "#c2410c", "#64748b"
PANELS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("plain turn, ms", "ms", {"section": "latency", "tools": 0}),
    ("2-tool turn, ms", "ms", {"section": "latency", "tools": 2}),
    ("5-tool turn, ms", "ms", {"section": "latency", "tools": 5}),
    ("time to first token, ms", "first_ms", {"section": "streaming"}),
    ("token lag p50, ms", "lag_ms", {"section": "streaming"}),
    ("2-tool turn at turn 200, ms", "ms", {"section": "growth", "turn": 200}),
    ("2-tool turns/s, 8 at once", "turns_per_s", {"section": "throughput", "at_once": 8}),
    ("2-tool turns/s, 32 at once", "turns_per_s", {"section": "throughput", "at_once": 32}),
    ("kill -9 → completed, s", "completed_s", {"section": "killed"}),
)


def draw(samples: list[Sample], path: Path) -> None:
    """Bars of medians, a panel a measure."""
    figure, axes = plt.subplots(3, 3, figsize=(15, 12), layout="constrained")
    for axis, (title, name, conditions) in zip(axes.flat, PANELS, strict=True):
        found = {peer: median(values(samples, name, contender=peer, **conditions)) for peer in PEERS}
        shown = [(peer, value) for peer, value in found.items() if value is not None]
        labels = [CONTENDERS[peer].label for peer, _ in shown]
        colours = [OURS_COLOUR if peer in (OURS, OURS_LITELLM) else OTHERS_COLOUR for peer, _ in shown]
        bars = axis.barh(labels, [value for _, value in shown], color=colours)
        axis.bar_label(bars, [f"{value:,.{0 if value >= 100 else 1}f}" for _, value in shown], padding=3)
        axis.set_title(title)
        axis.invert_yaxis()
        axis.margins(x=0.15)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text())["peers"], Path(sys.argv[2]))
