"""`everturn setup`: the store's tables and Temporal's search attributes; safe to repeat."""

from __future__ import annotations

import sys

from temporalio.service import RPCError, RPCStatusCode

from everturn.connection import connect_temporal, place_of, temporal_error
from everturn.errors import Unavailable
from everturn.search_attributes import missing_search_attributes
from everturn.settings import DEFAULT_STORE
from everturn.store.store import Store
from everturn.worker.cli.options import Places
from everturn.worker.cli.running import DONE
from everturn.worker.search_attributes import add_search_attributes


async def set_up(places: Places) -> int:
    """Does what is missing and says what it did. The store comes first: it is needed even where Temporal is managed."""
    settings = places.settings()
    store = await Store.open(settings.store or DEFAULT_STORE, create=True, timeout=settings.connect_timeout)
    try:
        _say(f"store {store.url}: tables of revision {await store.revision()}")
    finally:
        await store.close()
    client = await connect_temporal(settings)
    place = place_of(client)
    try:
        missing = await missing_search_attributes(client)
        if missing:
            await add_search_attributes(client, missing)
    except RPCError as error:
        if error.status in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED):
            raise Unavailable(
                f"Temporal at {place.target} lets no client register search attributes ({error.message}); "
                "have its operator do it. Turns run without them, too"
            ) from error
        raise temporal_error(error, place) from error
    done = f"registered {', '.join(missing)}" if missing else "all search attributes are registered"
    _say(f"Temporal {place.target}, namespace {place.namespace}: {done}")
    return DONE


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
