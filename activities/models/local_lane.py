"""The lane of the `local` model: a real language model of 135 million parameters, on this machine, without a key."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from everturn.activities.models.local_choice import (
    Choice,
    choice_request,
    offered_tools,
    parse_choice,
    reply_request,
)
from everturn.activities.models.local_server import LocalServer
from everturn.activities.models.types import CallDelta, Delta, ModelLane, ModelRequest
from everturn.turns import JsonDict, Usage

LOCAL_MODEL: Final = "local"
"""The model string of agents."""
_SERVED: Final = "openai/smollm2-135m-instruct"


class LocalLane:
    """Asks the local server through `http`, a lane for OpenAI's format.

    The model knows no tools. So it is first asked for a choice, held to a schema by the server; a tool becomes a call,
    and a reply is asked for once more, in plain text that streams.
    """

    def __init__(self, http: ModelLane) -> None:
        self._http = http
        self._server = LocalServer()

    async def warm_up(self) -> None:
        """Loads the model. Raises ModelFailure."""
        await self._server.address()

    async def close(self) -> None:
        """Ends the model's server."""
        await self._server.stop()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The model's answer, which costs nothing. Raises ModelFailure."""
        address = await self._server.address()
        asked = replace(request, model=_SERVED, api_base=address.base_url, api_key=address.key, key_env=None)
        tools = offered_tools(request)
        spent = Usage(cost=0.0)
        if tools:
            choice, spent = await self._choose(choice_request(asked, tools), tools)
            if choice is not None:
                call = CallDelta(0, f"call_{uuid.uuid4().hex[:24]}", choice.name, choice.arguments)
                yield Delta(calls=(call,), model=LOCAL_MODEL)
                yield Delta(finish="tool_calls", usage=spent)
                return
        async with aclosing(self._http.stream(reply_request(asked))) as deltas:
            async for delta in deltas:
                usage = spent + delta.usage if delta.usage else None
                yield replace(delta, model=LOCAL_MODEL, usage=usage)

    async def _choose(self, request: ModelRequest, tools: list[JsonDict]) -> tuple[Choice | None, Usage]:
        """What the model chooses, and the tokens that it took."""
        said: list[str] = []
        usage = Usage(cost=0.0)
        async with aclosing(self._http.stream(request)) as deltas:
            async for delta in deltas:
                said.append(delta.text or "")
                usage += delta.usage or Usage()
        return parse_choice("".join(said), tools), usage
