"""Every payload that crosses to Temporal has a bound: at it, over it, and far over it, the turn ends clearly.

No case may leave an activity that is tried again for ever, a workflow task that fails, or a large event.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from everturn import (
    Agent,
    Allow,
    Ask,
    BadInput,
    Block,
    MessageTooLarge,
    Principal,
    Replace,
    Substitute,
    ToolCallContext,
    Turn,
    TurnConfig,
    TurnError,
    has_tool_call,
    tool,
)
from everturn.activities import answers
from everturn.activities.previews import PREVIEW_BYTES
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.activities.sizes import (
    MAX_CALLS,
    MAX_FAILURE_BYTES,
    MAX_STOPS_BYTES,
    MAX_TOOL_INPUT_BYTES,
)
from everturn.activities.values import MAX_MODEL_OUTPUT_BYTES
from everturn.client.request import MAX_BODY_BYTES, MAX_SENT_BYTES
from everturn.messages import INLINE_MESSAGE_BYTES, MAX_MESSAGE_BYTES
from tests.integration.turns.lab import Lab, make_agent, running_lab

HUGE = 4 * 1024 * 1024
CONFIG_LIMIT = 300_000
"""In place of the real one of 16 MB, at which a turn takes long."""
EVENT_LIMIT = MAX_SENT_BYTES + 100_000
"""Bytes of one history event; Temporal's limit is 2 MiB."""
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")


@tool
async def make(size: int) -> str:
    """A text of this size."""
    return "x" * size


@tool
async def echo(text: str) -> str:
    """Its own length."""
    return str(len(text))


@tool
async def fail(size: int) -> str:
    """Fails with a long message."""
    raise ValueError("x" * size)


