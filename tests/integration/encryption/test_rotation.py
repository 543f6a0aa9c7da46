"""Keys change while turns wait."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import Client

from everturn import BadInput, ChatClient, tool
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.ids import workflow_id
from tests.integration.encryption.canaries import event_types, kept, payloads_of, raw
from tests.integration.encryption.conftest import Connect
from tests.integration.turns.lab import WAIT, Lab, eventually, make_agent, running_lab

OLD, NEW = os.urandom(32), os.urandom(32)
SCRIPT = "tools tool=pay args='{\"amount\": 7}'"


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


@pytest.fixture
def start(model_server: ScriptedModelServer, task_queue: str, tmp_path: Path) -> Any:
    """Starts a system with a client of other keys on the same store and task queue."""

    def started(client: Client) -> Any:
        agents = [make_agent(model_server, tools=[pay])]
        url = f"sqlite:///{tmp_path / 'store.db'}"
        return running_lab(client, model_server, task_queue, url, agents, graceful_shutdown=0.5)

    return started


async def begun(lab: Lab) -> Any:
    turn = await lab.play(SCRIPT)
    asked = await lab.until(turn, "tool-approval-request")
    return turn, str(asked.data["toolCallId"])


def key_ids(payloads: list[Payload]) -> list[str]:
    found = (payload.metadata.get("encryption-key-id", b"").decode() for payload in payloads)
    return [key for key in dict.fromkeys(found) if key]


async def test_a_turn_that_waits_goes_on_after_its_key_was_replaced(
    start: Any, encrypted: Connect, client: Client
) -> None:
    async with start(await encrypted({"old": OLD})) as lab:
        turn, call = await begun(lab)
    async with start(await encrypted({"new": NEW, "old": OLD})) as lab:
        assert await lab.chat.approve(turn.request_id, call) == "accepted"
        assert (await lab.chat.result(turn.request_id, timeout=WAIT)).text == "done: 1 results"
        storeless = await lab.storeless()
        assert (await storeless.result(turn.request_id, timeout=WAIT)).text == "done: 1 results"
        history = (await kept(client, workflow_id(turn.request_id)))[:1]
        assert key_ids(list(payloads_of(history[0]))) == ["old", "new"]


async def test_a_worker_without_the_key_leaves_the_turn_to_one_that_has_it(
    start: Any, encrypted: Connect, client: Client
) -> None:
    async with start(await encrypted({"old": OLD})) as lab:
        turn, _ = await begun(lab)
    async with start(await encrypted({"new": NEW})) as lab:
        answering = asyncio.ensure_future(lab.chat.cancel_chat(turn.request_id, "no more"))

        async def refused() -> bool:
            return "WORKFLOW_TASK_FAILED" in event_types(await kept(client, workflow_id(turn.request_id)))

        await eventually(refused, "a workflow task that failed for want of the key")
        assert b"'old'" not in raw(await kept(client, workflow_id(turn.request_id)))
        assert await answering == "cancelled"
        assert (await lab.chat.inspect(turn.request_id)).turn.status == "waiting"
    async with start(await encrypted({"new": NEW, "old": OLD})) as lab:
        assert (await lab.chat.result(turn.request_id, timeout=WAIT)).status == "aborted"
        without = await ChatClient.connect(await encrypted({"new": NEW}), task_queue=lab.task_queue)
        completed = await lab.play("ok")
        await lab.chat.result(completed.request_id, timeout=WAIT)
        assert (await without.result(completed.request_id, timeout=WAIT)).text == "ok"
    async with start(await encrypted({"old": OLD})) as lab:
        only_old = await lab.play("ok")
        await only_old.result(WAIT)
        with pytest.raises(BadInput, match=r"no encryption key has the id 'old' \(there are: new\)"):
            await without.result(only_old.request_id, timeout=WAIT)


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ("", "no encryption keys; set ENCRYPTION_KEYS"),
        ("a", "'a' has 0 bytes; it must have 32"),
        ("a:AAAA", "'a' has 3 bytes; it must have 32"),
        ("a:***", "entry 1 of ENCRYPTION_KEYS is not ID:KEY"),
        (":AAAA", "entry 1 of ENCRYPTION_KEYS has no id"),
        ("a:AAAA,a:AAAA", "entry 2 of ENCRYPTION_KEYS has no id, or one that another key has"),
    ],
)
def test_keys_that_cannot_be_used_are_named(encryption: ModuleType, keys: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint.replace("(", r"\(")):
        encryption.encrypting(encryption.keys_from(keys))


async def test_a_changed_payload_is_refused_and_a_plain_one_passes(encryption: ModuleType) -> None:
    codec = encryption.EncryptionCodec({"k": OLD})
    plain = Payload(metadata={"encoding": b"json/plain"}, data=b'"words"')
    (secret,) = await codec.encode([plain])
    assert await codec.decode([secret]) == [plain]
    assert await codec.decode([plain]) == [plain]
    secret.data = secret.data[:-1] + bytes([secret.data[-1] ^ 1])
    with pytest.raises(BadInput, match="does not fit encryption key 'k'"):
        await codec.decode([secret])
    with pytest.raises(BadInput, match="does not fit"):
        await codec.decode([Payload(metadata=dict(secret.metadata), data=b"short")])
