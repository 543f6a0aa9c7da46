"""Turns and messages as text for people."""

from __future__ import annotations

from collections.abc import Sequence

from everturn.messages import Message, Part
from everturn.turns import StepInfo, ToolCallInfo, TurnInfo, TurnSummary
from everturn.worker.cli.hook_tables import hook_line
from everturn.worker.cli.viewers import short

TEXT_IN_A_LINE = 100


def turn_text(info: TurnInfo) -> str:
    """Everything that is known of a turn, a fact a line."""
    turn = info.turn
    facts = {
        "turn": turn.request_id,
        "thread": turn.thread_id,
        "agent": turn.agent,
        "status": turn.status + (f" ({turn.stop_reason})" if turn.stop_reason else ""),
        "error": str(turn.error) if turn.error else None,
        _place_taken(turn): turn.superseded_by,
        "submitted": turn.submitted_at,
        "started": turn.started_at,
        "ended": turn.ended_at,
        "tokens": f"{turn.usage.input_tokens} in, {turn.usage.output_tokens} out",
        "cost": None if turn.usage.cost is None else f"${turn.usage.cost:.6f}",
        "failed attempts": str(info.attempts_failed) if info.attempts_failed else None,
        "before_turn hook": info.before_turn_hook_error,
        "Web UI": info.web_ui,
    }
    lines = [f"{name:<16} {value}" for name, value in facts.items() if value is not None]
    for step in info.steps:
        lines.append(_step_line(step))
        lines += [_call_line(call) for call in info.tool_calls if call.step == step.step]
    lines += [hook_line(trace) for trace in info.hook_traces]
    return "\n".join(lines)


def _place_taken(turn: TurnSummary) -> str:
    return "answered by" if turn.joined else "superseded by"


def turns_text(turns: Sequence[TurnSummary]) -> str:
    """A line for each turn."""
    rows = [("TURN", "THREAD", "AGENT", "STATUS", "STEPS", "TOKENS", "SUBMITTED")]
    rows += [
        (t.request_id, t.thread_id, t.agent, t.status, str(t.steps), str(t.usage.total_tokens), t.submitted_at)
        for t in turns
    ]
    return table(rows)


def table(rows: Sequence[Sequence[str]]) -> str:
    """The rows, the first with the headings, in columns as wide as their content."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def messages_text(messages: Sequence[Message]) -> str:
    """The thread as a script: who, then what."""
    lines: list[str] = []
    for message in messages:
        hidden = " (not shown to the model)" if message.hidden else ""
        lines.append(f"{message.role}{hidden}:")
        lines += [f"  {line}" for part in message.parts for line in _part_lines(part)]
    return "\n".join(lines)


def _step_line(step: StepInfo) -> str:
    text = (
        f"step {step.step} {step.model}: {step.finish_reason}, {step.usage.total_tokens} tokens, {step.duration_ms} ms"
    )
    if step.interrupted:
        text += ", interrupted"
    words = " ".join(step.text.split())
    return text + (f": {words[:TEXT_IN_A_LINE]}" if words else "")


def _call_line(call: ToolCallInfo) -> str:
    took = "" if call.duration_ms is None else f", {call.duration_ms} ms"
    outcome = call.error if call.error is not None else short(call.output)
    return f"  {call.tool_name}({short(call.input)}): {call.state}{took}: {outcome}"


def _part_lines(part: Part) -> list[str]:
    kind = str(part.get("type", ""))
    if kind in ("text", "reasoning"):
        mark = "(reasoning) " if kind == "reasoning" else ""
        return [mark + line for line in str(part.get("text", "")).splitlines()]
    if kind.startswith("tool-"):
        outcome = part["errorText"] if "errorText" in part else short(part.get("output"))
        return [f"→ {kind.removeprefix('tool-')}({short(part.get('input'))}) = {outcome}"]
    return [] if kind == "step-start" else [f"[{kind}] {short(part.get('url', part.get('data')))}"]
