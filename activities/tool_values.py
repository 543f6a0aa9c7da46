"""What a turn's transforms make of tool calls: of their arguments, outputs, errors and progress, as stored and shown.

The tool itself runs with the arguments that the model gave; they wait beside those that are shown until the call is
settled (`ToolCall.run_input`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self, cast

from everturn.activities.values import as_json
from everturn.hooks.log import cut
from everturn.hooks.references import UnresolvedReference
from everturn.hooks.registry import RegisteredAgent
from everturn.hooks.transforms import ToolTransform
from everturn.store.records import HookTrace, ToolCall
from everturn.store.store import Store
from everturn.turns import JsonDict

POINT: Final = "transform"
WITHHELD_VALUE: Final = "This value is withheld: it could not be checked."
_MAX_MESSAGE_BYTES: Final = 2000


@dataclass
class ToolValues:
    """The transforms that have a say on tool calls, in order. One that raises withholds the value."""

    transforms: list[tuple[str, ToolTransform]] = field(default_factory=list[tuple[str, ToolTransform]])
    failures: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, agent: RegisteredAgent, names: Sequence[str]) -> Self:
        """names: of the turn's transforms. Raises UnresolvedReference for one that the agent does not have here."""
        check_names(agent, names)
        found: list[tuple[str, ToolTransform]] = []
        for name in names:
            transform: object = agent.transforms[name]
            if isinstance(transform, ToolTransform):
                found.append((name, transform))
        return cls(found)

    def shown(self, value: Any) -> Any:
        """A JSON value as it is to be stored and shown."""
        if value is None:
            return None
        for name, transform in self.transforms:
            try:
                value = as_json(transform.tool_value(value))
            except Exception as error:  # an unchecked value must not get through, whatever the author's code does
                self.failures[name] = cut(f"{type(error).__name__}: {error}", _MAX_MESSAGE_BYTES)
                return WITHHELD_VALUE
        return value

    def arguments(self, given: JsonDict) -> JsonDict:
        """Arguments as they are to be stored and shown; {} if nothing of them may be."""
        shown = self.shown(given)
        return cast(JsonDict, shown) if isinstance(shown, dict) else {}

    def asked(self, call: ToolCall) -> ToolCall:
        """A call as the model has just made it."""
        if not self.transforms:
            return call
        changed = self.settled(call)
        if call.raw_input is not None:
            changed = replace(changed, raw_input=str(self.shown(call.raw_input)))
        if call.input is None:
            return changed
        return self.with_arguments(changed, call.input) if call.state == "requested" else self._hidden(changed)

    def with_arguments(self, call: ToolCall, given: JsonDict) -> ToolCall:
        """The call with arguments to run with."""
        shown = self.arguments(given)
        return replace(call, input=shown, run_input=given if shown != given else None)

    def settled(self, call: ToolCall) -> ToolCall:
        """The call with its outcome as it is to be stored and shown."""
        return replace(
            call,
            output=self.shown(call.output),
            raw_output=self.shown(call.raw_output),
            error=str(self.shown(call.error)) if call.error is not None else None,
        )

    async def record(self, store: Store, request_id: str, step: int | None) -> None:
        """Leaves a trace of each transform that failed."""
        await store.record_traces(
            [
                HookTrace(request_id, POINT, name, "error", 0, step=step, message=f"a value was withheld: {message}")
                for name, message in self.failures.items()
            ]
        )

    def _hidden(self, call: ToolCall) -> ToolCall:
        return replace(call, input=self.arguments(call.input or {}))


def check_names(agent: RegisteredAgent, names: Sequence[str]) -> None:
    """Raises UnresolvedReference."""
    unknown = [name for name in names if name not in agent.transforms]
    if unknown:
        known = ", ".join(agent.transforms) or "none"
        raise UnresolvedReference(
            f"agent {agent.name!r} has no transform named {unknown[0]!r} on this worker (it has: {known})"
        )
