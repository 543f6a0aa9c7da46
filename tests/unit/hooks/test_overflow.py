"""Which errors say that a prompt is too long: the wordings of real providers, and those that only look like it."""

from __future__ import annotations

import pytest

from everturn import default_context_overflow_classifier

OVERFLOWS = [
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130112 tokens.",
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages).",
    "Error code: 400 - {'error': {'code': 'context_length_exceeded', 'type': 'invalid_request_error'}}",
    "Input tokens exceed the configured limit: context_length_exceeded",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "prompt is too long: 1000123 tokens > 1000000 maximum",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "The input token count exceeds the maximum number of tokens allowed 32768.",
    "Input is too long for requested model.",
    "ValidationException: Input is too long for requested model",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "too many tokens: size limit exceeded by 1200 tokens. Try using shorter or fewer inputs.",
    "the request exceeds the available context size (4096 tokens), try increasing it",
    '{"error":{"code":400,"message":"exceed_context_size_error","type":"exceed_context_size_error"}}',
    "the input length exceeds the context length",
    "This model's maximum context length is 4096 tokens. Please reduce the length of the input messages.",
    "Requested token count exceeds the model's maximum context length of 32768 tokens.",
    "Please reduce the length of the messages or completion.",
]
LOOK_ALIKES = [
    "Rate limit reached: too many tokens per minute (TPM): limit 30000, requested 45000",
    "You exceeded your current quota, please check your plan and billing details.",
    "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 33000.",
    "429 Too Many Requests: tokens per day limit exceeded",
    "Invalid value for max_tokens: must be at most 4096",
    "The server is overloaded, try again later",
    "Incorrect API key provided",
    "messages: text content blocks must be non-empty",
    "Unsupported parameter: 'max_tokens' is not supported with this model.",
    "Connection error.",
    "image exceeds 5 MB maximum",
]


class Answer(Exception):
    """A provider's answer with a status, as litellm raises it."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status_code = status


def test_the_table_is_long_enough() -> None:
    assert len(OVERFLOWS) + len(LOOK_ALIKES) >= 25


@pytest.mark.parametrize("text", OVERFLOWS)
def test_an_overflow_is_recognised_as_text_and_as_exception(text: str) -> None:
    assert default_context_overflow_classifier(text) == "context_overflow"
    assert default_context_overflow_classifier(Answer(text, 400)) == "context_overflow"


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_an_error_that_only_looks_like_it_is_none(text: str) -> None:
    assert default_context_overflow_classifier(text) is None
    assert default_context_overflow_classifier(Answer(text, 400)) is None


@pytest.mark.parametrize("text", OVERFLOWS)
def test_a_429_is_never_an_overflow(text: str) -> None:
    assert default_context_overflow_classifier(Answer(text, 429)) is None
