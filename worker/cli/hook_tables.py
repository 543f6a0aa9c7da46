"""What the hooks of a turn did, as text for people."""

from __future__ import annotations

from collections.abc import Sequence

from everturn.turns import HookTraceInfo, JsonDict, TurnInfo
from everturn.worker.cli.viewers import short


def hook_line(trace: HookTraceInfo) -> str:
    """One run of one hook in a line."""
    parts = [trace.outcome, f"{trace.duration_ms} ms"]
    if trace.changed:
        parts.append(f"changed {', '.join(trace.changed)}")
    if trace.logs:
        parts.append(f"{len(trace.logs)} log line{'s' if len(trace.logs) > 1 else ''}")
    said = f": {_in_one_line(trace.message)}" if trace.message else ""
    return f"hook {trace.point} of {trace.hook}: {', '.join(parts)}{said}"


def hooks_text(info: TurnInfo) -> str:
    """Every hook run of a turn in order: where, outcome, time, what it changed, what went wrong, what it logged."""
    turn = info.turn
    lines = [f"turn {turn.request_id} of agent {turn.agent}: {turn.status}"]
    if info.before_turn_hook_error:
        lines.append(f"before_turn hook error: {_in_one_line(info.before_turn_hook_error)}")
    for trace in info.hook_traces:
        lines += ["", f"{trace.point} · {trace.hook}{_place(trace)}"]
        lines += [f"  {line}" for line in _facts(trace)]
    if not info.hook_traces:
        lines.append("no hook ran")
    return "\n".join(lines)


def _place(trace: HookTraceInfo) -> str:
    step = "" if trace.step is None else f" · step {trace.step}"
    return step + (f" · call {trace.tool_call_id}" if trace.tool_call_id else "")


def _facts(trace: HookTraceInfo) -> Sequence[str]:
    facts = [f"{trace.outcome}, {trace.duration_ms} ms"]
    if trace.message:
        facts.append(_in_one_line(trace.message))
    if trace.changed:
        facts.append(f"changed {', '.join(trace.changed)}")
    return [*facts, *(_log_line(line) for line in trace.logs)]


def _log_line(line: JsonDict) -> str:
    data = f"  {short(line['data'])}" if "data" in line else ""
    dropped = f"  (and {line['dropped']} more lines that were not kept)" if "dropped" in line else ""
    return f"[{line.get('level', 'info')}] {_in_one_line(str(line.get('message', '')))}{data}{dropped}"


def _in_one_line(text: str) -> str:
    return " ".join(text.split())
