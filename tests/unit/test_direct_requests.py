"""Which models are asked directly, where, and with which body."""

from __future__ import annotations

import json
from typing import Any

import pytest

from everturn.activities.models.direct.body import needs_litellm, request_body, request_headers, request_url
from everturn.activities.models.direct.endpoints import Endpoint, bare_name, endpoint_of
from everturn.activities.models.types import ModelRequest
from everturn.turns import JsonDict

OWN = "http://127.0.0.1:1/v1"
BASES = ("OPENAI_BASE_URL", "OPENAI_API_BASE", "HOSTED_VLLM_API_BASE", "LM_STUDIO_API_BASE", "LITELLM_PROXY_API_BASE")
ACCOUNTS = ("OPENAI_ORGANIZATION", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID")
PLAIN = Endpoint("https://x")


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*BASES, *ACCOUNTS):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "model",
    [
        "openai/gpt-4o-mini",
        "gpt-4o",
        "gpt-4.1-nano",
        "openai/ft:gpt-4o-mini:org::id",
        "groq/llama-3.3-70b-versatile",
        "deepseek/deepseek-chat",
        "openrouter/openai/o3",
    ],
)
def test_plain_models_of_known_providers_are_asked_directly(model: str) -> None:
    assert endpoint_of(model) is not None


@pytest.mark.parametrize(
    "model",
    [
        "openai/o3-mini",
        "o1",
        "openai/gpt-5",
        "gpt-5-mini",
        "openai/gpt-4o-audio-preview",
        "openai/gpt-4o-mini-search-preview",
        "openai/responses/gpt-4o",
        "openai/something-new",
        "gpt-4",
        "anthropic/claude-x",
        "claude-x",
        "gemini/gemini-x",
        "azure/gpt-4o",
        "bedrock/x",
        "vertex_ai/x",
        "together_ai/x",
        "mistral/x",
        "xai/x",
        "ollama_chat/x",
        "hosted_vllm/x",
        "lm_studio/x",
        "litellm_proxy/x",
    ],
)
def test_all_others_are_left_to_litellm(model: str) -> None:
    assert endpoint_of(model) is None


def test_with_an_address_of_ones_own_any_name_is_asked_directly_but_reasoning_models() -> None:
    for model in ("openai/my-model", "hosted_vllm/x", "lm_studio/x", "litellm_proxy/claude-x", "openai/odd:kind=x"):
        assert endpoint_of(model, OWN) is not None
    assert endpoint_of("openai/o3", OWN) is None
    assert endpoint_of("openai/gpt-5-mini", OWN) is None
    assert endpoint_of("anthropic/claude-x", OWN) is None


@pytest.mark.parametrize("variable", BASES)
def test_an_address_from_the_environment_counts(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    provider = variable.removesuffix("_API_BASE").removesuffix("_BASE_URL").lower()
    monkeypatch.setenv(variable, OWN)
    endpoint = endpoint_of(f"{provider}/my-model")
    assert endpoint is not None
    assert endpoint.address() == OWN
    assert endpoint.address("http://given") == "http://given"


@pytest.mark.parametrize("variable", ACCOUNTS)
def test_an_account_of_openai_is_litellms_to_name(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "org-1")
    assert endpoint_of("openai/gpt-4o") is None
    assert endpoint_of("openai/my-model", OWN) is not None


def test_the_provider_is_taken_off_the_name_once() -> None:
    assert bare_name("openrouter/openai/gpt-4o") == "openai/gpt-4o"
    assert bare_name("gpt-4o") == "gpt-4o"
    assert bare_name("meta-llama/x") == "meta-llama/x"


def test_the_address_of_chat_completions_is_found_below_any_base() -> None:
    for base in ("http://h/v1", "http://h/v1/", "http://h/v1/chat/completions", "http://h/v1/chat/completions/"):
        assert request_url(base) == "http://h/v1/chat/completions"


def request(**changes: Any) -> ModelRequest:
    return ModelRequest("openai/m", [{"role": "user", "content": "hi"}], **changes)


def body(given: ModelRequest, endpoint: Endpoint = PLAIN) -> JsonDict:
    found: JsonDict = json.loads(request_body(given, endpoint))
    return found


def test_only_what_was_set_is_sent() -> None:
    assert body(request()) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_provider_options_win_except_over_what_a_lane_decides() -> None:
    options = {"temperature": 0.5, "stream": False, "model": "other", "max_retries": 9, "extra_body": {"top_k": 3}}
    found = body(request(temperature=0.1, provider_options=options))
    assert (found["temperature"], found["top_k"], found["stream"], found["model"]) == (0.5, 3, True, "m")
    assert found.keys() & {"max_retries", "extra_body"} == set()


def test_half_a_surrogate_pair_in_a_prompt_can_be_sent() -> None:
    found = body(ModelRequest("openai/m", [{"role": "user", "content": "\ud83d"}]))
    assert found["messages"][0]["content"] == "\ud83d"


def test_the_callers_headers_replace_ours_and_no_key_means_no_header() -> None:
    assert request_headers(request(api_key="k"))["authorization"] == "Bearer k"
    found = request_headers(request(api_key="k", headers={"Authorization": "Basic x", "X-Team": "blue"}))
    assert (found["authorization"], found["x-team"]) == ("Basic x", "blue")
    assert "authorization" not in request_headers(request())


def test_what_needs_a_translation_needs_litellm() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    file = {"type": "file", "file": {"file_id": "https://h/a.pdf"}}
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}
    assert not needs_litellm(request(response_format=schema, provider_options={"top_k": 1}), PLAIN)
    assert not needs_litellm(ModelRequest("openai/m", [{"role": "user", "content": [picture]}]), PLAIN)
    assert needs_litellm(ModelRequest("openai/m", [{"role": "user", "content": [picture, file]}]), PLAIN)
    assert needs_litellm(request(provider_options={"thinking": {"type": "enabled"}}), PLAIN)
    assert needs_litellm(request(response_format=schema), Endpoint("https://x", schemas=False))
    assert needs_litellm(ModelRequest("openai/m", [{"role": "user", "content": [picture]}]), Endpoint(pictures=False))
