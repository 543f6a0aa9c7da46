"""The limits of ctx.log."""

from __future__ import annotations

import json

from everturn.hooks.log import CUT_MARK, HookLog


def test_a_line_carries_its_tag_level_message_and_data() -> None:
    log = HookLog("hook:before_turn:Audit")
    log.add("checked", {"score": 1}, "warn")
    assert log.lines == [{"tag": "hook:before_turn:Audit", "level": "warn", "message": "checked", "data": {"score": 1}}]


def test_an_unknown_level_counts_as_info() -> None:
    log = HookLog()
    log.add("x", None, "shout")
    assert log.lines[0]["level"] == "info"


def test_fifty_lines_are_kept_and_the_last_one_says_how_many_were_dropped() -> None:
    log = HookLog()
    for number in range(53):
        log.add(number, None, "info")
    assert [line["message"] for line in log.lines] == [str(number) for number in range(50)]
    assert log.lines[-1]["dropped"] == 3


def test_a_long_message_is_cut_to_four_kilobytes_with_a_mark() -> None:
    log = HookLog()
    log.add("ä" * 5000, None, "info")
    message = log.lines[0]["message"]
    assert len(message.encode()) <= 4096
    assert message.endswith(CUT_MARK)
    assert message.startswith("äää")


def test_message_and_data_share_the_four_kilobytes() -> None:
    log = HookLog()
    log.add("m" * 1000, {"text": "d" * 4000}, "info")
    line = log.lines[0]
    assert line["message"] == "m" * 1000
    assert line["data"].endswith(CUT_MARK)
    assert len(line["message"].encode()) + len(line["data"].encode()) <= 4096


def test_data_of_any_kind_becomes_json() -> None:
    log = HookLog()
    loop: list[object] = []
    loop.append(loop)
    for data in (object(), {1, 2}, loop, float("nan"), b"\xff"):
        log.add("x", data, "info")
    assert len(json.loads(json.dumps(log.lines))) == 5
