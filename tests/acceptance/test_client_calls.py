"""submit, stream, cancel, inspect, turns and messages against a running system."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

from everturn.ids import new_request_id
from tests.services.commands import CommandLine

QUESTION = "What is the status of order 1001?"


def _thread() -> str:
    return f"thread-{uuid.uuid4().hex[:8]}"


async def _stream(line: CommandLine, request_id: str, *options: str) -> list[dict[str, Any]]:
    shown = await line.run("stream", request_id, "--json", *options)
    return [json.loads(text) for text in shown.output.splitlines()]


async def test_submit_shows_the_tool_call_and_the_answer(system: CommandLine) -> None:
    shown = await system.run("submit", _thread(), QUESTION, "--agent", "support")
    assert (shown.code, shown.errors) == (0, "")
    call, answer = shown.output.splitlines()
    assert call.startswith('→ order_status(order_id="1001") = found=true')
    assert "shipped" in answer


async def test_submit_as_json_is_one_document_and_leaves_cleanly_every_time(system: CommandLine) -> None:
    thread = _thread()
    for number in range(10):
        shown = await system.run("submit", thread, f"echo {number}", "--agent", "support", "--json")
        assert (shown.code, shown.errors) == (0, "")
        assert shown.json()["status"] == "completed"
        assert shown.json()["text"] == str(number)


async def test_the_words_can_come_from_standard_input(system: CommandLine) -> None:
    shown = await system.run("submit", _thread(), "-", "--agent", "support", words="echo from a pipe\n")
    assert shown.output == "from a pipe\n"


async def test_the_same_request_id_runs_once_and_another_body_is_refused(system: CommandLine) -> None:
    request = new_request_id()
    asked = ("submit", _thread(), "echo once", "--agent", "support", "--request-id", request)
    first, second = await system.run(*asked, "--json"), await system.run(*asked, "--json")
    assert first.json() == second.json()
    other = await system.run("submit", asked[1], "echo twice", *asked[3:])
    assert other.code == 1
    assert f"request_id {request!r} was used for another request" in other.errors


async def test_a_failed_turn_is_exit_code_1_with_one_clear_line(system: CommandLine) -> None:
    shown = await system.run("submit", _thread(), "hi", "--agent", "refused")
    assert shown.code == 1
    assert shown.errors.startswith("everturn: the turn failed: ")
    assert len(shown.errors.splitlines()) == 1
    as_json = await system.run("submit", _thread(), "hi", "--agent", "refused", "--json")
    assert as_json.code == 1
    assert as_json.json()["status"] == "error"


async def test_stream_gives_every_chunk_once_and_goes_on_after_a_number(system: CommandLine) -> None:
    thread = _thread()
    request = (await system.run("submit", thread, "hi", "--agent", "quick", "--detach")).output.strip()
    whole = await _stream(system, request)
    assert [chunk["seq"] for chunk in whole] == list(range(1, len(whole) + 1))
    assert (whole[0]["type"], whole[-1]["type"]) == ("start", "finish")
    assert await _stream(system, request, "--after", "3") == whole[3:]


async def test_cancel_stops_a_running_turn_and_says_so_when_it_is_over(system: CommandLine) -> None:
    request = (await system.run("submit", _thread(), "hi", "--agent", "slow", "--detach")).output.strip()
    watching = asyncio.ensure_future(system.run("stream", request))
    stopped = await system.run("cancel", request, "--json")
    assert (stopped.code, stopped.json()) == (0, {"request_id": request, "outcome": "cancelled"})
    assert (await watching).code == 1
    again = await system.run("cancel", request)
    assert (again.code, again.output) == (0, "already terminal\n")
    info = (await system.run("inspect", request, "--json")).json()
    assert info["turn"]["status"] == "aborted"


async def test_a_turn_that_nobody_knows_is_exit_code_1(system: CommandLine) -> None:
    for command in ("cancel", "inspect", "stream"):
        unknown = await system.run(command, "no-such-turn")
        assert unknown.code == 1, command


async def test_inspect_turns_and_messages_tell_what_happened(system: CommandLine) -> None:
    thread = _thread()
    request = (await system.run("submit", thread, QUESTION, "--agent", "support", "--json")).json()["request_id"]
    info = await system.run("inspect", request)
    assert f"turn             {request}\n" in info.output
    assert 'order_status(order_id="1001"): done' in info.output
    assert f"/workflows/turn-{request}" in info.output
    listed = (await system.run("turns", "--thread", thread, "--json")).json()
    assert [turn["request_id"] for turn in listed] == [request]
    assert request in (await system.run("turns", "--status", "completed")).output
    said = (await system.run("messages", thread, "--json")).json()
    assert [message["role"] for message in said] == ["user", "assistant"]
    assert (await system.run("messages", thread)).output.startswith(f"user:\n  {QUESTION}\nassistant:\n")


async def test_inspect_hooks_shows_what_each_hook_changed_and_logged(system: CommandLine) -> None:
    request = (await system.run("submit", _thread(), "hi", "--agent", "watched", "--json")).json()["request_id"]
    shown = (await system.run("inspect", request, "--hooks")).output
    assert "before_turn · agent\n  ok, " in shown
    assert "  changed temperature\n  [info] cooler  from=null\n" in shown
    (trace,) = (await system.run("inspect", request, "--hooks", "--json")).json()
    assert (trace["point"], trace["changed"], trace["logs"][0]["message"]) == ("before_turn", ["temperature"], "cooler")
    assert "hook before_turn of agent: ok, " in (await system.run("inspect", request)).output
