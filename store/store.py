"""`Store`: the database as the rest of the project sees it. Every method is one transaction in one hop to a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final, Self, TypeVar

from sqlalchemy import Connection

from everturn.chunks import Chunk, Event
from everturn.messages import Message, Part
from everturn.store import admission as admissions
from everturn.store import (
    calls,
    code,
    ending,
    prompts,
    pruning,
    reading,
    schema,
    steps,
    traces,
    usage,
    waits,
)
from everturn.store import room as rooms
from everturn.store.address import Address, parse_address
from everturn.store.columns import now
from everturn.store.events import PreparedEvent, prepare_batch
from everturn.store.group import GroupCommit, GroupWrite
from everturn.store.hub import Hub
from everturn.store.leftovers import Leftovers
from everturn.store.opening import check_file, check_revision, migrated
from everturn.store.records import (
    Admission,
    Admitted,
    CallWait,
    CodeRun,
    Ended,
    Ending,
    EventBatch,
    Fold,
    HookCode,
    HookTrace,
    Opening,
    PromptMaterial,
    Room,
    StepRecord,
    ToolCall,
    ToolOpening,
    TurnFacts,
    TurnHead,
)
from everturn.store.tail import follow, one_by_one, until_over
from everturn.store.transactions import Transactions
from everturn.store.writer import StreamWriter
from everturn.turns import JsonDict, PendingCall, TurnError, TurnInfo, TurnSummary, UsageScope, UsageSum

DEFAULT_FLUSH: Final = 0.03
DEFAULT_TIMEOUT: Final = 8.0

T = TypeVar("T")


class Store:
    """An open store. Opened with `Store.open`; used from the event loop that opened it; closed with `close`.

    Every write is idempotent. Writes and reads of a running turn wait up to 15 s for a store that is locked or down;
    reads for clients wait `timeout` seconds. After that they raise StoreUnavailable.
    """

    def __init__(self, address: Address, transactions: Transactions, flush: float, timeout: float) -> None:
        self._address = address
        self._transactions = transactions
        self._timeout = timeout
        self.leftovers = Leftovers(transactions, timeout)
        self._hub = Hub(address, transactions.read_engine)
        self._group = GroupCommit(transactions, flush, self._hub.wake)

    def __repr__(self) -> str:
        return f"Store({self._address.safe!r})"

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        create: bool = False,
        flush: float = DEFAULT_FLUSH,
        timeout: float = DEFAULT_TIMEOUT,  # noqa: ASYNC109 - kept for the store's life, not a limit of this call
        connections: int | None = None,
    ) -> Self:
        """Opens the store at `url`; `create` makes or upgrades its tables.

        flush: seconds that a streamed chunk waits for its batch at most. timeout: seconds to wait for the database.
        connections: transactions that this process runs at once, by default 8; on SQLite only of reads, by default 3.
        Raises BadInput for an address of another form, StoreUnavailable if the database cannot be used.
        """
        address = parse_address(url)
        check_file(address, create=create)
        transactions = Transactions(address, timeout, connections)
        try:
            if create:
                await transactions.write(partial(migrated, address=address), patience=timeout)
            await transactions.read(partial(check_revision, address=address), patience=timeout)
        except BaseException:
            await transactions.close()
            raise
        return cls(address, transactions, flush, timeout)

    async def close(self) -> None:
        """Writes what waits, ends the tails, closes the connections."""
        await self._group.close()
        await asyncio.get_running_loop().run_in_executor(None, self._hub.close)
        await self._transactions.close()

    @property
    def url(self) -> str:
        """The address, without its password."""
        return self._address.safe

    async def migrate(self) -> None:
        """Creates or upgrades the tables; safe to repeat, and from several processes at once."""
        await self._transactions.write(partial(migrated, address=self._address))

    async def check(self) -> None:
        """Raises StoreUnavailable if the database cannot be used now."""
        await self._read(check_revision, self._address)

    async def revision(self) -> str | None:
        """The schema's revision."""
        return await self._read(schema.revision)

    # The life of a turn

    async def put_draft(self, request_id: str, digest: str, parts: list[Part]) -> None:
        """Keeps a user message until its turn begins with `draft=True` and the same digest."""
        await self._write(admissions.put_draft, request_id, digest, parts)

    async def begin(self, admission: Admission) -> Admitted:
        """Lets the turn run, queues it, or refuses it; also asked again by a queued turn that wakes."""
        admitted = await self._write_for(admission.request_id, admissions.begin, admission)
        self._hub.wake(set(admitted.superseded))
        return admitted

    async def finish(self, ending_: Ending) -> Ended:
        """Ends the turn, once; the ending that is stored. Raises TurnNotFound, TranscriptDamaged."""
        return await self._write_for(ending_.request_id, ending.finish, ending_)

    async def persist_message(self, request_id: str) -> Message | None:
        """Stores what a failing turn has said so far; `finish` writes the rest. Raises TurnNotFound."""
        return await self._write(ending.persist_message, request_id)

    async def load_turn(self, request_id: str) -> TurnFacts:
        """Raises TurnNotFound."""
        return await self._transactions.read(partial(prompts.load_turn, request_id=request_id))

    async def load_prompt(self, request_id: str, known: PromptMaterial | None = None) -> PromptMaterial:
        """The visible transcript (without times) and the turn's finished steps. known: what an earlier call gave, so as
        not to read the same again. Raises TurnNotFound, TranscriptDamaged."""
        return await self._transactions.read(partial(prompts.load_prompt, request_id=request_id, known=known))

    async def usage_sum(self, request_id: str, scope: UsageScope, since: datetime | None = None) -> UsageSum:
        """What the turns of this turn's thread, or of its user, have used, itself included. Raises TurnNotFound.

        since: only turns that were submitted then or later.
        """
        return await self._transactions.read(
            partial(usage.usage_sum, request_id=request_id, scope=scope, since=since), patience=self._timeout
        )

    async def save_decision(
        self, request_id: str, *, config: JsonDict | None, state: JsonDict | None, hook_error: str | None
    ) -> None:
        """Stores what before_turn decided; None leaves a field as it is. Raises TurnNotFound."""
        await self._write(prompts.save_decision, request_id, config=config, state=state, hook_error=hook_error)

    async def merge_state(self, request_id: str, patch: JsonDict) -> None:
        """Sets keys of the hooks' state. Raises TurnNotFound."""
        await self._write(prompts.merge_state, request_id, patch)

    async def save_context(self, thread_id: str, context: dict[str, str] | None) -> None:
        """Keeps the assembled blocks of a thread's system prompt; None lets them be assembled again."""
        await self._write(prompts.save_context, thread_id, context)

    async def fold(self, given: Fold) -> None:
        """Lets a summary stand for messages in later prompts. Raises BadInput for unknown messages."""
        await self._write(prompts.fold, given)

    async def record_traces(self, traces_: Sequence[HookTrace]) -> None:
        """Raises TurnNotFound if a trace belongs to no turn."""
        if traces_:
            await self._write(traces.insert_traces, traces.trace_rows(traces_))

    # Steps and tool calls

    async def open_step(self, request_id: str, step: int, *, activity: str, try_: int) -> Opening:
        """Gives an attempt its number, the fence to write with. Raises TurnNotFound."""
        return await self._write_for(request_id, steps.open_step, request_id, step, activity=activity, try_=try_)

    async def commit_step(
        self, record: StepRecord, events: Sequence[Event], streamed: Sequence[PreparedEvent] = ()
    ) -> bool:
        """Writes a step once; False if the attempt is fenced. Raises TurnNotFound.

        streamed: the rest of its writer, written before `events`.
        """
        return await self._write_for(record.request_id, steps.commit_step, record, events, streamed)

    async def fail_attempt(
        self,
        request_id: str,
        step: int,
        attempt: int,
        *,
        error: TurnError,
        retry_in: float | None,
        detail: str,
        gave_up: bool = False,
        next_model: str | None = None,
    ) -> int:
        """Notes that an attempt failed; the number of failed attempts of the step. Raises TurnNotFound.

        retry_in: seconds until the next attempt, None if there is none. detail: the provider's own text, for the trace.
        gave_up: the next attempt goes to another model: to next_model, or else to the next of the agent's own.
        """
        work = partial(
            steps.fail_attempt,
            error=error,
            retry_in=retry_in,
            detail=detail,
            gave_up=gave_up,
            next_model=next_model,
        )
        return await self._write_for(request_id, work, request_id, step, attempt)

    async def open_call(
        self, request_id: str, tool_call_id: str, *, idempotent: bool, activity: str, try_: int
    ) -> ToolOpening:
        """Decides whether an attempt may run the tool. Raises TurnNotFound, BadInput for an unknown call."""
        return await self._write(
            calls.open_call, request_id, tool_call_id, idempotent=idempotent, activity=activity, try_=try_
        )

    async def settle_call(self, request_id: str, call: ToolCall, events: Sequence[Event]) -> ToolCall:
        """Stores the outcome of a call, once; what is stored. Raises TurnNotFound, BadInput for an unknown call."""
        return await self._write_for(request_id, calls.settle_call, request_id, call, events)

    async def call(self, request_id: str, tool_call_id: str) -> ToolCall:
        """Raises BadInput for an unknown call."""
        return await self._transactions.read(
            partial(calls.get_call, request_id=request_id, tool_call_id=tool_call_id), patience=self._timeout
        )

    async def amend_call(
        self, request_id: str, tool_call_id: str, new_input: JsonDict, run_input: JsonDict | None = None
    ) -> None:
        """Replaces the arguments of a call that has not run; the model's own stay in `model_input`.

        run_input: what to run it with, where new_input shows that changed.
        """
        await self._write(calls.amend_call, request_id, tool_call_id, new_input, run_input)

    async def release_call(self, request_id: str, tool_call_id: str, retries: int) -> int:
        """Counts a failed run and, while at most `retries` failed, lets the tool run again; the number of failures."""
        return await self._write(calls.release_call, request_id, tool_call_id, retries)

    async def present_call(self, request_id: str, call: ToolCall, events: Sequence[Event]) -> None:
        """Stores what the model and clients are to see of a settled call, once, with its events."""
        await self._write_for(request_id, calls.present_call, request_id, call, events)

    async def open_wait(self, request_id: str, wait: CallWait, events: Sequence[Event]) -> bool:
        """Lets a call and its turn wait for somebody; False if they are over. Raises TurnNotFound."""
        return await self._write_for(request_id, waits.open_wait, request_id, wait, events)

    async def approve_wait(
        self, request_id: str, tool_call_id: str, new_input: JsonDict | None, run_input: JsonDict | None = None
    ) -> ToolCall:
        """Lets a waiting call run, with other arguments if given. Raises TurnNotFound, BadInput for an unknown call.

        run_input: what to run it with, where new_input shows that changed.
        """
        return await self._write(waits.approve_wait, request_id, tool_call_id, new_input, run_input)

    # The stream

    async def append(self, batch: EventBatch) -> bool:
        """Appends chunks; False if the batch is fenced. Raises TurnNotFound."""
        write = GroupWrite([prepare_batch(batch)], must_exist=True)
        accepted = await self._transactions.write(write)
        self._hub.wake({batch.request_id})
        return accepted[0]

    def writer(self, request_id: str, step: int | None, attempt: int | None) -> StreamWriter:
        """A writer for one attempt of a step, or (attempt=None: never fenced by attempts) for a tool."""
        return StreamWriter(self._group, request_id, step, attempt)

    def tail(self, request_id: str, after: int = 0) -> AsyncGenerator[Chunk]:
        """The chunks after number `after`, in order, until the end chunk; waits for a turn that is not there yet."""
        return one_by_one(self.tail_batches(request_id, after))

    def tail_batches(self, request_id: str, after: int = 0) -> AsyncGenerator[list[Chunk]]:
        """As `tail`: those that were read at once come together."""
        return follow(self._hub, self._transactions, request_id, after)

    async def wait_end(self, request_id: str) -> Ended:
        """Waits until the turn is over; the caller sets the limit."""
        return await until_over(self._hub, self._transactions, request_id)

    async def prune_events(self, older_than: float, limit: int = pruning.PRUNED_TURNS) -> int:
        """Deletes the stream events, except the last, of turns that ended more than `older_than` seconds ago.

        limit: turns per call. Returns how many events were deleted; call again until it is 0.
        """
        return await self._write(pruning.prune_events, older_than, limit)

    # Turn code

    async def set_code(self, agent: str, source: str, author: str) -> HookCode:
        """Stores a new version of the agent's turn code and makes it the active one; the same text again changes
        nothing."""
        return await self._write(code.set_code, agent, source, author, now())

    async def remove_code(self, agent: str, removed_by: str) -> HookCode:
        """Takes the active version away from turns that begin later. Raises CodeNotFound if there never was any."""
        return await self._write(code.remove_code, agent, removed_by, now())

    async def pin_code(self, request_id: str) -> HookCode | None:
        """The code that a turn runs, fixed when this is asked first; None if there was none. Raises TurnNotFound."""
        return await self._write(code.pin_code, request_id)

    async def code(self, agent: str, version: int | None = None) -> HookCode:
        """A version of the agent's turn code, by default the active one. Raises CodeNotFound."""
        return await self._read(code.get_code, agent, version)

    async def code_versions(self, agent: str) -> list[HookCode]:
        """All versions of the agent's turn code, the newest first."""
        return await self._read(code.code_versions, agent)

    async def code_runs(self, agent: str, limit: int = 20) -> list[CodeRun]:
        """What the agent's turn code did in the newest turns."""
        return await self._read(code.code_runs, agent, limit)

    # Reading

    async def head(self, request_id: str) -> TurnHead | None:
        return await self._read(reading.head, request_id)

    async def check_room(self, thread_id: str | None, tenant_id: str | None, room: Room) -> None:
        """Raises TooBusy if another turn would be refused; `begin` decides."""
        await self._read(rooms.check_room, thread_id, tenant_id, room)

    async def running(self, thread_id: str) -> str | None:
        """The request id of the turn that has the thread now."""
        return await self._read(reading.running, thread_id)

    async def ended(self, request_id: str) -> Ended | None:
        """How a turn ended, with its message; None if it is not over or not known."""
        return await self._read(ending.ended, request_id)

    async def inspect(self, request_id: str) -> TurnInfo | None:
        return await self._read(reading.inspect, request_id)

    async def list_turns(
        self, thread_id: str | None = None, status: str | None = None, limit: int = 50
    ) -> list[TurnSummary]:
        """The newest turns first."""
        return await self._read(reading.list_turns, thread_id, status, limit)

    async def pending(self, thread_id: str) -> list[PendingCall]:
        """What the thread's turns wait for, oldest first."""
        return await self._read(waits.pending, thread_id)

    async def messages(self, thread_id: str) -> list[Message]:
        """All messages of a thread in order, hidden ones included. Raises TranscriptDamaged."""
        return await self._read(reading.thread_messages, thread_id)

    async def _read(self, work: Callable[..., T], *args: object) -> T:
        return await self._transactions.read(_bound(work, *args), patience=self._timeout)

    async def _write(self, work: Callable[..., T], *args: object, **options: object) -> T:
        return await self._transactions.write(_bound(work, *args, **options))

    async def _write_for(self, request_id: str, work: Callable[..., T], *args: object, **options: object) -> T:
        """A write that may append events, which the tails of this process should see at once."""
        result = await self._write(work, *args, **options)
        self._hub.wake({request_id})
        return result


def _bound(work: Callable[..., T], *args: object, **options: object) -> Callable[[Connection], T]:
    def run(connection: Connection) -> T:
        return work(connection, *args, **options)

    return run
