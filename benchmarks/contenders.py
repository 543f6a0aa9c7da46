"""Who takes part in the comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

OURS: Final = "everturn"
FLOOR: Final = "floor"
DIRECT: Final = "direct"
EVERTURN_AGENT: Final = Path(__file__).with_name("peers") / "everturn_agent.py"


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to run chat turns.

    module: in benchmarks/peers. environment: name of its environment (see environments.py), None for Everturn's own.
    worker: how its turns run: "own" in a worker process of its module, "everturn" in `everturn worker`, "none" in the
    client's process. temporal: its turns are Temporal workflows. slow_growth: a long thread can only be made by running
    its turns. survives_kill: its turns go on after their process was killed.
    """

    name: str
    label: str
    module: str
    environment: str | None = None
    worker: str = "own"
    temporal: bool = True
    slow_growth: bool = False
    survives_kill: bool = True
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


_ALL: Final = (
    Contender(DIRECT, "direct litellm loop", "direct", worker="none", temporal=False, survives_kill=False),
    Contender(FLOOR, "floor", "floor"),
    Contender("langgraph", "LangGraph plugin", "langgraph_plugin", "langgraph"),
    Contender("openai-agents", "OpenAI Agents plugin", "openai_agents_plugin", "openai_agents"),
    Contender("pydantic-ai", "pydantic-ai durability", "pydantic_ai_durability", "pydantic_ai"),
    Contender("dbos", "DBOS + pydantic-ai", "dbos_durability", "dbos", worker="none", temporal=False),
    Contender("actant", "actant", "actant_threads", "actant", worker="none", slow_growth=True, survives_kill=False),
    Contender(OURS, "Everturn, direct lane", "everturn_client", worker="everturn"),
    Contender(
        "everturn-litellm",
        "Everturn, litellm lane",
        "everturn_client",
        worker="everturn",
        variables={"EVERTURN_MODEL_LANE": "litellm"},
    ),
)
CONTENDERS: Final = {contender.name: contender for contender in _ALL}
QUICK: Final = (DIRECT, FLOOR, OURS, "everturn-litellm")
