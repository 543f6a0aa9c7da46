"""What the next step of a turn need not read again."""

from __future__ import annotations

from dataclasses import replace

from everturn.activities.transcripts import TURNS, WORTHWHILE, Transcripts
from everturn.messages import Message
from everturn.store.records import PromptMaterial, TurnFacts
from everturn.turns import Principal, Usage

FACTS = TurnFacts("r", "t", "a", "submit", "running", None, Principal(), None, {}, {}, {}, 0, Usage())


def material(request_id: str, messages: int = WORTHWHILE) -> PromptMaterial:
    said = [Message(f"m{number}", "user", [{"type": "text", "text": "hi"}]) for number in range(messages)]
    return PromptMaterial(replace(FACTS, request_id=request_id), said, [])


def test_a_long_transcript_is_kept_until_its_turn_asks_no_more() -> None:
    transcripts, long = Transcripts(), material("r")
    assert transcripts.of("r") is None
    transcripts.keep(long)
    assert transcripts.of("r") is long
    transcripts.drop("r")
    transcripts.drop("r")
    assert transcripts.of("r") is None


def test_a_short_one_is_not() -> None:
    transcripts = Transcripts()
    transcripts.keep(material("r", WORTHWHILE - 1))
    assert transcripts.of("r") is None


def test_only_those_used_last_are_kept() -> None:
    transcripts = Transcripts()
    for number in range(TURNS):
        transcripts.keep(material(f"r{number}"))
    transcripts.keep(material("r0"))
    transcripts.keep(material("new"))
    assert transcripts.of("r0") is not None
    assert transcripts.of("r1") is None
    assert transcripts.of("new") is not None
