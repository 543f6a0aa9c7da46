"""A model that says what a test wants: real HTTP on loopback, no key, no chance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from everturn.activities.scripted.ask import Ask
from everturn.activities.scripted.moves import CallPart, Fail, FailInStream, Finish, Move, Say, Think
from everturn.activities.scripted.scenarios.plain import split_words
from everturn.errors import BadInput
from everturn.turns import JsonDict


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asks for; made by `call`."""

    name: str
    arguments: JsonDict = field(default_factory=dict[str, Any])


def call(name: str, /, **arguments: Any) -> ToolCall:
    """The model asks for this tool with these arguments: `call("get_weather", city="Paris")`."""
    return ToolCall(name, arguments)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer with more than a text or a call. finish: the finish reason, by default as the content demands."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    finish: str | None = None


@dataclass(frozen=True, slots=True)
class ModelError:
    """The provider fails. status: of the HTTP answer. after: words that it says first; the error then comes inside the
    stream. retry_after: seconds that it asks to wait. code: the provider's word for the error."""

    status: int = 500
    message: str = "the model is out of order"
    after: str = ""
    retry_after: float | None = None
    code: str | None = None


Answer: TypeAlias = str | ToolCall | Sequence[ToolCall] | Reply | ModelError
"""A text, a tool call, several calls at once, or one of the two above."""


class ScriptedModel:
    """Answers the model calls of each turn from the list: the first call of a turn gets the first answer, and so on.

    A call that is repeated unchanged, as after a crash, gets the same answer again, unless that was a ModelError or an
    empty text: then the next one. when: other answers for turns whose user message contains the text. A turn that asks
    for more than it has answers fails its test.
    """

    def __init__(self, *answers: Answer, when: Mapping[str, Answer | Sequence[Answer]] | None = None) -> None:
        self._answers = _places(answers)
        self._when = {text: _places(_several(given)) for text, given in (when or {}).items()}
        if not self._answers and not self._when:
            raise BadInput('a ScriptedModel needs an answer: ScriptedModel("Hello.")')

    def answers_to(self, text: str) -> list[list[Answer]]:
        """For each model call of a turn its answers: those that fail, and then one that does not."""
        return next((places for key, places in self._when.items() if key in text), self._answers)


class ScriptPlayer:
    """Plays a script for one model server. It keeps what each turn has asked, so turns and retries stay apart."""

    def __init__(self, model: ScriptedModel) -> None:
        self._model = model
        self._asked: dict[str, dict[str, int]] = {}
        self.ended: dict[str, str] = {}
        """What is to be said about turns that asked for more than the script has."""

    def moves(self, ask: Ask) -> Iterator[Move]:
        """The answer to one request."""
        asked = self._asked.setdefault(ask.caller, {})
        prompt = hashlib.sha256(json.dumps(ask.body.get("messages"), sort_keys=True).encode()).hexdigest()
        asked[prompt] = asked.get(prompt, 0) + 1
        place, attempt = list(asked).index(prompt), asked[prompt]
        places = self._model.answers_to(ask.user_text)
        if place >= len(places):
            message = (
                f"the script has answers for {len(places)} model calls of a turn, and this is call {place + 1}; "
                f"its prompt ends with: {ask.said[-1].text[:200] if ask.said else 'nothing'}"
            )
            self.ended[ask.caller] = message
            return iter([Fail(400, message, "invalid_request_error", "script_ended")])
        answers = places[place]
        return _moves(answers[min(attempt, len(answers)) - 1], f"call_{prompt[:8]}")


def as_model(given: ScriptedModel | Answer | Sequence[Answer]) -> ScriptedModel:
    """A script from what a test may write for it: a ScriptedModel, one answer, or a list of answers."""
    return given if isinstance(given, ScriptedModel) else ScriptedModel(*_several(given))


def _several(given: Answer | Sequence[Answer]) -> Sequence[Answer]:
    return [given] if isinstance(given, str | ToolCall | Reply | ModelError) else given


def _places(answers: Sequence[Answer]) -> list[list[Answer]]:
    """The answers by model call: one that fails shares its place with the next."""
    places: list[list[Answer]] = []
    open_place = False
    for answer in answers:
        if not open_place:
            places.append([])
        places[-1].append(answer)
        open_place = isinstance(answer, ModelError) or answer == ""
    return places


def _moves(answer: Answer, call_id: str) -> Iterator[Move]:
    if isinstance(answer, ModelError):
        return _failing(answer)
    if isinstance(answer, str):
        return _speaking(Reply(answer), call_id)
    if isinstance(answer, Reply):
        return _speaking(answer, call_id)
    calls = (answer,) if isinstance(answer, ToolCall) else tuple(answer)
    return _speaking(Reply(calls=calls), call_id)


def _failing(error: ModelError) -> Iterator[Move]:
    if error.after:
        yield from (Say(word) for word in split_words(error.after))
        yield FailInStream(error.message, "server_error", error.code)
        return
    headers = {} if error.retry_after is None else {"retry-after-ms": str(round(error.retry_after * 1000))}
    yield Fail(error.status, error.message, "error", error.code, headers)


def _speaking(reply: Reply, call_id: str) -> Iterator[Move]:
    if reply.reasoning:
        yield from (Think(word) for word in split_words(reply.reasoning))
    yield from (Say(word) for word in split_words(reply.text))
    for number, asked in enumerate(reply.calls):
        yield CallPart(number, f"{call_id}_{number}", asked.name, json.dumps(asked.arguments))
    yield Finish(reply.finish or ("tool_calls" if reply.calls else "stop"))
