"""Makes a thread's prompt shorter: the middle of the conversation becomes a summary; what is stored stays whole."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError

from everturn.activities.models.accumulator import Accumulator
from everturn.activities.models.deadlines import Deadlines, with_deadlines
from everturn.activities.models.failures import ModelFailure
from everturn.activities.models.prompt import build_prompt
from everturn.activities.models.tokens import count_tokens, estimate_tokens
from everturn.activities.models.truncation import truncated
from everturn.activities.models.types import ModelRequest
from everturn.activities.payloads import CompactDone, CompactInput, activity_name
from everturn.activities.running import Interrupted, stopped_here, until_interrupted
from everturn.activities.services import Activities
from everturn.hooks.agent import Model
from everturn.hooks.calling import invoke
from everturn.hooks.registry import RegisteredAgent
from everturn.hooks.session import Compacted, Truncation
from everturn.messages import Message
from everturn.store.records import Fold, HookTrace, PromptMaterial
from everturn.turns import JsonDict

HEAD: Final = 2
"""Messages kept at the beginning: they usually say what the conversation is about."""
TAIL: Final = 4
"""Messages kept at the end, whatever their size: the model must see what it is answering."""
PIECE_TOKENS: Final = 6000
"""A long middle is summarised piece by piece, each small enough for any model in use."""
SUMMARY_TOKENS: Final = 800
FOLDED: Final = Truncation(keep_last=1, tool_output=500, text=4000)
CALLBACK_TIMEOUT: Final = 30.0
"""Seconds that one `on_compaction` callback may take; the turn waits for it. A plain `def` runs in a thread, where it
cannot be stopped: it is left behind."""
INSTRUCTIONS: Final = (
    "You keep the memory of a conversation. Write one summary that replaces the messages below: facts, names, "
    "numbers, decisions, open questions and results of tools, in their order. At most 300 words. Add nothing."
)


@dataclass(frozen=True, slots=True)
class _Plan:
    """before, after: estimated tokens of the whole prompt and of what would be left of it beside the summary."""

    middle: list[Message]
    before: int
    after: int


class CompactActivities(Activities):
    """compact."""

    @activity.defn(name=activity_name("compact"))
    async def compact(self, given: CompactInput) -> CompactDone:
        """Folds the middle of the thread; `shortened` is False if nothing could be gained."""
        agent = self._services.agents.get(given.agent)
        material = await self._store.load_prompt(given.request_id)
        plan = _plan(agent, material)
        if not plan.middle:
            return CompactDone(shortened=False)
        with self._services.running.enter(given.request_id) as flag:
            try:
                work = self._summary(agent, material.summary, plan.middle)
                summary = await until_interrupted(work, flag, stop_on_shutdown=True)
            except Interrupted as stop:
                if stop.why != "cancel":
                    raise stopped_here() from stop
                return CompactDone(shortened=False)
            except ModelFailure as failure:
                raise ApplicationError(
                    f"the thread could not be summarised: {failure.message}",
                    type=failure.code,
                    non_retryable=not failure.retryable,
                ) from failure
        after = plan.after + _count(agent, [{"role": "system", "content": summary}])
        if after >= plan.before:
            return CompactDone(shortened=False)
        await self._fold(given, material, plan, summary, after)
        await self._tell(agent, Compacted(material.turn.thread_id, summary, len(plan.middle), plan.before, after))
        return CompactDone(shortened=True, tokens_before=plan.before, tokens_after=after)

    async def _fold(self, given: CompactInput, material: PromptMaterial, plan: _Plan, summary: str, after: int) -> None:
        thread_id = material.turn.thread_id
        await self._store.fold(Fold(thread_id, plan.middle[0].id, plan.middle[-1].id, summary))
        note = f"{len(plan.middle)} messages folded into a summary: about {plan.before:,} → {after:,} tokens"
        await self._store.record_traces([HookTrace(given.request_id, "compaction", "summary", "ok", 0, message=note)])

    async def _summary(self, agent: RegisteredAgent, earlier: str | None, middle: Sequence[Message]) -> str:
        summary = earlier or ""
        for piece in _pieces(middle):
            summary = await self._fold_text(agent, summary, piece)
        return summary

    async def _fold_text(self, agent: RegisteredAgent, earlier: str, piece: str) -> str:
        model = agent.model
        if agent.session.summary_model is not None:
            model = Model(agent.session.summary_model)
        resolved = await self._services.lanes.resolve(
            model.name, api_base=model.api_base, api_key_env=model.api_key_env, lane=model.lane
        )
        content = f"Summary so far:\n{earlier}\n\nMessages:\n{piece}" if earlier else f"Messages:\n{piece}"
        request = ModelRequest(
            model=resolved.model,
            messages=[{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": content}],
            api_base=resolved.api_base,
            api_key=resolved.api_key,
            key_env=resolved.key_env,
            max_output_tokens=SUMMARY_TOKENS,
            headers=model.headers,
        )
        accumulator = Accumulator(send_reasoning=False)
        async with aclosing(with_deadlines(resolved.lane.stream(request), Deadlines())) as deltas:
            async for delta in deltas:
                accumulator.feed(delta)
        text = accumulator.close().text.strip()
        if not text:
            raise ModelFailure("transient", "empty_response", "the model gave no summary")
        return text

    async def _tell(self, agent: RegisteredAgent, facts: Compacted) -> None:
        for callback in agent.session.callbacks:
            try:
                async with asyncio.timeout(CALLBACK_TIMEOUT):
                    await invoke(callback, self._services.threads, facts)
            except Exception:
                activity.logger.exception("an on_compaction callback of agent %r raised", agent.name)


def _plan(agent: RegisteredAgent, material: PromptMaterial) -> _Plan:
    """Head and tail stay; the tail takes as many messages as fit half of what is allowed."""
    messages = material.messages
    before = _count(agent, _rendered(material, messages))
    budget = (agent.session.token_limit or before) // 2
    keep = TAIL
    while keep < len(messages) - HEAD and _count(agent, _rendered(material, messages[-keep - 1 :])) <= budget:
        keep += 1
    middle = messages[HEAD : max(HEAD, len(messages) - keep)]
    # A fold begins with a question and ends with an answer: what is left then still alternates.
    while middle and middle[-1].role != "assistant":
        middle = middle[:-1]
    left = messages[:HEAD] + messages[HEAD + len(middle) :]
    return _Plan(middle, before, _count(agent, _rendered(material, left)))


def _rendered(material: PromptMaterial, messages: Sequence[Message]) -> list[JsonDict]:
    return build_prompt(PromptMaterial(material.turn, list(messages), material.steps), "").messages


def _count(agent: RegisteredAgent, messages: list[JsonDict]) -> int:
    return count_tokens(agent.session.count_tokens, messages)


def _pieces(middle: Sequence[Message]) -> list[str]:
    """The middle as text, in pieces of about PIECE_TOKENS."""
    pieces: list[str] = []
    lines: list[str] = []
    size = 0
    for message in truncated(middle, FOLDED):
        line = f"{message.role}: {_text(message)}"
        tokens = estimate_tokens([{"role": message.role, "content": line}])
        if lines and size + tokens > PIECE_TOKENS:
            pieces.append("\n".join(lines))
            lines, size = [], 0
        lines.append(line)
        size += tokens
    return [*pieces, "\n".join(lines)]


def _text(message: Message) -> str:
    words: list[str] = []
    for part in message.parts:
        kind = str(part.get("type"))
        if kind == "text":
            words.append(str(part.get("text") or ""))
        elif kind.startswith("tool-"):
            outcome = part.get("output", part.get("errorText"))
            words.append(f"[{kind.removeprefix('tool-')}({part.get('input')}) → {outcome}]")
        elif kind == "file":
            words.append(f"[file {part.get('filename') or part.get('mediaType') or ''}]")
    return " ".join(words)
