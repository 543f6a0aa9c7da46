"""Wrong arguments of every method of the client."""

from __future__ import annotations

from tests.integration.turns.lab import Lab
from tests.malformed.client_cases import client_cases, store_cases
from tests.malformed.judging import complaints


async def test_every_wrong_argument_is_one_clear_error_and_starts_nothing(lab: Lab) -> None:
    known = await lab.play("ok")
    await known.result(20)
    before = await lab.chat.list_turns(limit=1000)
    of_all = store_cases if lab.store_url.startswith("postgresql") else client_cases
    cases = of_all(lab.chat, known.request_id)
    found = await complaints(cases)
    assert found == []
    assert await lab.chat.list_turns(limit=1000) == before
