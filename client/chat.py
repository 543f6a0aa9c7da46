"""The application's side: submit, stream, wait, cancel, read."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Final, Self, cast

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.converter import DataConverter

from everturn.activities.payloads import TurnInput
from everturn.chunks import Chunk
from everturn.client.request import inline_size, make_input
from everturn.client.temporal import TemporalTurns
from everturn.client.turn import Turn
from everturn.connection import connect_temporal, turn_link, web_ui_of
from everturn.errors import MessageTooLarge, RequestConflict, ResultTimeout, StoreRequired, ThreadBusy, TurnNotFound
from everturn.ids import check_id, workflow_id
from everturn.messages import INLINE_MESSAGE_BYTES, Message, UserMessage
from everturn.settings import Settings
from everturn.store.records import Ended, Ending
from everturn.store.store import Store
from everturn.turns import TERMINAL, CancelOutcome, Policy, Principal, TurnError, TurnInfo, TurnResult, TurnSummary

QUIET_SECONDS: Final = 5.0
"""A turn that shows nothing for so long is looked up in Temporal: its workflow may have been terminated."""
REMEMBERED_THREADS: Final = 10_000
"""Threads whose last request this client remembers, to keep its own submissions in order."""


class ChatClient:
    """Submits chat turns and follows them. Make one with `connect`, use it for the whole process, from one event loop.

    Without a store it can submit, wait and cancel; streaming and reading raise StoreRequired.
    """

    def __init__(self, temporal: TemporalTurns, store: Store | None, settings: Settings, *, owns_store: bool) -> None:
        self._temporal, self._store, self._settings = temporal, store, settings
        self._owns_store = owns_store
        self._web_ui = web_ui_of(settings, temporal.client)
        self._last_request: OrderedDict[str, str] = OrderedDict()

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

        What is not given comes from EVERTURN_… environment variables, then Temporal's own, then the defaults. Raises
        TemporalUnavailable or StoreUnavailable within `connect_timeout` (8 s), BadInput for an unusable value.
        """
        given = {
            "target": target,
            "namespace": namespace,
            "task_queue": task_queue,
            "store": store if isinstance(store, str) else None,
            "web_ui": web_ui,
            "history_previews": history_previews,
        }
        settings = Settings(**{key: value for key, value in given.items() if value is not None})  # type: ignore[arg-type]
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
        policy: Policy = "queue",
        metadata: Mapping[str, Any] | None = None,
    ) -> Turn:
        """Asks for a turn; when this returns, it is durably accepted.

        The same request_id with the same content gives the same turn (`accepted` is False), with other content
        RequestConflict. policy "queue" waits behind the thread's running turn, "reject" raises ThreadBusy. body and
        metadata are JSON objects: for hooks and tools, and stored with the message.
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
        )
        turn = self._completed(turn)
        if request_id is not None and await self._known(turn):
            return Turn(self, turn.request_id, thread_id, accepted=False)
        if policy == "reject":
            await self._check_free(thread_id)
        accepted = await self._temporal.start(turn, draft=await self._drafted(turn))
        self._remember(thread_id, turn.request_id)
        if policy == "reject":
            begun = await self._temporal.admission(turn.request_id)
            if begun is not None and begun.outcome == "busy":
                raise ThreadBusy(thread_id, begun.behind)
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
        policy: Policy = "queue",
        metadata: Mapping[str, Any] | None = None,
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
        )
        return await turn.result(timeout)

    def turn(self, request_id: str) -> Turn:
        """A handle on a turn that was submitted before, by anyone."""
        return Turn(self, check_id(request_id, "request_id"))

    async def stream(self, request_id: str, *, after: int = 0) -> AsyncIterator[Chunk]:
        """See `Turn.stream`."""
        store = self._need_store("stream")
        await self._check_exists(request_id)
        chunks = store.tail(request_id, after)
        pending: asyncio.Task[Chunk] | None = None
        try:
            while True:
                pending = pending or asyncio.ensure_future(cast(Any, anext(chunks)))
                done, _ = await asyncio.wait({pending}, timeout=QUIET_SECONDS)
                if not done:
                    await self._settle_if_lost(request_id)
                    continue
                try:
                    chunk = pending.result()
                except StopAsyncIteration:
                    return
                pending = None
                yield chunk
        finally:
            if pending is not None:
                pending.cancel()
                await asyncio.wait({pending})
            await cast(Any, chunks).aclose()

    async def result(self, request_id: str, *, timeout: float | None = None) -> TurnResult:  # noqa: ASYNC109
        """See `Turn.result`."""
        try:
            async with asyncio.timeout(timeout):
                if self._store is None:
                    return (await self._temporal.outcome(request_id)).as_result()
                await self._check_exists(request_id)
                return _result(await self._ended(self._store, request_id))
        except TimeoutError as error:
            raise ResultTimeout(request_id, timeout or 0.0) from error

    async def cancel_chat(self, request_id: str, reason: str | None = None) -> CancelOutcome:
        """Stops a turn: the provider's connection closes, what was said is kept, the status becomes `aborted`.

        Safe to repeat. "cancelled": the turn is being stopped. "already_terminal": it was over. "not_found": unknown.
        """
        check_id(request_id, "request_id")
        head = await self._store.head(request_id) if self._store else None
        if head is not None and head.status in TERMINAL:
            return "already_terminal"
        if await self._temporal.cancel(request_id, reason):
            return "cancelled"
        status = await self._temporal.status(request_id)
        if status is None and head is None:
            return "not_found"
        if head is not None:
            await self._settle_if_lost(request_id)
        return "already_terminal"

    async def inspect(self, request_id: str) -> TurnInfo:
        """Everything that is known of a turn: status, steps, tool calls, usage, hook traces, error, Web UI link.

        Raises StoreRequired or TurnNotFound (also for a turn that no worker has begun yet).
        """
        info = await self._need_store("inspect").inspect(check_id(request_id, "request_id"))
        if info is None:
            raise TurnNotFound(request_id)
        return dataclasses.replace(info, web_ui=self.link(request_id))

    async def list_turns(
        self, thread_id: str | None = None, status: str | None = None, limit: int = 50
    ) -> list[TurnSummary]:
        """Turns, newest first. Raises StoreRequired."""
        return await self._need_store("list_turns").list_turns(thread_id, status, limit)

    async def messages(self, thread_id: str) -> list[Message]:
        """The thread's transcript in order, hidden messages included. Raises StoreRequired."""
        return await self._need_store("messages").messages(check_id(thread_id, "thread_id"))

    def link(self, request_id: str) -> str | None:
        """The turn's page in the Temporal Web UI, None if its address is not known."""
        return turn_link(self._web_ui, self._temporal.client.namespace, workflow_id(request_id))

    def _completed(self, turn: TurnInput) -> TurnInput:
        last = self._last_request.get(turn.thread_id)
        after = last if last != turn.request_id else None
        return dataclasses.replace(turn, previews=self._settings.history_previews, after=after)

    def _remember(self, thread_id: str, request_id: str) -> None:
        self._last_request[thread_id] = request_id
        self._last_request.move_to_end(thread_id)
        if len(self._last_request) > REMEMBERED_THREADS:
            self._last_request.popitem(last=False)

    async def _known(self, turn: TurnInput) -> bool:
        """True if the store has this request; Temporal forgets after its retention, the store does not."""
        head = await self._store.head(turn.request_id) if self._store else None
        if head is not None and head.digest != turn.digest:
            raise RequestConflict(turn.request_id)
        return head is not None

    async def _check_free(self, thread_id: str) -> None:
        running = await self._store.running(thread_id) if self._store else None
        if running is not None:
            raise ThreadBusy(thread_id, running)

    async def _drafted(self, turn: TurnInput) -> bool:
        """Puts a large message into the store; True if it did."""
        parts = turn.parts or []
        size = inline_size(parts)
        if size <= INLINE_MESSAGE_BYTES:
            return False
        if self._store is None:
            raise MessageTooLarge(size, INLINE_MESSAGE_BYTES, "without a store that is the limit; connect with store=…")
        await self._store.put_draft(turn.request_id, parts)
        return True

    async def _check_exists(self, request_id: str) -> None:
        if self._store is not None and await self._store.head(request_id) is not None:
            return
        if await self._temporal.status(request_id) is None:
            raise TurnNotFound(request_id)

    async def _ended(self, store: Store, request_id: str) -> Ended:
        waiting = asyncio.ensure_future(store.wait_end(request_id))
        try:
            while True:
                done, _ = await asyncio.wait({waiting}, timeout=QUIET_SECONDS)
                if done:
                    return waiting.result()
                await self._settle_if_lost(request_id)
        finally:
            waiting.cancel()

    async def _settle_if_lost(self, request_id: str) -> None:
        """A turn whose workflow is gone (terminated in the Web UI, say) gets its end, so that nobody waits for ever."""
        status = await self._temporal.status(request_id)
        if self._store is None or status in (None, WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.COMPLETED):
            return
        head = await self._store.head(request_id)
        if head is None or head.status in TERMINAL or status == WorkflowExecutionStatus.CONTINUED_AS_NEW:
            return
        message = f"the turn's workflow ended as {status.name.lower()} before the turn was finished"
        await self._store.finish(Ending(request_id, "error", "error", TurnError("lost", message)))

    def _need_store(self, call: str) -> Store:
        if self._store is None:
            raise StoreRequired(call)
        return self._store


def _result(ended: Ended) -> TurnResult:
    message = ended.message
    return TurnResult(
        request_id=ended.request_id,
        thread_id=ended.thread_id,
        status=ended.status,
        stop_reason=ended.stop_reason,
        text=message.text if message else "",
        message=message.parts if message else None,
        message_id=message.id if message else None,
        usage=ended.usage,
        steps=ended.steps,
        error=ended.error,
    )
