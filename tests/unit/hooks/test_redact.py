"""Redact on streams that are cut anywhere."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn import Chunk, Redact
from everturn.chunks import TEXT_DELTA, TEXT_END, TEXT_START
from everturn.hooks.ready.redact import Redactor


def redactor(*patterns: str, window: int = 12) -> Redactor:
    return Redactor([re.compile(pattern) for pattern in patterns], "#", window)


def streamed(rules: Redactor, pieces: list[str]) -> list[str]:
    """The deltas that come out for these deltas, in one block."""
    function = rules.for_stream()
    chunks = [Chunk(1, TEXT_START, {"id": "t0"})]
    chunks += [Chunk(2, TEXT_DELTA, {"id": "t0", "delta": piece}) for piece in pieces]
    out: list[str] = []
    for chunk in [*chunks, Chunk(3, TEXT_END, {"id": "t0"})]:
        shown = function(chunk)
        assert isinstance(shown, list)
        out += [str(c.data["delta"]) for c in shown if c.type == TEXT_DELTA]
    return out


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_match_is_found_wherever_the_chunks_are_cut(size: int) -> None:
    text = "call 0123-456789 or 9876-543210, not 12-34, ok?"
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    assert "".join(streamed(redactor(r"\d{4}-\d{6}"), pieces)) == "call # or #, not 12-34, ok?"


@given(
    st.text(alphabet="ab1- ", max_size=80),
    st.lists(st.integers(1, 7), min_size=1, max_size=20),
    st.sampled_from([(r"a+b",), (r"(?<=a )b\d",), (r"\d-", r"b\d"), (r"\bab\b",), (r"1(?=-)",)]),
)
def test_a_stream_comes_to_the_same_as_the_whole_text(text: str, cuts: list[int], patterns: tuple[str, ...]) -> None:
    rules = redactor(*patterns, window=len(text) // 2 + 8)
    if any(len(m.group()) > rules.window - 4 for pattern in rules.patterns for m in pattern.finditer(text)):
        return
    pieces, start = [], 0
    while start < len(text):
        length = cuts[len(pieces) % len(cuts)]
        pieces.append(text[start : start + length])
        start += length
    assert "".join(streamed(rules, pieces)) == rules.text(text)


def test_what_is_held_back_is_bounded_by_the_window() -> None:
    shown = streamed(redactor("x{3}", window=5), ["a" * 100, "b"])
    assert shown[0] == "a" * 95
    assert "".join(shown) == "a" * 100 + "b"


def test_overlapping_matches_leave_one_mark() -> None:
    assert redactor("abc", "bcd").text("xabcdx") == "x#x"


def test_values_are_redacted_with_their_keys_whatever_their_shape() -> None:
    rules = redactor(r"sk-\w+")
    assert rules.tool_value({"sk-1": ["sk-2", {"a": "b sk-3"}], "n": 1, "none": None}) == {
        "#": ["#", {"a": "b #"}],
        "n": 1,
        "none": None,
    }


def test_a_redact_without_patterns_or_with_a_broken_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one pattern"):
        Redact([])
    with pytest.raises(re.error):
        Redact(["("])
