"""Providers that say no: by status, by dropped connection, by an event inside the stream."""

from __future__ import annotations

from collections.abc import Iterator

from everturn.activities.scripted.ask import Ask, BadScript, Script
from everturn.activities.scripted.moves import Cut, Fail, FailInStream, Finish, Move, Say
from everturn.activities.scripted.scenarios.plain import spoken, words

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}

OVERFLOWS = {
    "openai": "This model's maximum context length is {limit} tokens. However, your messages resulted in "
    "{size} tokens. Please reduce the length of the messages.",
    "anthropic": "prompt is too long: {size} tokens > {limit} maximum",
    "google": "The input token count ({size}) exceeds the maximum number of tokens allowed ({limit}).",
    "bedrock": "Input is too long for requested model.",
    "mistral": "Prompt contains {size} tokens, too large for model with {limit} maximum context length",
    "cohere": "too many tokens: size limit exceeded by {size} tokens. Try using shorter or fewer inputs.",
    "vllm": "This model's maximum context length is {limit} tokens. However, you requested {size} tokens in the "
    "messages. Please reduce the length of the input messages.",
    "llamacpp": "the request exceeds the available context size ({limit} tokens), try increasing it",
    "ollama": "the input length exceeds the context length",
}
"""Context overflow in several providers' wordings."""


def status(_ask: Ask, script: Script) -> Iterator[Move]:
    """code=500, message=…, type=…, error_code=…, retry_after=seconds or HTTP date, retry_after_ms=…"""
    code = script.count("code", 500)
    kind = script.text("type", _TYPES.get(code, "server_error"))
    yield Fail(
        code,
        script.text("message", f"scripted status {code}"),
        kind,
        script.text("error_code") or None,
        _headers(script),
    )


def rate_limit(ask: Ask, script: Script) -> Iterator[Move]:
    """429 with retry_after=1; times=… for how long."""
    params = {"code": "429", "error_code": "rate_limit_exceeded", "retry_after": "1", "message": "Rate limit reached"}
    return status(ask, Script("status", params | script.params))


def tokens_per_minute(ask: Ask, script: Script) -> Iterator[Move]:
    """429 whose wording speaks of too many tokens."""
    message = "Rate limit reached: too many tokens per minute (TPM): Limit 30000, Requested 41000."
    return rate_limit(ask, Script("status", {"message": message, "type": "tokens"} | script.params))


def overflow(ask: Ask, script: Script) -> Iterator[Move]:
    """Context overflow in the words of provider=openai|anthropic|…, as a 400 or in_stream=1 after tokens=2 words.
    A prompt of fewer than limit=0 characters gets `fits` and a finish."""
    limit, provider = script.count("limit", 0), script.text("provider", "openai")
    if ask.size < limit:
        yield from (Say("fits"), Finish("stop"))
        return
    if provider not in OVERFLOWS:
        raise BadScript(f"no provider is named {provider!r}; use one of {', '.join(OVERFLOWS)}")
    message = OVERFLOWS[provider].format(limit=limit or 8192, size=max(ask.size, 8193))
    code = "context_length_exceeded" if provider == "openai" else None
    if script.flag("in_stream"):
        yield from spoken(words(script.count("tokens", 2)), script)
        yield FailInStream(message, "invalid_request_error", code)
    else:
        yield Fail(400, message, "invalid_request_error", code)


def stream_error(_ask: Ask, script: Script) -> Iterator[Move]:
    """An error event after tokens=2 words: message=…, type=server_error, code=…"""
    yield from spoken(words(script.count("tokens", 2)), script)
    message = script.text("message", "The server had an error while processing your request")
    yield FailInStream(message, script.text("type", "server_error"), script.text("code") or None)


def drop(_ask: Ask, script: Script) -> Iterator[Move]:
    """The connection is dropped before the first byte: how=reset|fin."""
    yield Cut("fin" if script.text("how") == "fin" else "reset")


def key(ask: Ask, script: Script) -> Iterator[Move]:
    """401 that repeats the key, unless the caller's key is expected=…"""
    if ask.key and ask.key == script.text("expected"):
        yield from (Say("welcome"), Finish("stop"))
    else:
        yield Fail(401, f"Incorrect API key provided: {ask.key}.", "invalid_request_error", "invalid_api_key")


def _headers(script: Script) -> dict[str, str]:
    names = {"retry_after": "retry-after", "retry_after_ms": "retry-after-ms"}
    return {header: script.text(name) for name, header in names.items() if script.text(name)}


SCENARIOS = {
    "status": status,
    "rate_limit": rate_limit,
    "tokens_per_minute": tokens_per_minute,
    "overflow": overflow,
    "stream_error": stream_error,
    "drop": drop,
    "key": key,
}
