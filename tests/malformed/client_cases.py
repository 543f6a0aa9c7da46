"""Every method of the client with every kind of wrong argument. None of these may start anything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

from everturn import ChatClient, Principal
from tests.malformed.judging import Case, shown
from tests.malformed.values import BAD_IDS, NO_COUNTS, NO_JSON, NO_SECONDS, NO_STRINGS, nested

HUGE = "x" * 3_000_000


def client_cases(chat: ChatClient, known: str) -> list[Case]:
    """known: the request id of a turn that is over."""
    return [
        *_ids(chat),
        *_messages(chat),
        *_objects(chat),
        *_principals(chat),
        *store_cases(chat, known),
    ]


def store_cases(chat: ChatClient, known: str) -> list[Case]:
    """Those that a store could see."""
    return [*_unknown_ids(chat), *_numbers(chat, known), *_answers(chat, known)]


def _case(what: str, value: object, call: Any, named: str = "", **options: Any) -> Case:
    return Case(f"{what}={shown(value)}", call, named, **options)


async def _all(chunks: AsyncIterator[Any]) -> list[Any]:
    return [chunk async for chunk in chunks]


def _ids(chat: ChatClient) -> list[Case]:
    submit, again, turn_ids = partial(chat.submit, agent="agent"), chat.continue_last_turn, "request_id"
    cases: list[Case] = []
    for bad in BAD_IDS:
        cases += [
            _case("submit thread_id", bad, partial(submit, bad, "hi"), "thread_id"),
            _case("submit agent", bad, partial(chat.submit, "t", "hi", agent=bad), "agent"),
            _case("submit request_id", bad, partial(submit, "t", "hi", request_id=bad), "request_id"),
            _case("submit tenant_id", bad, partial(submit, "t", "hi", tenant_id=bad), "tenant_id"),
            _case("continue thread_id", bad, partial(again, bad), "thread_id"),
            _case("continue request_id", bad, partial(again, "t", agent="a", request_id=bad), "request_id"),
            _case("turn", bad, partial(chat.turn, bad), turn_ids),
            _case("stream", bad, partial(lambda b: _all(chat.stream(b)), bad), turn_ids),
            _case("result", bad, partial(chat.result, bad), turn_ids),
            _case("inspect", bad, partial(chat.inspect, bad), turn_ids),
            _case("cancel", bad, partial(chat.cancel_chat, bad), turn_ids),
            _case("approve request_id", bad, partial(chat.approve, bad, "call"), turn_ids),
            _case("deny request_id", bad, partial(chat.deny, bad, "call"), turn_ids),
            _case("tool result request_id", bad, partial(chat.submit_tool_result, bad, "call"), turn_ids),
            _case("approve call", bad, partial(chat.approve, "request", bad), "tool_call_id"),
            _case("deny call", bad, partial(chat.deny, "request", bad), "tool_call_id"),
            _case("tool result call", bad, partial(chat.submit_tool_result, "request", bad), "tool_call_id"),
            _case("messages", bad, partial(chat.messages, bad), "thread_id"),
            _case("pending", bad, partial(chat.pending, bad), "thread_id"),
            _case("list_turns thread_id", bad, partial(chat.list_turns, bad), "thread_id"),
        ]
    return cases


def _unknown_ids(chat: ChatClient) -> list[Case]:
    """Well-formed ids of nothing."""
    cases: list[Case] = []
    for unknown in ("no-such-id", "no/such/../id", "no%such", "no such 😀", "n" * 200):
        not_found = {"fits": lambda outcome: outcome == "not_found"}
        nothing = {"fits": lambda found: found == []}
        named = unknown if unknown.isascii() else ""
        cases += [
            _case("unknown result", unknown, partial(chat.result, unknown), named),
            _case("unknown stream", unknown, partial(lambda u: _all(chat.stream(u)), unknown), named),
            _case("unknown inspect", unknown, partial(chat.inspect, unknown), named),
            _case("unknown turn", unknown, partial(lambda u: chat.turn(u).result(5), unknown), named),
            _case("unknown continue", unknown, partial(chat.continue_last_turn, unknown), named),
            _case("unknown cancel", unknown, partial(chat.cancel_chat, unknown), **not_found),
            _case("unknown approve", unknown, partial(chat.approve, unknown, unknown), **not_found),
            _case("unknown deny", unknown, partial(chat.deny, unknown, unknown), **not_found),
            _case("unknown tool result", unknown, partial(chat.submit_tool_result, unknown, unknown), **not_found),
            _case("unknown messages", unknown, partial(chat.messages, unknown), **nothing),
            _case("unknown pending", unknown, partial(chat.pending, unknown), **nothing),
            _case("unknown list", unknown, partial(chat.list_turns, unknown), **nothing),
        ]
    return cases


def _messages(chat: ChatClient) -> list[Case]:
    bad: list[Any] = [
        *NO_STRINGS,
        *NO_JSON,
        None,
        "",
        " \n\t ",
        "\x00",
        "\ud800",
        [[]],
        [None],
        [1],
        ["text"],
        [{}],
        [{"type": None}],
        [{"type": "text"}],
        [{"type": "text", "text": None}],
        [{"type": "text", "text": 5}],
        [{"type": "text", "text": ["a"]}],
        [{"type": "text", "text": ""}],
        [{"type": "text", "text": "a\x00"}],
        [{"type": "text", "text": "\udfff"}],
        [{"type": "Text", "text": "a"}],
        [{"type": "reasoning", "text": "a"}],
        [{"type": "tool-x", "input": {}}],
        [{"type": "step-start"}],
        [{"type": ["text"], "text": "a"}],
        [{"type": "data-"}],
        [{"type": "data-\x00", "data": 1}],
        [{"type": "file"}],
        [{"type": "file", "url": 5}],
        [{"type": "file", "url": None, "mediaType": "image/png"}],
        [{"type": "file", "url": "data:,x", "mediaType": 5}],
        [{"type": "file", "url": "data:,x", "filename": ["a"]}],
        [{"type": "source-url", "url": {}}],
        [{"type": "source-url", "url": "http://x", "title": {}}],
        [{"type": "text", "text": "a", "more": nested(10_000)}],
        [{"type": "text", "text": "a", "more": float("nan")}],
        [{"type": "text", "text": "a", "more": {1, 2}}],
        [{"type": "text", "text": "a", 7: {("t",): 1}}],
        {"parts": []},
        {"parts": None},
        {"parts": "text"},
        {"parts": [1]},
        {"role": "assistant", "parts": [{"type": "text", "text": "a"}]},
        {"role": None, "parts": [{"type": "text", "text": "a"}]},
        {"role": ["user"], "parts": [{"type": "text", "text": "a"}]},
        {"text": "no type"},
        "x" * (8 * 1024 * 1024),
        [{"type": "text", "text": "a"}] * 400_000,
    ]
    return [_case("message", value, partial(chat.submit, "t", value, agent="agent")) for value in bad]


def _objects(chat: ChatClient) -> list[Case]:
    cases: list[Case] = []
    submit = partial(chat.submit, "t", "hi", agent="agent")
    for bad in (*NO_JSON, 5, "text", [], [["a", 1]], True, "x" * 10):
        cases += [
            _case("body", bad, partial(submit, body=bad), "body"),
            _case("metadata", bad, partial(submit, metadata=bad), "metadata"),
            _case("continue body", bad, partial(chat.continue_last_turn, "t", agent="a", body=bad), "body"),
            _case("approve input", bad, partial(chat.approve, "request", "call", bad), "input"),
        ]
    for bad in NO_JSON:
        cases += [
            _case("body value", bad, partial(submit, body={"k": bad}), "body"),
            _case("metadata value", bad, partial(submit, metadata={"k": bad}), "metadata"),
            _case("output", bad, partial(chat.submit_tool_result, "request", "call", bad), "output"),
        ]
    huge = {"k": HUGE}
    cases += [
        _case("body", HUGE, partial(submit, body=huge), "body"),
        _case("metadata", HUGE, partial(submit, metadata=huge), "metadata"),
        _case("output", HUGE, partial(chat.submit_tool_result, "request", "call", huge), "output"),
        _case("approve input", HUGE, partial(chat.approve, "request", "call", huge), "input"),
    ]
    cases += [_case("client_tools", b, partial(submit, client_tools=b), "client") for b in _client_tools()]
    policies = ("", "QUEUE", "latest ", "\x00", "x" * 100_000, *NO_STRINGS, *NO_JSON)
    cases += [_case("policy", p, partial(submit, policy=p), "policy") for p in policies]
    return cases


def _client_tools() -> Iterator[Any]:
    """What no front end can offer."""
    yield from (5, "tool", {"name": "x"}, object(), b"x")
    good = {"name": "locate", "description": "Where", "schema": {"type": "object", "properties": {}}}
    yield [good, good]
    yield [good | {"more": 1}]
    for bad in (*NO_STRINGS, "", "a b", "x" * 100, "é", "\x00", "\ud800"):
        yield [good | {"name": bad}]
    for bad in (*NO_STRINGS, "\x00", "\ud800", HUGE):
        yield [good | {"description": bad}]
    for bad in (
        5,
        "x",
        [],
        {"type": "nonsense"},
        {"type": "object", "properties": 5},
        {"x": float("nan")},
        {"k": HUGE},
    ):
        yield [good | {"schema": bad}]
    yield from ([bad] for bad in (*NO_STRINGS, None))


def _principals(chat: ChatClient) -> list[Case]:
    bad: list[Any] = [*NO_STRINGS, "me", None.__class__, Principal]
    bad += [Principal(id=value) for value in BAD_IDS]
    bad += [Principal(email=value) for value in (*NO_STRINGS, "\x00", "\ud800", HUGE)]
    bad += [Principal(roles=value) for value in ("admin", 5, (1,), (None,), ("\x00",), ("\ud800",), object(), (HUGE,))]
    bad += [Principal(is_anonymous=value) for value in (0, "no", [], None)]
    bad += [Principal(metadata=value) for value in (5, [], "x", {"k": float("nan")}, {"k": {1}}, {"k": HUGE})]
    return [
        _case("principal", value, partial(chat.submit, "t", "hi", agent="agent", principal=value), "principal")
        for value in bad
    ]


def _numbers(chat: ChatClient, known: str) -> list[Case]:
    def over(chunks: list[Any]) -> bool:
        return chunks == []

    cases = [_case("timeout", bad, partial(chat.result, known, timeout=bad), "timeout") for bad in NO_SECONDS]
    cases += [
        _case("turn timeout", bad, partial(lambda b: chat.turn(known).result(b), bad), "timeout") for bad in NO_SECONDS
    ]
    cases += [_case("after", b, partial(lambda v: _all(chat.stream(known, after=v)), b), "after") for b in NO_COUNTS]
    cases += [
        _case("after", v, partial(lambda v: _all(chat.stream(known, after=v)), v), fits=over) for v in (999, 2**31 - 1)
    ]
    cases += [_case("limit", bad, partial(chat.list_turns, limit=bad), "limit") for bad in (*NO_COUNTS, 0, 10**6)]
    for bad in ("", "COMPLETED", "done", "\x00", "\ud800", "' OR 1=1", *NO_STRINGS):
        cases.append(_case("status", bad, partial(chat.list_turns, status=bad), "status"))
    return cases


def _answers(chat: ChatClient, known: str) -> list[Case]:
    cases: list[Case] = []
    for bad in (*NO_STRINGS, "\ud800", "\x00", HUGE):
        cases += [
            _case("reason", bad, partial(chat.cancel_chat, known, bad), "reason"),
            _case("deny reason", bad, partial(chat.deny, known, "call", bad), "reason"),
            _case("tool error", bad, partial(chat.submit_tool_result, known, "call", error=bad), "error"),
        ]
    return cases
