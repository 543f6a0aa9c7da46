"""What the name of a model says about its provider."""

from __future__ import annotations

DEFAULT_PROVIDER = "openai"
"""Provider of a model string without a prefix, as in litellm."""

_KEY_VARIABLES = {
    "gemini": "GEMINI_API_KEY",
    "huggingface": "HF_TOKEN",
    "bedrock": "AWS_ACCESS_KEY_ID",
    "sagemaker": "AWS_ACCESS_KEY_ID",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
    "ollama_chat": "OLLAMA_API_KEY",
    "together_ai": "TOGETHERAI_API_KEY",
    "perplexity": "PERPLEXITYAI_API_KEY",
    "azure_ai": "AZURE_AI_API_KEY",
    "cohere_chat": "COHERE_API_KEY",
    "fireworks_ai": "FIREWORKS_AI_API_KEY",
    "text-completion-openai": "OPENAI_API_KEY",
}
"""Environment variables that are not simply PROVIDER_API_KEY."""


_OWN_CREDENTIALS = frozenset({"bedrock", "sagemaker", "vertex_ai"})


def provider_of(model: str) -> str:
    """`anthropic` for `anthropic/claude-…`. A bare `claude-…` or `gemini-…` is its maker's, anything else OpenAI's."""
    prefix, slash, _ = model.partition("/")
    if slash:
        return prefix.lower()
    if model.startswith("claude"):
        return "anthropic"
    return "gemini" if model.startswith("gemini") else DEFAULT_PROVIDER


def key_variable(model: str) -> str:
    """The environment variable in which the provider of this model expects its key."""
    provider = provider_of(model)
    return _KEY_VARIABLES.get(provider, f"{provider.upper().replace('-', '_')}_API_KEY")


def takes_plain_key(model: str) -> bool:
    """Whether the provider's variable holds a key to send; cloud accounts have credentials of several parts."""
    return provider_of(model) not in _OWN_CREDENTIALS
