"""What is strange and has to work all the same, and what chance makes."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pytest
from temporalio.converter import DataConverter

from everturn import BadInput, Principal
from everturn.activities.payloads import TurnInput
from everturn.client.request import details, make_input, summary
from everturn.messages import json_size
from tests.integration.turns.lab import Lab
from tests.malformed.conftest import sample
from tests.malformed.health import assert_whole
from tests.malformed.judging import Case, complaints, shown
from tests.malformed.values import NO_JSON, ODD_IDS, ODD_JSON, any_json, any_text, any_value, collected

BY_CHANCE: Final = 300
TEXTS: Final = (
    "\u202e",
    "\x1b[31m",
    "`|*_#[x](y)",
    "</script>",
    "a\r\nb",
    "😀" * 500,
    "\uffff",
    "%s {0} ${x}",
    r"\u0000",
    "\ufeff",
)


def _unique(odd: str) -> str:
    """The same strangeness as an id that only this run has."""
    return f"{odd[:150]}{uuid.uuid4().hex[:8]}{odd[158:]}"


async def _ended(lab: Lab, name: str, thread: str, text: Any, **options: Any) -> Any:
    turn = await lab.submit(thread, text, **options)
    result = await turn.result(40)
    chunks = await lab.chunks(turn)
    info = await turn.info()
    page = urlsplit(info.web_ui or "").path.rpartition("/")[2]
    whole = info.turn.thread_id == thread and chunks[-1].type == "finish" and unquote(page) == turn.workflow_id
    return (result.status, whole, name)


async def test_strange_ids_texts_and_values_reach_the_store_as_they_were_sent(lab: Lab) -> None:
    def fits(result: Any) -> bool:
        return bool(result[0] == "completed" and result[1])

    cases = [
        Case(f"request_id {shown(odd)}", lambda o=odd: _ended(lab, o, lab.thread(), "[[ok]]", request_id=o), fits=fits)  # type: ignore[misc]
        for odd in map(_unique, sample(lab, ODD_IDS))
    ]
    cases += [
        Case(f"thread_id {shown(o)}", lambda o=o: _ended(lab, o, o, "[[ok]]"), fits=fits)
        for o in sample(lab, ODD_IDS[1::3])
    ]  # type: ignore[misc]
    principals = [Principal(odd, odd, roles=(odd,), metadata={odd: odd}) for odd in sample(lab, ODD_IDS[::4])]
    cases += [
        Case(f"principal {shown(p.id)}", lambda p=p: _ended(lab, "p", lab.thread(), "[[ok]]", principal=p), fits=fits)  # type: ignore[misc]
        for p in principals
    ]
    threads = {f"odd-{number}": value for number, value in enumerate(sample(lab, (*ODD_JSON, *TEXTS), 2))}
    for thread, value in threads.items():
        parts = [
            {"type": "text", "text": f"[[ok]] {value if isinstance(value, str) else ''}"},
            {"type": "data-x", "data": value},
        ]
        given = {"body": {"v": value}, "metadata": {"v": value}}
        cases.append(
            Case(f"value {shown(value)}", lambda t=thread, p=parts, g=given: _ended(lab, t, t, p, **g), fits=fits)
        )  # type: ignore[misc]
    assert await complaints(cases) == []
    for thread, value in threads.items():
        (said, _) = await lab.chat.messages(thread)
        assert (said.parts[1]["data"], said.metadata) == (value, {"v": value})
    await assert_whole(lab)


def _made(value: Any) -> TurnInput | None:
    """A request with this value in each place that takes JSON; None if it was refused with a clear error."""
    options: dict[str, Any] = {
        "agent": "a",
        "request_id": "r",
        "principal": None,
        "tenant_id": None,
        "policy": "queue",
        "client_tools": (),
    }
    message = [{"type": "text", "text": "hi"}, {"type": "data-x", "data": value}]
    try:
        return make_input("t", message, body={"v": value}, metadata={"v": value}, **options)
    except BadInput as error:
        assert str(error).startswith("the message ")
        assert len(str(error)) < 500
        return None


def test_values_by_chance_are_refused_or_travel_unchanged() -> None:
    converter = DataConverter.default.payload_converter
    values = [*collected(any_value, BY_CHANCE), *collected(any_json, BY_CHANCE), *NO_JSON]
    made = 0
    for value in values:
        turn = _made(value)
        if turn is None:
            continue
        made += 1
        (back,) = converter.from_payloads(converter.to_payloads([turn]), [TurnInput])
        assert back == turn
        assert json_size([turn.parts, turn.body], "all") > 0
        assert summary(turn, previews=True).encode()
        assert details(turn, previews=True).encode()
        again = _made(json.loads(json.dumps(value)))
        assert again is not None
        assert again.digest == turn.digest
    assert len(values) >= 2 * BY_CHANCE
    assert BY_CHANCE / 4 < made < len(values)


async def test_texts_by_chance_are_refused_or_answered(lab: Lab) -> None:
    texts = [text for text in collected(any_text, BY_CHANCE) if "[[" not in text]

    async def asked(number: int, text: str) -> str | None:
        thread = f"chance-{number}"
        try:
            turn = await lab.submit(thread, text)
        except BadInput:
            return None if not text.strip() or "\x00" in text or _has_halves(text) else f"{text!r} was refused"
        result = await turn.result(40)
        said = (await lab.chat.messages(thread))[0].text
        return None if result.status == "completed" and said == text else f"{text!r}: {result.status}, {said!r}"

    found = await asyncio.gather(*(asked(number, text) for number, text in enumerate(sample(lab, texts[:30], 2))))
    assert [said for said in found if said] == []
    await assert_whole(lab)


def _has_halves(text: str) -> bool:
    return any(0xD800 <= ord(character) < 0xE000 for character in text)


async def test_a_refused_request_leaves_nothing_behind(lab: Lab) -> None:
    before = {summary.request_id for summary in await lab.chat.list_turns(limit=1000)}
    for number, bad in enumerate(NO_JSON[:12]):
        with pytest.raises(BadInput):
            await lab.submit("t", "hi", request_id=f"refused-{number}", body={"v": bad})
        assert await lab.chat.cancel_chat(f"refused-{number}") == "not_found"
    assert {summary.request_id for summary in await lab.chat.list_turns(limit=1000)} == before
