"""Writes the page and the chart beside a results file."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.environments import python_of
from benchmarks.programs import ROOT
from benchmarks.report.page import page
from benchmarks.report.results import Results


def write(path: Path) -> str | None:
    """Returns what went wrong with the chart, which needs an environment of its own; None if all is there."""
    path.with_suffix(".md").write_text(page(Results.load(path)))
    command = [python_of("chart"), "-m", "benchmarks.report.chart", str(path), str(path.with_suffix(".png"))]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, timeout=120)
    except (OSError, subprocess.SubprocessError) as error:
        return f"no chart: {error}"
    return None
