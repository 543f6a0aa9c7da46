"""What alembic runs: the migrations on the connection that `everturn.store.schema` hands over."""

from __future__ import annotations

from alembic import context

from everturn.store.schema import VERSION_TABLE
from everturn.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
