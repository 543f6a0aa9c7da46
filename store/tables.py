"""The tables. Their names and columns are a frozen protocol: people and tools read them with SQL (docs/store.md).

They have a registry of their own, so that an application's SQLModel tables of the same names do not collide in Python.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    literal_column,
    text,
)
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from everturn.store.columns import CleanText, UtcTime, json_type


class Base(SQLModel, registry=registry()):
    """Base of the store's tables."""


def _thread_id() -> Column[Any]:
    return Column(Text, ForeignKey("threads.thread_id", ondelete="CASCADE"), nullable=False)


def _request_id(*, key: bool) -> Column[Any]:
    return Column(Text, ForeignKey("turns.request_id", ondelete="CASCADE"), primary_key=key, nullable=False)


def _count() -> Column[Any]:
    return Column(Integer, nullable=False)


class Thread(Base, table=True):
    """One conversation. running_request_id: the turn that has the thread now; last_position: of its newest message.

    context: blocks of the system prompt that were assembled for this thread, by label. summary: stands in prompts for
    the messages at the positions summary_from to summary_upto.
    """

    __tablename__: ClassVar[Any] = "threads"

    thread_id: str = Field(sa_column=Column(Text, primary_key=True))
    running_request_id: str | None = Field(default=None, sa_column=Column(Text))
    last_position: int = Field(default=0, sa_column=_count())
    context: dict[str, Any] | None = Field(default=None, sa_column=Column(json_type()))
    summary: str | None = Field(default=None, sa_column=Column(CleanText))
    summary_from: int = Field(default=0, sa_column=_count())
    summary_upto: int = Field(default=0, sa_column=_count())
    created_at: datetime = Field(sa_column=Column(UtcTime, nullable=False))


