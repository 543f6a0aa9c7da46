"""Timeouts and retries of a turn, each with its reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from temporalio.common import RetryPolicy

WORKFLOW_TASK_TIMEOUT: Final = timedelta(seconds=5)
"""How long the server waits for a dead worker's workflow task before another worker gets it."""

HEARTBEAT_TIMEOUT: Final = timedelta(seconds=4)
"""Model steps and tools beat every 0.7 s: five missed beats mean that the worker is gone, not slow."""

HOPELESS: Final = ("BadInput", "MessageTooLarge", "StoreRefused", "TranscriptDamaged")
"""Types of errors that the same input meets again, however often it is tried."""

STORE_START_TO_CLOSE: Final = timedelta(seconds=30)
"""One store transaction takes milliseconds and retries locks for 15 s by itself."""
STORE_SCHEDULE_TO_CLOSE: Final = timedelta(minutes=15)
"""A database may be away for a fail-over or a restart; a turn waits for it that long before it gives up."""
STORE_RETRY: Final = RetryPolicy(
    initial_interval=timedelta(milliseconds=200),
    backoff_coefficient=2,
    maximum_interval=timedelta(seconds=10),
    maximum_attempts=100,
    non_retryable_error_types=HOPELESS,
)

FINISH_SCHEDULE_TO_CLOSE: Final = timedelta(hours=24)
"""Finishing releases the thread, so it gets longer than anything else."""
FINISH_RETRY: Final = RetryPolicy(
    initial_interval=timedelta(milliseconds=200),
    backoff_coefficient=2,
    maximum_interval=timedelta(minutes=1),
    maximum_attempts=2000,
    non_retryable_error_types=HOPELESS,
)

HOOK_START_TO_CLOSE: Final = timedelta(minutes=10)
"""Several hooks of one point run one after the other, each within its own limit; this bounds their sum."""
HOOK_SCHEDULE_TO_CLOSE: Final = timedelta(minutes=20)
HAND_OVER: Final = timedelta(milliseconds=50)
"""A local activity that is to be tried again later than this is tried in a later workflow task, which any worker may
take: one that stops does not keep what it has given up."""
HOOK_RETRY: Final = RetryPolicy(
    initial_interval=timedelta(milliseconds=200),
    maximum_interval=timedelta(seconds=10),
    maximum_attempts=10,
    non_retryable_error_types=HOPELESS,
)
"""Retries are for lost workers and an absent store; a hook that raises is final (or traced), never retried here."""
AFTERWARDS_RETRY: Final = RetryPolicy(
    initial_interval=timedelta(milliseconds=500), maximum_interval=timedelta(seconds=10), maximum_attempts=3
)
"""on_chat_response and on_turn_end: the turn is over and nobody waits, so a failing hook gets two more chances."""

STEP_START_TO_CLOSE: Final = timedelta(hours=1)
"""The deadlines inside the step are tighter (first token, idle, total); this one bounds a bug."""
STEP_SCHEDULE_TO_CLOSE: Final = timedelta(hours=3)
STEP_RETRY: Final = RetryPolicy(
    initial_interval=timedelta(milliseconds=200),
    backoff_coefficient=2,
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=25,
    non_retryable_error_types=HOPELESS,
)
"""Five failures of the model end the step (the step counts them in the store and sets the delay of its own retries);
the rest of the attempts are for workers that stop or die, which cost the author nothing."""

COMPACT_RETRY: Final = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=3,
    non_retryable_error_types=HOPELESS,
)
"""A summary is a help, not the turn itself: three tries, then the turn goes on or fails without it."""

TOOL_GRACE: Final = timedelta(seconds=30)
"""The tool's own timeout is kept inside the activity and gives an error result; Temporal's comes later."""
TOOL_RETRY: Final = RetryPolicy(
    initial_interval=timedelta(milliseconds=200),
    backoff_coefficient=2,
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=25,
    non_retryable_error_types=HOPELESS,
)
"""A retry runs the function again only if it never started, is idempotent, or asked for retries: the store decides."""

ONCE: Final = RetryPolicy(maximum_attempts=1)
INTERRUPT_TIMEOUT: Final = timedelta(seconds=2)
"""Looks into a dictionary of this process; if even that hangs, the regular cancellation goes on without it."""

QUEUE_CHECK_FIRST: Final = timedelta(seconds=5)
QUEUE_CHECK_MAX: Final = timedelta(minutes=10)
"""A queued turn is woken by a signal. The timer is for a predecessor that can no longer send it; it backs off so that a
turn behind a two-day approval keeps a short history."""

CLIENT_TOOL_TIMEOUT: Final = timedelta(days=7)
"""How long a turn waits for its front end; as long as for a person."""

PAGE_START_TO_CLOSE: Final = timedelta(minutes=5)
"""A page of the reconciler asks Temporal at most once for each of its hundred rows."""
PAGE_SCHEDULE_TO_CLOSE: Final = timedelta(minutes=15)
PAGE_RETRY: Final = RetryPolicy(
    initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30), maximum_attempts=10
)
"""After that the run fails, and the schedule's next one begins anew."""

TOOL_LOOP_CAP: Final = 3
"""Identical failing calls in a row after which the model is not going to find another way."""
EMPTY_ANSWERS: Final = 2
"""Answers without text and call after which the turn fails: asked again once."""
