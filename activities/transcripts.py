"""What the steps of running turns were asked with: the next step of a turn then reads only what is new."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from everturn.store.records import PromptMaterial

TURNS: Final = 32
"""Each is no larger than what a model can take."""
WORTHWHILE: Final = 8
"""Messages; fewer are read as fast as remembered."""


class Transcripts:
    """The newest turns' material, by request id. A turn's transcript does not change while it runs, but for the summary
    that stands for a part of it: `load_prompt` sees to that."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, PromptMaterial] = OrderedDict()

    def of(self, request_id: str) -> PromptMaterial | None:
        return self._kept.get(request_id)

    def keep(self, material: PromptMaterial) -> None:
        if len(material.messages) < WORTHWHILE:
            return
        self._kept[material.turn.request_id] = material
        self._kept.move_to_end(material.turn.request_id)
        if len(self._kept) > TURNS:
            self._kept.popitem(last=False)

    def drop(self, request_id: str) -> None:
        """For a turn that asks no more."""
        self._kept.pop(request_id, None)