class Sized(Agent):
    """Answers its hooks with things of the size that the request's body asks for."""

    async def before_turn(self, ctx: Any) -> Any:
        size = ctx.body["size"] if ctx.body else 0
        kinds: dict[str, Any] = {
            "system": lambda: TurnConfig(system="x" * size),
            "block": lambda: Block("x" * size),
            "stops": lambda: TurnConfig(stop_when=[has_tool_call("x" * 1000 + str(n)) for n in range(size // 1000)]),
            "raise": lambda: _raise(ValueError("x" * size)),
            "chained": lambda: _chained(size),
        }
        return kinds.get(self._kind(ctx), lambda: None)()

    async def before_tool_call(self, ctx: ToolCallContext) -> Any:
        size = ctx.body["size"] if ctx.body else 0
        kinds: dict[str, Any] = {
            "allow": lambda: Allow({"text": "x" * size}),
            "ask": lambda: Ask("x" * size, timeout=0.1),
            "block_tool": lambda: Block("x" * size),
            "substitute": lambda: Substitute("x" * size),
        }
        return kinds.get(self._kind(ctx), lambda: None)()

    async def after_tool_call(self, ctx: Any) -> Any:
        return Replace("x" * ctx.body["size"]) if self._kind(ctx) == "replace" else None

    async def on_chat_error(self, error: Any, ctx: Any) -> Any:
        if self._kind(ctx) == "shown":
            return TurnError("t" * ctx.body["size"], "m" * ctx.body["size"])
        return None

    async def on_turn_end(self, result: Any) -> None:
        if self._kind(result) == "end":
            raise ValueError("x" * result.body["size"])

    def _kind(self, ctx: Any) -> str:
        return str(ctx.body["kind"]) if ctx.body else ""


def _raise(error: Exception) -> None:
    raise error


def _chained(size: int) -> None:
    try:
        raise ValueError("x" * size)
    except ValueError as error:
        raise RuntimeError("the message above is long") from error


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def lab(
    client: Client, scripted_server: ScriptedModelServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Lab]:
    """One system for all sizes."""
    url = f"sqlite:///{tmp_path_factory.mktemp('sizes') / 'store.db'}"
    agents = [make_agent(scripted_server, base=Sized, tools=[make, echo, fail])]
    async with running_lab(client, scripted_server, f"sizes-{id(url)}", url, agents) as started:
        yield started


async def _small(lab: Lab, turn: Turn) -> None:
    """Nothing of the turn is large in Temporal, and nothing of it was tried in vain."""
    for event in await lab.history(turn):
        assert event.ByteSize() < EVENT_LIMIT, event.event_type
        assert not event.HasField("workflow_task_failed_event_attributes"), event
        started = event.activity_task_started_event_attributes
        assert started.attempt <= 1, started


async def _ended(lab: Lab, kind: str, size: int, script: str = "ok") -> tuple[Any, Turn]:
    turn = await lab.play(script, body={"kind": kind, "size": size})
    async with asyncio.timeout(30):
        result = await turn.result()
        await lab.client.get_workflow_handle(turn.workflow_id).describe()
    await _small(lab, turn)
    return result, turn


def near(limit: int) -> list[int]:
    return [limit - 1, limit + 1, HUGE]


@pytest.mark.parametrize("size", near(INLINE_MESSAGE_BYTES))
async def test_a_message_over_the_inline_limit_goes_by_way_of_the_store(lab: Lab, size: int) -> None:
    text = "[[ok]] "
    text += "x" * (size - len(f'[{{"type":"text","text":"{text}"}}]'))
    turn = await lab.submit(lab.thread(), text)
    assert (await turn.result(30)).text == "ok"
    await _small(lab, turn)
    started = (await lab.history(turn))[0]
    assert (started.ByteSize() > INLINE_MESSAGE_BYTES) is (size < INLINE_MESSAGE_BYTES)
    storeless = await lab.storeless()
    if size > INLINE_MESSAGE_BYTES:
        with pytest.raises(MessageTooLarge, match="without a store"):
            await storeless.submit(lab.thread(), text, agent="agent")


async def test_a_message_over_the_limit_is_refused(lab: Lab) -> None:
    with pytest.raises(MessageTooLarge, match="limit is 8,388,608"):
        await lab.submit(lab.thread(), "x" * (MAX_MESSAGE_BYTES + 1))


@pytest.mark.parametrize("field", ["body", "metadata", "principal"])
@pytest.mark.parametrize("size", near(MAX_BODY_BYTES))
async def test_each_fact_that_travels_with_a_turn_has_a_limit_of_its_own(lab: Lab, field: str, size: int) -> None:
    empty = Principal(metadata={"x": ""})
    overhead = len('{"x":""}')
    if field == "principal":
        overhead = len('{"id":null,"email":null,"is_anonymous":false,"roles":[],"metadata":{"x":""}}')
    padding = "x" * (size - overhead)
    given: dict[str, Any] = {field: {"x": padding}}
    if field == "principal":
        given = {"principal": Principal(metadata={"x": padding})}
        assert empty.metadata == {"x": ""}
    if field == "body":
        given = {"body": {"kind": "", "size": 0, "x": "x" * (size - len('{"kind":"","size":0,"x":""}'))}}
    if size > MAX_BODY_BYTES:
        with pytest.raises(BadInput, match=rf"{field}.* has [\d,]+ bytes as JSON; the limit is 262,144"):
            await lab.play("ok", **given)
        return
    turn = await lab.play("ok", **given)
    assert (await turn.result(20)).text == "ok"
    await _small(lab, turn)


async def test_what_travels_together_has_a_limit_too_and_the_message_makes_room_first(lab: Lab) -> None:
    """A character that is not ASCII has two bytes in UTF-8 and six as Temporal gets it."""
    wide = "ü" * 100_000
    turn = await lab.submit(lab.thread(), "[[ok]] " + wide, metadata={"x": wide})
    assert (await turn.result(20)).text == "ok"
    assert (await lab.chat.messages(turn.thread_id))[0].text.endswith(wide)
    turn = await lab.submit(lab.thread(), "[[ok]] " + wide, metadata={"x": wide[:90_000]}, body=_body(wide[:90_000]))
    assert (await turn.result(20)).text == "ok"
    await _small(lab, turn)
    for chat in (lab.chat, await lab.storeless()):
        request_id = lab.thread()
        with pytest.raises(BadInput, match=r"the limit is 1,200,000, and metadata alone has 6\d\d,\d\d\d"):
            await chat.submit(
                lab.thread(),
                "[[ok]]" + "x" * 300_000 * (chat is lab.chat),
                agent="agent",
                request_id=request_id,
                metadata={"x": wide},
                body=_body(wide[:99_990]),
                principal=Principal(metadata={"x": wide[:50_000]}),
            )
        assert await lab.chat.cancel_chat(request_id) == "not_found"
    assert 'INSERT INTO "drafts"' not in lab.stored_text()


def _body(text: str) -> dict[str, Any]:
    return {"kind": "", "size": 0, "x": text}


@pytest.mark.parametrize("size", near(MAX_MODEL_OUTPUT_BYTES))
@pytest.mark.parametrize("kind", ["tool", "substitute", "replace", "block_tool"])
async def test_a_large_output_is_stored_and_shown_cut(lab: Lab, kind: str, size: int) -> None:
    made = size if kind == "tool" else 1
    result, turn = await _ended(lab, kind, size, f"tools tool=make args='{{\"size\": {made}}}'")
    assert result.status == "completed"
    (call,) = (await turn.info()).tool_calls
    assert len(call.output) <= MAX_MODEL_OUTPUT_BYTES
    assert ("[cut" in call.output) is (size > MAX_MODEL_OUTPUT_BYTES)


@pytest.mark.parametrize("size", near(MAX_TOOL_INPUT_BYTES - len('{"text":""}')))
async def test_arguments_over_the_limit_are_an_error_for_the_model(lab: Lab, size: int) -> None:
    result, turn = await _ended(lab, "allow", size, 'tools tool=echo args=\'{"text": ""}\'')
    (call,) = (await turn.info()).tool_calls
    assert result.status == "completed"
    if size < MAX_TOOL_INPUT_BYTES - len('{"text":""}'):
        assert call.output == str(size)
    else:
        assert "the arguments of echo have" in (call.error or "")


@pytest.mark.parametrize("size", [100, HUGE])
async def test_a_reason_to_ask_a_tools_failure_and_a_failing_last_hook_are_cut(lab: Lab, size: int) -> None:
    for kind, script in (
        ("ask", 'tools tool=echo args=\'{"text": ""}\''),
        ("fail", f"tools tool=fail args='{{\"size\": {size}}}'"),
        ("end", "ok"),
    ):
        result, turn = await _ended(lab, kind, size, script)
        assert result.status == "completed", (kind, result)
        for call in (await turn.info()).tool_calls:
            assert len(call.error or "") < 5000


@pytest.mark.parametrize("size", [1000, MAX_FAILURE_BYTES + 1, HUGE])
@pytest.mark.parametrize("kind", ["raise", "chained", "shown"])
async def test_a_long_error_is_cut_and_stays_the_turns_error(lab: Lab, kind: str, size: int) -> None:
    result, _ = await _ended(lab, kind, size, "status code=400" if kind == "shown" else "ok")
    assert result.status == "error"
    assert result.error is not None
    assert result.error.type.startswith("t" if kind == "shown" else "HookFailed")
    assert len(result.error.type) <= 200
    assert len(result.error.message) <= 8192


@pytest.mark.parametrize("size", [1000, 8 * 1024 + 1, HUGE])
async def test_a_long_refusal_is_cut(lab: Lab, size: int) -> None:
    result, _ = await _ended(lab, "block", size)
    assert (result.status, len(result.text) <= 8 * 1024) == ("blocked", True)


@pytest.mark.parametrize(
    ("kind", "size", "fits"),
    [
        ("system", CONFIG_LIMIT - 100, True),
        ("system", CONFIG_LIMIT + 1, False),
        ("system", HUGE, False),
        ("stops", MAX_STOPS_BYTES - 6000, True),
        ("stops", MAX_STOPS_BYTES + 1000, False),
        ("stops", HUGE, False),
    ],
)
async def test_what_hooks_decide_has_a_limit_after_all_is_put_together(
    lab: Lab, kind: str, size: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MAX_CONFIG_BYTES", CONFIG_LIMIT)
    result, turn = await _ended(lab, kind, size)
    assert (result.status == "completed") is fits, result.error
    if not fits:
        assert result.error is not None
        assert "the limit is" in result.error.message
        traces = (await turn.info()).hook_traces
        assert [trace.outcome for trace in traces if trace.point == "before_turn"] == ["oversize"]


@pytest.mark.parametrize("size", [32 * 1024 - 1, 32 * 1024 + 1, 64 * 1024])
async def test_the_answer_in_the_workflows_result_is_cut_and_whole_in_the_store(lab: Lab, size: int) -> None:
    blind = await lab.storeless()
    turn = await blind.submit(lab.thread(), f"[[say text={'x' * size}]]", agent="agent")
    seen = await turn.result(30)
    assert len(seen.text.encode()) == min(size, 32 * 1024)
    assert ("[cut" in seen.text) is (size > 32 * 1024)
    assert len((await lab.chat.turn(turn.request_id).result(20)).text) == size
    await _small(lab, turn)


async def test_of_a_turn_whose_client_has_a_store_the_workflows_result_has_a_preview(lab: Lab) -> None:
    turn = await lab.submit(lab.thread(), f"[[say text={'x' * 40_000}]]")
    assert len((await turn.result(30)).text) == 40_000
    blind = await (await lab.storeless()).turn(turn.request_id).result(20)
    assert blind.text.startswith("xxx")
    assert blind.text.endswith("…")
    assert len(blind.text.encode()) == PREVIEW_BYTES


async def test_calls_that_are_too_many_are_not_run_and_the_model_is_told(lab: Lab) -> None:
    result, turn = await _ended(lab, "", 0, f"tools tool=make args='{{\"size\": 1}}' calls={MAX_CALLS + 2}")
    calls = (await turn.info()).tool_calls
    assert result.status == "completed"
    assert [call.state for call in calls] == ["done"] * MAX_CALLS + ["error"] * 2
    assert "only the first 128" in (calls[-1].error or "")


async def test_a_tool_name_of_any_length_is_an_error_for_the_model(lab: Lab) -> None:
    result, turn = await _ended(lab, "", 0, f"unknown_tool name={'n' * 100_000}")
    assert result.status == "completed"
    (call,) = (await turn.info()).tool_calls
    assert len(call.error or "") < 1000
