"""Another model where one fails."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import get_args

from everturn.hooks.contexts import ChatErrorContext
from everturn.hooks.decisions import NextModel
from everturn.hooks.hook import Hooks
from everturn.turns import Classification

_KINDS = get_args(Classification)


class Fallback(Hooks):
    """Goes on with another model when a model call fails, at once and within the same step.

    models: one or several, tried in this order; or a mapping from classifications to them. on: without a mapping, the
    classifications that it reacts to. A step asks five times in all before it gives up; a model that the step has asked
    already is not asked again. Each step begins with the agent's own model.

    `Model.fallbacks` is for models that have failed for good; this is for those that only need another one now. How to
    reach a model that has an address or a key of its own, Everturn reads from `Model.fallbacks` by its name.
    """

    def __init__(
        self,
        models: str | Sequence[str] | Mapping[str, str | Sequence[str]],
        *,
        on: Collection[str] = ("rate_limit", "transient"),
    ) -> None:
        given = models if isinstance(models, Mapping) else dict.fromkeys([on] if isinstance(on, str) else on, models)
        self._models = {kind: (names,) if isinstance(names, str) else tuple(names) for kind, names in given.items()}
        wrong = [kind for kind in self._models if kind not in _KINDS]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no classification; use some of: {', '.join(_KINDS)}")
        if not self._models or not all(name.strip() for names in self._models.values() for name in names or ("",)):
            raise ValueError('Fallback needs a model: Fallback("openai/gpt-4o-mini")')

    def classify_chat_error(self, error: Exception | str, ctx: ChatErrorContext) -> NextModel | None:
        candidates = self._models.get(ctx.classification or "unknown", ())
        name = next((name for name in candidates if name not in ctx.tried), None)
        if name is None:
            return None
        ctx.log(f"{ctx.classification}: {name} follows", {"tried": list(ctx.tried)})
        return NextModel(name)
