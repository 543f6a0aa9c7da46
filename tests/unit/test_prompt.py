"""From the store's material to a prompt that every provider accepts."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from everturn.activities.models.prompt import CONTINUE_TEXT, build_prompt
from everturn.activities.models.quirks import Quirks, quirks_of
from everturn.activities.models.repair import MISSING_RESULT, repaired
from everturn.messages import Message, Part, Role
from everturn.store.records import PromptMaterial, StepRecord, ToolCall, TurnFacts
from everturn.turns import JsonDict, Principal, Usage

FACTS = TurnFacts("r1", "th", "a", "submit", "running", None, Principal(), None, {}, {}, {}, 0, Usage())
BLOCK = {"type": "thinking", "thinking": "hm", "signature": "sig"}


def message(role: Role, *parts: Part, hidden: bool = False) -> Message:
    return Message("m", role, list(parts), hidden=hidden)


def text(value: str) -> Part:
    return {"type": "text", "text": value}


def tool(call_id: str, **fields: Any) -> Part:
    return {"type": "tool-find", "toolCallId": call_id, "state": "output-available", "input": {"q": 1}, **fields}


def material(*messages: Message, steps: list[StepRecord] | None = None) -> PromptMaterial:
    return PromptMaterial(FACTS, list(messages), steps or [])


def step(*calls: ToolCall, parts: list[Part] | None = None) -> StepRecord:
    given_parts = parts or [{"type": "tool-call", "toolCallId": c.tool_call_id} for c in calls]
    return StepRecord("r1", 0, 1, "m", given_parts, list(calls), "tool_calls", Usage(), 5)


def call(call_id: str = "c1", **fields: Any) -> ToolCall:
    return ToolCall(
        **{"tool_call_id": call_id, "tool_name": "find", "step": 0, "index": 0, "input": {"q": 1}, **fields}
    )


def roles(messages: list[JsonDict]) -> list[str]:
    return [m["role"] for m in messages]


def test_the_system_text_comes_first_and_plain_text_stays_a_string() -> None:
    prompt = build_prompt(material(message("user", text("hi"))), "be kind")
    assert prompt.messages == [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}]
    assert prompt.notes == []


def test_no_system_text_makes_no_system_message() -> None:
    assert roles(build_prompt(material(message("user", text("hi"))), "").messages) == ["user"]


def test_files_become_images_or_files_and_data_parts_are_left_out() -> None:
    user = message(
        "user",
        text("look"),
        {"type": "file", "url": "https://x/a.png", "mediaType": "image/png"},
        {"type": "file", "url": "data:application/pdf;base64,AA", "mediaType": "application/pdf", "filename": "a.pdf"},
        {"type": "file", "url": "https://x/a.pdf", "mediaType": "application/pdf"},
        {"type": "source-url", "url": "https://x", "title": "X"},
        {"type": "data-cursor", "data": 1},
    )
    assert build_prompt(material(user), "").messages[0]["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "https://x/a.png"}},
        {
            "type": "file",
            "file": {"file_data": "data:application/pdf;base64,AA", "filename": "a.pdf", "format": "application/pdf"},
        },
        {"type": "file", "file": {"file_id": "https://x/a.pdf", "format": "application/pdf"}},
        {"type": "text", "text": "[X](https://x)"},
    ]


def test_an_earlier_turn_keeps_its_steps_calls_and_results() -> None:
    assistant = message(
        "assistant",
        {"type": "step-start"},
        text("I look."),
        tool("c1", output={"n": 1}),
        tool("c2", state="output-error", errorText="no luck", output=None),
        {"type": "step-start"},
        text("Found 1."),
    )
    messages = build_prompt(material(message("user", text("hi")), assistant, message("user", text("ok"))), "").messages
    assert roles(messages) == ["user", "assistant", "tool", "tool", "assistant", "user"]
    assert messages[1]["content"] == "I look."
    assert messages[1]["tool_calls"][0] == {
        "id": "c1",
        "type": "function",
        "function": {"name": "find", "arguments": '{"q": 1}'},
    }
    assert messages[2] == {"role": "tool", "tool_call_id": "c1", "content": '{"n": 1}'}
    assert json.loads(messages[3]["content"]) == {"error": "no luck"}
    assert messages[4] == {"role": "assistant", "content": "Found 1."}


def test_hidden_messages_never_reach_the_model() -> None:
    hidden = message("user", text("refused"), hidden=True)
    reply = message("assistant", text("no"), hidden=True)
    assert build_prompt(material(hidden, reply, message("user", text("hi"))), "").messages == [
        {"role": "user", "content": "hi"}
    ]


def test_steps_of_the_running_turn_follow_with_their_outcomes() -> None:
    steps = [
        step(
            call("c1", state="done", output="plain"),
            call("c2", state="error", error="broke"),
            call("c3", state="unknown"),
            call("c4", state="blocked", output="not allowed"),
            call("c5", state="done", output=None),
        )
    ]
    messages = build_prompt(material(message("user", text("hi")), steps=steps), "").messages
    results = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    assert results["c1"] == "plain"
    assert json.loads(results["c2"]) == {"error": "broke"}
    assert "unknown" in results["c3"]
    assert results["c4"] == "not allowed"
    assert results["c5"] == "null"


def test_the_model_sees_its_own_arguments_where_a_hook_rewrote_them() -> None:
    steps = [step(call(input={"q": 2}, model_input={"q": 1}, state="done", output=1))]
    messages = build_prompt(material(message("user", text("hi")), steps=steps), "").messages
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == '{"q": 1}'


def test_an_unsettled_call_becomes_an_error_result() -> None:
    prompt = build_prompt(material(message("user", text("hi")), steps=[step(call(state="running"))]), "")
    assert prompt.messages[-1]["content"] == MISSING_RESULT
    part = {"type": "tool-find", "toolCallId": "c9", "state": "input-available", "input": {}}
    prompt = build_prompt(material(message("assistant", part), message("user", text("hi"))), "")
    assert prompt.messages[1] == {"role": "tool", "tool_call_id": "c9", "content": MISSING_RESULT}


def test_a_broken_input_becomes_an_empty_object_and_is_noted() -> None:
    steps = [step(call(input=None, raw_input='{"q": ', state="error", error="bad"))]
    prompt = build_prompt(material(message("user", text("hi")), steps=steps), "")
    assert prompt.messages[1]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert len(prompt.notes) == 1


def test_empty_assistant_messages_are_dropped() -> None:
    prompt = build_prompt(material(message("assistant", {"type": "step-start"}), message("user", text("hi"))), "")
    assert roles(prompt.messages) == ["user"]


def test_a_long_tool_output_is_cut_with_a_mark() -> None:
    steps = [step(call(state="done", output="x" * 500))]
    prompt = build_prompt(material(message("user", text("hi")), steps=steps), "", max_tool_output=100)
    assert prompt.messages[-1]["content"] == "x" * 100 + "… [cut: 100 of 500 characters are shown]"


def test_an_override_replaces_the_transcript_and_not_the_turns_steps() -> None:
    override = [{"role": "user", "content": "other"}]
    steps = [step(call(state="done", output=1))]
    prompt = build_prompt(material(message("user", text("hi")), steps=steps), "", override=override)
    assert roles(prompt.messages) == ["user", "assistant", "tool"]
    assert prompt.messages[0]["content"] == "other"


def test_a_conversation_that_ends_with_the_assistant_is_asked_to_go_on() -> None:
    prompt = build_prompt(material(message("user", text("hi")), message("assistant", text("well,"))), "")
    assert prompt.messages[-1] == {"role": "user", "content": CONTINUE_TEXT}


def test_signed_reasoning_goes_back_only_where_it_is_wanted() -> None:
    reasoning = {"type": "reasoning", "text": "hm", "providerMetadata": {"thinkingBlocks": [BLOCK]}}
    parts: list[Part] = [reasoning, {"type": "tool-call", "toolCallId": "c1"}]
    given = material(message("user", text("hi")), steps=[step(call(state="done", output=1), parts=parts)])
    signed = build_prompt(given, "", quirks=quirks_of("anthropic/claude-x")).messages[1]
    assert signed["thinking_blocks"] == [BLOCK]
    assert "reasoning_content" not in signed
    echoed = build_prompt(given, "", quirks=quirks_of("deepseek/deepseek-reasoner")).messages[1]
    assert echoed["reasoning_content"] == "hm"
    assert "thinking_blocks" not in echoed
    plain = build_prompt(given, "", quirks=quirks_of("openai/gpt-x")).messages[1]
    assert set(plain) == {"role", "content", "tool_calls"}


def test_reasoning_of_earlier_turns_is_not_echoed_as_text() -> None:
    earlier = message("assistant", {"type": "reasoning", "text": "hm"}, text("yes"))
    prompt = build_prompt(material(earlier, message("user", text("hi"))), "", quirks=Quirks(reasoning_content=True))
    assert "reasoning_content" not in prompt.messages[0]


def test_unsigned_thinking_is_never_sent_back() -> None:
    block = {"type": "thinking", "thinking": "hm"}
    reasoning = {"type": "reasoning", "text": "hm", "providerMetadata": {"thinkingBlocks": [block]}}
    prompt = build_prompt(
        material(message("assistant", reasoning, text("yes")), message("user", text("hi"))), "", quirks=Quirks(True)
    )
    assert "thinking_blocks" not in prompt.messages[0]


def test_provider_fields_of_a_call_go_back_verbatim() -> None:
    fields = {"extra_content": {"google": {"thought_signature": "s"}}}
    steps = [step(call(provider=fields, state="done", output=1))]
    messages = build_prompt(material(message("user", text("hi")), steps=steps), "").messages
    assert messages[1]["tool_calls"][0]["extra_content"] == fields["extra_content"]
    stored = message("assistant", tool("c1", output=1, callProviderMetadata=fields))
    messages = build_prompt(material(stored, message("user", text("hi"))), "").messages
    assert messages[0]["tool_calls"][0]["extra_content"] == fields["extra_content"]


def test_an_id_of_an_earlier_message_is_renamed_together_with_its_result() -> None:
    def turn(n: int) -> list[Message]:
        return [message("user", text("q")), message("assistant", tool("same", output=n), text("a"))]

    messages = build_prompt(material(*turn(1), *turn(2), message("user", text("end"))), "").messages
    ids = [c["id"] for m in messages for c in m.get("tool_calls", [])]
    assert ids == ["same", "same-2"]
    assert {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"} == {"same": "1", "same-2": "2"}


def test_repair_leaves_a_sound_transcript_alone_and_does_not_edit_in_place() -> None:
    broken = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "function": {"name": "x", "arguments": "[1]"}}],
        }
    ]
    before = json.dumps(broken)
    fixed, notes = repaired(broken)
    assert json.dumps(broken) == before
    assert len(notes) == 2
    assert repaired(fixed) == (fixed, [])


CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from(["a", "b", "c"]),
            "function": st.fixed_dictionaries(
                {"name": st.just("x"), "arguments": st.sampled_from(["{}", "[1]", "", '{"n": 1}', '{"n'])}
            ),
        }
    ),
    max_size=3,
)
MESSAGES = st.lists(
    st.one_of(
        st.fixed_dictionaries({"role": st.just("user"), "content": st.just("u")}),
        st.fixed_dictionaries(
            {"role": st.just("assistant"), "content": st.sampled_from([None, "", "t"]), "tool_calls": CALLS}
        ),
        st.fixed_dictionaries(
            {"role": st.just("tool"), "tool_call_id": st.sampled_from(["a", "b", "c"]), "content": st.just("r")}
        ),
    ),
    max_size=8,
)


@given(MESSAGES)
def test_whatever_is_stored_each_call_has_exactly_one_result_right_after_it(messages: list[JsonDict]) -> None:
    fixed, _ = repaired(messages)
    seen: set[str] = set()
    position = 0
    while position < len(fixed):
        current = fixed[position]
        assert current["role"] != "tool"
        ids = [c["id"] for c in current.get("tool_calls", [])]
        results = [m["tool_call_id"] for m in fixed[position + 1 : position + 1 + len(ids)]]
        assert results == ids
        assert not seen & set(ids)
        assert len(set(ids)) == len(ids)
        assert all(isinstance(json.loads(c["function"]["arguments"]), dict) for c in current.get("tool_calls", []))
        assert current["role"] == "user" or ids or current["content"]
        seen |= set(ids)
        position += 1 + len(ids)
    assert repaired(fixed)[0] == fixed
