"""What hooks may touch of their contexts."""

from __future__ import annotations

import pytest

from everturn import StepContext, ToolCallContext, TurnContext
from everturn.hooks.cancel import CancelFlag
from everturn.hooks.contexts import HookContext, TurnRef

REF = TurnRef("r1", "t1", "agent", state={"seen": 1})


def contexts() -> list[HookContext]:
    return [
        TurnContext(REF, system="s", messages=[], tools={}, model="m", temperature=None),
        StepContext(REF, step=0, steps=[], model="m", messages=[]),
    ]


async def test_only_the_editable_fields_can_be_set_and_the_error_names_them() -> None:
    call = ToolCallContext(REF, tool_name="t", input={}, tool_call_id="c", step=0, messages=[], cancelled=CancelFlag())
    call.input = {"a": 1}
    with pytest.raises(AttributeError, match=r"ToolCallContext\.tool_name cannot be set \(editable: input\)"):
        call.tool_name = "other"
    turn, step = contexts()
    turn.system, step.model = "new", "other"  # type: ignore[attr-defined]  # the two kinds differ
    for context in (turn, step):
        with pytest.raises(AttributeError, match="request_id"):
            context.request_id = "r2"  # type: ignore[misc]  # what an author might try


def test_every_context_carries_the_facts_of_its_turn() -> None:
    for context in contexts():
        assert (context.request_id, context.thread_id, context.agent) == ("r1", "t1", "agent")
        assert context.principal.id is None
        assert (context.tenant_id, context.trigger, context.continuation, context.body) == (None, "submit", False, None)
        assert context.state == {"seen": 1}


def test_log_without_a_trace_is_harmless() -> None:
    contexts()[0].log("hello", {"a": 1}, "debug")
