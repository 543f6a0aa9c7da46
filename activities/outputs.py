"""The structured output of a turn: checked when its final answer is there, before anything of it is stored."""

from __future__ import annotations

from dataclasses import replace

from everturn.activities.models.rendering import INVALID_OUTPUT
from everturn.chunks import RESET, Event
from everturn.hooks.log import cut
from everturn.hooks.outputs import InvalidOutput, OutputSpec
from everturn.messages import text_of
from everturn.store.records import StepRecord

MAX_PROBLEM_BYTES = 1024


def with_output(record: StepRecord, spec: OutputSpec | None) -> StepRecord:
    """The step with the turn's output, if it is the final answer.

    An answer that does not fit is kept as a data part: the model sees it again with the request to repair it, and it is
    no text of the turn. Raises UnresolvedReference on a worker without the output's model.
    """
    text = text_of(record.parts)
    if spec is None or record.calls or record.interrupted or not text.strip():
        return record
    try:
        return replace(record, output=spec.parsed(text))
    except InvalidOutput as error:
        problem = str(error)
    invalid = {"type": INVALID_OUTPUT, "data": {"text": text, "problem": problem}}
    others = [part for part in record.parts if part.get("type") != "text"]
    return replace(record, parts=[*others, invalid])


def invalid_output_of(record: StepRecord) -> str:
    """What is wrong with the step's answer; "" for nothing."""
    found = (part["data"]["problem"] for part in record.parts if part.get("type") == INVALID_OUTPUT)
    return cut(str(next(found, "")), MAX_PROBLEM_BYTES)


def void_text(record: StepRecord) -> Event:
    """Tells clients to drop the text of an answer that does not count."""
    return Event(RESET, {"step": record.step, "attempt": record.attempt})
