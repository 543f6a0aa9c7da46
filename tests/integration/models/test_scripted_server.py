"""The scripted server itself, over plain HTTP: names, attempts, log, and a stop that does not hang."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from typing import Any

import pytest

from everturn.activities.scripted import ScriptedModelServer
from everturn.turns import JsonDict


def post(server: ScriptedModelServer, model: str, text: str = "hi", **body: Any) -> tuple[int, str]:
    data = json.dumps({"model": model, "messages": [{"role": "user", "content": text}], **body}).encode()
    return fetch(f"{server.base_url}/chat/completions", data)


def fetch(url: str, data: bytes | None = None) -> tuple[int, str]:
    headers = {"content-type": "application/json", "authorization": "Bearer sk-never-log-this"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def reply(server: ScriptedModelServer, model: str, text: str = "hi", **body: Any) -> JsonDict:
    status, answer = await asyncio.to_thread(post, server, model, text, **body)
    found: JsonDict = json.loads(answer)
    return {"status": status, **found}


async def said(server: ScriptedModelServer, model: str, text: str = "hi", **body: Any) -> str:
    answer = await reply(server, model, text, **body)
    return str(answer["choices"][0]["message"]["content"])


async def test_an_unknown_name_is_a_404_as_at_a_real_provider(server: ScriptedModelServer) -> None:
    found = await reply(server, "gpt-99")
    assert (found["status"], found["error"]["code"]) == (404, "model_not_found")
    assert (await reply(server, "text:tokens"))["status"] == 404
    assert (await reply(server, "text:tokens=many"))["status"] == 404
    assert (await reply(server, "stall:kind=odd", stream=True))["status"] == 404


async def test_a_path_or_a_body_that_makes_no_sense_is_refused(server: ScriptedModelServer) -> None:
    assert (await asyncio.to_thread(fetch, f"{server.origin}/nowhere"))[0] == 404
    assert (await asyncio.to_thread(fetch, f"{server.base_url}/chat/completions", b"{not json"))[0] == 400


async def test_a_directive_in_the_message_chooses_the_scenario(server: ScriptedModelServer) -> None:
    assert await said(server, "scripted", "please [[say text='one two']] now") == "one two"
    assert await said(server, "scripted", "no directive") == "no directive"


async def test_scenarios_joined_by_a_bar_are_one_per_step(server: ScriptedModelServer) -> None:
    model = "say:text=first|say:text=second"
    assert await said(server, model) == "first"
    user, assistant = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "first"}
    assert await said(server, model, messages=[user, assistant]) == "second"
    assert await said(server, model, messages=[user, assistant, assistant]) == "second"
    assert await said(server, model, messages=[user, assistant, user]) == "first"


async def test_attempts_are_counted_per_conversation_and_not_globally(server: ScriptedModelServer) -> None:
    first, second = uuid.uuid4().hex, uuid.uuid4().hex
    statuses = [
        (await reply(server, "status:code=500,times=2", text))["status"] for text in (first, second, first, second)
    ]
    assert statuses == [500] * 4
    assert await said(server, "status:code=500,times=2", first) == "ok"
    assert await said(server, "status:code=500,times=2", second) == "ok"


async def test_the_log_can_be_asked_by_other_processes_and_holds_no_key(server: ScriptedModelServer) -> None:
    marker = uuid.uuid4().hex
    before = time.time()
    await said(server, "ok", marker)
    _, answer = await asyncio.to_thread(fetch, f"{server.origin}/log?contains={marker}&model=ok&since={before}")
    (record,) = json.loads(answer)
    assert (record["model"], record["status"], record["complete"], record["client_closed"]) == ("ok", 200, True, False)
    assert record["t_request"] <= record["t_first_byte"] <= record["t_closed"]
    assert record["body"]["messages"][0]["content"] == marker
    assert "never-log-this" not in answer
    assert (await asyncio.to_thread(fetch, f"{server.origin}/log?since={time.time() + 60}"))[1] == "[]"


async def test_usage_is_reported_if_it_is_asked_for(server: ScriptedModelServer) -> None:
    _, without = await asyncio.to_thread(post, server, "text:tokens=3", stream=True)
    options = {"include_usage": True}
    _, asked = await asyncio.to_thread(post, server, "text:tokens=3", stream=True, stream_options=options)
    assert '"usage"' not in without
    assert '"completion_tokens": 3' in asked
    assert asked.endswith("data: [DONE]\n\n")


async def test_stop_is_quick_while_answers_are_open() -> None:
    server = await ScriptedModelServer().start()
    reader, writer = await asyncio.open_connection(*server.origin.removeprefix("http://").split(":"))
    body = json.dumps({"model": "stall", "stream": True, "messages": []}).encode()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
    assert b"200 OK" in await reader.readline()
    began = time.monotonic()
    await server.stop()
    assert time.monotonic() - began < 10
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readuntil(b"never")
    writer.close()
    await server.stop()
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.base_url


async def test_two_requests_share_a_connection(server: ScriptedModelServer) -> None:
    reader, writer = await asyncio.open_connection(*server.origin.removeprefix("http://").split(":"))
    for _ in range(2):
        writer.write(b"GET /log?model=none HTTP/1.1\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"200 OK" in head
        assert await reader.readexactly(2) == b"[]"
    writer.write(b"nonsense\r\n\r\n")
    assert b"400" in await reader.readline()
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_as_a_program_it_prints_its_address_and_stops_on_a_signal(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "everturn.activities.scripted", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())
            assert fetch(f"{address['origin']}/log")[0] == 200
            process.send_signal(number)
            assert process.wait(10) == 0
        finally:
            process.kill()
