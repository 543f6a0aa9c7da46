"""A turn that is over, with everything that a test may ask about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from temporalio.client import WorkflowHistory

from everturn.chunks import Chunk
from everturn.turns import HookTraceInfo, JsonDict, TurnInfo, TurnResult


@dataclass(frozen=True, slots=True)
class TurnRun:
    """One turn after its last hook. prompts: the bodies of the model requests, in OpenAI's format, in their order.
    chunks: what a client saw. history: the turn in Temporal, for `assert_replays`."""

    result: TurnResult
    info: TurnInfo
    chunks: list[Chunk]
    prompts: list[JsonDict]
    history: WorkflowHistory = field(repr=False)

    @property
    def text(self) -> str:
        return self.result.text

    @property
    def status(self) -> str:
        return self.result.status

    @property
    def hook_order(self) -> list[str]:
        """Every hook run as `hook.point`, in order; "agent" is the agent's own method, and on_chunk counts once a step.

        The runs of tool calls that went on side by side are ordered by their end.
        """
        return [f"{trace.hook}.{trace.point}" for trace in self.info.hook_traces]

    def hooks(self, point: str, hook: str | None = None) -> list[HookTraceInfo]:
        """The runs at one point, of one hook if it is named: outcome, changes, log lines, milliseconds."""
        return [trace for trace in self.info.hook_traces if trace.point == point and hook in (None, trace.hook)]
