"""Which models are asked directly, without litellm, and where: providers whose API is OpenAI's own format."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

from everturn.activities.models.providers import provider_of


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How a provider differs from OpenAI's format.

    base: its address, None where each user has their own. base_variables: environment variables that hold another one.
    needs_key: a request without a key is refused before it is sent. schemas: answers held to a schema can be streamed.
    pictures: messages with pictures are taken as they are. plain_tools: tools go without `additionalProperties` and
    `strict`. prices_calls: the usage says what the call cost.
    """

    base: str | None = None
    base_variables: tuple[str, ...] = ()
    needs_key: bool = True
    schemas: bool = True
    pictures: bool = True
    plain_tools: bool = False
    prices_calls: bool = False

    def address(self, given: str | None = None) -> str | None:
        """`given`, or an address from the environment, or the provider's own."""
        candidates = (given, *(os.environ.get(name) for name in self.base_variables), self.base)
        return next((address for address in candidates if address), None)


_ENDPOINTS: Final[dict[str, Endpoint]] = {
    "openai": Endpoint("https://api.openai.com/v1", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "hosted_vllm": Endpoint(None, ("HOSTED_VLLM_API_BASE",), needs_key=False, plain_tools=True),
    "lm_studio": Endpoint(None, ("LM_STUDIO_API_BASE",), needs_key=False),
    "litellm_proxy": Endpoint(None, ("LITELLM_PROXY_API_BASE",), needs_key=False),
    "groq": Endpoint("https://api.groq.com/openai/v1", ("GROQ_API_BASE",), schemas=False),
    "deepseek": Endpoint("https://api.deepseek.com/beta", ("DEEPSEEK_API_BASE",), pictures=False),
    "openrouter": Endpoint("https://openrouter.ai/api/v1", ("OPENROUTER_API_BASE",), prices_calls=True),
}
"""Compared with litellm's own data by a test. Providers that are not here want more than another address."""
_PLAIN_OPENAI: Final = re.compile(r"(?:ft:)?(?:gpt-4o|gpt-4\.1|gpt-4-turbo|chatgpt-4o)(?!.*(?:audio|realtime|search))")
"""OpenAI's models that take every parameter under its usual name."""
_REASONING: Final = re.compile(r"(?:o\d|gpt-[5-9]|codex|computer-use|responses/)", re.IGNORECASE)
"""Models of OpenAI that want other parameter names, temperatures or another API, also behind a gateway."""
_ACCOUNT_VARIABLES: Final = ("OPENAI_ORGANIZATION", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID")


def endpoint_of(model: str, api_base: str | None = None) -> Endpoint | None:
    """Where a model can be asked directly; None if that is litellm's business. api_base: its address, where given."""
    provider, endpoint = provider_of(model), _ENDPOINTS.get(provider_of(model))
    if endpoint is None or endpoint.address(api_base) is None:
        return None
    if provider == "openai" and not _plain_openai(bare_name(model), endpoint.address(api_base) == endpoint.base):
        return None
    return endpoint


def bare_name(model: str) -> str:
    """The name under which the provider knows the model."""
    prefix, slash, name = model.partition("/")
    return name if slash and prefix.lower() in _ENDPOINTS else model


def _plain_openai(name: str, official: bool) -> bool:
    if not official:
        return _REASONING.match(name) is None
    accounts = any(os.environ.get(variable) for variable in _ACCOUNT_VARIABLES)
    return _PLAIN_OPENAI.match(name) is not None and not accounts
