"""What is checked before a store is used."""

from __future__ import annotations

from sqlalchemy import Connection, exc

from everturn.errors import StoreUnavailable
from everturn.store import schema
from everturn.store.address import Address

SETUP = "run `everturn setup` with this store"


def check_file(address: Address, *, create: bool) -> None:
    """SQLite would create a missing file; raises StoreUnavailable instead, unless it shall be created."""
    path = address.path
    if path is None:
        return
    if not path.parent.is_dir():
        raise StoreUnavailable(address.safe, f"the folder {str(path.parent)!r} does not exist", "create the folder")
    if not create and not path.exists():
        raise StoreUnavailable(address.safe, "the file does not exist", SETUP)


def check_revision(connection: Connection, address: Address) -> None:
    """Raises StoreUnavailable if the tables are missing or not of this version."""
    found = schema.revision(connection)
    if found is None:
        raise StoreUnavailable(address.safe, "it has no tables yet", SETUP)
    if found != schema.REVISION:
        reason = f"its schema has revision {found}, this version of Everturn works with {schema.REVISION}"
        raise StoreUnavailable(address.safe, reason, f"{SETUP}, or install the version of Everturn that made it")


def migrated(connection: Connection, address: Address) -> None:
    """Creates or upgrades the tables. Raises StoreUnavailable if the database was made by a newer version."""
    from alembic.util import CommandError  # set-up only

    try:
        schema.migrate(connection)
    except CommandError as error:
        reason = f"its schema has revision {schema.revision(connection)}, which this version does not know"
        raise StoreUnavailable(address.safe, reason, "install the newer version of Everturn that made it") from error
    except exc.IntegrityError as error:
        raise StoreUnavailable(
            address.safe, "its tables clash with others of the same name", "use another database"
        ) from error
