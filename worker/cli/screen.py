"""What a person sees of a turn, as data: chunks go in, blocks come out. Nothing here draws or waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Final, Literal

from everturn import chunks
from everturn.chunks import Chunk


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Words of the model. key: the chunk id that its pieces share."""

    step: int | None
    key: str
    text: str = ""
    kind: Literal["text", "reasoning"] = "text"


@dataclass(frozen=True, slots=True)
class ToolBlock:
    """A tool call. input: None until it is complete. progress: the tool's latest word while it runs."""

    step: int | None
    key: str
    name: str
    input: Any = None
    output: Any = None
    error: str | None = None
    progress: Any = None
    state: Literal["asking", "approval", "running", "done", "failed"] = "asking"


@dataclass(frozen=True, slots=True)
class NoticeBlock:
    """A sentence of ours: the attempt failed and is repeated, say."""

    step: int | None
    text: str


Block = TextBlock | ToolBlock | NoticeBlock


@dataclass(frozen=True, slots=True)
class Screen:
    """A turn as shown so far.

    done_step: the last step whose model call is done, -1 before. settled: how many of `blocks`, from the front, no
    later chunk can change. waiting: what the turn waits for, None while text flows. end: the type of the chunk that
    ended the stream. error: why the turn failed or was stopped.
    """

    blocks: tuple[Block, ...] = ()
    done_step: int = -1
    settled: int = 0
    waiting: str | None = "waiting for a worker"
    end: str | None = None
    error: str | None = None

    def advance(self, chunk: Chunk) -> Screen:
        """The screen after `chunk`; chunk types that show nothing leave it as it is."""
        change = _CHANGES.get(chunk.type)
        return self if change is None else _settle(change(self, chunk))

    @property
    def text(self) -> str:
        """The answer's words so far, without reasoning."""
        return "".join(b.text for b in self.blocks if isinstance(b, TextBlock) and b.kind == "text")


def _started(screen: Screen, _chunk: Chunk) -> Screen:
    return replace(screen, waiting="thinking")


def _queued(screen: Screen, chunk: Chunk) -> Screen:
    behind = chunk.data.get("behind")
    return replace(screen, waiting=f"queued behind turn {behind}" if behind else "queued behind another turn")


def _joined(screen: Screen, chunk: Chunk) -> Screen:
    return replace(screen, waiting=f"answered by turn {chunk.data.get('requestId')}")


def _delta(screen: Screen, chunk: Chunk) -> Screen:
    kind: Literal["text", "reasoning"] = "text" if chunk.type == chunks.TEXT_DELTA else "reasoning"
    key, piece = str(chunk.data.get("id", "")), str(chunk.data.get("delta", ""))
    waiting = None if kind == "text" else "thinking"
    last = screen.blocks[-1] if screen.blocks else None
    if isinstance(last, TextBlock) and (last.key, last.kind, last.step) == (key, kind, chunk.step):
        blocks = (*screen.blocks[:-1], replace(last, text=last.text + piece))
    else:
        blocks = (*screen.blocks, TextBlock(chunk.step, key, piece, kind))
    return replace(screen, blocks=blocks, waiting=waiting)


def _tool(screen: Screen, chunk: Chunk) -> Screen:
    key = str(chunk.data.get("toolCallId", ""))
    known = next((b for b in screen.blocks if isinstance(b, ToolBlock) and b.key == key), None)
    block = _tool_after(known or ToolBlock(chunk.step, key, str(chunk.data.get("toolName", "tool"))), chunk)
    blocks = tuple(block if b is known else b for b in screen.blocks) if known else (*screen.blocks, block)
    return replace(screen, blocks=blocks, waiting=_tool_waiting(blocks))


