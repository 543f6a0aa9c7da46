"""`everturn setup`: the store's tables, Temporal's search attributes and the reconciler's schedule; safe to repeat."""

from __future__ import annotations

import sys

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from everturn.connection import connect_temporal, place_of, temporal_error
from everturn.errors import Unavailable
from everturn.search_attributes import missing_search_attributes
from everturn.settings import DEFAULT_STORE, Settings
from everturn.store.store import Store
from everturn.worker.cli.options import Places
from everturn.worker.cli.running import DONE
from everturn.worker.schedule import install_schedule, schedule_id
from everturn.worker.search_attributes import add_search_attributes


async def set_up(places: Places, *, schedule: bool) -> int:
    """Does what is missing and says what it did. The store comes first: it is needed even where Temporal is managed."""
    settings = places.settings()
    store = await Store.open(settings.store or DEFAULT_STORE, create=True, timeout=settings.connect_timeout)
    try:
        _say(f"store {store.url}: tables of revision {await store.revision()}")
    finally:
        await store.close()
    client = await connect_temporal(settings)
    place = place_of(client)
    _say(f"Temporal {place.target}, namespace {place.namespace}: {await _attributes(client)}")
    if schedule:
        _say(f"schedule {schedule_id(settings.task_queue)}: {await _schedule(client, settings)}")
    return DONE


async def _attributes(client: Client) -> str:
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
    return f"registered {', '.join(missing)}" if missing else "all search attributes are registered"


async def _schedule(client: Client, settings: Settings) -> str:
    try:
        done = await install_schedule(client, settings)
    except RPCError as error:
        if error.status in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED):
            raise Unavailable(
                f"Temporal at {place_of(client).target} lets this client make no schedule ({error.message}); have its "
                "operator run everturn setup, or leave it out with --no-schedule: turns whose workflow was terminated "
                "then end when somebody waits for them"
            ) from error
        raise temporal_error(error, place_of(client)) from error
    return f"{done}; lost turns are looked for every {settings.reconcile_every:g} s"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
