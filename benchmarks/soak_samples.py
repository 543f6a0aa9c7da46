"""What the soak measures of its processes, and whether it has grown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from everturn import ChatClient

RSS_GROWTH = 1.10
COUNT_GROWTH, COUNT_SLACK = 1.10, 3.0
"""Sockets, files and tasks go up and down with the load of the moment: a leak of one in a thousand turns still shows
after half an hour."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One process at one moment. at: seconds of the monotonic clock. rss: MiB."""

    at: float
    rss: float
    sockets: int
    files: int
    threads: int
    tasks: int


def sample(pid: int, tasks: int) -> Sample:
    """Reads /proc (Linux)."""
    process = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    targets = [_target(link) for link in (process / "fd").iterdir()]
    sockets = sum(target.startswith("socket:") for target in targets)
    rss = int(status["VmRSS"].split()[0]) / 1024
    return Sample(time.monotonic(), rss, sockets, len(targets) - sockets, int(status["Threads"]), tasks)


async def tasks_of_worker(chat: ChatClient) -> int:
    """The worker's asyncio tasks, counted by one of its tools."""
    result = await chat.run("census", "[[tools calls=1 tool=census]]", agent="soak", timeout=60)
    (call,) = (await chat.inspect(result.request_id)).tool_calls
    return int(call.output)


def tasks_here() -> int:
    return len(asyncio.all_tasks())


def growth(name: str, samples: Sequence[Sample], users: int) -> list[str]:
    """Compares the first third with the last one; a sentence for each thing that has grown.

    Threads may grow by one for each user: pools keep as many as ever worked at once, and meet that moment late.
    """
    third = max(1, len(samples) // 3)
    found: list[str] = []
    for what in ("rss", "sockets", "files", "threads", "tasks"):
        first = _mean(samples[:third], what)
        last = _mean(samples[-third:], what)
        slack = users if what == "threads" else COUNT_SLACK
        limit = first * RSS_GROWTH if what == "rss" else first * COUNT_GROWTH + slack
        mark = "GREW" if last > limit else "ok"
        unit = " MiB" if what == "rss" else ""
        print(f"  {name:<7} {what:<8} first third {first:8.1f}{unit}, last third {last:8.1f}{unit}  {mark}")
        if last > limit:
            found.append(f"{what} of the {name} grew from {first:.1f} to {last:.1f}{unit}")
    return found


def _mean(samples: Sequence[Sample], what: str) -> float:
    values = [float(getattr(one, what)) for one in samples]
    return sum(values) / len(values)


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:  # closed meanwhile
        return ""
