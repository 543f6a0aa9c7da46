"""Wrong arguments of every method of the client."""

from __future__ import annotations

from tests.integration.turns.lab import Lab
from tests.malformed.client_cases import client_cases
from tests.malformed.judging import complaints


async def test_every_wrong_argument_is_one_clear_error_and_starts_nothing(lab: Lab) -> None:
    known = await lab.play("ok")
    await known.result(20)
    before = await lab.chat.list_turns(limit=1000)
    cases = client_cases(lab.chat, known.request_id)
    print(len(cases))
    found = await complaints(cases)
    print("\n".join(found))
    assert found == []
    assert await lab.chat.list_turns(limit=1000) == before