def _tool_after(block: ToolBlock, chunk: Chunk) -> ToolBlock:
    data = chunk.data
    changes: dict[str, Any] = {}
    match chunk.type:
        case chunks.TOOL_INPUT_AVAILABLE:
            changes = {"name": str(data.get("toolName", block.name)), "input": data.get("input"), "state": "running"}
        case chunks.TOOL_APPROVAL_REQUEST:
            changes = {"input": data.get("input"), "state": "approval"}
        case chunks.TOOL_OUTPUT_AVAILABLE if data.get("preliminary"):
            changes = {"progress": data.get("output")}
        case chunks.TOOL_OUTPUT_AVAILABLE:
            changes = {"output": data.get("output"), "state": "done"}
        case chunks.TOOL_OUTPUT_ERROR:
            changes = {"error": str(data.get("errorText", "failed")), "state": "failed"}
        case chunks.TOOL_PROGRESS:
            changes = {"progress": data.get("value")}
        case _:
            pass
    return replace(block, **changes)


def _tool_waiting(blocks: tuple[Block, ...]) -> str:
    open_calls = [b for b in blocks if isinstance(b, ToolBlock) and b.state not in ("done", "failed")]
    asking = [b.name for b in open_calls if b.state == "approval"]
    if asking:
        return f"waiting for approval of {', '.join(asking)}"
    running = [b.name for b in open_calls]
    return f"running {', '.join(running)}" if running else "thinking"


def _reset(screen: Screen, chunk: Chunk) -> Screen:
    """Drops what the void attempt wrote in its step; notices stay."""
    step = chunk.data.get("step", chunk.step)
    kept = tuple(b for b in screen.blocks if b.step != step or isinstance(b, NoticeBlock))
    return replace(screen, blocks=kept, waiting="starting the step again")


def _retrying(screen: Screen, chunk: Chunk) -> Screen:
    delay = chunk.data.get("retryIn")
    wait = f" in {delay:g} s" if isinstance(delay, int | float) and delay >= 1 else ""
    notice = NoticeBlock(chunk.step, f"{chunk.data.get('error', 'the model call failed')}; trying again{wait}")
    return replace(screen, blocks=(*screen.blocks, notice), waiting=f"trying again{wait}")


def _step_done(screen: Screen, chunk: Chunk) -> Screen:
    return replace(screen, done_step=screen.done_step if chunk.step is None else chunk.step, waiting="thinking")


def _ended(screen: Screen, chunk: Chunk) -> Screen:
    error = None
    if chunk.type == chunks.ERROR:
        error = str(chunk.data.get("errorText") or "the turn failed")
    elif chunk.type == chunks.ABORT:
        error = str(chunk.data.get("reason") or "the turn was stopped")
    return replace(screen, waiting=None, end=chunk.type, error=error)


def _settle(screen: Screen) -> Screen:
    """Counts the blocks that are final: of done steps, up to the first tool that still runs."""
    if screen.end is not None:
        return replace(screen, settled=len(screen.blocks))
    final = takewhile(lambda block: _is_final(block, screen.done_step), screen.blocks)
    return replace(screen, settled=sum(1 for _ in final))


def _is_final(block: Block, done_step: int) -> bool:
    if isinstance(block, ToolBlock) and block.state not in ("done", "failed"):
        return False
    return block.step is None or block.step <= done_step


_CHANGES: Final = MappingProxyType[str, Callable[[Screen, Chunk], Screen]](
    {
        chunks.START: _started,
        chunks.START_STEP: _started,
        chunks.QUEUED: _queued,
        chunks.JOINED: _joined,
        chunks.TEXT_DELTA: _delta,
        chunks.REASONING_DELTA: _delta,
        chunks.TOOL_INPUT_START: _tool,
        chunks.TOOL_INPUT_AVAILABLE: _tool,
        chunks.TOOL_APPROVAL_REQUEST: _tool,
        chunks.TOOL_OUTPUT_AVAILABLE: _tool,
        chunks.TOOL_OUTPUT_ERROR: _tool,
        chunks.TOOL_PROGRESS: _tool,
        chunks.RESET: _reset,
        chunks.RETRYING: _retrying,
        chunks.FINISH_STEP: _step_done,
        chunks.FINISH: _ended,
        chunks.ABORT: _ended,
        chunks.ERROR: _ended,
    }
)