class Turn(Base, table=True):
    """One turn, from admission to its ending.

    last_seq: number of its newest stream event. current_step, current_attempt: the newest opening, a fence.
    prompt_position: the newest message that its prompt may contain. message_id: its stored message, or the one that it
    continues. first_part: where its parts begin in that message, not 0 only if it continues one. events_pruned: its
    stream events are gone, except the last. code_version: of the agent's turn code, 0 if there was none. principal_id:
    the id in `principal`, to sum up what a user has used. model_ms: what the model calls of its steps took, summed up.
    superseded_by: the turn that took its place; joined: and that answers its message, too.
    """

    __tablename__: ClassVar[Any] = "turns"
    __table_args__ = (
        Index("ix_turns_thread_submitted", "thread_id", "submitted_at"),
        Index("ix_turns_status_submitted", "status", "submitted_at"),
        Index("ix_turns_submitted", "submitted_at"),
        Index(
            "ix_turns_superseded_by",
            "superseded_by",
            sqlite_where=text("superseded_by IS NOT NULL"),
            postgresql_where=text("superseded_by IS NOT NULL"),
        ),
        Index(
            "ix_turns_queued",
            "thread_id",
            sqlite_where=text("status = 'queued'"),
            postgresql_where=text("status = 'queued'"),
        ),
        Index(
            "ix_turns_tenant_unfinished",
            "tenant_id",
            sqlite_where=text("tenant_id IS NOT NULL AND ended_at IS NULL"),
            postgresql_where=text("tenant_id IS NOT NULL AND ended_at IS NULL"),
        ),
        Index("ix_turns_principal_submitted", "principal_id", "tenant_id", "submitted_at"),
        Index(
            "ix_turns_unpruned",
            "ended_at",
            sqlite_where=text("NOT events_pruned"),
            postgresql_where=text("NOT events_pruned"),
        ),
    )

    request_id: str = Field(sa_column=Column(Text, primary_key=True))
    thread_id: str = Field(sa_column=_thread_id())
    agent: str = Field(sa_column=Column(Text, nullable=False))
    status: str = Field(sa_column=Column(Text, nullable=False))
    stop_reason: str | None = Field(default=None, sa_column=Column(Text))
    policy: str = Field(sa_column=Column(Text, nullable=False))
    trigger: str = Field(sa_column=Column(Text, nullable=False))
    digest: str = Field(sa_column=Column(Text, nullable=False))
    run_id: str = Field(sa_column=Column(Text, nullable=False))
    after_request_id: str | None = Field(default=None, sa_column=Column(Text))
    tenant_id: str | None = Field(default=None, sa_column=Column(Text))
    principal: dict[str, Any] | None = Field(default=None, sa_column=Column(json_type()))
    principal_id: str | None = Field(default=None, sa_column=Column(Text))
    body: dict[str, Any] | None = Field(default=None, sa_column=Column(json_type()))
    manifest: dict[str, Any] | None = Field(default=None, sa_column=Column(json_type()))
    config: dict[str, Any] | None = Field(default=None, sa_column=Column(json_type()))
    state: dict[str, Any] | None = Field(default=None, sa_column=Column(json_type()))
    code_version: int | None = Field(default=None, sa_column=Column(Integer))
    output: Any = Field(default=None, sa_column=Column(json_type()))
    submitted_at: datetime = Field(sa_column=Column(UtcTime, nullable=False))
    started_at: datetime | None = Field(default=None, sa_column=Column(UtcTime))
    ended_at: datetime | None = Field(default=None, sa_column=Column(UtcTime))
    steps: int = Field(default=0, sa_column=_count())
    input_tokens: int = Field(default=0, sa_column=_count())
    output_tokens: int = Field(default=0, sa_column=_count())
    cached_tokens: int = Field(default=0, sa_column=_count())
    reasoning_tokens: int = Field(default=0, sa_column=_count())
    cost: float | None = Field(default=None, sa_column=Column(Double))
    model_ms: int = Field(default=0, sa_column=_count())
    error_type: str | None = Field(default=None, sa_column=Column(CleanText))
    error_message: str | None = Field(default=None, sa_column=Column(CleanText))
    superseded_by: str | None = Field(default=None, sa_column=Column(Text))
    joined: bool = Field(default=False, sa_column=Column(Boolean, nullable=False))
    before_turn_hook_error: str | None = Field(default=None, sa_column=Column(CleanText))
    attempts_failed: int = Field(default=0, sa_column=_count())
    message_id: str | None = Field(default=None, sa_column=Column(Text))
    first_part: int = Field(default=0, sa_column=_count())
    prompt_position: int = Field(default=0, sa_column=_count())
    current_step: int | None = Field(default=None, sa_column=Column(Integer))
    current_attempt: int = Field(default=0, sa_column=_count())
    last_seq: int = Field(default=0, sa_column=_count())
    events_pruned: bool = Field(default=False, sa_column=Column(Boolean, nullable=False))


class StoredMessage(Base, table=True):
    """One message of a thread. hidden: kept for the record, left out of every prompt."""

    __tablename__: ClassVar[Any] = "messages"
    __table_args__ = (
        UniqueConstraint("thread_id", "position", name="uq_messages_position"),
        Index("ix_messages_request", "request_id"),
    )

    message_id: str = Field(sa_column=Column(Text, primary_key=True))
    thread_id: str = Field(sa_column=_thread_id())
    position: int = Field(sa_column=_count())
    role: str = Field(sa_column=Column(Text, nullable=False))
    request_id: str | None = Field(default=None, sa_column=Column(Text))
    parts: list[dict[str, Any]] = Field(sa_column=Column(json_type(), nullable=False))
    extra: dict[str, Any] | None = Field(default=None, sa_column=Column("metadata", json_type()))
    hidden: bool = Field(default=False, sa_column=Column(Boolean, nullable=False))
    created_at: datetime = Field(sa_column=Column(UtcTime, nullable=False))


