"""Answers of model servers that are wrong in every way that somebody has thought of."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from typing import Any, Final

from tests.malformed.raw_model import chunk, event, http, stream

HUGE_INT: Final = 10**30
WRONG: Final[tuple[Any, ...]] = (
    None,
    0,
    -1,
    1.5,
    HUGE_INT,
    True,
    "",
    "text",
    "half \ud83d",
    "nul \x00",
    [],
    [None],
    [[]],
    ["a", 1],
    {},
    {"a": {"b": [1]}},
)
"""Values that are wrong for some field or other."""

GOOD: Final = [chunk(), chunk(finish="stop")]
_CALL: Final = {
    "index": 0,
    "id": "call_1",
    "type": "function",
    "function": {"name": "note", "arguments": '{"text": "a"}'},
}


def answers() -> Iterator[tuple[str, bytes]]:
    """What is wrong, and the answer."""
    yield "nothing is wrong", stream(*GOOD)
    yield from _fields()
    yield from _calls()
    yield from _usages()
    yield from _texts()
    yield from _bytes()
    yield from _http()
    yield from _mutated()


def _fields() -> Iterator[tuple[str, bytes]]:
    for field in ("id", "object", "created", "model", "choices", "usage", "error", "extra"):
        for wrong in WRONG:
            yield f"{field}={wrong!r}", stream(chunk(**{field: wrong}), *GOOD)
    for wrong in WRONG:
        yield f"delta={wrong!r}", stream(chunk(wrong), *GOOD)
        yield f"finish_reason={wrong!r}", stream(chunk(finish=wrong), *GOOD)
        yield f"choice={wrong!r}", stream(chunk(choices=[wrong]), *GOOD)
        yield f"chunk={wrong!r}", stream(wrong, *GOOD)
        for field in ("content", "reasoning_content", "refusal", "tool_calls", "thinking_blocks", "role"):
            yield f"delta.{field}={wrong!r}", stream(chunk({field: wrong}), *GOOD)
        fields = {"content": "x", "provider_specific_fields": wrong}
        yield f"provider_specific_fields={wrong!r}", stream(chunk(fields), *GOOD)
        for field in ("thinking", "signature", "type", "index"):
            blocks = [{"type": "thinking", "thinking": "a", "signature": "s", field: wrong}] * 2
            yield f"thinking_blocks.{field}={wrong!r}", stream(chunk({"thinking_blocks": blocks}), *GOOD)


def _calls() -> Iterator[tuple[str, bytes]]:
    end = chunk({}, "tool_calls")
    for wrong in WRONG:
        for field in ("index", "id", "type", "function", "extra"):
            yield f"tool_calls.{field}={wrong!r}", stream(chunk({"tool_calls": [{**_CALL, field: wrong}]}), end)
        for field in ("name", "arguments"):
            function = {**_CALL["function"], field: wrong}  # type: ignore[dict-item]
            yield f"function.{field}={wrong!r}", stream(chunk({"tool_calls": [{**_CALL, "function": function}]}), end)
        yield f"call={wrong!r}", stream(chunk({"tool_calls": [wrong]}), end)
    odd = ("x" * 5000, "a\nb", " ", "\x1b[2J", "\u202eabc", "call_1" * 2000, "../..", "%00")
    for name in odd:
        yield f"id={name[:20]!r}", stream(chunk({"tool_calls": [{**_CALL, "id": name}]}), end)
        function = {"name": name, "arguments": "{}"}
        yield f"name={name[:20]!r}", stream(chunk({"tool_calls": [{**_CALL, "function": function}]}), end)
    inputs = (
        "{",
        "[]",
        "null",
        '{"text": NaN}',
        '{"text": "\\ud800"}',
        '{"text": "\\u0000"}',
        '{"a":' * 500,
        '{"text": 1e999}',
    )
    for text in (
        *inputs,
        '{"text": ' + "9" * 5000 + "}",
        "{" + '"k":{' * 300 + "}" * 301,
        '{"text": "a"}{"text": "b"}',
    ):
        function = {"name": "note", "arguments": text}
        yield f"arguments={text[:20]!r}", stream(chunk({"tool_calls": [{**_CALL, "function": function}]}), end)
    deep: Any = 1
    for _ in range(400):
        deep = {"k": deep}
    yield "deep provider fields", stream(chunk({"tool_calls": [{**_CALL, "extra_content": deep}]}), end)
    yield "deep response fields", stream(chunk({"content": "x", "provider_specific_fields": {"deep": deep}}), *GOOD)


def _usages() -> Iterator[tuple[str, bytes]]:
    for field in ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "cost"):
        for wrong in (*WRONG, -5, 2**31, 2**63, 1e300):
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, field: wrong}
            yield f"usage.{field}={wrong!r}", stream(*GOOD, chunk(choices=[], usage=usage))
    for details in (
        {"cached_tokens": HUGE_INT},
        {"cached_tokens": "1"},
        {"cached_tokens": -3},
        {"cached_tokens": None},
    ):
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "prompt_tokens_details": details}
        yield f"usage details {details}", stream(*GOOD, chunk(choices=[], usage=usage))


def _texts() -> Iterator[tuple[str, bytes]]:
    odd = (
        "\x00",
        "\ud83d",
        "\udc00\ud800",
        "\u202e",
        "\x1b]0;title\x07",
        "\uffff",
        "a" * 200_000,
        " ",
        "\r\n",
        "😀" * 999,
    )
    for text in odd:
        yield f"text={text[:8]!r}", stream(chunk({"content": text}), *GOOD)
        yield f"reasoning={text[:8]!r}", stream(chunk({"reasoning_content": text}), *GOOD)
        yield f"finish={text[:8]!r}", stream(chunk(), chunk(finish=text))
        yield f"model={text[:8]!r}", stream(chunk(model=text), *GOOD)
        yield f"error={text[:8]!r}", stream(chunk(), {"error": {"message": text, "code": text, "type": text}})


def _bytes() -> Iterator[tuple[str, bytes]]:
    whole = b"".join(map(event, GOOD))
    for cut in range(0, len(whole), 40):
        yield f"cut after {cut} bytes", http(whole[:cut])
    odd = {
        "no JSON": event(b"{not json"),
        "NaN": event(b'{"choices": NaN}'),
        "invalid UTF-8": event(b'{"choices": [{"delta": {"content": "\xff\xfe"}}]}'),
        "NUL bytes": b"\x00" * 1000,
        "random bytes": random.Random(7).randbytes(3000),
        "no data lines": b"hello\nworld\n\n" * 20,
        "only comments": b": nothing\n\n" * 100,
        "empty data": b"data:\n\n" * 50,
        "unknown fields": b"id: 1\nretry: 5\nfoo: bar\n\n" * 5,
        "deep JSON": event(b"[" * 100_000 + b"]" * 100_000),
        "deep objects": event(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
        "a huge number": event(b'{"created": ' + b"9" * 100_000 + b"}"),
        "a line of 17 MB": b"data: " + b"x" * (17 * 1024 * 1024),
        "a huge event": event({"choices": [], "pad": "x" * 3_000_000}),
        "an error as text": event(b"internal server error"),
        "an error event": b'event: error\ndata: {"message": "no"}\n\n',
        "an empty error": event({"error": {}}),
        "an error in a list": event([{"error": "x"}]),
        "a huge error": event({"error": {"message": "e" * 2_000_000}}),
    }
    for what, text in odd.items():
        yield what, http(text)
        yield f"{what}, then a good end", http(text + b"\n\n" + whole)


def _http() -> Iterator[tuple[str, bytes]]:
    whole = b"".join(map(event, GOOD))
    yield "nothing at all", b""
    yield "no HTTP", b"SSH-2.0-OpenSSH_9.6\r\n"
    yield "no HTTP, long", b"\x16\x03\x01" + b"\x00" * 5000
    yield "half a head", b"HTTP/1.1 200 OK\r\ncontent-type: text/"
    yield "a head without end", b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000
    yield "a huge header", http(whole, x="y" * 100_000)
    yield "HTML", http(b"<html><body>Sign in</body></html>", content_type="text/html")
    yield (
        "JSON instead of a stream",
        http(b'{"choices": [{"message": {"content": "x"}}]}', content_type="application/json"),
    )
    yield "no content type", http(whole, content_type="")
    yield "garbage as gzip", http(b"not gzip at all" * 20, content_encoding="gzip")
    yield "half of a gzip", http(gzip.compress(whole)[:-9], content_encoding="gzip")
    yield "gzip", http(gzip.compress(whole), content_encoding="gzip")
    yield "an unknown encoding", http(whole, content_encoding="x-nobody")
    yield "bad chunks", http(b"zz\r\nhello\r\n0\r\n\r\n", transfer_encoding="chunked")
    yield "too short", http(whole, content_length=str(len(whole) + 1000))
    yield "a negative length", http(whole, content_length="-5")
    yield "two lengths", http(whole, content_length="5, 7")
    for status in (
        100,
        199,
        201,
        204,
        206,
        299,
        300,
        304,
        400,
        402,
        404,
        405,
        406,
        410,
        418,
        422,
        451,
        499,
        599,
        600,
        999,
    ):
        yield f"status {status}", http(b"{}", f"{status} Odd")
    for status in (301, 302, 303, 307, 308):
        yield f"status {status}", http(b"", f"{status} Moved", location="http://127.0.0.1:9/elsewhere")
        yield f"status {status}, in circles", http(b"", f"{status} Moved", location="/v1/chat/completions")
        yield f"status {status}, nowhere", http(b"", f"{status} Moved", location="::::")
        yield f"status {status} without a place", http(b"", f"{status} Moved")
    for value in ("soon", "-5", "nan", "1e999", "Mon, 99 Foo 2024", "9" * 500, "Fri, 31 Dec 9999 23:59:59 GMT", ""):
        yield f"retry-after {value[:20]}", http(b"{}", "400 No", retry_after=value, retry_after_ms=value)
    bodies = (
        b"",
        b"{",
        b"null",
        b"[1]",
        b'"x"',
        b'{"error": 5}',
        b'{"error": {"message": {}}}',
        b"\xff" * 50,
        b"e" * 300_000,
    )
    for body in bodies:
        yield f"a refusal with {body[:12]!r}", http(body, "400 No", content_type="application/json")


def _mutated() -> Iterator[tuple[str, bytes]]:
    """A good answer with a few bytes changed by chance, the same in every run."""
    chance = random.Random(20_260_101)
    call = chunk({"tool_calls": [_CALL]})
    whole = b"".join(map(event, [chunk(), call, chunk({}, "tool_calls")]))
    for number in range(80):
        text = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            place = chance.randrange(len(text))
            match chance.randrange(3):
                case 0:
                    text[place] = chance.randrange(256)
                case 1:
                    del text[place : place + chance.randint(1, 20)]
                case _:
                    text[place:place] = chance.choice([b"null", b"}", b'"', b"\n", b"\n\ndata: ", b"[", b"-1", b"\x00"])
        yield f"mutation {number}", http(bytes(text))
