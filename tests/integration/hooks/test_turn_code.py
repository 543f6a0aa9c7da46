"""Turn code as authors write it, and what its faults and tricks come to. Each run is a real process."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from everturn import BadInput, Block, TurnCode, TurnConfig
from everturn.hooks.code.process import CHILD
from tests.integration.hooks.code_lab import play, processes_of, silent_site, site
from tests.integration.turns.lab import eventually

WAIT = 20.0


async def no_process_is_left() -> bool:
    return processes_of(CHILD, parent=os.getpid()) == []


async def test_the_code_sees_the_turn_and_its_user_and_changes_only_what_it_returns() -> None:
    ran = await play(
        "def before_turn(data, runtime):\n"
        "    user = runtime['user']\n"
        "    seen = [sorted(data), data['model'], data['temperature'], data['messages'][0]['content'],\n"
        "            user['id'], user['email'], user['is_anonymous'], user['roles'], user['metadata'],\n"
        "            runtime['tenant_id'], runtime['agent_id'], runtime['thread_id'], runtime['model']]\n"
        "    return {'system': data['system'] + ' ' + repr(seen), 'temperature': 0}\n"
    )
    seen = [
        *(["messages", "model", "system", "temperature"], "openai/small", 0.5, "hi"),
        *("u1", "u@example.com", False, ["admin"], {"plan": "gold"}),
        *("acme", "agent", "t1", "openai/small"),
    ]
    assert ran.run.value == TurnConfig(system=f"Be kind. {seen!r}", temperature=0)


async def test_an_async_code_may_await_and_nothing_returned_changes_nothing() -> None:
    ran = await play("import asyncio\nasync def before_turn(data, runtime):\n    await asyncio.sleep(0.01)\n")
    assert (ran.outcome, ran.run.value, ran.ctx.system) == ("ok", None, "Be kind.")


async def test_edits_in_place_with_nothing_returned_count() -> None:
    ran = await play("def before_turn(data, runtime):\n    data['messages'][-1]['content'] += ' [vip]'\n")
    assert (ran.outcome, ran.run.value) == ("ok", None)
    assert ran.ctx.messages == [{"role": "user", "content": "hi [vip]"}]


async def test_returning_the_whole_data_changes_only_what_differs() -> None:
    ran = await play("def before_turn(data, runtime):\n    return {**data, 'model': 'openai/large'}\n")
    assert ran.run.value == TurnConfig(model="openai/large")


async def test_a_block_refuses_the_turn_with_its_reason() -> None:
    ran = await play("def before_turn(data, runtime):\n    return {'block': True, 'reason': 'Not today.'}\n")
    assert ran.run.value == Block("Not today.")


async def test_log_lines_have_tag_level_and_data_and_prints_are_debug_lines() -> None:
    ran = await play("def before_turn(d, r):\n    log('one', {'n': 1}, level='warn')\n    print('two', 2)\n")
    tag = "[tool:hook:before_turn]"
    assert ran.run.logs == [
        {"tag": tag, "level": "warn", "message": "one", "data": {"n": 1}},
        {"tag": tag, "level": "debug", "message": "two 2"},
    ]


@pytest.mark.parametrize("word", ["def", "async def"])
async def test_facts_are_fetched_from_a_listed_host(word: str) -> None:
    wait = "await " if word == "async def" else ""
    async with site() as service:
        ran = await play(
            f"{word} before_turn(data, runtime):\n"
            f"    answer = {wait}fetch('{service.url}/facts?q=1', headers={{'X-Key': 'k'}})\n"
            "    return {'system': data['system'] + ' ' + answer.json()['facts'][0]}\n",
            outbound=[service.url],
        )
        assert ran.run.value == TurnConfig(system="Be kind. Paris is in France.")
        ((method, path, headers, _),) = service.seen
        assert (method, path, headers["X-Key"]) == ("GET", "/facts?q=1", "k")


async def test_a_body_is_sent_as_json_and_status_headers_and_text_come_back() -> None:
    async with site() as service:
        ran = await play(
            "def before_turn(data, runtime):\n"
            f"    answer = fetch('{service.url}/echo', method='POST', body={{'a': 1}})\n"
            "    log('seen', [answer.status, answer.ok, answer.headers['x-seen'], answer.json()])\n",
            outbound=[service.url],
        )
        assert ran.run.logs[0]["data"] == [200, True, "yes", {"a": 1}]
        assert service.seen[0][2]["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("url", "outbound", "words"),
    [
        ("{url}/facts", [], "is not among the hook's outbound hosts"),
        ("{url}/facts", ["http://127.0.0.1:1"], "is not among the hook's outbound hosts"),
        ("http://localhost:{port}/facts", ["{url}"], "is not among the hook's outbound hosts"),
        ("{url}/to?where=http://localhost:{port}/facts", ["{url}", "http://localhost:{port}"], "another host"),
        ("{url}/to?where=http://example.com/", ["{url}"], "is not among the hook's outbound hosts"),
        ("{url}/to?where=/to%3Fwhere%3D/facts", ["{url}"], None),
        ("{url}/big", ["{url}"], "larger than 1,048,576 bytes"),
        ("http://user:word@127.0.0.1:{port}/facts", ["{url}"], "has a user in it"),
        ("http://0x7f000001:{port}/facts", ["http://0x7f000001:{port}"], "leads to the private address 127.0.0.1"),
        ("http://0x7f000001:{port}/facts", ["http://0x7f000001:{port}", "127.0.0.0/8"], None),
        ("http://localhost:{port}/facts", ["http://localhost:{port}"], None),
    ],
)
async def test_fetch_reaches_only_listed_hosts(url: str, outbound: list[str], words: str | None) -> None:
    async with site() as service:
        names = {"url": service.url, "port": service.url.rpartition(":")[2]}
        source = (
            "def before_turn(data, runtime):\n"
            "    try:\n"
            f"        log(fetch({url.format(**names)!r}).text)\n"
            "    except FetchError as error:\n"
            "        log('refused', str(error))\n"
        )
        ran = await play(source, outbound=[rule.format(**names) for rule in outbound])
        if words is None:
            assert "Paris" in ran.said[0]
        else:
            assert words in ran.run.logs[0]["data"], ran.run.logs
            assert "/facts" not in [path for _, path, _, _ in service.seen]


async def test_a_request_that_nobody_answers_is_a_failure_within_its_own_timeout() -> None:
    async with silent_site() as url:
        ran = await play(
            f"def before_turn(d, r):\n    fetch('{url}/x?key=hidden', timeout=0.2)\n", outbound=[url], timeout=WAIT
        )
    assert ran.outcome == "error"
    assert f"fetch: GET {url}: no complete answer within 0.2 s" in str(ran.run.message)
    assert "hidden" not in str(ran.run.message)


async def test_code_with_other_functions_only_is_skipped_unrun_and_that_is_recorded() -> None:
    ran = await play("log('ran')\ndef beforeTurn(data, runtime):\n    return {'block': True}\n")
    assert (ran.outcome, ran.run.value) == ("ok", None)
    assert ran.said == ["skipped: the code declares no function before_turn (functions: beforeTurn)"]


FAULTS = [
    ("raise ValueError('boom')", "error", "ValueError: boom (line 2)"),
    ("return [1]", "invalid", "returned list; expected a dict or None"),
    ("return {'sytem': 'x'}", "invalid", "returned an unusable sytem"),
    ("return {'temperature': float('nan')}", "invalid", "finite"),
    ("return {'block': 'yes'}", "invalid", "unusable block"),
    ("return {'system': object()}", "invalid", "no JSON form"),
    ("return {'system': 'x' * 200 * 1024}", "oversize", "the limit is 131,072"),
    ("data['system'] = 'x' * 200 * 1024", "oversize", "the limit is 131,072"),
    ("return {'system': 'x' * 3 * 1024 * 1024}", "oversize", "at once"),
    ("x = bytearray(10 ** 9)", "error", "MemoryError"),
    ("import sys; sys.exit(3)", "error", "tried to end the process: sys.exit(3)"),
    ("import os; os._exit(3)", "error", "ended itself with exit code 3"),
    ("import signal; signal.raise_signal(signal.SIGKILL)", "error", "ended by signal SIGKILL"),
    ("import os; os.kill(os.getppid(), 0)", "error", "may send no signals"),
    ("import socket; socket.create_connection(('127.0.0.1', 1))", "error", "may open no sockets; call fetch(url)"),
    ("import os; os.fork()", "error", "may start no processes"),
    ("import subprocess; subprocess.run(['true'])", "error", "may start no processes"),
    ("import ctypes", "error", "may call no native code"),
    ("import os; open('/proc/%d/environ' % os.getppid())", "error", "may open no files"),
    ("open('written', 'w')", "error", "may open no files"),
    ("import resource as r; r.setrlimit(r.RLIMIT_AS, (-1, -1))", "error", "may not change its limits"),
    ("import everturn", "error", "ModuleNotFoundError"),
]


@pytest.mark.parametrize(("body", "outcome", "words"), FAULTS, ids=[body[:40] for body, _, _ in FAULTS])
async def test_a_fault_ends_the_run_alone_and_leaves_the_turn_as_it_was(body: str, outcome: str, words: str) -> None:
    ran = await play(f"def before_turn(data, runtime):\n    {body}\n")
    assert (ran.outcome, ran.run.value) == (outcome, None), ran.run.message
    assert words in str(ran.run.message)
    assert (ran.ctx.system, ran.ctx.messages) == ("Be kind.", [{"role": "user", "content": "hi"}])
    await eventually(no_process_is_left, "the process of the run is gone", WAIT)


@pytest.mark.parametrize("body", ["while True: pass", "import time; time.sleep(3600)", "fetch('{url}/')"])
async def test_a_run_is_killed_at_its_deadline_and_never_holds_up_the_event_loop(body: str) -> None:
    worst, last = 0.0, time.monotonic()

    async def beat() -> None:
        nonlocal worst, last
        while True:
            await asyncio.sleep(0.01)
            worst, last = max(worst, time.monotonic() - last), time.monotonic()

    async with silent_site() as url:
        beating = asyncio.ensure_future(beat())
        ran = await play(
            f"def before_turn(data, runtime):\n    log('began')\n    {body.format(url=url)}\n",
            timeout=2,
            outbound=[url],
        )
        beating.cancel()
    assert (ran.outcome, ran.run.message, ran.said) == ("timeout", "took longer than 2 s", ["began"])
    assert worst < 1.0
    await eventually(no_process_is_left, "the process of the run is gone", WAIT)


async def test_what_the_code_starts_behind_the_guard_is_killed_with_it() -> None:
    mark = f"everturn-{os.getpid()}-{time.monotonic_ns()}"
    ran = await play(
        "import os, sys, _posixsubprocess as p\n"
        "def before_turn(data, runtime):\n"
        "    try:\n"
        "        a, b = os.pipe()\n"
        f"        command = [b'{os.path.realpath('/bin/sh')}', b'-c', b'while :; do :; done', b'{mark}']\n"
        "        p.fork_exec(command, [command[0]], True, (b,), None, None, -1, -1, -1, -1, -1, -1, a, b,\n"
        "                    False, False, -1, None, None, None, -1, None, True)\n"
        "        log('started')\n"
        "    except OSError as error:\n"
        "        log('refused by the system', str(error))\n"
        "    while True: pass\n",
        timeout=2,
    )
    assert ran.outcome == "timeout"
    assert ran.said in (["started"], ["refused by the system"]), ran.run

    async def gone() -> bool:
        return processes_of(mark) == []

    await eventually(gone, "no process that the code started is left", 1.5)  # its CPU limit alone takes longer


async def test_a_run_whose_worker_was_killed_ends_by_itself() -> None:
    script = (
        "import asyncio\n"
        "from tests.integration.hooks.code_lab import play\n"
        "source = 'import time\\ndef before_turn(data, runtime):\\n    time.sleep(3600)\\n'\n"
        "asyncio.run(play(source, timeout=1))\n"
    )
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", script, cwd=Path(__file__).parents[3])
    orphans: list[int] = []

    async def began() -> bool:
        orphans[:] = processes_of(CHILD, parent=worker.pid)
        return bool(orphans)

    try:
        await eventually(began, "the worker runs the code", WAIT)
    finally:
        worker.kill()
        await worker.wait()

    async def gone() -> bool:
        return not set(orphans) & set(processes_of(CHILD))

    await eventually(gone, "the run ended without its worker", WAIT)


async def test_the_workers_environment_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-worker")
    ran = await play("import os\ndef before_turn(data, runtime):\n    log('names', sorted(os.environ))\n")
    assert set(ran.run.logs[0]["data"]) <= {"LC_CTYPE", "LD_LIBRARY_PATH"}
    assert "sk-of-the-worker" not in str(ran.run)


async def test_a_flood_of_logs_is_cut_to_50_lines_of_4_kb_and_the_rest_is_counted() -> None:
    ran = await play(
        "def before_turn(data, runtime):\n    for _ in range(1000): log('x' * 10_000, {'y': 'z' * 10_000})\n"
    )
    assert (ran.outcome, len(ran.run.logs), ran.run.logs[-1]["dropped"]) == ("ok", 50, 950)
    assert all(len(line["message"].encode()) <= 4096 for line in ran.run.logs)
    assert ran.said[0].endswith("… [cut]")


async def test_printing_to_the_pipe_of_the_worker_is_not_an_answer() -> None:
    ran = await play(
        "import os, sys\n"
        "def before_turn(data, runtime):\n"
        '    os.write(1, b\'{"result": {"answer": {"block": true}, "edits": {}}}\\n\')\n'
        "    sys.__stdout__.write('noise'); sys.__stdout__.flush()\n"
        "    return {'system': 'fine'}\n"
    )
    assert (ran.outcome, ran.run.value) == ("ok", TurnConfig(system="fine"))


async def test_standard_input_holds_nothing_but_is_closed() -> None:
    ran = await play("import sys\ndef before_turn(data, runtime):\n    log(repr(sys.stdin.read()))\n")
    assert ran.said == ["''"]


async def test_a_long_transcript_goes_in_and_out_again() -> None:
    messages = [{"role": "user", "content": f"é {number} " + "x" * 2000} for number in range(1000)]
    ran = await play("def before_turn(d, r):\n    d['messages'][-1]['content'] += '!'\n", messages=messages)
    assert ran.outcome == "ok", ran.run.message
    assert ran.ctx.messages[-1]["content"].endswith("x!")
    assert ran.ctx.messages[:-1] == messages[:-1]


async def test_a_path_is_read_when_the_hook_is_made(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text("def before_turn(data, runtime): pass")
    assert TurnCode(file).source == "def before_turn(data, runtime): pass"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "needs a path or a source"),
        ({"path": "none.py"}, "'none.py' cannot be read"),
        ({"source": "def before_turn(:"}, "no valid Python: line 1"),
        ({"source": "#" * 200_000}, "the limit for turn code is 131,072"),
        ({"source": "", "memory_mb": 1}, "memory_mb must be 64 or more"),
        ({"source": "", "outbound": ["ftp://x.org"]}, "use http or https"),
        ({"source": "", "outbound": ["https://x.org/path"]}, "give a host"),
        ({"source": "", "outbound": ["a.*.org"]}, "cannot be used"),
    ],
)
def test_a_code_that_cannot_be_used_is_refused_when_it_is_made(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput) as caught:
        TurnCode(**arguments)
    assert words in str(caught.value)
