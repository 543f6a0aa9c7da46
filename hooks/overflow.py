"""Recognises a prompt that is too long for the model, in the words of the common providers."""

from __future__ import annotations

import re
from typing import Final

RATE_LIMITED: Final = 429
_RATE_LIMIT = re.compile(
    r"per[ -](?:minute|min|day|hour|second)|\b[TR]P[MD]\b|rate[ _-]?limit|too many requests|quota", re.IGNORECASE
)
_OVERFLOW = re.compile(
    r"""(?ix)
      context_length_exceeded | contextwindowexceeded | exceed_context_size
    | maximum \s context \s length                            # OpenAI, vLLM, Mistral
    | context \s (?:window|length|size) .{0,40} exceed        # several gateways
    | exceed \w* .{0,60} context \s (?:window|length|size)    # llama.cpp, Ollama, SGLang
    | prompt \s is \s too \s long                             # Anthropic
    | input \s token \s count .{0,40} exceeds                 # Google
    | input \s is \s too \s long                              # Bedrock
    | too \s many \s (?:input \s)? tokens .{0,40} (?:size \s limit|exceed|maximum)   # Cohere
    | input \s length \s exceeds \s the \s context            # Ollama
    | (?:prompt|input) .{0,40} too \s large \s for \s model   # Mistral
    | reduce \s the \s length \s of \s the \s (?:input \s)? (?:messages|prompt)
    """
)


def says_rate_limit(text: str) -> bool:
    """Whether an error speaks of requests or tokens per time."""
    return _RATE_LIMIT.search(text) is not None


def says_overflow(text: str) -> bool:
    """Whether an error says that the prompt exceeds the model's context. Too many tokens per minute is a rate limit."""
    return _OVERFLOW.search(text) is not None and not says_rate_limit(text)


def default_context_overflow_classifier(error: Exception | str) -> str | None:
    """For `classify_chat_error`: "context_overflow" if the error says that the prompt is too long for the model.

    Knows the words of Anthropic, OpenAI, Google, Bedrock, Mistral, Cohere, vLLM, llama.cpp and Ollama. A 429, or words
    about tokens per time, is never an overflow.
    """
    if getattr(error, "status_code", None) == RATE_LIMITED:
        return None
    by_class = type(error).__name__ == "ContextWindowExceededError"
    return "context_overflow" if by_class or says_overflow(str(error)) else None
