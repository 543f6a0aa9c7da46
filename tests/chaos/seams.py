"""Where a worker of the chaos tests can be struck: around each commit of its store and each of its activities."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection
from temporalio import activity
from temporalio.client import Interceptor as ClientInterceptor
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from everturn.store.address import Address
from everturn.store.group import GroupWrite
from everturn.store.store import Store
from everturn.store.transactions import PATIENCE, Transactions
from tests.chaos.faults import Striker

T = TypeVar("T")


class StruckStore(Store):
    """A store whose commits are places, each named by its work: `commit:begin`, `commit:append`, …"""

    def __init__(self, address: Address, transactions: Transactions, flush: float, timeout: float) -> None:
        super().__init__(address, StruckTransactions(transactions), flush, timeout)

    async def _write(self, work: Callable[..., T], *args: object, **options: object) -> T:
        return await self._transactions.write(NamedWork(work, args, options))


class NamedWork:
    """A write that knows its name."""

    def __init__(self, work: Callable[..., Any], args: tuple[object, ...], options: dict[str, object]) -> None:
        plain = work.func if isinstance(work, partial) else work
        self.name: str = plain.__name__
        self._work, self._args, self._options = work, args, options

    def __call__(self, connection: Connection) -> Any:
        return self._work(connection, *self._args, **self._options)


class StruckTransactions(Transactions):
    """The connections and threads of another, with a place before and after each commit."""

    def __init__(self, inner: Transactions) -> None:
        vars(self).update(vars(inner))
        self._striker = Striker()

    async def write(self, work: Callable[[Connection], T], *, patience: float = PATIENCE) -> T:
        """See base class."""
        name = "append" if isinstance(work, GroupWrite) else getattr(work, "name", "other")

        def struck(connection: Connection) -> T:
            result = work(connection)
            self._striker.visit(f"commit:{name}", "before")
            return result

        result = await super().write(struck, patience=patience)
        await self._striker.visit_in_loop(f"commit:{name}", "after")
        return result


class StruckActivities(ClientInterceptor, Interceptor):
    """Given to the worker's client: a worker takes over what is an interceptor for workers too."""

    def __init__(self) -> None:
        self._striker = Striker()

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        """See base class."""
        return _Struck(next, self._striker)


class _Struck(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, striker: Striker) -> None:
        super().__init__(inner)
        self._striker = striker

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the name in the base class
        """See base class."""
        place = f"activity:{activity.info().activity_type.removeprefix('everturn.')}"
        await self._striker.visit_in_loop(place, "before")
        result = await super().execute_activity(input)
        await self._striker.visit_in_loop(place, "after")
        return result
