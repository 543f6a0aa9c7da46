"""The fast lane's reading: events from bytes in any pieces, deltas from chunks of any shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.activities.models.direct import sse
from everturn.activities.models.direct.chunks import ErrorEvent, delta_of_chunk, parse_chunk, with_price
from everturn.activities.models.direct.sse import EventReader, EventTooLarge
from everturn.activities.models.types import CallDelta, Delta
from everturn.turns import JsonDict, Usage

STREAM = (
    ': hello\n\ndata: {"a": "é€😀"}\n\nevent: ping\ndata: {}\n\nid: 7\nretry: 9\ndata:one\ndata: two\n\n'
    "data: \u2028line\n\n\n\ndata: [DONE]\n\n"
).encode()
EVENTS = [
    (b"", '{"a": "é€😀"}'.encode()),
    (b"ping", b"{}"),
    (b"", b"one\ntwo"),
    (b"", "\u2028line".encode()),
    (b"", b"[DONE]"),
]


def read(data: bytes, cuts: list[int]) -> list[tuple[bytes, bytes]]:
    reader, places = EventReader(), sorted({min(cut, len(data)) for cut in cuts})
    pieces = [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]
    return [event for piece in pieces for event in reader.feed(piece)] + reader.finish()


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@given(cuts=st.lists(st.integers(0, len(STREAM) + 40), max_size=30))
def test_the_pieces_in_which_a_stream_arrives_make_no_difference(line_end: bytes, cuts: list[int]) -> None:
    assert read(STREAM.replace(b"\n", line_end), cuts) == EVENTS


def test_every_single_byte_may_come_alone() -> None:
    data = STREAM.replace(b"\n", b"\r\n")
    assert read(data, list(range(len(data)))) == EVENTS


def test_an_event_is_given_as_soon_as_it_is_complete() -> None:
    reader = EventReader()
    assert reader.feed(b"data: 1\n") == []
    assert reader.feed(b"\ndata: 2") == [(b"", b"1")]
    assert reader.feed(b"\r\n\r\n") == [(b"", b"2")]
    assert reader.finish() == []


def test_a_last_event_without_its_empty_line_is_not_lost() -> None:
    assert read(b"data: last", []) == [(b"", b"last")]


def test_an_events_name_ends_with_the_event() -> None:
    assert read(b"event: a\n\ndata: 1\n\nevent: b\ndata: 2\n\ndata: 3\n\n", []) == [
        (b"", b"1"),
        (b"b", b"2"),
        (b"", b"3"),
    ]


def test_a_line_without_an_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    reader = EventReader()
    with pytest.raises(EventTooLarge, match="1000"):
        for _ in range(20):
            reader.feed(b"data: " + b"x" * 100)


def delta(part: Any, **choice: Any) -> Delta:
    return delta_of_chunk({"choices": [{"index": 0, "delta": part, **choice}]})


def test_text_reasoning_and_refusal_are_told_apart() -> None:
    assert delta({"role": "assistant", "content": "a"}) == Delta(text="a")
    assert delta({"reasoning_content": "b"}) == delta({"reasoning": "b", "reasoning_content": None})
    assert delta({"reasoning": "b"}).reasoning == "b"
    assert delta({"refusal": "no"}) == Delta(refusal="no")
    assert delta({"content": ""}, finish_reason="stop") == Delta(finish="stop")


@pytest.mark.parametrize(
    "chunk",
    [
        {},
        {"choices": []},
        {"choices": None},
        {"choices": [None]},
        {"choices": [{}]},
        {"choices": [{"delta": None, "finish_reason": None}]},
        {"choices": [{"delta": {"content": None, "tool_calls": None}}], "usage": None},
        {"choices": [{"delta": {"content": 3, "tool_calls": "x"}}], "usage": [], "id": 4, "model": None},
        {"choices": "none", "usage": "none"},
    ],
)
def test_what_is_missing_or_null_is_nothing(chunk: JsonDict) -> None:
    assert delta_of_chunk(chunk) == Delta()


def test_fragments_of_calls_are_read_with_the_providers_own_fields() -> None:
    signature = {"google": {"thought_signature": "s"}}
    calls = [
        {"index": 1, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{"}, "extra": signature},
        {"function": {"arguments": "}"}, "id": None},
        {"index": 0, "function": {"name": "g", "arguments": {"x": 1}}},
        None,
    ]
    assert delta({"tool_calls": calls}).calls == (
        CallDelta(1, "c", "f", "{", {"extra": signature}),
        CallDelta(0, arguments="}"),
        CallDelta(0, name="g", arguments='{"x": 1}'),
        CallDelta(0),
    )


def test_usage_is_read_with_its_details() -> None:
    usage: JsonDict = {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3, "audio_tokens": None},
    }
    found = delta_of_chunk({"choices": [], "usage": usage, "id": "r", "model": "m"})
    assert found == Delta(usage=Usage(9, 5, 4, 3), response_id="r", model="m")
    bare = delta_of_chunk({"usage": {"prompt_tokens": 9, "completion_tokens": None, "prompt_tokens_details": None}})
    assert bare.usage == Usage(9)


def test_a_cost_that_the_provider_names_is_taken_from_its_usage() -> None:
    def priced(cost: Any) -> float | None:
        chunk = {"usage": {"prompt_tokens": 1, "cost": cost}}
        usage = with_price(delta_of_chunk(chunk), chunk).usage
        return usage.cost if usage else None

    assert priced(0.25) == 0.25
    assert priced(0) == 0.0
    assert priced("0.25") is None


def test_signed_reasoning_and_own_fields_of_a_gateway_are_kept() -> None:
    block = {"type": "thinking", "thinking": "t", "signature": None}
    fields = {"thinking_blocks": [block], "citations": ["c"], "other": None}
    found = delta({"thinking_blocks": [block], "provider_specific_fields": fields})
    assert found.thinking == [{"type": "thinking", "thinking": "t"}]
    assert found.provider == {"citations": ["c"]}


@pytest.mark.parametrize(
    ("name", "event", "status"),
    [
        (b"", {"error": {"message": "m", "code": 429}}, 429),
        (b"", {"error": {"message": "m", "code": "rate_limit"}}, None),
        (b"", {"error": "m"}, None),
        (b"error", {"message": "m", "status": 503}, 503),
        (b"", {"object": "error", "message": "m", "code": 400}, 400),
    ],
)
def test_every_form_of_an_error_inside_the_stream_is_seen(name: bytes, event: JsonDict, status: int | None) -> None:
    with pytest.raises(ErrorEvent) as caught:
        parse_chunk(name, json.dumps(event).encode())
    assert caught.value.status_code == status


def test_a_chunk_whose_error_is_null_is_a_chunk() -> None:
    assert parse_chunk(b"", b'{"error": null, "id": "x"}') == {"error": None, "id": "x"}


@pytest.mark.parametrize("data", [b"{", b"\xff\xfe", b"no json"])
def test_what_is_no_json_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_chunk(b"", data)
