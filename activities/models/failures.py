"""How a model step can fail, in our words; the table from provider errors stands below."""

from __future__ import annotations

from typing import Literal

FailureKind = Literal["context_overflow", "rate_limit", "transient", "fatal", "unknown"]


class ModelFailure(Exception):  # noqa: N818 - an outcome that the model step handles, not a caller's error
    """A model call failed.

    kind: what to do about it. code: a stable word for clients and tests (`rate_limit`, `authentication`, `incomplete_stream`, …).
    message: one sentence that clients may see. detail: the provider's own text, for the trace only. retry_after: seconds
    that the provider asked to wait.
    """

    def __init__(
        self,
        kind: FailureKind,
        code: str,
        message: str,
        *,
        detail: str = "",
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind, self.code, self.message = kind, code, message
        self.detail, self.status, self.retry_after = detail, status, retry_after

    @property
    def retryable(self) -> bool:
        return self.kind in ("rate_limit", "transient")
