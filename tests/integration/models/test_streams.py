"""What arrives through a lane when a server behaves, and when it behaves oddly."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.activities.models.accumulator import REFUSAL_TEXT
from everturn.activities.scripted.scenarios.oddities import ODD_TEXT
from everturn.activities.scripted.scenarios.reasoning import CALL_FIELDS, SIGNATURE, THOUGHT

OPENAI_LIKE = pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
ALL = pytest.mark.parametrize("provider", ["openai", "hosted_vllm", "anthropic"])


@ALL
async def test_text_arrives_whole_with_usage_and_finish_reason(ask: Any, provider: str) -> None:
    attempt = await ask("text:tokens=20", provider)
    assert attempt.done.text == "".join(f"w{n:04d} " for n in range(1, 21))
    assert attempt.done.finish_reason == "stop"
    assert attempt.done.usage.output_tokens == 20
    assert attempt.done.usage.input_tokens > 0
    assert attempt.done.response["model"] == "text:tokens=20"
    assert [e.type for e in attempt.events].count("text-start") == 1


@ALL
async def test_a_call_arrives_with_its_arguments(ask: Any, provider: str) -> None:
    attempt = await ask("tools:calls=2,say=Looking.", provider)
    assert attempt.done.text == "Looking."
    assert [c.input for c in attempt.done.calls] == [{"city": "Paris"}] * 2
    assert attempt.done.finish_reason == "tool_calls"


@OPENAI_LIKE
@pytest.mark.parametrize("shape", ["plain", "one_chunk", "index0", "index0_pieces", "interleaved", "same_id", "no_id"])
async def test_three_parallel_calls_survive_every_fragmentation(ask: Any, provider: str, shape: str) -> None:
    attempt = await ask(f"tools:calls=3,shape={shape},args=%7B%22city%22: %22Oslo%22%7D", provider)
    assert [c.input for c in attempt.done.calls] == [{"city": "Oslo"}] * 3
    assert len({c.tool_call_id for c in attempt.done.calls}) == 3


@OPENAI_LIKE
@pytest.mark.parametrize("finish", ["stop", "tool_calls", "something_new"])
async def test_calls_count_whatever_the_finish_reason(ask: Any, provider: str, finish: str) -> None:
    attempt = await ask(f"tools:calls=1,finish={finish}", provider)
    assert [c.input for c in attempt.done.calls] == [{"city": "Paris"}]


async def test_an_unknown_finish_reason_is_kept_as_reported(ask: Any) -> None:
    assert (await ask("text:tokens=1,finish=weird")).done.finish_reason == "weird"


@ALL
async def test_a_length_finish_inside_a_call_leaves_nothing_to_execute(ask: Any, provider: str) -> None:
    attempt = await ask("bad_json:finish=length,good=1", provider)
    assert attempt.done.truncated
    assert [c.input for c in attempt.done.calls] == [None, None]


@ALL
async def test_invalid_json_at_the_output_limit_is_a_truncation(ask: Any, provider: str) -> None:
    attempt = await ask("bad_json:hit_limit=1,good=1", provider)
    assert attempt.done.truncated
    assert [c.input for c in attempt.done.calls] == [None, None]


@ALL
async def test_invalid_json_is_kept_as_text_and_never_repaired(ask: Any, provider: str) -> None:
    attempt = await ask("bad_json:good=1", provider)
    assert not attempt.done.truncated
    assert [c.input for c in attempt.done.calls] == [{"city": "Paris"}, None]
    assert attempt.done.calls[1].raw_input == '{"city": "Par'


@OPENAI_LIKE
@pytest.mark.parametrize("kind", ["empty_choices", "null_delta", "after_finish", "comments", "split_utf8", "crlf"])
async def test_oddities_of_the_stream_lose_nothing(ask: Any, provider: str, kind: str) -> None:
    attempt = await ask(f"odd:kind={kind}", provider)
    assert attempt.done.text == ODD_TEXT
    assert attempt.done.usage.output_tokens == 5


@OPENAI_LIKE
async def test_a_refusal_that_litellm_drops_is_seen_all_the_same(ask: Any, provider: str) -> None:
    attempt = await ask("refusal:text=I%20can%27t%20do%20that.", provider)
    assert attempt.done.text == "I can't do that."
    assert attempt.done.refused
    assert attempt.done.finish_reason == "stop"


@ALL
async def test_a_filtered_answer_is_shown_as_a_refusal_and_keeps_its_finish_reason(ask: Any, provider: str) -> None:
    attempt = await ask("content_filter", provider)
    assert (attempt.done.text, attempt.done.refused) == (REFUSAL_TEXT, True)
    assert attempt.done.finish_reason == "content_filter"


@ALL
async def test_an_answer_of_nothing_is_empty(ask: Any, provider: str) -> None:
    assert (await ask("empty", provider)).done.empty


@ALL
async def test_reasoning_is_apart_from_the_text(ask: Any, provider: str) -> None:
    attempt = await ask("think", provider)
    assert attempt.done.parts[0]["text"] == THOUGHT
    assert attempt.done.text == "I have thought."


async def test_signed_thinking_is_kept_whole(litellm_ask: Any) -> None:
    attempt = await litellm_ask("think:calls=1", "anthropic")
    block = {"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE}
    assert attempt.done.parts[0]["providerMetadata"]["thinkingBlocks"] == [block]


@OPENAI_LIKE
async def test_provider_fields_of_a_call_are_kept_whole(ask: Any, provider: str) -> None:
    attempt = await ask("provider_fields", provider)
    assert attempt.done.calls[0].provider == CALL_FIELDS
