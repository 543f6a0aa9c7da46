"""The shipped commands with a codec, and the codec server with Temporal's own command line."""

from __future__ import annotations

import asyncio
import base64
import os
import uuid
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import ClientSession, web
from temporalio.client import Client

from everturn import BadInput, Store
from everturn.data_converter import load_data_converter
from everturn.ids import new_request_id, workflow_id
from everturn.worker.server_command import find_binary
from tests.integration.encryption.canaries import kept, raw
from tests.integration.encryption.conftest import EXAMPLES, load_example
from tests.services.commands import CommandLine
from tests.services.temporal import TemporalService

KEYS = f"new:{base64.b64encode(os.urandom(32)).decode()},old:{base64.b64encode(os.urandom(32)).decode()}"
CONVERTER = f"{EXAMPLES / 'encryption.py'}:converter"


@pytest.fixture
async def line(temporal: TemporalService, task_queue: str, tmp_path: Path) -> CommandLine:
    url = f"sqlite:///{tmp_path}/store.db"
    await (await Store.open(url, create=True)).close()
    return CommandLine(
        tmp_path,
        {
            "EVERTURN_TARGET": temporal.address,
            "EVERTURN_TASK_QUEUE": task_queue,
            "EVERTURN_STORE": url,
            "EVERTURN_DATA_CONVERTER": CONVERTER,
            "ENCRYPTION_KEYS": KEYS,
        },
    )


@pytest_asyncio.fixture(loop_scope="session")
async def codec_server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[str, Mapping[str, str]]]:
    """Its address, and the header that it wants."""
    token = uuid.uuid4().hex
    monkeypatch.setenv("CODEC_TOKEN", token)
    load_example("encryption")
    server = load_example("codec_server")
    runner = web.AppRunner(server.make_app(server.EncryptionCodec(server.keys_from(KEYS))))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}", {"Authorization": f"Bearer {token}"}
    await runner.cleanup()


async def test_worker_client_and_codec_server_share_the_keys(
    line: CommandLine, temporal: TemporalService, client: Client, codec_server: tuple[str, Mapping[str, str]]
) -> None:
    request = new_request_id()
    asked = ("submit", "thread-1", "echo canaryword", "--agent", "support", "--request-id", request, "--json")
    async with await line.start("worker", "everturn.worker.sample") as worker:
        await worker.says("polls task queue")
        answered = await line.run(*asked)
    assert (answered.code, answered.errors) == (0, "")
    assert answered.json()["text"] == "canaryword"
    assert b"canaryword" not in raw(await kept(client, workflow_id(request)))
    endpoint, headers = codec_server
    shown = [
        await _temporal(temporal, request, "--codec-endpoint", endpoint, *auth)
        for auth in ((), ("--codec-auth", headers["Authorization"]))
    ]
    assert ["canaryword" in text for text in shown] == [False, True]


async def _temporal(temporal: TemporalService, request: str, *options: str) -> str:
    arguments = ("workflow", "show", "--workflow-id", workflow_id(request), "--address", temporal.address)
    process = await asyncio.create_subprocess_exec(
        *(find_binary(), *arguments, "--output", "json", *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(), 30)
    payloads = [base64.b64decode(word + b"=" * (-len(word) % 4)) for word in output.split(b'"') if _is_base64(word)]
    return b"\n".join([output, errors, *payloads]).decode(errors="replace")


def _is_base64(word: bytes) -> bool:
    return len(word) > 16 and len(word) % 4 == 0 and word.replace(b"+", b"").replace(b"/", b"").rstrip(b"=").isalnum()


async def test_the_codec_server_lets_the_web_ui_in_and_refuses_what_it_cannot_read(
    codec_server: tuple[str, Mapping[str, str]],
) -> None:
    endpoint, headers = codec_server
    async with ClientSession(headers=headers) as session:
        async with session.options(f"{endpoint}/decode", headers={"Origin": "http://localhost:8233"}) as allowed:
            assert allowed.headers["Access-Control-Allow-Origin"] == "http://localhost:8233"
        async with session.options(f"{endpoint}/decode", headers={"Origin": "http://evil.example"}) as other:
            assert "Access-Control-Allow-Origin" not in other.headers
        payload = {"metadata": {"encoding": "anNvbi9wbGFpbg=="}, "data": "IndvcmxkcyI="}
        async with session.post(f"{endpoint}/encode", json={"payloads": [payload]}) as encoded:
            sealed = await encoded.json()
        assert payload["data"] not in str(sealed)
        async with session.post(f"{endpoint}/decode", json=sealed) as decoded:
            assert (await decoded.json())["payloads"] == [payload]
        sealed["payloads"][0]["metadata"]["encryption-key-id"] = base64.b64encode(b"lost").decode()
        for body in (b"{", b'{"payloads": 5}', str(sealed).replace("'", '"').encode()):
            async with session.post(f"{endpoint}/decode", data=body) as refused:
                assert refused.status == 400
    assert "no encryption key has the id 'lost'" in await refused_text(endpoint, headers, sealed)


async def refused_text(endpoint: str, headers: Mapping[str, str], body: object) -> str:
    async with ClientSession(headers=headers) as session, session.post(f"{endpoint}/decode", json=body) as refused:
        return await refused.text()


async def test_a_command_without_keys_says_what_is_missing(line: CommandLine) -> None:
    bare = CommandLine(line.folder, {**line.environment, "ENCRYPTION_KEYS": ""})
    shown = await bare.run("cancel", "some-request")
    assert shown.code == 2
    assert shown.errors.count("\n") == 1
    assert "no encryption keys; set ENCRYPTION_KEYS to ID:KEY" in shown.errors


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("encryption.py", "must have the form MODULE:NAME"),
        (":converter", "must have the form MODULE:NAME"),
        ("encryption.py:", "must have the form MODULE:NAME"),
        ("no_such_module_at_all:converter", "there is no module 'no_such_module_at_all'"),
        ("/nowhere/encryption.py:converter", "there is no file '/nowhere/encryption.py'"),
        (f"{EXAMPLES / 'encryption.py'}:nothing", "there is no 'nothing'"),
        (f"{EXAMPLES / 'encryption.py'}:ENCODING", "there is bytes; give a temporalio.converter.DataConverter"),
        ("..:x", "'..' cannot be imported"),
    ],
)
def test_a_data_converter_that_cannot_be_used_is_named(spec: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=r"^EVERTURN_DATA_CONVERTER is ") as refused:
        load_data_converter(spec)
    assert complaint in str(refused.value)
