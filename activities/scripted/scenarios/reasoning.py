"""Reasoning, and the opaque fields that a provider wants back."""

from __future__ import annotations

import json
from collections.abc import Iterator

from everturn.activities.scripted.ask import Ask, Script
from everturn.activities.scripted.moves import CallPart, Fail, Finish, Move, Say, Think
from everturn.activities.scripted.schemas import sample_input

SIGNATURE = "c2lnbmF0dXJlLW9mLXRoZS1maXJzdC1ibG9jaw=="
THOUGHT = "Let me think about that."
CALL_FIELDS = {"extra_content": {"google": {"thought_signature": "dGhvdWdodC1zaWduYXR1cmU="}}}
"""What `provider_fields` adds to its tool call, as Gemini's compatible endpoint does."""


def think(ask: Ask, script: Script) -> Iterator[Move]:
    """Reasoning in pieces (signed through Anthropic's API), then an answer; calls=1: a tool call in the first step, and
    strict=1: the second step answers 400 unless the reasoning came back as it was sent."""
    if script.flag("strict") and ask.step and not _returned(ask):
        yield Fail(400, "the reasoning of the previous step must be sent back unchanged", "invalid_request_error")
        return
    yield from (Think(piece) for piece in (THOUGHT[:9], THOUGHT[9:]))
    if ask.api == "anthropic":
        yield from (Think(signature=SIGNATURE[:10]), Think(signature=SIGNATURE[10:]))
    if script.flag("calls") and ask.step == 0:
        yield from _call(ask, None)
        yield Finish("tool_calls")
        return
    yield from (Say("I have "), Say("thought."), Finish("stop"))


def provider_fields(ask: Ask, _script: Script) -> Iterator[Move]:
    """A tool call with a thought signature; the next step answers 400 unless it came back."""
    if ask.step == 0:
        yield from _call(ask, CALL_FIELDS)
        yield Finish("tool_calls")
    elif CALL_FIELDS["extra_content"]["google"]["thought_signature"] in json.dumps(ask.body.get("messages")):
        yield from (Say("signature seen"), Finish("stop"))
    else:
        yield Fail(400, "Function call is missing a thought_signature", "invalid_request_error")


def _call(ask: Ask, fields: dict[str, dict[str, dict[str, str]]] | None) -> Iterator[Move]:
    tool = ask.tools[0] if ask.tools else None
    arguments = json.dumps(sample_input(tool.schema, ask.user_text)) if tool else "{}"
    yield CallPart(
        0, f"call_{ask.step}_0", tool.name if tool else "get_weather", provider=dict(fields) if fields else None
    )
    yield CallPart(0, arguments=arguments)


def _returned(ask: Ask) -> bool:
    messages = json.dumps(ask.body.get("messages"))
    return THOUGHT in messages and (ask.api == "openai" or SIGNATURE in messages)


SCENARIOS = {"think": think, "provider_fields": provider_fields}
