"""What a hook's answer to before_turn or before_step comes to: checked, and merged into what the chain has decided."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, cast

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from everturn.activities.models.chat_format import is_chat_format
from everturn.activities.settings import model_allowed
from everturn.activities.sizes import MAX_CONFIG_BYTES, MAX_STOPS_BYTES
from everturn.activities.tool_values import check_names
from everturn.activities.turn_tools import turn_tools
from everturn.errors import BadInput
from everturn.hooks.decisions import Config, TurnConfig
from everturn.hooks.references import UnresolvedReference
from everturn.hooks.registry import RegisteredAgent
from everturn.hooks.runner import HookRun
from everturn.hooks.tools import Tool
from everturn.messages import dump_json
from everturn.turns import JsonDict

K = TypeVar("K", bound=Config)


@dataclass
class Answer(Generic[K]):
    """What a chain came to. tools: names of the tools that the turn has. requested: the tools of the turn's request.
    error: the last failure that it ignored."""

    config: K
    tools: Collection[str]
    requested: Mapping[str, Tool]
    blocked: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Taken:
    """What one run changed, and a warning about what could not be used."""

    changed: list[str]
    warning: str | None = None


def take(agent: RegisteredAgent, answer: Answer[K], run: HookRun, edits: JsonDict) -> Taken | HookRun:
    """Merges a run's answer, its in-place edits first; the run as `invalid`, and nothing merged, if it is unusable."""
    try:
        given = type(answer.config).model_validate(edits)
        dump_json(given.as_json(), "the edited context")
        if run.value is not None:
            given = given.merged(run.value)
        merged = answer.config.merged(given)
        too_large = _too_large(merged)
        if too_large is not None:
            return replace(run, outcome="oversize", value=None, message=too_large)
        if isinstance(merged, TurnConfig):
            answer.tools = turn_tools(agent, merged, answer.requested)
            check_names(agent, merged.transforms or [])
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors()[0]["loc"])
        return _invalid(run, f"left an invalid context: {field}: {error.errors()[0]['msg']}")
    except (BadInput, PydanticSerializationError) as error:
        return _invalid(run, f"left a context that has no JSON form: {error}")
    except UnresolvedReference as error:
        return _invalid(run, str(error))
    accepted, warning = _accepted(agent, answer.tools, given)
    answer.config = answer.config.merged(accepted)
    return Taken(accepted.changed, warning)


def _too_large(config: Config) -> str | None:
    """What is too large in all that was decided so far."""
    fields = config.as_json()
    limits = {"the turn's configuration": (fields, MAX_CONFIG_BYTES)}
    if fields.get("stop_when"):
        limits["stop_when"] = (fields["stop_when"], MAX_STOPS_BYTES)
    for what, (value, limit) in limits.items():
        size = len(to_json(value))
        if size > limit:
            return f"left {size:,} bytes in {what}; the limit is {limit:,}"
    return None


def _invalid(run: HookRun, message: str) -> HookRun:
    return replace(run, outcome="invalid", value=None, message=message)


def _accepted(agent: RegisteredAgent, tools: Collection[str], given: K) -> tuple[K, str | None]:
    """Without the fields that may not be used as they are, and a warning that says so."""
    drop: dict[str, str] = {}
    model = cast(str | None, getattr(given, "model", None))
    messages = cast(list[JsonDict] | None, getattr(given, "messages", None))
    active = cast(list[str] | None, getattr(given, "active_tools", None))
    if model is not None and not model_allowed(agent, model):
        drop["model"] = f"model {model!r} is not among Agent.models"
    if messages is not None and not is_chat_format(messages):
        drop["messages"] = "messages are not in OpenAI's chat format (each needs a role)"
    unknown = [name for name in active or [] if name not in tools]
    warnings = list(drop.values())
    if unknown:
        warnings.append(f"active_tools names unknown tools: {', '.join(unknown)}")
    if not warnings:
        return given, None
    kept = {name: getattr(given, name) for name in given.changed if name not in drop}
    return type(given).model_construct(set(kept), **kept), "ignored: " + "; ".join(warnings)
