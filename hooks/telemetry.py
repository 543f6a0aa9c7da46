"""What a turn tells an operator about its model calls and tools."""

from __future__ import annotations

import math
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, field_validator

MAX_ATTRIBUTES = 32


class Telemetry(BaseModel):
    """For `TurnConfig.telemetry`: an event in the log `everturn.events` for each model call and each tool that ran and,
    where OpenTelemetry is installed and set up, a span with its `gen_ai` attributes.

    enabled: False takes back what an earlier hook asked for. function_id: what the turn is for, in your own words, to
    group by. attributes: put on each event and span. record_inputs, record_outputs: spans also have what was said to
    the model and to tools, and what these answered; events never have.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    function_id: str | None = Field(default=None, max_length=256)
    attributes: dict[str, StrictStr | StrictBool | StrictInt | StrictFloat] = Field(
        default_factory=dict[str, Any], max_length=MAX_ATTRIBUTES
    )
    record_inputs: bool = False
    record_outputs: bool = False

    @field_validator("attributes")
    @classmethod
    def _finite(cls, attributes: dict[str, Any]) -> dict[str, Any]:
        wrong = [name for name, value in attributes.items() if isinstance(value, float) and not math.isfinite(value)]
        if wrong:
            raise ValueError(f"{wrong[0]!r} must be a finite number")
        return attributes