class Step(Base, table=True):
    """One finished model call, written once by the attempt that it names."""

    __tablename__: ClassVar[Any] = "steps"

    request_id: str = Field(sa_column=_request_id(key=True))
    step: int = Field(sa_column=Column(Integer, primary_key=True))
    attempt: int = Field(sa_column=_count())
    model: str = Field(sa_column=Column(CleanText, nullable=False))
    parts: list[dict[str, Any]] = Field(sa_column=Column(json_type(), nullable=False))
    finish_reason: str = Field(sa_column=Column(CleanText, nullable=False))
    input_tokens: int = Field(default=0, sa_column=_count())
    output_tokens: int = Field(default=0, sa_column=_count())
    cached_tokens: int = Field(default=0, sa_column=_count())
    reasoning_tokens: int = Field(default=0, sa_column=_count())
    cost: float | None = Field(default=None, sa_column=Column(Double))
    duration_ms: int = Field(sa_column=_count())
    interrupted: bool = Field(default=False, sa_column=Column(Boolean, nullable=False))
    response: dict[str, Any] | None = Field(default=None, sa_column=Column(json_type()))
    created_at: datetime = Field(sa_column=Column(UtcTime, nullable=False))


class StepAttempt(Base, table=True):
    """One try of a step, opened before the model is called. activity and activity_try: which execution opened it.
    gave_up: its failure was the last of its model; the next try goes to another one. next_model: the one that a hook
    chose for that, NULL for the next of the agent's own."""

    __tablename__: ClassVar[Any] = "step_attempts"

    request_id: str = Field(sa_column=_request_id(key=True))
    step: int = Field(sa_column=Column(Integer, primary_key=True))
    attempt: int = Field(sa_column=Column(Integer, primary_key=True))
    activity: str = Field(sa_column=Column(Text, nullable=False))
    activity_try: int = Field(sa_column=_count())
    opened_at: datetime = Field(sa_column=Column(UtcTime, nullable=False))
    failed_at: datetime | None = Field(default=None, sa_column=Column(UtcTime))
    error_type: str | None = Field(default=None, sa_column=Column(CleanText))
    error_message: str | None = Field(default=None, sa_column=Column(CleanText))
    gave_up: bool = Field(default=False, sa_column=Column(Boolean, nullable=False))
    next_model: str | None = Field(default=None, sa_column=Column(Text))


class StoredCall(Base, table=True):
    """One tool call. number: its place among the calls of its step. failures: runs that failed and were repeated.
    presented: after_tool_call has had its say on what is shown. wait_…: for what, why, and until when it waits.
    run_input: the arguments to run with, where `input` shows them changed; NULL again once the call is settled."""

    __tablename__: ClassVar[Any] = "tool_calls"
    __table_args__ = (
        ForeignKeyConstraint(
            ["request_id", "step"],
            ["steps.request_id", "steps.step"],
            ondelete="CASCADE",
            name="fk_tool_calls_step",
        ),
    )

    request_id: str = Field(sa_column=Column(Text, primary_key=True))
    tool_call_id: str = Field(sa_column=Column(CleanText, primary_key=True))
    step: int = Field(sa_column=_count())
    number: int = Field(sa_column=_count())
    tool_name: str = Field(sa_column=Column(CleanText, nullable=False))
    state: str = Field(sa_column=Column(Text, nullable=False))
    input: dict[str, Any] | None = Field(default=None, sa_column=Column(json_type()))
    raw_input: str | None = Field(default=None, sa_column=Column(CleanText))
    model_input: dict[str, Any] | None = Field(default=None, sa_column=Column(json_type()))
    run_input: dict[str, Any] | None = Field(default=None, sa_column=Column(json_type()))
    output: Any = Field(default=None, sa_column=Column(json_type()))
    raw_output: Any = Field(default=None, sa_column=Column(json_type()))
    error: str | None = Field(default=None, sa_column=Column(CleanText))
    provider: dict[str, Any] | None = Field(default=None, sa_column=Column(json_type()))
    duration_ms: int | None = Field(default=None, sa_column=Column(Integer))
    activity: str | None = Field(default=None, sa_column=Column(Text))
    activity_try: int | None = Field(default=None, sa_column=Column(Integer))
    failures: int = Field(default=0, sa_column=_count())
    presented: bool = Field(default=False, sa_column=Column(Boolean, nullable=False))
    wait_kind: str | None = Field(default=None, sa_column=Column(Text))
    wait_reason: str | None = Field(default=None, sa_column=Column(CleanText))
    wait_until: datetime | None = Field(default=None, sa_column=Column(UtcTime))
    requested_at: datetime = Field(sa_column=Column(UtcTime, nullable=False))
    started_at: datetime | None = Field(default=None, sa_column=Column(UtcTime))
    settled_at: datetime | None = Field(default=None, sa_column=Column(UtcTime))


