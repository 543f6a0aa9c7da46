"""What a person sees of a turn, from sequences of chunks."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any

from rich.console import Console

from everturn.chunks import Chunk
from everturn.worker.cli.screen import NoticeBlock, Screen, TextBlock, ToolBlock
from everturn.worker.cli.viewers import JsonViewer, PlainViewer, TerminalViewer, Viewer, harmless, short

Written = tuple[str, dict[str, Any]] | tuple[str, dict[str, Any], int] | tuple[str, dict[str, Any], int, int]


def chunks(*written: Written) -> list[Chunk]:
    """Numbered chunks from (type, data, step, attempt)."""
    made: list[Chunk] = []
    for seq, (kind, data, *place) in enumerate(written, 1):
        step, attempt = (*place, None, 0)[:2] if len(place) != 1 else (place[0], 1)
        made.append(Chunk(seq, kind, data, step, attempt or 0))
    return made


def screen_of(given: Iterable[Chunk]) -> Screen:
    screen = Screen()
    for chunk in given:
        screen = screen.advance(chunk)
    return screen


def shown(viewer: Viewer, given: Iterable[Chunk]) -> None:
    with viewer:
        for chunk in given:
            viewer.show(chunk)


START: Written = ("start", {"messageId": "m"})
STEP: Written = ("start-step", {}, 0)
DONE: Written = ("finish-step", {}, 0)
FINISH: Written = ("finish", {"status": "completed"})
CALL: Written = ("tool-input-available", {"toolCallId": "c1", "toolName": "weather", "input": {"city": "Paris"}}, 0)
RESULT: Written = ("tool-output-available", {"toolCallId": "c1", "output": {"sky": "clear"}}, 0)


def delta(text: str, step: int = 0, attempt: int = 1, key: str = "t0") -> Written:
    return ("text-delta", {"id": key, "delta": text}, step, attempt)


def test_deltas_of_one_text_join_and_another_text_begins_a_new_block() -> None:
    screen = screen_of(chunks(START, STEP, delta("Hel"), delta("lo"), delta("you", key="t1"), DONE, FINISH))
    assert [b.text for b in screen.blocks if isinstance(b, TextBlock)] == ["Hello", "you"]
    assert screen.text == "Helloyou"
    assert (screen.end, screen.error, screen.waiting) == ("finish", None, None)


def test_a_reset_drops_the_void_text_and_keeps_what_earlier_steps_said() -> None:
    given = chunks(
        *(START, STEP, delta("first"), DONE),
        ("start-step", {}, 1),
        delta("void", 1),
        ("data-reset", {"step": 1, "attempt": 1}, 1, 2),
        delta("good", 1, 2),
        ("finish-step", {}, 1),
        FINISH,
    )
    assert screen_of(given).text == "firstgood"
    assert screen_of(given[:7]).text == "first"


def test_a_reset_drops_the_calls_of_the_void_attempt_too() -> None:
    screen = screen_of(chunks(START, STEP, delta("let me see"), CALL, ("data-reset", {"step": 0, "attempt": 1}, 0, 2)))
    assert screen.blocks == ()


def test_a_retry_is_told_with_its_reason_and_delay_and_survives_the_reset() -> None:
    retry: Written = ("data-retrying", {"step": 0, "attempt": 1, "error": "the model is overloaded", "retryIn": 2.0}, 0)
    screen = screen_of(chunks(START, STEP, delta("void"), retry, ("data-reset", {"step": 0, "attempt": 1}, 0, 2)))
    assert screen.blocks == (NoticeBlock(0, "the model is overloaded; trying again in 2 s"),)


def test_a_queued_turn_says_behind_whom_and_thinks_when_it_starts() -> None:
    queued = screen_of(chunks(("data-queued", {"behind": "r1"})))
    assert queued.waiting == "queued behind turn r1"
    assert queued.advance(Chunk(2, "start")).waiting == "thinking"


def test_a_tool_call_goes_from_asking_through_running_to_its_outcome() -> None:
    asking: Written = ("tool-input-start", {"toolCallId": "c1", "toolName": "weather"}, 0)
    progress: Written = ("data-tool-progress", {"toolCallId": "c1", "value": "half"}, 0)
    given = chunks(START, STEP, asking, CALL, progress, DONE, RESULT)
    states = [screen_of(given[:n]).blocks[0] for n in (3, 4, 5, 7)]
    assert [block.state for block in states if isinstance(block, ToolBlock)] == ["asking", "running", "running", "done"]
    assert screen_of(given[:4]).waiting == "running weather"
    assert states[2] == ToolBlock(0, "c1", "weather", {"city": "Paris"}, progress="half", state="running")


def test_a_call_that_needs_approval_says_for_which_tool_it_waits() -> None:
    asked: Written = (
        "tool-approval-request",
        {"toolCallId": "c1", "toolName": "weather", "input": {"city": "Rome"}},
        0,
    )
    waiting = screen_of(chunks(START, STEP, CALL, DONE, asked))
    assert waiting.waiting == "waiting for approval of weather"
    assert waiting.settled == 0
    assert waiting.advance(chunks(RESULT)[0]).settled == 1


def test_a_preliminary_output_is_progress_and_no_result() -> None:
    early: Written = ("tool-output-available", {"toolCallId": "c1", "output": 1, "preliminary": True}, 0)
    block = screen_of(chunks(START, STEP, CALL, early)).blocks[0]
    assert isinstance(block, ToolBlock)
    assert (block.state, block.progress, block.output) == ("running", 1, None)


def test_a_failed_tool_and_an_unknown_chunk_type_leave_the_rest_alone() -> None:
    failed: Written = ("tool-output-error", {"toolCallId": "c1", "errorText": "no such city"}, 0)
    screen = screen_of(chunks(START, STEP, CALL, failed, ("data-weather", {"x": 1})))
    assert screen.blocks == (ToolBlock(0, "c1", "weather", {"city": "Paris"}, error="no such city", state="failed"),)


def test_the_blocks_of_a_done_step_are_final_only_when_its_tools_are() -> None:
    given = chunks(START, STEP, delta("let me see"), CALL, DONE, RESULT)
    assert [screen_of(given[:n]).settled for n in range(1, 7)] == [0, 0, 0, 0, 1, 2]


def test_an_abort_and_an_error_tell_why() -> None:
    assert screen_of(chunks(START, ("abort", {"reason": "user pressed stop"}))).error == "user pressed stop"
    assert screen_of(chunks(START, ("error", {"errorText": "no key"}))).error == "no key"
    assert screen_of(chunks(START, STEP, delta("half"), ("abort", {}))).settled == 1


def test_a_pipe_never_gets_text_that_was_void() -> None:
    output = io.StringIO()
    reset: Written = ("data-reset", {"step": 0, "attempt": 1}, 0, 2)
    shown(
        PlainViewer(output), chunks(START, STEP, delta("void"), reset, delta("good", 0, 2), CALL, DONE, RESULT, FINISH)
    )
    assert output.getvalue() == 'good\n→ weather(city="Paris") = sky="clear"\n'


def test_a_machine_gets_each_chunk_as_a_line_of_json() -> None:
    output = io.StringIO()
    given = chunks(START, STEP, delta("ü"), DONE, FINISH)
    shown(JsonViewer(output), given)
    assert [json.loads(line) for line in output.getvalue().splitlines()] == [chunk.as_json() for chunk in given]


def test_a_terminal_keeps_the_good_text_and_no_void_text_in_its_history() -> None:
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=60, height=20, color_system=None)
    reset: Written = ("data-reset", {"step": 0, "attempt": 1}, 0, 2)
    shown(TerminalViewer(console), chunks(START, STEP, delta("void"), reset, delta("good", 0, 2), DONE, FINISH))
    last_frame = output.getvalue().rsplit("\x1b[2K", 1)[-1]
    assert "void" not in last_frame
    assert output.getvalue().count("good") >= 1


def test_a_reply_longer_than_the_screen_is_whole_in_the_terminals_history() -> None:
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=40, height=10, color_system=None)
    lines = [f"line {n}" for n in range(100)]
    shown(TerminalViewer(console), chunks(START, STEP, *(delta(f"{line}\n") for line in lines), DONE, FINISH))
    assert all(f"{line}\r\n" in output.getvalue().replace("\n", "\r\n") for line in lines)


def test_words_of_a_model_cannot_steer_the_terminal() -> None:
    assert harmless("a\x1b[2Jb\x07\tc\nd\x9b") == "a�[2Jb�\tc\nd�"
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=40, height=10, color_system=None)
    shown(TerminalViewer(console), chunks(START, STEP, delta("\x1b]0;owned\x07"), DONE, FINISH))
    assert "\x1b]0;" not in output.getvalue()


def test_long_values_are_cut_with_a_mark() -> None:
    assert short({"a": "x" * 1000}).endswith("…")
    assert len(short({"a": "x" * 1000})) == 400
    assert short(None) == ""
    assert short([1, "é"]) == '[1, "é"]'


def test_a_message_that_joined_another_turn_says_which_and_shows_its_answer() -> None:
    screen = screen_of(chunks(("data-queued", {"behind": "r1"}), ("data-joined", {"requestId": "r1"})))
    assert (screen.waiting, screen.end) == ("answered by turn r1", None)
