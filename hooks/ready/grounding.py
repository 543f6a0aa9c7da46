"""Facts for the model, looked up before each turn."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, cast

from everturn.hooks.contexts import TurnContext
from everturn.hooks.decisions import TurnConfig
from everturn.hooks.hook import Hooks
from everturn.turns import JsonDict

Found: TypeAlias = str | Sequence[str] | None
Retriever: TypeAlias = Callable[[str, TurnContext], Found | Awaitable[Found]]


class Grounding(Hooks):
    """Calls `retrieve(question, ctx)` with the text of the newest user message, and puts what it finds (a text, or
    several) behind the system prompt, under `header`. Nothing found, nothing added.

    Fails open: without its sources the model answers as it can. Pass on_error="deny" to refuse instead.
    """

    def __init__(
        self, retrieve: Retriever, *, header: str = "Use these sources where they help:", max_characters: int = 20_000
    ) -> None:
        if max_characters < 1:
            raise ValueError(f"Grounding(max_characters=…) must be 1 or more, not {max_characters!r}")
        self._retrieve, self._header, self._max = retrieve, header, max_characters

    async def before_turn(self, ctx: TurnContext) -> TurnConfig | None:
        found = self._retrieve(_question(ctx.messages), ctx)
        answer = await found if inspect.isawaitable(found) else found
        texts = [answer] if isinstance(answer, str) else list(answer or ())
        sources = "\n\n".join(text.strip() for text in texts if text.strip())[: self._max]
        if not sources:
            return None
        ctx.log("sources added", {"characters": len(sources), "texts": len(texts)})
        return TurnConfig(system="\n\n".join(part for part in (ctx.system, self._header, sources) if part))


def _question(messages: list[JsonDict]) -> str:
    newest = next((message for message in reversed(messages) if message.get("role") == "user"), None)
    content: Any = newest.get("content") if newest else None
    if isinstance(content, str):
        return content
    parts = [cast(JsonDict, part) for part in cast(list[Any], content or []) if isinstance(part, dict)]
    return "\n".join(str(part.get("text")) for part in parts if part.get("type") == "text")
