"""All tables of the first release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "threads",
        sa.Column("thread_id", sa.Text(), primary_key=True),
        sa.Column("running_request_id", sa.Text()),
        sa.Column("last_position", sa.Integer(), nullable=False),
        sa.Column("context", sa.JSON()),
        sa.Column("summary", sa.Text()),
        sa.Column("summary_from", sa.Integer(), nullable=False),
        sa.Column("summary_upto", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
    )
    op.create_table(
        "turns",
        sa.Column("request_id", sa.Text(), primary_key=True),
        sa.Column("thread_id", sa.Text(), sa.ForeignKey("threads.thread_id", ondelete="CASCADE"), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("stop_reason", sa.Text()),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("after_request_id", sa.Text()),
        sa.Column("tenant_id", sa.Text()),
        sa.Column("principal", sa.JSON()),
        sa.Column("principal_id", sa.Text()),
        sa.Column("body", sa.JSON()),
        sa.Column("manifest", sa.JSON()),
        sa.Column("config", sa.JSON()),
        sa.Column("state", sa.JSON()),
        sa.Column("code_version", sa.Integer()),
        sa.Column("output", sa.JSON()),
        sa.Column("submitted_at", TIME, nullable=False),
        sa.Column("started_at", TIME),
        sa.Column("ended_at", TIME),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("cached_tokens", sa.Integer(), nullable=False),
        sa.Column("reasoning_tokens", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Double()),
        sa.Column("model_ms", sa.Integer(), nullable=False),
        sa.Column("error_type", sa.Text()),
        sa.Column("error_message", sa.Text()),
        sa.Column("superseded_by", sa.Text()),
        sa.Column("joined", sa.Boolean(), nullable=False),
        sa.Column("before_turn_hook_error", sa.Text()),
        sa.Column("attempts_failed", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.Text()),
        sa.Column("first_part", sa.Integer(), nullable=False),
        sa.Column("prompt_position", sa.Integer(), nullable=False),
        sa.Column("current_step", sa.Integer()),
        sa.Column("current_attempt", sa.Integer(), nullable=False),
        sa.Column("last_seq", sa.Integer(), nullable=False),
        sa.Column("events_pruned", sa.Boolean(), nullable=False),
    )
    op.create_index("ix_turns_thread_submitted", "turns", ["thread_id", "submitted_at"])
    op.create_index("ix_turns_status_submitted", "turns", ["status", "submitted_at"])
    op.create_index("ix_turns_submitted", "turns", ["submitted_at"])
    op.create_index(
        "ix_turns_queued",
        "turns",
        ["thread_id"],
        sqlite_where=sa.text("status = 'queued'"),
        postgresql_where=sa.text("status = 'queued'"),
    )
    op.create_index(
        "ix_turns_tenant_unfinished",
        "turns",
        ["tenant_id"],
        sqlite_where=sa.text("tenant_id IS NOT NULL AND ended_at IS NULL"),
        postgresql_where=sa.text("tenant_id IS NOT NULL AND ended_at IS NULL"),
    )
    op.create_index("ix_turns_principal_submitted", "turns", ["principal_id", "tenant_id", "submitted_at"])
    op.create_index(
        "ix_turns_superseded_by",
        "turns",
        ["superseded_by"],
        sqlite_where=sa.text("superseded_by IS NOT NULL"),
        postgresql_where=sa.text("superseded_by IS NOT NULL"),
    )
    op.create_index(
        "ix_turns_unpruned",
        "turns",
        ["ended_at"],
        sqlite_where=sa.text("NOT events_pruned"),
        postgresql_where=sa.text("NOT events_pruned"),
    )
    op.create_table(
        "messages",
        sa.Column("message_id", sa.Text(), primary_key=True),
        sa.Column("thread_id", sa.Text(), sa.ForeignKey("threads.thread_id", ondelete="CASCADE"), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text()),
        sa.Column("parts", sa.JSON(), nullable=False),
        sa.Column("metadata", sa.JSON()),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.UniqueConstraint("thread_id", "position", name="uq_messages_position"),
    )
    op.create_index("ix_messages_request", "messages", ["request_id"])
    op.create_table(
        "steps",
        _request_id(primary_key=True),
        sa.Column("step", sa.Integer(), primary_key=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("parts", sa.JSON(), nullable=False),
        sa.Column("finish_reason", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("cached_tokens", sa.Integer(), nullable=False),
        sa.Column("reasoning_tokens", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Double()),
        sa.Column("duration_ms", sa.Integer(), nullable=False),
        sa.Column("interrupted", sa.Boolean(), nullable=False),
        sa.Column("response", sa.JSON()),
        sa.Column("created_at", TIME, nullable=False),
    )
    op.create_table(
        "step_attempts",
        _request_id(primary_key=True),
        sa.Column("step", sa.Integer(), primary_key=True),
        sa.Column("attempt", sa.Integer(), primary_key=True),
        sa.Column("activity", sa.Text(), nullable=False),
        sa.Column("activity_try", sa.Integer(), nullable=False),
        sa.Column("opened_at", TIME, nullable=False),
        sa.Column("failed_at", TIME),
        sa.Column("error_type", sa.Text()),
        sa.Column("error_message", sa.Text()),
        sa.Column("gave_up", sa.Boolean(), nullable=False),
        sa.Column("next_model", sa.Text()),
    )
    op.create_table(
        "tool_calls",
        sa.Column("request_id", sa.Text(), primary_key=True),
        sa.Column("tool_call_id", sa.Text(), primary_key=True),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("input", sa.JSON()),
        sa.Column("raw_input", sa.Text()),
        sa.Column("model_input", sa.JSON()),
        sa.Column("run_input", sa.JSON()),
        sa.Column("output", sa.JSON()),
        sa.Column("raw_output", sa.JSON()),
        sa.Column("error", sa.Text()),
        sa.Column("provider", sa.JSON()),
        sa.Column("duration_ms", sa.Integer()),
        sa.Column("activity", sa.Text()),
        sa.Column("activity_try", sa.Integer()),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("presented", sa.Boolean(), nullable=False),
        sa.Column("wait_kind", sa.Text()),
        sa.Column("wait_reason", sa.Text()),
        sa.Column("wait_until", TIME),
        sa.Column("requested_at", TIME, nullable=False),
        sa.Column("started_at", TIME),
        sa.Column("settled_at", TIME),
        sa.ForeignKeyConstraint(
            ["request_id", "step"], ["steps.request_id", "steps.step"], name="fk_tool_calls_step", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "stream_events",
        _request_id(primary_key=True),
        sa.Column("seq", sa.Integer(), primary_key=True),
        sa.Column("step", sa.Integer()),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "hook_traces",
        sa.Column("trace_id", sa.Text(), primary_key=True),
        _request_id(primary_key=False),
        sa.Column("point", sa.Text(), nullable=False),
        sa.Column("hook", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer()),
        sa.Column("tool_call_id", sa.Text()),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("message", sa.Text()),
        sa.Column("duration_ms", sa.Integer(), nullable=False),
        sa.Column("logs", sa.JSON()),
        sa.Column("changed", sa.JSON()),
        sa.Column("created_at", TIME, nullable=False),
    )
    op.create_index("ix_hook_traces_request", "hook_traces", ["request_id"])
    op.create_table(
        "drafts",
        sa.Column("request_id", sa.Text(), primary_key=True),
        sa.Column("digest", sa.Text(), primary_key=True),
        sa.Column("parts", sa.JSON(), nullable=False),
        sa.Column("metadata", sa.JSON()),
        sa.Column("created_at", TIME, nullable=False),
    )
    op.create_table(
        "hook_code",
        sa.Column("agent", sa.Text(), primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("removed_by", sa.Text()),
        sa.Column("removed_at", TIME),
    )


def downgrade() -> None:
    for table in (
        "hook_code",
        "drafts",
        "hook_traces",
        "stream_events",
        "tool_calls",
        "step_attempts",
        "steps",
        "messages",
        "turns",
        "threads",
    ):
        op.drop_table(table)


def _request_id(*, primary_key: bool) -> sa.Column[str]:
    cascade = sa.ForeignKey("turns.request_id", ondelete="CASCADE")
    return sa.Column("request_id", sa.Text(), cascade, primary_key=primary_key, nullable=False)
