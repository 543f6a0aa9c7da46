"""The application's side: submit, stream, wait, cancel, read."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self

from temporalio.client import Client
from temporalio.converter import DataConverter

from everturn.activities.payloads import TurnInput
from everturn.activities.wait_payloads import Approval, ClientResult, Denial
from everturn.checks import check_count, check_seconds
from everturn.chunks import Chunk
from everturn.client.answering import answered
from everturn.client.following import Follower
from everturn.client.memory import Submissions
from everturn.client.reading import Reading
from everturn.client.request import (
    MAX_BODY_BYTES,
    check_inline,
    check_sent,
    fits_inline,
    json_object,
    make_continuation,
    make_input,
    reason_text,
)
from everturn.client.scheduling import Scheduling
from everturn.client.temporal import TemporalTurns
from everturn.client.turn import Turn
from everturn.connection import connect_temporal
from everturn.errors import (
    BadInput,
    NothingToContinue,
    RequestConflict,
    ResultTimeout,
    ThreadBusy,
)
from everturn.ids import check_id
from everturn.messages import UserMessage, json_size
from everturn.policies import Debounce
from everturn.settings import Settings, settings_from
from everturn.store.room import room_of
from everturn.store.store import Store
from everturn.turns import (
    TERMINAL,
    CancelOutcome,
    Principal,
    TurnResult,
    WaitOutcome,
)


class ChatClient(Reading, Scheduling):
    """Submits chat turns and follows them. Make one with `connect`, use it for the whole process, from one event loop.

    Without a store it can submit, wait and cancel; streaming and reading raise StoreRequired.
    """

    def __init__(self, temporal: TemporalTurns, store: Store | None, settings: Settings, *, owns_store: bool) -> None:
        super().__init__(temporal, store, settings)
        self._owns_store = owns_store
        self._submitted = Submissions()

    @classmethod
    async def connect(
        cls,
        client: Client | None = None,
        *,
        target: str | None = None,
        namespace: str | None = None,
        task_queue: str | None = None,
        store: str | Store | None = None,
        web_ui: str | None = None,
        data_converter: DataConverter | None = None,
        history_previews: bool | None = None,
    ) -> ChatClient:
        """Connects to Temporal (or takes an existing `client`) and to the store.

        history_previews=False keeps what is said out of Temporal: messages reach the worker through the store (a client
        without one has only Temporal to carry them). data_converter: how all else is written there, encrypted for
        example; the workers need the same one. What is not given comes from EVERTURN_… environment variables, then
        Temporal's own, then the defaults. Raises TemporalUnavailable or StoreUnavailable within `connect_timeout`
        (8 s), BadInput for an unusable value.
        """
        settings = settings_from(
            target=target,
            namespace=namespace,
            task_queue=task_queue,
            store=None if isinstance(store, Store) else store,
            web_ui=web_ui,
            history_previews=history_previews,
        )
        temporal = client or await connect_temporal(settings, data_converter=data_converter)
        opened = store if isinstance(store, Store) else None
        if opened is None and settings.store:
            opened = await Store.open(settings.store, timeout=settings.connect_timeout)
        turns = TemporalTurns(temporal, settings.task_queue, settings.connect_timeout)
        return cls(turns, opened, settings, owns_store=not isinstance(store, Store))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the store if this client opened it. Running turns are not affected."""
        if self._store is not None and self._owns_store:
            await self._store.close()

    async def submit(
        self,
        thread_id: str,
        message: UserMessage,
        *,
        agent: str,
        request_id: str | None = None,
        body: Mapping[str, Any] | None = None,
        principal: Principal | None = None,
        tenant_id: str | None = None,
        policy: str | Debounce = "queue",
        metadata: Mapping[str, Any] | None = None,
        client_tools: Sequence[Mapping[str, Any]] = (),
    ) -> Turn:
        """Asks for a turn; when this returns, it is durably accepted.

        The same request_id with the same content gives the same turn (`accepted` is False), with other content
        RequestConflict. body and metadata are JSON objects: for hooks and tools, and stored with the message. Raises
        TooBusy if too many turns wait already; where only the worker sees that, the turn is dropped with it.
        client_tools: {"name", "description", "schema"} of tools that the caller's front end runs in this turn.

        policy, for a thread that is busy: "queue" waits; "reject" raises ThreadBusy; "drop" ends the turn as dropped;
        "latest" stops the running turn and supersedes those that wait; "merge" lets the turn that waits before this one
        answer this message, too; Debounce(seconds), or "debounce:2", waits for further messages, in an idle thread too,
        and answers all at once. A turn whose message another one answers has that turn's `result` and `stream`.
        """
        turn = make_input(
            thread_id,
            message,
            agent=agent,
            request_id=request_id,
            body=body,
            principal=principal,
            tenant_id=tenant_id,
            policy=policy,
            metadata=metadata,
            client_tools=client_tools,
        )
        turn = self._completed(turn)
        if request_id is not None and await self._known(turn):
            return Turn(self, turn.request_id, thread_id, accepted=False)
        await self._check_room(turn)
        if policy == "reject":
            await self._check_free(thread_id)
        accepted = await self._temporal.start(turn, draft=await self._drafted(turn))
        self._submitted.add(thread_id, turn.request_id)
        if policy == "reject":
            begun = await self._temporal.admission(turn.request_id)
            if begun is not None and begun.outcome == "busy":
                raise ThreadBusy(thread_id, begun.behind)
        return Turn(self, turn.request_id, thread_id, accepted=accepted)

    async def continue_last_turn(
        self,
        thread_id: str,
        *,
        agent: str | None = None,
        request_id: str | None = None,
        body: Mapping[str, Any] | None = None,
        principal: Principal | None = None,
        tenant_id: str | None = None,
        client_tools: Sequence[Mapping[str, Any]] = (),
    ) -> Turn:
        """Lets the agent go on with its last message, which grows: no new user message, `ctx.continuation` is True.

        agent: default the one of the thread's last turn, read from the store. Raises NothingToContinue, here or
        (without a store) as the turn's error, if the newest message is not the assistant's.
        """
        name = agent or await self._last_agent(thread_id)
        turn = make_continuation(
            thread_id,
            agent=name,
            request_id=request_id,
            body=body,
            principal=principal,
            tenant_id=tenant_id,
            client_tools=client_tools,
        )
        if request_id is not None and await self._known(turn):
            return Turn(self, turn.request_id, thread_id, accepted=False)
        await self._check_room(turn)
        turn = self._completed(turn)
        accepted = await self._temporal.start(turn, draft=False)
        self._submitted.add(thread_id, turn.request_id)
        return Turn(self, turn.request_id, thread_id, accepted=accepted)

    async def run(
        self,
        thread_id: str,
        message: UserMessage,
        *,
        agent: str,
        timeout: float | None = None,  # noqa: ASYNC109 - part of the contract
        request_id: str | None = None,
        body: Mapping[str, Any] | None = None,
        principal: Principal | None = None,
        tenant_id: str | None = None,
        policy: str | Debounce = "queue",
        metadata: Mapping[str, Any] | None = None,
        client_tools: Sequence[Mapping[str, Any]] = (),
    ) -> TurnResult:
        """`submit`, then `result`."""
        turn = await self.submit(
            thread_id,
            message,
            agent=agent,
            request_id=request_id,
            body=body,
            principal=principal,
            tenant_id=tenant_id,
            policy=policy,
            metadata=metadata,
            client_tools=client_tools,
        )
        return await turn.result(timeout)

    def turn(self, request_id: str) -> Turn:
        """A handle on a turn that was submitted before, by anyone."""
        return Turn(self, check_id(request_id, "request_id"))

    async def stream(self, request_id: str, *, after: int = 0) -> AsyncIterator[Chunk]:
        """See `Turn.stream`."""
        check_id(request_id, "request_id")
        check_count(after, "after")
        self._need_store("stream")
        async with aclosing(self._follower(request_id).chunks(request_id, after)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def result(self, request_id: str, *, timeout: float | None = None) -> TurnResult:  # noqa: ASYNC109
        """See `Turn.result`."""
        check_id(request_id, "request_id")
        if timeout is not None:
            check_seconds(timeout, "timeout")
        try:
            async with asyncio.timeout(timeout):
                if self._store is None:
                    return (await self._temporal.answer_of(request_id)).as_result()
                return await self._follower(request_id).result(request_id)
        except TimeoutError as error:
            raise ResultTimeout(request_id, timeout or 0.0) from error

    async def cancel_chat(self, request_id: str, reason: str | None = None) -> CancelOutcome:
        """Stops a turn: the provider's connection closes, what was said is kept, the status becomes `aborted`.

        Safe to repeat. "cancelled": the turn is being stopped. "already_terminal": it was over. "not_found": unknown.
        """
        check_id(request_id, "request_id")
        reason = reason_text(reason, "reason")
        head = await self._store.head(request_id) if self._store else None
        if head is not None and head.status in TERMINAL:
            return "already_terminal"
        if await self._temporal.cancel(request_id, reason):
            return "cancelled"
        found = await self._temporal.find(request_id)
        if found is None and head is None:
            return "not_found"
        if head is not None:
            await self._follower(request_id).settle_if_lost(request_id)
        return "already_terminal"

    async def approve(
        self,
        request_id: str,
        tool_call_id: str,
        input: Mapping[str, Any] | None = None,  # noqa: A002
    ) -> WaitOutcome:
        """Lets a tool call run that waits for approval, with other arguments if `input` is given.

        "accepted", or "already_resolved" (the first answer counts), or "not_found". Raises BadInput if `input` does
        not fit the tool; the call then still waits.
        """
        given = Approval(check_id(tool_call_id, "tool_call_id"), json_object(input, "input"))
        return await self._answered(request_id, tool_call_id, "approve", given)

    async def deny(self, request_id: str, tool_call_id: str, reason: str | None = None) -> WaitOutcome:
        """Refuses a tool call that waits for approval; the model is told, with the reason. Outcomes as of `approve`."""
        given = Denial(check_id(tool_call_id, "tool_call_id"), reason_text(reason, "reason"))
        return await self._answered(request_id, tool_call_id, "deny", given)

    async def submit_tool_result(
        self, request_id: str, tool_call_id: str, output: Any = None, *, error: str | None = None
    ) -> WaitOutcome:
        """The result of a client tool, or the error that it met. Outcomes as of `approve`.

        Raises BadInput for an output that is not JSON or has more than 256 KB.
        """
        if json_size(output, "output") > MAX_BODY_BYTES:
            raise BadInput(f"output has more than {MAX_BODY_BYTES:,} bytes as JSON; send a reference instead")
        given = ClientResult(check_id(tool_call_id, "tool_call_id"), output, reason_text(error, "error"))
        return await self._answered(request_id, tool_call_id, "submit_tool_result", given)

    async def _answered(self, request_id: str, tool_call_id: str, update: str, given: object) -> WaitOutcome:
        check_id(request_id, "request_id")
        return await answered(self._temporal, self._store, request_id, tool_call_id, update, given)

    def _completed(self, turn: TurnInput) -> TurnInput:
        after = self._submitted.before(turn.thread_id, turn.request_id)
        has_store = self._store is not None
        return dataclasses.replace(turn, previews=self._settings.history_previews, after=after, has_store=has_store)

    async def _last_agent(self, thread_id: str) -> str:
        """The agent of the thread's last turn. Raises NothingToContinue if there is none."""
        store = self._need_store("continue_last_turn without an agent")
        last = await store.list_turns(check_id(thread_id, "thread_id"), None, 1)
        if not last:
            raise NothingToContinue(thread_id)
        return last[0].agent

    async def _known(self, turn: TurnInput) -> bool:
        """True if the store has this request; Temporal forgets after its retention, the store does not."""
        head = await self._store.head(turn.request_id) if self._store else None
        if head is not None and head.digest != turn.digest:
            raise RequestConflict(turn.request_id)
        return head is not None

    async def _check_room(self, turn: TurnInput) -> None:
        if self._store is not None:
            thread = turn.thread_id if turn.policy in ("queue", "merge", "debounce") else None  # others never wait long
            await self._store.check_room(thread, turn.tenant_id, room_of(self._settings))

    async def _check_free(self, thread_id: str) -> None:
        running = await self._store.running(thread_id) if self._store else None
        if running is not None:
            raise ThreadBusy(thread_id, running)

    async def _drafted(self, turn: TurnInput) -> bool:
        """Puts a message into the store that is large, or must not be seen in Temporal; True if it did."""
        if self._store is None:
            check_inline(turn)
            return False
        if turn.previews and fits_inline(turn):
            return False
        check_sent(dataclasses.replace(turn, parts=None))
        await self._store.put_draft(turn.request_id, turn.digest, turn.parts or [])
        return True

    def _follower(self, request_id: str) -> Follower:
        known = request_id in self._submitted
        return Follower(self._temporal, self._need_store("following a turn"), known=known)
