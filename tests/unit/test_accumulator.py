"""The fold from deltas to events and to a finished step."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.activities.models.accumulator import MAX_EQUAL_CHUNKS, REFUSAL_TEXT, Accumulator, Completion
from everturn.activities.models.failures import ModelFailure
from everturn.activities.models.types import CallDelta, Delta
from everturn.chunks import Event
from everturn.turns import Usage


def fold(deltas: Iterable[Delta], accumulator: Accumulator | None = None) -> tuple[list[Event], Completion]:
    accumulator = accumulator or Accumulator()
    events = [event for delta in deltas for event in accumulator.feed(delta)]
    completion = accumulator.close()
    return [*events, *completion.events], completion


def call(index: int, call_id: str | None = None, name: str | None = None, arguments: str = "") -> Delta:
    return Delta(calls=(CallDelta(index, call_id, name, arguments),))


def stop(reason: str = "stop") -> Delta:
    return Delta(finish=reason)


def types(events: Iterable[Event]) -> list[str]:
    return [event.type for event in events]


def inputs(completion: Completion) -> list[object]:
    return [c.input for c in completion.calls]


def test_text_becomes_one_block_with_a_start_and_an_end() -> None:
    events, done = fold([Delta(text="Hel"), Delta(text="lo"), stop()])
    assert [(e.type, e.data) for e in events] == [
        ("text-start", {"id": "t0"}),
        ("text-delta", {"id": "t0", "delta": "Hel"}),
        ("text-delta", {"id": "t0", "delta": "lo"}),
        ("text-end", {"id": "t0"}),
    ]
    assert done.parts == [{"type": "text", "text": "Hello"}]
    assert (done.finish_reason, done.truncated, done.refused, done.empty) == ("stop", False, False, False)


def test_reasoning_text_and_calls_stay_in_the_order_of_production() -> None:
    events, done = fold(
        [
            Delta(reasoning="hm"),
            Delta(text="I look. "),
            call(0, "a", "find", "{}"),
            Delta(reasoning="so"),
            Delta(text="Done"),
            stop("tool_calls"),
        ]
    )
    assert done.parts == [
        {"type": "reasoning", "text": "hm"},
        {"type": "text", "text": "I look. "},
        {"type": "tool-call", "toolCallId": "a"},
        {"type": "reasoning", "text": "so"},
        {"type": "text", "text": "Done"},
    ]
    assert [e.data["id"] for e in events if e.type.endswith("-start") and "id" in e.data] == ["r0", "t0", "r1", "t1"]
    assert types(events).count("text-end") == types(events).count("text-start") == 2


def test_unsent_reasoning_is_stored_and_not_streamed() -> None:
    events, done = fold([Delta(reasoning="hm"), Delta(text="yes"), stop()], Accumulator(send_reasoning=False))
    assert types(events) == ["text-start", "text-delta", "text-end"]
    assert done.parts[0] == {"type": "reasoning", "text": "hm"}


def test_a_call_streams_its_input_and_has_it_parsed() -> None:
    events, done = fold(
        [call(0, "a", "get_weather"), call(0, arguments='{"city":'), call(0, arguments=' "Paris"}'), stop("tool_calls")]
    )
    assert [(e.type, dict(e.data)) for e in events] == [
        ("tool-input-start", {"toolCallId": "a", "toolName": "get_weather"}),
        ("tool-input-delta", {"toolCallId": "a", "inputTextDelta": '{"city":'}),
        ("tool-input-delta", {"toolCallId": "a", "inputTextDelta": ' "Paris"}'}),
    ]
    assert done.calls[0].input == {"city": "Paris"}
    assert done.calls[0].raw_input is None
    assert not done.empty


def test_a_stream_without_finish_reason_is_a_failed_attempt() -> None:
    accumulator = Accumulator()
    accumulator.feed(Delta(text="half an ans"))
    with pytest.raises(ModelFailure) as caught:
        accumulator.close()
    assert (caught.value.kind, caught.value.code) == ("transient", "incomplete_stream")


def test_a_length_finish_inside_calls_makes_none_of_them_executable() -> None:
    _, done = fold([call(0, "a", "x", '{"n": 1}'), call(1, "b", "x", '{"n": 2'), stop("length")])
    assert done.truncated
    assert inputs(done) == [None, None]
    assert [c.raw_input for c in done.calls] == ['{"n": 1}', '{"n": 2']


def test_invalid_json_at_the_output_limit_is_a_truncation_whatever_the_finish_reason_says() -> None:
    deltas = [call(0, "a", "x", "{}"), call(1, "b", "x", '{"n'), stop("tool_calls"), Delta(usage=Usage(5, 100))]
    _, done = fold(deltas, Accumulator(max_output_tokens=100))
    assert done.truncated
    assert inputs(done) == [None, None]


def test_invalid_json_within_the_limit_spoils_only_its_own_call() -> None:
    deltas = [call(0, "a", "x", "{}"), call(1, "b", "x", '{"n'), stop("tool_calls"), Delta(usage=Usage(5, 99))]
    _, done = fold(deltas, Accumulator(max_output_tokens=100))
    assert not done.truncated
    assert inputs(done) == [{}, None]
    assert done.calls[1].raw_input == '{"n'


@pytest.mark.parametrize("arguments", ["[1]", "null", '"x"', "3", '{"x": NaN}', '{"x": "\\u0000"}', "{}{}", "{'a': 1}"])
def test_arguments_that_are_no_storable_json_object_are_kept_as_text(arguments: str) -> None:
    _, done = fold([call(0, "a", "x", arguments), stop("tool_calls")])
    assert done.calls[0].input is None
    assert done.calls[0].raw_input == arguments


def test_no_arguments_at_all_mean_an_empty_object() -> None:
    _, done = fold([call(0, "a", "x"), stop("tool_calls")])
    assert inputs(done) == [{}]


@pytest.mark.parametrize("reason", ["stop", "eos", "function_call", "tool_calls"])
def test_complete_calls_count_whatever_the_finish_reason(reason: str) -> None:
    _, done = fold([call(0, "a", "x", "{}"), stop(reason)])
    assert inputs(done) == [{}]
    assert done.finish_reason == reason


def test_calls_that_all_carry_index_0_are_told_apart_by_id() -> None:
    _, done = fold(
        [
            call(0, "a", "x", '{"n":'),
            call(0, arguments="1}"),
            call(0, "b", "x", '{"n":'),
            call(0, arguments="2}"),
            stop(),
        ]
    )
    assert inputs(done) == [{"n": 1}, {"n": 2}]


def test_interleaved_fragments_go_to_the_call_of_their_index() -> None:
    _, done = fold(
        [
            call(0, "a", "x"),
            call(1, "b", "x"),
            call(0, arguments='{"n":'),
            call(1, arguments='{"n":'),
            call(0, arguments="1}"),
            call(1, arguments="2}"),
            stop(),
        ]
    )
    assert inputs(done) == [{"n": 1}, {"n": 2}]


def test_an_id_that_comes_with_every_fragment_is_one_call() -> None:
    _, done = fold([call(0, "a", "x", '{"n":'), call(0, "a", "x", "1}"), stop()])
    assert inputs(done) == [{"n": 1}]


def test_a_fragment_finds_its_call_by_id_even_under_another_index() -> None:
    _, done = fold([call(1, "a", "x", '{"n":'), call(0, "a", arguments="1}"), stop()])
    assert inputs(done) == [{"n": 1}]


def test_an_id_used_twice_in_a_step_gets_a_fresh_one() -> None:
    _, done = fold([call(0, "a", "x", '{"n":1}'), call(1, "a", "y", '{"n":2}'), stop()])
    first, second = done.calls
    assert first.tool_call_id == "a"
    assert second.tool_call_id not in ("a", "")
    assert inputs(done) == [{"n": 1}, {"n": 2}]


def test_an_id_of_an_earlier_step_gets_a_fresh_one() -> None:
    _, done = fold([call(0, "a", "x", "{}"), stop()], Accumulator(step=1, taken={"a"}))
    assert done.calls[0].tool_call_id != "a"
    assert done.calls[0].step == 1


def test_calls_without_ids_get_generated_ones() -> None:
    _, done = fold([call(0, None, "x", '{"n":1}'), call(0, None, "x", '{"n":2}'), call(1, None, "y", "{}"), stop()])
    assert inputs(done) == [{"n": 1}, {"n": 2}, {}]
    assert len({c.tool_call_id for c in done.calls}) == 3


def test_an_id_that_comes_after_the_first_fragment_makes_no_second_call() -> None:
    _, done = fold([call(0, None, "x"), call(0, "late", None, "{}"), stop()])
    assert inputs(done) == [{}]


def test_a_name_that_comes_late_delays_the_start_event_and_loses_no_input() -> None:
    events, _ = fold([call(0, "a", None, '{"n":'), call(0, None, "x", "1}"), stop()])
    assert [(e.type, e.data.get("inputTextDelta")) for e in events] == [
        ("tool-input-start", None),
        ("tool-input-delta", '{"n":1}'),
    ]


def test_a_call_that_never_gets_a_name_is_still_shown_and_kept() -> None:
    events, done = fold([call(0, "a", None, "{}"), stop()])
    assert types(events) == ["tool-input-start", "tool-input-delta"]
    assert done.calls[0].tool_name == ""


def test_provider_fields_of_a_call_are_kept_whole() -> None:
    fields = {"extra_content": {"google": {"thought_signature": "s"}}}
    _, done = fold([Delta(calls=(CallDelta(0, "a", "x", "{}", provider=fields),)), stop()])
    assert done.calls[0].provider == fields


def test_thinking_fragments_become_one_signed_block() -> None:
    deltas = [
        Delta(reasoning="Let ", thinking=[{"type": "thinking", "thinking": "Let ", "index": 0}]),
        Delta(reasoning="me", thinking=[{"type": "thinking", "thinking": "me", "index": 0}]),
        Delta(thinking=[{"type": "thinking", "thinking": "", "signature": "abc", "index": 0}]),
        Delta(thinking=[{"type": "redacted_thinking", "data": "xyz", "index": 1}]),
        Delta(text="ok"),
        stop(),
    ]
    _, done = fold(deltas)
    assert done.parts[0] == {
        "type": "reasoning",
        "text": "Let me",
        "providerMetadata": {
            "thinkingBlocks": [
                {"type": "thinking", "thinking": "Let me", "signature": "abc"},
                {"type": "redacted_thinking", "data": "xyz"},
            ]
        },
    }


def test_content_after_the_finish_chunk_is_kept() -> None:
    _, done = fold([Delta(text="a"), stop(), Delta(text="b"), Delta(usage=Usage(1, 2)), Delta()])
    assert done.text == "ab"
    assert done.usage == Usage(1, 2)


def test_a_refusal_is_text_that_is_known_as_a_refusal() -> None:
    events, done = fold([Delta(refusal="I can't "), Delta(refusal="do that."), stop()])
    assert done.text == "I can't do that."
    assert done.refused
    assert done.finish_reason == "stop"
    assert types(events) == ["text-start", "text-delta", "text-delta", "text-end"]


def test_a_filtered_answer_without_a_word_gets_a_sentence() -> None:
    events, done = fold([stop("content_filter")])
    assert (done.text, done.refused, done.finish_reason) == (REFUSAL_TEXT, True, "content_filter")
    assert types(events) == ["text-start", "text-delta", "text-end"]


def test_an_answer_of_nothing_is_empty() -> None:
    assert fold([stop()])[1].empty
    assert fold([Delta(text="  \n"), stop()])[1].empty
    assert fold([Delta(reasoning="hm"), stop()])[1].empty


def test_a_chunk_without_end_is_a_model_failure() -> None:
    accumulator = Accumulator()
    for _ in range(MAX_EQUAL_CHUNKS):
        accumulator.feed(Delta(text="again "))
    with pytest.raises(ModelFailure) as caught:
        accumulator.feed(Delta(text="again "))
    assert (caught.value.kind, caught.value.code) == ("transient", "repeated_chunk")


def test_equal_fragments_of_arguments_are_no_repetition() -> None:
    accumulator = Accumulator()
    for _ in range(MAX_EQUAL_CHUNKS * 2):
        accumulator.feed(call(0, "a", "x", "0"))


def test_an_interrupted_step_keeps_its_text_and_has_no_executable_call() -> None:
    accumulator = Accumulator()
    accumulator.feed(Delta(text="I was say"))
    accumulator.feed(call(0, "a", "x", "{}"))
    done = accumulator.partial()
    assert done.text == "I was say"
    assert (done.finish_reason, done.truncated, inputs(done)) == ("interrupted", True, [None])


def test_an_interrupted_text_block_is_closed() -> None:
    accumulator = Accumulator()
    accumulator.feed(Delta(text="I was say"))
    assert types(accumulator.partial().events) == ["text-end"]


def test_response_facts_are_collected() -> None:
    _, done = fold([Delta(response_id="r1", model="served"), Delta(provider={"stop_reason": "x"}), stop()])
    assert done.response == {"id": "r1", "model": "served", "provider": {"stop_reason": "x"}}


def test_surrogate_halves_in_two_chunks_make_one_character_and_zero_bytes_go() -> None:
    _, done = fold([Delta(text="a\ud83d"), Delta(text="\ude00b\x00"), Delta(text="\ud83d"), stop()])
    assert done.text == "a\U0001f600b\ufffd"
    done.text.encode()


ANY_INPUT = st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=6))


@given(st.lists(ANY_INPUT, min_size=1, max_size=4), st.data())
def test_however_calls_are_cut_and_interleaved_their_inputs_survive(
    given_inputs: list[dict[str, object]], data: st.DataObject
) -> None:
    texts = [json.dumps(value) for value in given_inputs]
    queues = [[call(i, f"id{i}", "x"), *(call(i, arguments=c) for c in text)] for i, text in enumerate(texts)]
    deltas: list[Delta] = []
    while any(queues):
        position = data.draw(st.sampled_from([i for i, queue in enumerate(queues) if queue]))
        deltas.append(queues[position].pop(0))
    _, done = fold([*deltas, stop("tool_calls")])
    by_id = {c.tool_call_id: c for c in done.calls}
    for i, value in enumerate(given_inputs):
        storable = "\\u0000" not in texts[i]
        assert by_id[f"id{i}"].input == (value if storable else None)
