"""Tool calls: well-formed, oddly fragmented, wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator

from everturn.activities.scripted.ask import Ask, BadScript, Script
from everturn.activities.scripted.moves import CallPart, Finish, Move, Pause, Say
from everturn.activities.scripted.schemas import sample_input


def tools(ask: Ask, script: Script) -> Iterator[Move]:
    """calls=1, sequential=0 (1: one call per step, else all in one step), tool=first of the request, args=JSON or made
    from the schema, say=text before the calls, shape=plain, finish=tool_calls, forever=0, delay_ms=0.
    Afterwards: `done: <n> results`."""
    calls = script.count("calls", 1)
    steps = calls if script.flag("sequential") else 1
    if ask.step >= steps and not script.flag("forever"):
        yield from (Say("done: "), Say(f"{len(ask.results)} results"), Finish("stop"))
        return
    if script.text("say"):
        yield Say(script.text("say"))
    count = 1 if script.flag("sequential") else calls
    parts = _shaped(script.text("shape", "plain"), [_call(ask, script, number) for number in range(count)])
    for part in parts:
        yield part
        if script.number("delay_ms", 0):
            yield Pause(script.number("delay_ms", 0) / 1000)
    yield Finish(script.text("finish", "tool_calls"))


def unknown_tool(ask: Ask, script: Script) -> Iterator[Move]:
    """Calls name=no_such_tool once; then answers."""
    named = Script(script.name, {"tool": script.text("name", "no_such_tool"), "args": "{}", **script.params})
    return tools(ask, named)


def bad_args(ask: Ask, script: Script) -> Iterator[Move]:
    """Calls a tool with arguments that fit no schema: args={"wrong": 1}."""
    return tools(ask, Script(script.name, {"args": '{"wrong": {"very": 1}}', **script.params}))


def loop(ask: Ask, script: Script) -> Iterator[Move]:
    """The same call with the same arguments in every step, for ever."""
    return tools(ask, Script(script.name, {"forever": "1", **script.params}))


def bad_json(ask: Ask, script: Script) -> Iterator[Move]:
    """Arguments that are no JSON object: args=`{"city": "Par`, finish=tool_calls, hit_limit=0 (1: usage equals
    max_tokens), good=0 (complete calls before it). Afterwards: `done: <n> results`."""
    if ask.step:
        yield from (Say("done: "), Say(f"{len(ask.results)} results"), Finish("stop"))
        return
    good = script.count("good", 0)
    for number in range(good):
        yield from _whole(_call(ask, script, number))
    name = script.text("tool") or _tool(ask, good)
    yield CallPart(good, f"call_{ask.step}_{good}", name, script.text("args", '{"city": "Par'))
    limit = ask.max_tokens if script.flag("hit_limit") else None
    yield Finish(script.text("finish", "tool_calls"), limit)


def _call(ask: Ask, script: Script, number: int) -> CallPart:
    name = script.text("tool") or _tool(ask, number)
    arguments = script.text("args") if script.name != "bad_json" else ""
    if not arguments:
        spec = next((tool for tool in ask.tools if tool.name == name), None)
        arguments = json.dumps(sample_input(spec.schema, ask.user_text)) if spec else "{}"
    return CallPart(number, f"call_{ask.step}_{number}", name, arguments)


def _tool(ask: Ask, number: int) -> str:
    return ask.tools[number % len(ask.tools)].name if ask.tools else "get_weather"


def _shaped(shape: str, calls: list[CallPart]) -> Iterator[CallPart]:
    """plain: start, then arguments in pieces. one_chunk: a call per chunk. index0: so, and all carry index 0.
    index0_pieces: index 0, in pieces. interleaved: pieces of all calls by turns. same_id, no_id: ids double, absent."""
    if shape == "plain":
        for call in calls:
            yield from _whole(call)
    elif shape == "one_chunk":
        yield from calls
    elif shape in ("index0", "index0_pieces"):
        for call in calls:
            at_zero = CallPart(0, call.id, call.name, call.arguments)
            yield from [at_zero] if shape == "index0" else _whole(at_zero)
    elif shape == "interleaved":
        yield from _interleaved(calls)
    elif shape in ("same_id", "no_id"):
        yield from (CallPart(c.index, "call_same" if shape == "same_id" else None, c.name, c.arguments) for c in calls)
    else:
        raise BadScript(f"no shape of tool calls is named {shape!r}")


def _whole(call: CallPart) -> Iterator[CallPart]:
    yield CallPart(call.index, call.id, call.name)
    yield from (CallPart(call.index, arguments=piece) for piece in pieces(call.arguments))


def _interleaved(calls: list[CallPart]) -> Iterator[CallPart]:
    yield from (CallPart(call.index, call.id, call.name) for call in calls)
    cut = [(call.index, pieces(call.arguments)) for call in calls]
    for turn in range(max(len(parts) for _, parts in cut)):
        yield from (CallPart(index, arguments=parts[turn]) for index, parts in cut if turn < len(parts))


def pieces(text: str, length: int = 5) -> list[str]:
    return [text[i : i + length] for i in range(0, len(text), length)]


SCENARIOS = {"tools": tools, "unknown_tool": unknown_tool, "bad_args": bad_args, "loop": loop, "bad_json": bad_json}
