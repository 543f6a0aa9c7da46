"""How large things may be that activities hand on.

Temporal refuses a payload over 2 MiB: a result is then tried again for ever, an input stops its workflow. So everything
is measured before it is sent. JSON is sent in ASCII, up to three times as long as in UTF-8, and may be encrypted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pydantic_core import PydanticSerializationError, to_json
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from everturn.activities.payloads import activity_name
from everturn.hooks.log import cut

MAX_RESULT_BYTES: Final = 512 * 1024
"""Of an activity. Results are ids and small facts, bounded where they are made; this is the net below."""
MAX_FAILURE_BYTES: Final = 64 * 1024
"""Of the messages of an error and its causes."""
MAX_FAILURE_MESSAGE_BYTES: Final = 8 * 1024
MAX_CONFIG_BYTES: Final = 16 * 1024 * 1024
"""Of what all hooks of a turn have decided together; stored, never sent."""
MAX_STOPS_BYTES: Final = 64 * 1024
"""Of its stop conditions, which the workflow gets."""
MAX_TOOL_INPUT_BYTES: Final = 1024 * 1024
"""Of the arguments of one tool call."""
MAX_CALLS: Final = 128
"""Tool calls of one step that are run: each is several events in the turn's history."""
MAX_NAME_BYTES: Final = 200
"""Of names and kinds that models and hooks make up."""


class SizeInterceptor(Interceptor):
    """Ends a turn whose activity would hand over too much, instead of trying it for ever."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        """See base class."""
        return _Measured(next)


class _Measured(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the name in the base class
        """See base class."""
        name = activity.info().activity_type
        if not name.startswith(activity_name("")):
            return await super().execute_activity(input)
        try:
            result = await super().execute_activity(input)
        except Exception as error:
            if sum(len(str(cause)) for cause in _causes(error)) <= MAX_FAILURE_BYTES:
                raise
            raise shortened(error) from None
        size = _size(result)
        if size > MAX_RESULT_BYTES:
            message = f"the result of {name} has {size:,} bytes as JSON; the limit is {MAX_RESULT_BYTES:,}"
            raise ApplicationError(message, type="ResultTooLarge", non_retryable=True)
        return result


def _size(result: object) -> int:
    """Bytes as JSON, or about as many."""
    try:
        return len(to_json(result))
    except PydanticSerializationError:  # a lone surrogate; Temporal's JSON escapes it
        return len(repr(result))


def shortened(error: Exception) -> ApplicationError:
    """The same error with a short message, without its causes."""
    if isinstance(error, ApplicationError):
        return ApplicationError(
            cut(error.message, MAX_FAILURE_MESSAGE_BYTES),
            *error.details,
            type=cut(error.type, MAX_NAME_BYTES) if error.type else None,
            non_retryable=error.non_retryable,
            next_retry_delay=error.next_retry_delay,
        )
    name = type(error).__name__
    return ApplicationError(cut(str(error), MAX_FAILURE_MESSAGE_BYTES), type=name)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from, as Temporal records them."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__