class StreamEvent(Base, table=True):
    """One chunk of a turn's stream; seq counts from 1 without gaps. attempt: 0 outside of steps."""

    __tablename__: ClassVar[Any] = "stream_events"
    __table_args__ = ({"sqlite_with_rowid": False},)  # one tree instead of two: appends and tails go by the key

    request_id: str = Field(sa_column=_request_id(key=True))
    seq: int = Field(sa_column=Column(Integer, primary_key=True))
    step: int | None = Field(default=None, sa_column=Column(Integer))
    attempt: int = Field(default=0, sa_column=_count())
    type: str = Field(sa_column=Column(Text, nullable=False))
    data: dict[str, Any] = Field(sa_column=Column(json_type(), nullable=False))
    created_at: datetime = Field(sa_column=Column(UtcTime, nullable=False))


class StoredTrace(Base, table=True):
    """One run of one hook, or one failed answer of a provider (point model_step, hook provider)."""

    __tablename__: ClassVar[Any] = "hook_traces"
    __table_args__ = (Index("ix_hook_traces_request", "request_id"),)

    trace_id: str = Field(sa_column=Column(Text, primary_key=True))
    request_id: str = Field(sa_column=_request_id(key=False))
    point: str = Field(sa_column=Column(Text, nullable=False))
    hook: str = Field(sa_column=Column(CleanText, nullable=False))
    step: int | None = Field(default=None, sa_column=Column(Integer))
    tool_call_id: str | None = Field(default=None, sa_column=Column(CleanText))
    outcome: str = Field(sa_column=Column(Text, nullable=False))
    message: str | None = Field(default=None, sa_column=Column(CleanText))
    duration_ms: int = Field(sa_column=_count())
    logs: list[dict[str, Any]] | None = Field(default=None, sa_column=Column(json_type()))
    changed: list[str] | None = Field(default=None, sa_column=Column(json_type()))
    created_at: datetime = Field(sa_column=Column(UtcTime, nullable=False))


class Draft(Base, table=True):
    """A user message that waits for its turn, or for one that answers it, too. digest: of the request with it."""

    __tablename__: ClassVar[Any] = "drafts"

    request_id: str = Field(sa_column=Column(Text, primary_key=True))
    digest: str = Field(sa_column=Column(Text, primary_key=True))
    parts: list[dict[str, Any]] = Field(sa_column=Column(json_type(), nullable=False))
    extra: dict[str, Any] | None = Field(default=None, sa_column=Column("metadata", json_type()))
    created_at: datetime = Field(sa_column=Column(UtcTime, nullable=False))


class StoredCode(Base, table=True):
    """One version of an agent's turn code. Active is the newest version, unless it was removed."""

    __tablename__: ClassVar[Any] = "hook_code"

    agent: str = Field(sa_column=Column(Text, primary_key=True))
    version: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))
    source: str = Field(sa_column=Column(CleanText, nullable=False))
    author: str = Field(sa_column=Column(CleanText, nullable=False))
    created_at: datetime = Field(sa_column=Column(UtcTime, nullable=False))
    removed_by: str | None = Field(default=None, sa_column=Column(CleanText))
    removed_at: datetime | None = Field(default=None, sa_column=Column(UtcTime))


METADATA = Base.metadata

threads: Table = METADATA.tables["threads"]
turns: Table = METADATA.tables["turns"]
IS_QUEUED: ColumnElement[bool] = turns.c.status == literal_column("'queued'")
"""With the word in the statement: SQLite uses the index of the queued turns only then."""
messages: Table = METADATA.tables["messages"]
steps: Table = METADATA.tables["steps"]
step_attempts: Table = METADATA.tables["step_attempts"]
tool_calls: Table = METADATA.tables["tool_calls"]
stream_events: Table = METADATA.tables["stream_events"]
hook_traces: Table = METADATA.tables["hook_traces"]
drafts: Table = METADATA.tables["drafts"]
hook_code: Table = METADATA.tables["hook_code"]
