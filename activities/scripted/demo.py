"""The demo model: a handful of rules that answer, calculate and call the agent's tools. It says so when asked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from everturn.activities.scripted.arithmetic import solve
from everturn.activities.scripted.ask import Ask, Said, ToolSpec, answer_schema
from everturn.activities.scripted.moves import CallPart, Finish, Move, Pause, Say
from everturn.activities.scripted.schemas import sample_input, sample_value
from everturn.turns import JsonDict

_GREETING = re.compile(r"^\W*(hi|hello|hey|hallo|good (morning|afternoon|evening)|greetings)\b", re.IGNORECASE)
_THANKS = re.compile(r"^\W*(thanks|thank you|cheers|bye|goodbye)\b", re.IGNORECASE)
_ABOUT = re.compile(r"\b(who|what) are you\b|\bwhat can you do\b|^\W*help\W*$", re.IGNORECASE)
_ECHO = re.compile(r"^\W*(?:echo|say|repeat)(?: after me)?\s*:?\s+(.+)$", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+|\d+")
_COMMON_WORDS = (
    "a an and any are as at be by can could current do does for from get give given has have how i in is it its list "
    "me my no of on one or please return returns set show some tell that the their there this to all use used user "
    "want was what when where which who will with would you your"
)
_COMMON = frozenset(_COMMON_WORDS.split())
_CLAUSES = re.compile(r"\band\b|[;.?!]\s", re.IGNORECASE)
_ENOUGH = 2  # one word of a tool's name, or two of its description
_LONGEST_ANSWER = 1_500


def demo_moves(ask: Ask, seconds_per_word: float) -> Iterator[Move]:
    """The demo model's answer to a request, streamed word by word."""
    calls = chosen_calls(ask) if ask.step == 0 else []
    if calls:
        for number, (tool, arguments) in enumerate(calls):
            yield CallPart(number, f"call_demo_{len(ask.said)}_{number}", tool.name)
            yield CallPart(number, arguments=json.dumps(arguments, ensure_ascii=False))
        yield Finish("tool_calls")
        return
    for number, word in enumerate(streamed_words(answer(ask))):
        if number and seconds_per_word:
            yield Pause(seconds_per_word)
        yield Say(word)
    yield Finish("stop")


def answer(ask: Ask) -> str:
    """What the demo model says when it calls no tool."""
    schema = answer_schema(ask)
    if schema is not None:
        return json.dumps(sample_value(schema, ask.user_text, schema), ensure_ascii=False)
    if ask.results:
        return " ".join(_told(result) for result in ask.results)
    if ask.step:
        return "I have nothing to add to that."
    return _small_talk(ask)


def chosen_calls(ask: Ask) -> list[tuple[ToolSpec, dict[str, Any]]]:
    """The tools that the user's words ask for, with arguments made from those words."""
    choice = ask.body.get("tool_choice")
    if choice == "none" or not ask.tools:
        return []
    clauses = [c for c in _CLAUSES.split(ask.user_text) if c.strip()]
    picked = [(c, tool) for c in clauses if (tool := _best(ask.tools, c)) is not None]
    if len(picked) < 2:
        whole = _forced(ask, choice) or _best(ask.tools, ask.user_text)
        picked = [(ask.user_text, whole)] if whole is not None else []
    calls = [(tool, sample_input(tool.schema, clause.strip())) for clause, tool in picked]
    return [call for position, call in enumerate(calls) if call not in calls[:position]]


def streamed_words(text: str) -> Iterator[str]:
    """The text in words, never the same chunk twice in a row: a long run of equal chunks looks like a broken model."""
    words = re.findall(r"\s*\S+\s*", text) or [text]
    pending = ""
    last = ""
    for word in words:
        pending += word
        if pending != last:
            yield pending
            last, pending = pending, ""
    if pending:
        yield pending


def _small_talk(ask: Ask) -> str:
    text = ask.user_text.strip()
    echo = _ECHO.match(text)
    calculation = solve(text)
    if echo:
        return echo.group(1).strip().strip("\"'")
    if calculation:
        return f"{calculation[0]} = {calculation[1]}"
    if _THANKS.match(text):
        return "You are welcome."
    if _GREETING.match(text) or _ABOUT.search(text):
        return _introduction(ask.tools)
    return f"You said: {text[:_LONGEST_ANSWER]!r}. I am the demo model and follow simple rules: {_abilities(ask.tools)}"


def _introduction(tools: list[ToolSpec]) -> str:
    return f"Hello! I am the demo model: simple rules, no language model. {_abilities(tools)}"


def _abilities(tools: list[ToolSpec]) -> str:
    names = ", ".join(tool.name for tool in tools[:8])
    with_tools = f" I call these tools when your words match them: {names}." if names else ""
    return f"I can echo text and do arithmetic.{with_tools}"


def _forced(ask: Ask, choice: object) -> ToolSpec | None:
    if choice in ("required", "any"):
        return _best(ask.tools, ask.user_text) or ask.tools[0]
    if not isinstance(choice, dict):
        return None
    named = cast(dict[str, Any], choice)
    name = named.get("function", named).get("name")
    return next((tool for tool in ask.tools if tool.name == name), None)


def _best(tools: list[ToolSpec], text: str) -> ToolSpec | None:
    words = _words(text)
    best = max(tools, key=lambda tool: _score(tool, words))
    return best if _score(best, words) >= _ENOUGH else None


def _score(tool: ToolSpec, words: set[str]) -> int:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", tool.name).replace("_", " ")
    return 3 * len(_words(spaced) & words) + len(_words(tool.description) & words)


def _words(text: str) -> set[str]:
    return {_stem(word) for word in _WORD.findall(text.lower()) if word not in _COMMON}


def _stem(word: str) -> str:
    for ending in ("ing", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word.removesuffix("e") if len(word) > 4 else word


def _told(result: Said) -> str:
    """A tool's result as a sentence."""
    tool = result.tool or "The tool"
    value = _parsed(result.text)
    if isinstance(value, dict) and "error" in value:
        return f"{tool} failed: {_plain(cast(JsonDict, value)['error'])[:_LONGEST_ANSWER]}."
    return f"{tool} says: {_plain(cast(object, value))[:_LONGEST_ANSWER]}."


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _plain(value: object) -> str:
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return ", ".join(f"{name.replace('_', ' ')} {_plain(inner)}" for name, inner in fields.items()) or "nothing"
    if isinstance(value, list):
        return "; ".join(_plain(inner) for inner in cast(list[object], value)) or "nothing"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "nothing"}[value]
    return str(value).strip().rstrip(".")
