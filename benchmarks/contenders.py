"""Who takes part in the comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

OURS: Final = "everturn"
OURS_LITELLM: Final = "everturn-litellm"
FLOOR: Final = "floor"
DIRECT: Final = "direct"
ON_POSTGRESQL: Final = "everturn-postgresql"
TWO_PROCESSES: Final = "everturn-two"
EVERTURN_AGENT: Final = Path(__file__).with_name("peers") / "everturn_agent.py"


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to run chat turns.

    module: in benchmarks/peers. environment: name of its environment (see environments.py), None for Everturn's own.
    worker: how its turns run: "own" in a worker process of its module, "everturn" in `everturn worker`, "none" in the
    client's process. temporal: its turns are Temporal workflows. run_past: a long thread can only be made by running
    its turns. after_kill: what goes on with a turn whose process was killed: another "worker", the "application" that
    is started again, or "nothing". store, processes: of Everturn.
    """

    name: str
    label: str
    module: str
    environment: str | None = None
    worker: Literal["own", "everturn", "none"] = "own"
    temporal: bool = True
    run_past: bool = False
    after_kill: Literal["worker", "application", "nothing"] = "worker"
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    store: Literal["sqlite", "postgresql"] = "sqlite"
    processes: int = 1


def _everturn(
    name: str,
    label: str,
    lane: str = "auto",
    store: Literal["sqlite", "postgresql"] = "sqlite",
    processes: int = 1,
) -> Contender:
    variables = {"EVERTURN_MODEL_LANE": lane}
    return Contender(
        name,
        label,
        "everturn_client",
        worker="everturn",
        variables=variables,
        store=store,
        processes=processes,
    )


_ALL: Final = (
    Contender(DIRECT, "direct litellm loop", "direct", worker="none", temporal=False, after_kill="nothing"),
    Contender(FLOOR, "floor", "floor"),
    Contender("langgraph", "LangGraph plugin", "langgraph_plugin", "langgraph"),
    Contender("openai-agents", "OpenAI Agents plugin", "openai_agents_plugin", "openai_agents"),
    Contender("pydantic-ai", "pydantic-ai durability", "pydantic_ai_durability", "pydantic_ai"),
    Contender(
        "dbos",
        "DBOS + pydantic-ai",
        "dbos_durability",
        "dbos",
        worker="none",
        temporal=False,
        after_kill="application",
    ),
    Contender("actant", "actant", "actant_threads", "actant", worker="none", run_past=True, after_kill="nothing"),
    _everturn(OURS, "Everturn, direct lane"),
    _everturn(OURS_LITELLM, "Everturn, litellm lane", lane="litellm"),
    _everturn(ON_POSTGRESQL, "PostgreSQL", store="postgresql"),
    _everturn(TWO_PROCESSES, "SQLite, 2 worker processes", processes=2),
)
CONTENDERS: Final = {contender.name: contender for contender in _ALL}
QUICK: Final = (DIRECT, FLOOR, OURS, OURS_LITELLM)
VARIANTS: Final = (OURS, ON_POSTGRESQL, TWO_PROCESSES)
"""Everturn against itself."""
PEERS: Final = tuple(name for name in CONTENDERS if name not in VARIANTS[1:])
