"""The queries behind the tails: one for all of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from sqlalchemy import Connection, Integer, Text, bindparam, text

from everturn.chunks import Chunk
from everturn.store.columns import json_type
from everturn.turns import TERMINAL

WINDOW: Final = 500
"""Chunks per tail and query: bounds memory while a reader catches up."""

Positions = Mapping[int, tuple[str, int]]
"""Key of a tail → its turn, and the number of the last chunk that it has."""

_POSITIONS: Final = {
    "sqlite": (
        "SELECT json_extract(value, '$.tail') AS tail, json_extract(value, '$.turn') AS turn, "
        "json_extract(value, '$.seq') AS seq FROM json_each(:positions)"
    ),
    "postgresql": (
        "SELECT tail, turn, seq FROM json_to_recordset(CAST(:positions AS json)) AS p(tail int, turn text, seq int)"
    ),
}
_NEWS: Final = {
    dialect: text(
        f"WITH p AS ({positions}) "  # noqa: S608 - two constants of this module
        "SELECT p.tail, e.seq, e.type, e.data, e.step, e.attempt FROM p CROSS JOIN stream_events AS e "
        f"WHERE e.request_id = p.turn AND e.seq > p.seq AND e.seq <= p.seq + {WINDOW} ORDER BY p.tail, e.seq"
    ).columns(tail=Integer, seq=Integer, type=Text, data=json_type(), step=Integer, attempt=Integer)
    for dialect, positions in _POSITIONS.items()
}
_ENDED: Final = text("SELECT request_id FROM turns WHERE request_id IN :ids AND status IN :terminal").bindparams(
    bindparam("ids", expanding=True), bindparam("terminal", expanding=True)
)


def news(connection: Connection, positions: Positions) -> dict[int, list[Chunk]]:
    """The next chunks of each tail that has any, in order and without gaps."""
    listed = [{"tail": key, "turn": turn, "seq": seq} for key, (turn, seq) in positions.items()]
    rows = connection.execute(_NEWS[connection.dialect.name], {"positions": json.dumps(listed)})
    found: dict[int, list[Chunk]] = {}
    for tail, seq, kind, data, step, attempt in rows:
        found.setdefault(tail, []).append(Chunk(seq, kind, data, step, attempt))
    return found


def over(connection: Connection, request_ids: Iterable[str]) -> set[str]:
    """Those of the turns that are in a terminal status."""
    wanted = {"ids": list(request_ids), "terminal": sorted(TERMINAL)}
    return set(connection.scalars(_ENDED, wanted))
