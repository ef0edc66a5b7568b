"""Run by alembic, from `troyproxy.store.migrations` (which brings a connection) or from alembic's own command line.

On the command line the database is ``TROY_DATABASE_URL``, or the default file.
"""

from __future__ import annotations

import asyncio
import os

from alembic import context
from sqlalchemy import Connection

from troyproxy.store.database import create_engine, parse_url
from troyproxy.store.tables import METADATA


def migrate(connection: Connection) -> None:
    """Run the wanted migrations; SQLite cannot alter a table, so there it is copied (batch mode)."""
    context.configure(
        connection=connection,
        target_metadata=METADATA,
        compare_type=True,
        render_as_batch=connection.dialect.name == "sqlite",
    )
    with context.begin_transaction():
        context.run_migrations()


async def from_command_line() -> None:
    """Connect as the settings say, then migrate."""
    url = parse_url(os.environ.get("TROY_DATABASE_URL", "sqlite+aiosqlite:///./data/troy.db"))
    engine = create_engine(url, migrating=True)
    async with engine.begin() as connection:
        await connection.run_sync(migrate)
    await engine.dispose()


given = context.config.attributes.get("connection")
if given is None:
    asyncio.run(from_command_line())
else:
    migrate(given)
