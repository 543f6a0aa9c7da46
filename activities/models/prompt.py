"""The prompt of a model step: pure, from what the store gives to what a lane takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from everturn.activities.models.quirks import Quirks
from everturn.activities.models.rendering import render_steps, render_transcript
from everturn.activities.models.repair import repaired
from everturn.store.records import PromptMaterial
from everturn.turns import JsonDict

MAX_TOOL_OUTPUT = 200_000
"""Characters of one tool result that the model sees: about 50,000 tokens, as much as most models can take."""
CONTINUE_TEXT = "Continue."


@dataclass(frozen=True, slots=True)
class Prompt:
    """messages: OpenAI's chat format, the system message first. notes: what had to be repaired, one line each."""

    messages: list[JsonDict]
    notes: list[str] = field(default_factory=list[str])


def build_prompt(
    material: PromptMaterial,
    system: str,
    *,
    override: Sequence[JsonDict] | None = None,
    quirks: Quirks | None = None,
    max_tool_output: int = MAX_TOOL_OUTPUT,
) -> Prompt:
    """The prompt for the next step of a turn.

    override: what the model sees instead of the transcript, in OpenAI's chat format; the turn's own steps still follow.
    A conversation that ends with the assistant's message is asked to go on: several providers refuse it otherwise.
    """
    quirks = quirks or Quirks()
    if override is None:
        transcript = render_transcript(material.messages, quirks, max_tool_output)
    else:
        transcript = [dict(message) for message in override]
    messages, notes = repaired([*transcript, *render_steps(material.steps, quirks, max_tool_output)])
    if messages and messages[-1]["role"] == "assistant":
        messages.append({"role": "user", "content": CONTINUE_TEXT})
    if system:
        messages.insert(0, {"role": "system", "content": system})
    return Prompt(messages, notes)
