"""Turn code in whole turns: kept in the store by version, or given to the agent; failing open."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from everturn import Principal, StoredTurnCode, TurnCode
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.hooks.authors import hooks, the_trace, traces
from tests.integration.hooks.code_lab import site
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import WAIT, make_agent


def setting_system(words: str) -> str:
    return f"def before_turn(data, runtime):\n    log('ran', {words!r})\n    return {{'system': {words!r}}}\n"


def system_of(lab: Any, turn: Any) -> str:
    messages = lab.asked(turn)[0].body["messages"]
    return messages[0]["content"] if messages[0]["role"] == "system" else ""


async def test_a_turn_runs_the_active_version_and_its_trace_names_it(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, system="Old.", hooks=[StoredTurnCode()])) as lab:
        without = await lab.play("ok")
        assert (await without.result(15)).text == "ok"
        assert (system_of(lab, without), traces(await without.info(), "before_turn")) == ("Old.", [])

        for version, words in ((1, "First."), (2, "Second.")):
            stored = await lab.store.set_code("agent", setting_system(words), "ann")
            assert (stored.version, stored.author) == (version, "ann")
            turn = await lab.play("ok")
            await turn.result(15)
            assert system_of(lab, turn) == words
            trace = the_trace(await turn.info(), "before_turn")
            assert (trace.hook, trace.outcome, trace.changed) == (f"turn-code@{version}", "ok", ["system"])
            assert trace.logs[0]["tag"] == "[tool:hook:before_turn]"

        runs = await lab.store.code_runs("agent")
        assert [(run.version, run.logs[0]["data"]) for run in runs] == [(2, "Second."), (1, "First.")]
        await lab.store.remove_code("agent", "bob")
        after = await lab.play("ok")
        await after.result(15)
        assert system_of(lab, after) == "Old."


async def test_code_of_another_agent_is_not_run(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    async with start_lab(make_agent(scripted_server, system="Old.", hooks=[StoredTurnCode()])) as lab:
        await lab.store.set_code("other", setting_system("Other."), "ann")
        turn = await lab.play("ok")
        await turn.result(15)
        assert system_of(lab, turn) == "Old."


async def test_a_turn_keeps_the_version_that_it_began_with_when_its_hooks_run_again(
    start_lab: StartLab, scripted_server: ScriptedModelServer, store_url: str
) -> None:
    """The first try fails when it writes its traces: their table is away. Meanwhile a new version is set."""
    tries: list[str] = []

    def rename(table: str, to: str) -> None:
        with closing(sqlite3.connect(store_url.removeprefix("sqlite:///"), timeout=10)) as connection:
            connection.execute(f"ALTER TABLE {table} RENAME TO {to}")

    async def disturb(self: Any, ctx: Any) -> None:
        tries.append(ctx.request_id)
        if len(tries) == 1:
            rename("hook_traces", "away")
            await lab.store.set_code("agent", setting_system("Version two."), "ann")
        elif len(tries) == 2:
            rename("away", "hook_traces")

    chain = [hooks("Disturbing", before_turn=disturb), StoredTurnCode()]
    async with start_lab(make_agent(scripted_server, hooks=chain)) as lab:
        await lab.store.set_code("agent", setting_system("Version one."), "ann")
        turn = await lab.play("ok")
        assert (await turn.result(WAIT)).text == "ok"
        assert tries == [turn.request_id] * 2
        assert system_of(lab, turn) == "Version one."
        later = await lab.play("ok")
        await later.result(15)
        assert system_of(lab, later) == "Version two."


async def test_a_queued_turn_runs_the_version_that_is_active_when_it_begins(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[StoredTurnCode()])) as lab:
        running = await lab.play("stall tokens=1")
        await lab.until(running, "text-delta")
        waiting = await lab.play("ok", running.thread_id)
        await lab.until(waiting, "data-queued")
        await lab.store.set_code("agent", setting_system("Now."), "ann")
        await lab.chat.cancel_chat(running.request_id)
        assert (await waiting.result(15)).text == "ok"
        assert the_trace(await waiting.info(), "before_turn").hook == "turn-code@1"


async def test_a_policy_in_code_blocks_the_turn_and_the_model_is_never_asked(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    policy = TurnCode(
        source="async def before_turn(data, runtime):\n"
        "    if runtime['user']['is_anonymous']:\n"
        "        return {'block': True, 'reason': 'Please sign in.'}\n"
    )
    async with start_lab(make_agent(scripted_server, hooks=[policy])) as lab:
        refused = await lab.play("ok", principal=Principal(is_anonymous=True))
        result = await refused.result(15)
        assert (result.status, result.text, lab.asked(refused)) == ("blocked", "Please sign in.", [])
        allowed = await lab.play("ok", principal=Principal(id="u1"))
        assert (await allowed.result(15)).text == "ok"


async def test_grounding_routing_and_annotation_reach_the_model_and_the_stored_message_stays(
    start_lab: StartLab, scripted_server: ScriptedModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", scripted_server.base_url)
    async with site() as service:
        code = TurnCode(
            source="def before_turn(data, runtime):\n"
            f"    facts = fetch('{service.url}/facts').json()['facts']\n"
            "    data['system'] += ' Facts: ' + facts[0]\n"
            "    data['messages'][-1]['content'] += ' [premium]'\n"
            "    if 'premium' in runtime['user']['roles']:\n"
            "        data['model'] = 'hosted_vllm/scripted'\n",
            outbound=[service.url],
        )
        async with start_lab(make_agent(scripted_server, system="Old.", hooks=[code])) as lab:
            turn = await lab.play("ok", principal=Principal(id="u1", roles=("premium",)))
            assert (await turn.result(15)).text == "ok"
            (request,) = lab.asked(turn)
            assert request.body["model"] == "scripted"
            assert [message["content"] for message in request.body["messages"]] == [
                "Old. Facts: Paris is in France.",
                f"[[ok]] {turn.thread_id} [premium]",
            ]
            assert the_trace(await turn.info(), "before_turn").changed == ["messages", "model", "system"]
            assert (await lab.chat.messages(turn.thread_id))[0].text == f"[[ok]] {turn.thread_id}"


async def test_an_error_with_a_secret_goes_to_the_trace_and_not_to_clients_or_temporal(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    code = TurnCode(
        source="def before_turn(data, runtime):\n    key = 'in-a-variable'\n    raise ValueError('key hush-hush')\n"
    )
    async with start_lab(make_agent(scripted_server, hooks=[code])) as lab:
        turn = await lab.play("ok")
        assert (await turn.result(15)).text == "ok"
        info = await turn.info()
        trace = the_trace(info, "before_turn")
        assert (trace.outcome, trace.message) == ("error", "ValueError: key hush-hush (line 3)")
        assert "hush-hush" in str(info.before_turn_hook_error)
        assert "hush-hush" not in str(await lab.chunks(turn)) + await lab.raw_history(turn)
        assert "in-a-variable" not in str(info)


async def test_code_that_must_not_fail_refuses_the_turn_when_it_does(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    code = TurnCode(source="def before_turn(data, runtime):\n    while True: pass\n", timeout=1, on_error="deny")
    async with start_lab(make_agent(scripted_server, hooks=[code])) as lab:
        turn = await lab.play("ok")
        assert (await turn.result(15)).status == "blocked"
        assert the_trace(await turn.info(), "before_turn").outcome == "timeout"
        assert lab.asked(turn) == []
